"""Watermarks of readers that read several splits side by side: one generator for each, and the
least counts (Flink's FLIP-27 sources)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.source_api.split_watermarks import WatermarkMultiplexer
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark, WatermarkStatus
from tests.connectors.event_time_harness import BEGIN, END, EventTimeSource, SplitReader

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()
TICK_S = 0.2


def source_of(
    *steps: object, strategy: WatermarkStrategy = MONOTONOUS, batch_records: int = 100
) -> EventTimeSource:
    source = EventTimeSource(strategy, SplitReader, batch_records)
    source.reader.steps.extend(steps)
    source.read()
    source.pass_seconds(TICK_S)
    return source


def watermarks(source: EventTimeSource) -> list[int]:
    return [element[1] for element in source.output.elements if isinstance(element, tuple)]


def test_the_slowest_split_holds_the_watermark_back() -> None:
    source = source_of(("a", [100, 200]), ("b", [50]), ("a", [300]))
    assert source.output.elements[:4] == [100, 200, 50, 300]
    assert watermarks(source) == [49]
    source.reader.steps.append(("b", [250]))
    source.read()
    source.pass_seconds(TICK_S)
    assert watermarks(source) == [49, 249]


def test_a_split_that_has_begun_and_given_nothing_yet_holds_the_watermark_back() -> None:
    source = source_of(("a", BEGIN), ("b", BEGIN), ("a", [100, 200]))
    assert watermarks(source) == []
    source.reader.steps.append(("b", [50]))
    source.read()
    source.pass_seconds(TICK_S)
    assert watermarks(source) == [49]


def test_a_split_that_has_ended_holds_nothing_back() -> None:
    source = source_of(("a", [100]), ("b", [50]))
    source.reader.steps.append(("b", END))
    source.read()
    assert watermarks(source) == [49]
    source.read()  # the split is let go before the next poll
    assert watermarks(source) == [49, 99]


def test_a_split_that_ends_with_its_last_batch_still_stamps_all_of_it() -> None:
    source = source_of(("a", [1, 2, 3, 4, 5]), ("a", END), ("b", [4]), batch_records=2)
    assert source.output.elements == [1, 2, 3, 4, 5, ("w", 4), 4]
    assert source.operator._splits is not None
    assert list(source.operator._splits._splits) == ["b"]


def test_a_new_split_does_not_turn_time_back() -> None:
    source = source_of(("a", [100]))
    source.reader.steps.append(("b", [10]))
    source.read()
    source.pass_seconds(TICK_S)
    assert watermarks(source) == [99]
    source.reader.steps.extend([("a", [200]), ("b", [150])])
    source.read()
    source.pass_seconds(TICK_S)
    assert watermarks(source) == [99, 149]


def test_a_silent_split_counts_no_more_and_all_silent_make_the_reader_idle() -> None:
    source = source_of(
        ("a", [100]), ("b", [50]), strategy=MONOTONOUS.with_idleness(timedelta(seconds=1))
    )
    for now in range(101, 115):
        source.reader.steps.append(("a", [now]))
        source.read()
        source.pass_seconds(TICK_S)
    assert watermarks(source)[-1] == 113
    assert "idle" not in source.output.elements
    for _ in range(20):
        source.pass_seconds(TICK_S)
    assert source.output.elements[-1] == "idle"
    source.reader.steps.append(("b", [200]))
    source.read()
    source.pass_seconds(TICK_S)
    assert source.output.elements[-2:] == ["active", ("w", 199)]


def test_closing_ends_the_timers_of_all_splits() -> None:
    source = source_of(("a", [1]), ("b", [2]))
    source.operator.close()
    assert source.timers.next_due() is None


@pytest.mark.finding("bugs 1")
def test_nothing_tells_of_time_after_its_end() -> None:
    source = source_of(
        ("a", [1]), ("b", [2]), strategy=MONOTONOUS.with_idleness(timedelta(seconds=1))
    )
    source.reader.steps.append(("a", [100]))
    source.read()
    source.operator.end_event_time()
    told = list(source.output.elements)
    assert told[-2:] == ["active", ("w", MAX_TIMESTAMP)]
    for _ in range(20):
        source.pass_seconds(TICK_S)
    assert source.output.elements == told


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.one_of(st.integers(0, 100), st.sampled_from(["idle", "active", "add", "remove"])),
        ),
        max_size=60,
    )
)
def test_the_combined_watermark_is_the_least_of_the_active_splits_and_never_goes_back(
    steps: list[tuple[str, int | str]],
) -> None:
    multiplexer = WatermarkMultiplexer()
    model: dict[str, list[int | bool]] = {}
    greatest, idle = MIN_TIMESTAMP, False
    for split, what in steps:
        if what == "add" and split not in model:
            model[split] = [MIN_TIMESTAMP, False]
            out = multiplexer.add_split(split)
        elif what == "remove":
            model.pop(split, None)
            out = multiplexer.remove_split(split)
        elif split not in model or what == "add":
            continue
        elif isinstance(what, int):
            model[split][0] = max(model[split][0], what)
            out = multiplexer.update(split, Watermark(what))
        else:
            model[split][1] = what == "idle"
            out = multiplexer.update(split, WatermarkStatus(what == "idle"))
        active = [int(watermark) for watermark, asleep in model.values() if not asleep]
        expected: list[Watermark | WatermarkStatus] = []
        if model and idle == bool(active):
            idle = not active
            expected.append(WatermarkStatus(idle))
        if active and min(active) > greatest:
            greatest = min(active)
            expected.append(Watermark(greatest))
        assert out == expected
        assert (multiplexer.watermark, multiplexer.idle) == (greatest, idle)
