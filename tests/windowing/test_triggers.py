"""When windows are evaluated: each trigger by what it answers, registers, keeps and forgets."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from flinkpy.common.time import Time
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.datastream import DataStream
from flinkpy.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    GlobalWindow,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from flinkpy.testing import OneInputHarness
from tests.windowing.contexts import OneKey

CONTINUE = TriggerResult.CONTINUE
FIRE = TriggerResult.FIRE
FIRE_AND_PURGE = TriggerResult.FIRE_AND_PURGE
PURGE = TriggerResult.PURGE
WINDOW, NEXT = TimeWindow(0, 100), TimeWindow(100, 200)
ALL: list[Callable[[], Trigger[Any, Any]]] = [
    EventTimeTrigger.create,
    ProcessingTimeTrigger.create,
    lambda: CountTrigger.of(3),
    lambda: ContinuousEventTimeTrigger.of(Time.milliseconds(30)),
    lambda: ContinuousProcessingTimeTrigger.of(Time.milliseconds(30)),
    lambda: DeltaTrigger.of(5, lambda old, new: new - old),
    NeverTrigger,
    lambda: PurgingTrigger.of(CountTrigger.of(3)),
]


class Driven:
    """One trigger over one key."""

    def __init__(self, trigger: Trigger[Any, Any]) -> None:
        self.trigger, self.key = trigger, OneKey()
        self.gone: set[TimeWindow] = set()

    def element(self, timestamp: int, window: Any = WINDOW, value: Any = "x") -> TriggerResult:
        return self.trigger.on_element(value, timestamp, window, self.key.of(window))

    def watermark(self, timestamp: int) -> list[tuple[Any, TriggerResult]]:
        """The answers to all timers that are due, in order."""
        self.key.watermark = timestamp
        return self._due(self.key.event_timers, timestamp, self.trigger.on_event_time)

    def clock(self, now: int) -> list[tuple[Any, TriggerResult]]:
        self.key.now = now
        return self._due(self.key.processing_timers, now, self.trigger.on_processing_time)

    def _due(
        self, timers: set[tuple[int, Any]], now: int, call: Any
    ) -> list[tuple[Any, TriggerResult]]:
        answers = []
        while due := sorted(timer for timer in timers if timer[0] <= now):
            time, window = due[0]
            timers.remove(due[0])
            # the operator passes over timers of windows that were merged away
            if window not in self.gone:
                answers.append((time, call(time, window, self.key.of(window))))
        return answers

    def merge(self, result: TimeWindow, *windows: TimeWindow) -> None:
        self.trigger.on_merge(result, self.key.of(result, windows))
        self.gone.update(windows)
        for window in windows:
            self.trigger.clear(window, self.key.of(window))

    @property
    def left(self) -> tuple[Any, ...]:
        return self.key.cells, self.key.event_timers, self.key.processing_timers


def test_results_say_whether_to_evaluate_and_whether_to_drop() -> None:
    assert [
        (each.is_fire(), each.is_purge()) for each in (CONTINUE, FIRE, FIRE_AND_PURGE, PURGE)
    ] == [(False, False), (True, False), (True, True), (False, True)]


@pytest.mark.parametrize("make", ALL)
def test_clearing_a_window_leaves_nothing_of_it_and_all_of_others(
    make: Callable[[], Trigger[Any, Any]],
) -> None:
    driven, untouched = Driven(make()), Driven(make())
    for window in (WINDOW, NEXT):
        driven.element(window.start + 5, window, 7)
        driven.element(window.start + 6, window, 8)
    untouched.element(NEXT.start + 5, NEXT, 7)
    untouched.element(NEXT.start + 6, NEXT, 8)
    driven.trigger.clear(WINDOW, driven.key.of(WINDOW))
    assert driven.left == untouched.left
    driven.trigger.clear(NEXT, driven.key.of(NEXT))
    assert driven.left == ({}, set(), set())


@pytest.mark.parametrize("make", ALL)
def test_triggers_travel_with_the_program(make: Callable[[], Trigger[Any, Any]]) -> None:
    trigger = make()
    if isinstance(trigger, DeltaTrigger):
        trigger = DeltaTrigger.of(5, max)
    assert repr(pickle.loads(pickle.dumps(trigger))) == repr(trigger)


# -- event time, processing time -------------------------------------------------------------------


def test_an_event_time_trigger_fires_once_at_the_windows_end() -> None:
    driven = Driven(EventTimeTrigger.create())
    assert [driven.element(5), driven.element(7)] == [CONTINUE, CONTINUE]
    assert driven.watermark(98) == []
    assert driven.watermark(99) == [(99, FIRE)]
    assert driven.watermark(500) == []


def test_each_late_record_fires_an_event_time_trigger_at_once() -> None:
    driven = Driven(EventTimeTrigger.create())
    driven.watermark(99)
    assert [driven.element(5), driven.element(6)] == [FIRE, FIRE]
    assert driven.key.event_timers == set()


def test_an_event_time_trigger_ignores_other_timers() -> None:
    driven = Driven(EventTimeTrigger.create())
    assert driven.trigger.on_event_time(50, WINDOW, driven.key.of(WINDOW)) is CONTINUE
    assert driven.trigger.on_processing_time(99, WINDOW, driven.key.of(WINDOW)) is CONTINUE


def test_a_merged_event_time_window_fires_at_its_new_end() -> None:
    driven = Driven(EventTimeTrigger.create())
    driven.element(0, TimeWindow(0, 10))
    driven.element(8, TimeWindow(8, 18))
    driven.merge(TimeWindow(0, 18), TimeWindow(0, 10), TimeWindow(8, 18))
    assert driven.key.event_timers == {(17, TimeWindow(0, 18))}
    driven.watermark(20)
    driven.merge(TimeWindow(0, 19), TimeWindow(0, 18))
    # the watermark has passed: the record that caused it fires by itself
    assert driven.key.event_timers == set()


def test_a_processing_time_trigger_fires_at_the_windows_end() -> None:
    driven = Driven(ProcessingTimeTrigger.create())
    driven.key.now = 5
    assert [driven.element(0), driven.element(0)] == [CONTINUE, CONTINUE]
    assert driven.clock(98) == []
    assert driven.clock(99) == [(99, FIRE)]
    driven.merge(TimeWindow(0, 120), WINDOW)
    assert driven.key.processing_timers == {(119, TimeWindow(0, 120))}
    assert driven.trigger.on_event_time(99, WINDOW, driven.key.of(WINDOW)) is CONTINUE


class Forgetful(EventTimeTrigger):
    """Forgets to return what its nested calls gave."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        super().on_element(element, timestamp, window, ctx)


