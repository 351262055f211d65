"""The window operator against Flink's definition of windows, worked out anew for every record and
watermark, over random streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.clock import Turns
from flinkpy.windowing.assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from flinkpy.windowing.general.contents import AggregateContents, ListContents, ReduceContents
from flinkpy.windowing.general.per_window.window_timers import WindowTimers
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from flinkpy.windowing.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.windowing.harness import FIRST, Mean, WindowHarness, add, numbers

LATE = OutputTag("late")
ASSIGNERS: dict[str, Any] = {
    "tumbling": TumblingEventTimeWindows(10, 3),
    "sliding": SlidingEventTimeWindows(12, 5, 1),
    "sparse": SlidingEventTimeWindows(3, 7),
    "sessions": EventTimeSessionWindows(6),
    "dynamic sessions": DynamicEventTimeSessionWindows(lambda record: 1 + record[1] % 9),
}
TRIGGERS: dict[str, Any] = {
    "default": None,
    "purging": PurgingTrigger(EventTimeTrigger()),
    "count": CountTrigger(3),
}
CONTENTS: dict[str, tuple[Any, Any]] = {
    "reduce": (ReduceContents(add), None),
    "aggregate": (AggregateContents(Mean()), None),
    "process": (ListContents(), numbers),
}

# A step is a record (key, number, timestamp), or a watermark (None, None, how far it goes).
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 60)),
        st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 60)),
        st.tuples(st.none(), st.none(), st.integers(1, 12)),
    ),
    max_size=40,
)
LATENESS = st.sampled_from([0, 7])


@dataclass
class Span:
    """An open window of the model: its records, oldest first, and how many came since its trigger
    counted last."""

    start: int
    end: int
    records: list[Any] = field(default_factory=list)
    counted: int = 0
    fired: bool = False

    @property
    def last(self) -> int:
        return self.end - 1


@dataclass
class Model:
    """Windows as Flink defines them, without timers: after each step every window is looked at."""

    kind: str
    trigger: str
    lateness: int
    watermark: int = -(2**63)
    open: dict[str, list[Span]] = field(default_factory=dict)
    fired: list[Any] = field(default_factory=list)
    late: list[Any] = field(default_factory=list)

    def spans(self, record: Any, stamp: int) -> list[tuple[int, int]]:
        if self.kind == "sessions":
            return [(stamp, stamp + 6)]
        if self.kind == "dynamic sessions":
            return [(stamp, stamp + 1 + record[1] % 9)]
        size, slide, offset = {"tumbling": (10, 10, 3), "sliding": (12, 5, 1), "sparse": (3, 7, 0)}[
            self.kind
        ]
        return [
            (start, start + size)
            for start in range(-200, 200)
            if (start - offset) % slide == 0 and start <= stamp < start + size
        ]

    def element(self, record: Any, stamp: int) -> None:
        taken = False
        for start, end in self.spans(record, stamp):
            span = (
                self.merged(record[0], start, end)
                if "sessions" in self.kind
                else self.existing(record[0], start, end)
            )
            if span.last + self.lateness <= self.watermark:
                continue
            taken = True
            opened = self.open.setdefault(record[0], [])
            if span not in opened:
                opened.append(span)
            span.records.append(record)
            if self.trigger == "count":
                span.counted += 1
                if span.counted >= 3:
                    span.counted = 0
                    self.fire(record[0], span)
            elif span.last <= self.watermark:
                span.fired = True
                self.fire(record[0], span)
        if not taken and stamp + self.lateness <= self.watermark:
            self.late.append((record, stamp))

    def existing(self, key: str, start: int, end: int) -> Span:
        return next(
            (span for span in self.open.get(key, []) if (span.start, span.end) == (start, end)),
            Span(start, end),
        )

    def merged(self, key: str, start: int, end: int) -> Span:
        """The session around the record, and every open session that meets it."""
        met = [span for span in self.open.get(key, []) if span.start <= end and start <= span.end]
        if not met:
            return Span(start, end)
        if len(met) == 1 and met[0].start <= start and end <= met[0].end:
            return met[0]
        whole = Span(
            min(start, *(span.start for span in met)), max(end, *(span.end for span in met))
        )
        for span in sorted(met, key=lambda span: span.start):
            whole.records += span.records
            whole.counted += span.counted
            self.open[key].remove(span)
        if whole.last + self.lateness > self.watermark:
            self.open[key].append(whole)
        return whole

    def fire(self, key: str, span: Span) -> None:
        if span.records:
            self.fired.append((key, span.start, span.end, sorted(span.records)))
        if self.trigger == "purging":
            span.records = []

    def advance(self, watermark: int) -> None:
        self.watermark = watermark
        for key, spans in self.open.items():
            for span in spans:
                if self.trigger != "count" and not span.fired and span.last <= watermark:
                    span.fired = True
                    self.fire(key, span)
            self.open[key] = [span for span in spans if span.last + self.lateness > watermark]


def described(key: Any, window: Any, inputs: Any) -> Any:
    return [(key, window.start, window.end, sorted(inputs))]


def run(windows: WindowHarness, steps: list[Any], watermark: int = 0) -> int:
    """Records between watermarks go in as one batch."""
    batch: list[Any] = []
    for key, number, time in steps:
        if key is None:
            if batch:
                windows.push(*batch)
            batch, watermark = [], watermark + time
            windows.watermark(watermark)
        else:
            batch.append(((key, number), time))
    if batch:
        windows.push(*batch)
    return watermark


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("kind", ASSIGNERS)
@given(lateness=LATENESS, steps=STEPS)
def test_the_operator_does_what_the_definition_says(
    kind: str, trigger: str, lateness: int, steps: list[Any]
) -> None:
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(
                ASSIGNERS[kind], TRIGGERS[trigger], allowed_lateness=lateness, late_tag=LATE
            ),
            ListContents(),
            window_function=described,
        )
    )
    model = Model(kind, trigger, lateness)
    watermark = 0
    for key, number, time in steps:
        if key is None:
            watermark += time
            windows.watermark(watermark)
            model.advance(watermark)
        else:
            windows.push(((key, number), time))
            model.element((key, number), time)
        assert sorted(windows.values()) == sorted(model.fired)
        model.fired = []
    assert windows.output.side.get("late", []) == model.late
    windows.end()
    model.advance(2**63 - 1)
    assert sorted(windows.values()) == sorted(model.fired)
    assert windows.kept == 0


@pytest.mark.parametrize("kind", ASSIGNERS)
@given(contents=st.sampled_from(sorted(CONTENTS)), lateness=LATENESS, steps=STEPS)
def test_whatever_is_kept_of_the_records_the_results_are_those_of_all_of_them(
    kind: str, contents: str, lateness: int, steps: list[Any]
) -> None:
    """And batching changes nothing."""
    kept, function = CONTENTS[contents]
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(ASSIGNERS[kind], allowed_lateness=lateness, late_tag=LATE),
            kept,
            window_function=function,
        )
    )
    model = Model(kind, "default", lateness)
    run(windows, steps)
    windows.end()
    watermark = 0
    for key, number, time in steps:
        if key is None:
            watermark += time
            model.advance(watermark)
        else:
            model.element((key, number), time)
    model.advance(2**63 - 1)
    assert sorted(map(comparable, windows.take())) == sorted(
        (expected(contents, key, records), end - 1) for key, _, end, records in model.fired
    )
    assert windows.output.side.get("late", []) == model.late
    assert windows.kept == 0


def comparable(result: Any) -> Any:
    value, stamp = result
    return (
        (value[0], sorted(value[1]))
        if isinstance(value, tuple) and isinstance(value[1], list)
        else value
    ), stamp


def expected(contents: str, key: str, records: list[Any]) -> Any:
    total = [number for _, number in records]
    return {
        "reduce": (key, sum(total)),
        "aggregate": sum(total) / len(total),
        "process": (key, sorted(total)),
    }[contents]


@pytest.mark.parametrize("kind", ASSIGNERS)
@given(
    trigger=st.sampled_from(sorted(TRIGGERS)),
    lateness=LATENESS,
    before=STEPS,
    behind=STEPS,
    copying=st.booleans(),
)
def test_restored_is_as_good_as_never_failed(
    kind: str, trigger: str, lateness: int, before: list[Any], behind: list[Any], copying: bool
) -> None:
    def operator() -> WindowOperator:
        return WindowOperator(
            FIRST,
            WindowingStrategy(
                ASSIGNERS[kind], TRIGGERS[trigger], allowed_lateness=lateness, late_tag=LATE
            ),
            ReduceContents(add),
        )

    first = WindowHarness(operator())
    watermark = run(first, before)
    first.watermark(watermark).take()
    first.output.side.clear()
    again = WindowHarness(operator(), first.snapshot(), copying=copying).watermark(watermark)
    assert again.take() == []
    for windows in (first, again):
        run(windows, behind, watermark)
        windows.end()
    assert sorted(first.take()) == sorted(again.take())
    assert first.output.side == again.output.side
    assert first.kept == again.kept == 0


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "sessions", "dynamic sessions"])
@given(
    counted=st.booleans(),
    steps=st.lists(
        st.tuples(
            st.integers(0, 15),
            st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=3),
        ),
        max_size=15,
    ),
)
def test_windows_of_the_clock_are_those_of_event_time_with_the_clock_as_timestamp(
    kind: str, counted: bool, steps: list[Any]
) -> None:
    by_clock = {
        "tumbling": TumblingProcessingTimeWindows(10, 3),
        "sliding": SlidingProcessingTimeWindows(12, 5, 1),
        "sessions": ProcessingTimeSessionWindows(6),
        "dynamic sessions": DynamicProcessingTimeSessionWindows(lambda record: 1 + record[1] % 9),
    }
    trigger = CountTrigger(3) if counted else None
    clock, event = (
        WindowHarness(
            WindowOperator(
                FIRST, WindowingStrategy(assigner, trigger), ListContents(), window_function=numbers
            )
        )
        for assigner in (by_clock[kind], ASSIGNERS[kind])
    )
    for wait, records in [*steps, (40, [])]:
        for _ in range(wait):
            clock.timers.advance(0.001)
            event.watermark(clock.timers.now_ms() - 1)
        if records:
            clock.push(*[(record, None) for record in records])
            event.push(*[(record, clock.timers.now_ms()) for record in records])
        assert in_order(clock) == in_order(event)
    assert clock.kept == event.kept == 0


def in_order(windows: WindowHarness) -> list[str]:
    return sorted(map(repr, windows.take()))


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["add", "add", "remove", "due"]),
            st.integers(0, 20),
            st.sampled_from("abc"),
            st.sampled_from("xy"),
        )
    )
)
def test_timers_are_a_set_that_gives_up_what_is_due_in_order(steps: list[Any]) -> None:
    timers, model = WindowTimers(), set()
    for action, moment, key, window in steps:
        if action == "add":
            timers.add(moment, key, window)
            model.add((moment, (key, window)))
        elif action == "remove":
            timers.remove(moment, key, window)
            model.discard((moment, (key, window)))
        else:
            due = list(timers.due(moment))
            assert [each[0] for each in due] == sorted(each[0] for each in due)
            assert set(due) == {each for each in model if each[0] <= moment}
            assert len(due) == len(set(due))
            model -= set(due)
        assert len(timers) == len(model)
        assert timers.next_moment() == min((each[0] for each in model), default=None)
    again = WindowTimers()
    again.restore(timers.freeze()(Turns()))
    assert set(again.due(10**6)) == model


def test_timers_added_and_removed_while_others_fire_count_at_once() -> None:
    timers, seen = WindowTimers(), []
    for window in "pqrs":
        timers.add(5, "a", window)
    for moment, (_, window) in timers.due(9):
        seen.append((moment, window))
        if window == "p":
            timers.remove(5, "a", "q")
            timers.add(3, "a", "earlier")
            timers.add(7, "a", "later")
            timers.add(10, "a", "not yet")
        elif window == "r":
            timers.remove(5, "a", "s")
            timers.add(5, "a", "t")
    assert seen == [(5, "p"), (3, "earlier"), (5, "r"), (5, "t"), (7, "later")]
    assert len(timers) == 1


def test_moments_nobody_waits_for_any_more_do_not_pile_up() -> None:
    timers = WindowTimers()
    for moment in range(10_000):
        timers.add(moment, "a", "x")
        timers.remove(moment, "a", "x")
    assert len(timers._moments) < 200
