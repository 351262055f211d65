"""Windows and joins behind several channels, some of which fall silent and come back: event time is
what the active ones say, and so are the results.

The watermark is worked out by the valve's rules, the results by the rules of windows and joins;
both are written out as models elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, RowBatch, Watermark, WatermarkStatus
from flinkpy.graph.partitioning import KeySpec
from flinkpy.runtime.valve import WatermarkValve
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import do_all
from tests.operators.test_interval_join import model as interval_model
from tests.operators.test_interval_join import subtasks
from tests.runtime.test_valve_cases import Model as ValveModel
from tests.windowing import slice_harness
from tests.windowing.harness import FIRST, WindowHarness, add
from tests.windowing.slice_harness import row_windows
from tests.windowing.test_window_properties import (
    ASSIGNERS,
    CONTENTS,
    LATE,
    Model,
    comparable,
    expected,
)

CHANNELS = 3
TIMES = st.integers(0, 60)
CHANNEL = st.integers(0, CHANNELS - 1)

# A step is a record (key, number, time), or (channel, watermark), (channel, "idle"), (channel,
# "active"), (channel, "end").
CONTROL = st.one_of(
    st.tuples(CHANNEL, TIMES),
    st.tuples(CHANNEL, TIMES),
    st.tuples(CHANNEL, st.sampled_from(["idle", "active"])),
)
STEPS = st.lists(
    st.one_of(st.tuples(st.sampled_from("abc"), st.integers(0, 50), TIMES), CONTROL, CONTROL),
    max_size=40,
)


class Channels:
    """The valve and its model side by side; what goes out of both must be the same."""

    def __init__(self) -> None:
        self.valve, self.model = WatermarkValve(CHANNELS), ValveModel(CHANNELS)

    def __call__(self, channel: int, what: int | str) -> list[Watermark | WatermarkStatus]:
        if isinstance(what, int):
            out = self.valve.watermark_from(channel, Watermark(what))
        else:
            out = self.valve.status_from(channel, WatermarkStatus(what == "idle"))
        said = [
            element.timestamp
            if isinstance(element, Watermark)
            else "idle"
            if element.idle
            else "active"
            for element in out
        ]
        assert said == self.model(channel, what)
        return out


@pytest.mark.parametrize("contents", sorted(CONTENTS))
@pytest.mark.parametrize("kind", ASSIGNERS)
@settings(max_examples=20)
@given(lateness=st.sampled_from([0, 7]), steps=STEPS)
def test_windows_go_by_the_channels_that_are_active(
    kind: str, contents: str, lateness: int, steps: list[Any]
) -> None:
    kept, function = CONTENTS[contents]
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(ASSIGNERS[kind], allowed_lateness=lateness, late_tag=LATE),
            kept,
            window_function=function,
        )
    )
    channels, model, statuses = Channels(), Model(kind, "default", lateness), []
    for step in steps:
        if len(step) == 3:
            key, number, time = step
            windows.push(((key, number), time))
            model.element((key, number), time)
            continue
        for element in channels(*step):
            if isinstance(element, Watermark):
                do_all(windows.operator.process_watermark(element))
                model.advance(element.timestamp)
            else:
                windows.operator.process_watermark_status(element)
                statuses.append(element)
        assert sorted(map(comparable, windows.take())) == sorted(
            (expected(contents, key, records), end - 1) for key, _, end, records in model.fired
        ), "as soon as the watermark says so"
        model.fired = []
    windows.end()
    model.advance(MAX_TIMESTAMP)
    assert sorted(map(comparable, windows.take())) == sorted(
        (expected(contents, key, records), end - 1) for key, _, end, records in model.fired
    )
    assert windows.output.side.get("late", []) == model.late
    assert [
        element for element in windows.output.controls if isinstance(element, WatermarkStatus)
    ] == statuses
    assert windows.kept == 0


@settings(max_examples=40)
@given(
    slicing=slice_harness.SLICINGS,
    kind=st.sampled_from(["sum", "reduce"]),
    lateness=st.sampled_from([0, 5]),
    steps=STEPS,
)
def test_slices_go_by_the_channels_that_are_active(
    slicing: Slicing, kind: str, lateness: int, steps: list[Any]
) -> None:
    operator = row_windows(
        KeySpec(lambda record: record[0]),
        slicing,
        True,
        kind,
        1,
        add,
        None,
        lateness,
        slice_harness.LATE,
    )
    alone, channels = slice_harness.Alone(operator), Channels()
    model = slice_harness.Model(
        slicing,
        lambda records: (records[0][0], sum(number for _, number in records)),
        lambda record: record[0],
        lateness,
    )
    for step in [
        *steps,
        *[(channel, what) for channel in range(CHANNELS) for what in ("active", MAX_TIMESTAMP)],
    ]:
        if len(step) == 3:
            for to in (alone, model):
                to.push(RowBatch([step[:2]], [step[2]]))
            continue
        for element in channels(*step):
            if isinstance(element, Watermark):
                alone.push(element)
                model.push(element)
    assert slice_harness.by_time(alone.results) == slice_harness.by_time(model.results)
    assert alone.out.side == model.late


@settings(max_examples=40)
@given(lower=st.integers(-8, 8), width=st.integers(0, 10), steps=STEPS)
def test_an_interval_join_goes_by_the_channels_that_are_active(
    lower: int, width: int, steps: list[Any]
) -> None:
    """Records of even numbers come from the left, the others from the right."""
    channels = Channels()
    plain: list[Any] = []
    for number, step in enumerate(steps):
        if len(step) == 3:
            plain.append((step[1] % 2, [((step[0], number), step[2])]))
        else:
            plain += [
                element.timestamp for element in channels(*step) if isinstance(element, Watermark)
            ]
    plain.append(MAX_TIMESTAMP)
    pairs, late = interval_model(plain, lower, lower + width)
    output = subtasks(lower, lower + width, 2, ("left", "right")).run(plain)
    assert Counter(result[:4] for result, _ in output.main) == pairs
    assert [set(output.sides.get(name, ())) for name in ("left", "right")] == late