class ForgetfulAtTheEnd(EventTimeTrigger):
    def on_event_time(self, time: int, window: Any, ctx: Any) -> Any:
        super().on_event_time(time, window, ctx)


@pytest.mark.finding("bugs 12")
@pytest.mark.parametrize(
    "trigger", [Forgetful(), ForgetfulAtTheEnd(), PurgingTrigger.of(Forgetful())], ids=repr
)
def test_a_trigger_that_returns_nothing_is_told(trigger: Trigger[Any, Any]) -> None:
    def windowed(stream: DataStream) -> DataStream:
        keyed = stream.key_by(lambda record: record)
        return (
            keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).trigger(trigger).reduce(max)
        )

    def run() -> None:
        with OneInputHarness.of(windowed) as harness:
            harness.push("a", timestamp=1)
            harness.end_input()

    with pytest.raises(UserCodeError, match=r"a trigger returns .* this one returned None"):
        run()


# -- count, delta, never ---------------------------------------------------------------------------


def test_a_count_trigger_counts_each_window_for_itself() -> None:
    driven = Driven(CountTrigger.of(3))
    assert [
        driven.element(0, window) for window in (WINDOW, NEXT, WINDOW, WINDOW, WINDOW, NEXT, NEXT)
    ] == [CONTINUE, CONTINUE, CONTINUE, FIRE, CONTINUE, CONTINUE, FIRE]


def test_merged_windows_have_their_counts_added() -> None:
    driven = Driven(CountTrigger.of(3))
    driven.element(0, WINDOW)
    driven.element(0, NEXT)
    both = TimeWindow(0, 200)
    driven.merge(both, WINDOW, NEXT)
    assert driven.element(0, both) is FIRE
    assert driven.key.cells == {}


def test_a_delta_trigger_compares_with_the_record_at_the_last_firing() -> None:
    driven = Driven(DeltaTrigger.of(5, lambda old, new: new - old))
    assert [driven.element(0, value=value) for value in (0, 5, 6, 11, 12, 3)] == [
        CONTINUE,
        CONTINUE,
        FIRE,
        CONTINUE,
        FIRE,
        CONTINUE,
    ]
    assert not driven.trigger.can_merge()


def test_a_never_trigger_never_fires() -> None:
    driven = Driven(NeverTrigger())
    context = driven.key.of(GlobalWindow.get())
    assert driven.element(0, GlobalWindow.get()) is CONTINUE
    assert driven.trigger.on_event_time(0, GlobalWindow.get(), context) is CONTINUE
    assert driven.trigger.on_processing_time(0, GlobalWindow.get(), context) is CONTINUE


# -- continuous ------------------------------------------------------------------------------------


def test_a_continuous_event_time_trigger_fires_at_multiples_and_at_the_end() -> None:
    driven = Driven(ContinuousEventTimeTrigger.of(Time.milliseconds(30)))
    assert driven.element(5) is CONTINUE
    assert driven.watermark(29) == []
    assert driven.watermark(45) == [(30, FIRE)]
    assert driven.element(50) is CONTINUE
    assert driven.watermark(98) == [(60, FIRE), (90, FIRE)]
    assert driven.watermark(1000) == [(99, FIRE)]
    assert driven.element(5) is FIRE  # late


def test_a_continuous_trigger_starts_at_the_multiple_behind_its_first_record() -> None:
    driven = Driven(ContinuousEventTimeTrigger(30))
    driven.element(61)
    assert driven.watermark(98) == [(90, FIRE)]
    assert driven.trigger.on_processing_time(90, WINDOW, driven.key.of(WINDOW)) is CONTINUE


def test_merged_continuous_windows_fire_at_the_earliest_of_their_moments() -> None:
    driven = Driven(ContinuousEventTimeTrigger(30))
    early, late, both = TimeWindow(0, 50), TimeWindow(40, 130), TimeWindow(0, 130)
    driven.element(5, early)
    driven.element(70, late)
    driven.merge(both, early, late)
    assert driven.watermark(35) == [(30, FIRE)]
    assert driven.watermark(70) == [(60, FIRE)]


def test_a_continuous_processing_time_trigger_fires_by_the_clock_and_at_the_end() -> None:
    driven = Driven(ContinuousProcessingTimeTrigger.of(Time.milliseconds(30)))
    driven.key.now = 40
    assert driven.element(5) is CONTINUE
    assert driven.clock(59) == []
    assert driven.clock(75) == [(60, FIRE)]
    assert driven.clock(500) == [(90, FIRE), (99, FIRE)]
    assert driven.key.processing_timers == set()
    assert driven.trigger.on_event_time(90, WINDOW, driven.key.of(WINDOW)) is CONTINUE


def test_merged_continuous_processing_time_windows_keep_the_earliest_moment() -> None:
    driven = Driven(ContinuousProcessingTimeTrigger(30))
    driven.element(0, WINDOW)
    driven.key.now = 40
    driven.element(0, NEXT)
    driven.merge(TimeWindow(0, 200), WINDOW, NEXT)
    assert driven.clock(59) == [(30, FIRE)]
    assert driven.clock(60) == [(60, FIRE)]


# -- purging ---------------------------------------------------------------------------------------


def test_a_purging_trigger_drops_what_the_inner_one_fires() -> None:
    driven = Driven(PurgingTrigger.of(EventTimeTrigger.create()))
    assert driven.element(5) is CONTINUE
    assert driven.watermark(99) == [(99, FIRE_AND_PURGE)]
    assert driven.element(5) is FIRE_AND_PURGE
    assert driven.trigger.can_merge()
    assert not PurgingTrigger.of(NeverTrigger()).can_merge()


def test_a_purging_trigger_passes_purges_clocks_and_merges_on() -> None:
    class Drops(NeverTrigger):
        def on_element(
            self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
        ) -> TriggerResult:
            return PURGE

    assert Driven(PurgingTrigger.of(Drops())).element(0) is PURGE
    driven = Driven(PurgingTrigger.of(ProcessingTimeTrigger()))
    driven.element(0)
    driven.merge(TimeWindow(0, 120), WINDOW)
    assert driven.clock(119) == [(119, FIRE_AND_PURGE)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountTrigger.of(0), "number of records"),
        (
            lambda: ContinuousEventTimeTrigger.of(Time.seconds(0)),
            "ContinuousEventTimeTrigger: the interval",
        ),
        (lambda: ContinuousProcessingTimeTrigger.of(30), "is a Time or a Duration"),  # type: ignore[arg-type]
        (lambda: PurgingTrigger.of("count"), "takes a trigger"),  # type: ignore[arg-type]
        (lambda: DeltaTrigger.of(1, 2), "delta function"),
    ],
)
def test_mistakes_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        make()
