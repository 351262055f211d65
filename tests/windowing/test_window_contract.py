"""What the window operator owes to assigners, triggers, functions and evictors: when each is
called, with what, how often; and what it never does.

The cases are those of Flink's contract of the window operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.errors import UserCodeError
from flinkpy.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor
from flinkpy.windowing.assigners import (
    GlobalWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from flinkpy.windowing.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from flinkpy.windowing.general.contents import AggregateContents, ListContents, ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows, ProcessingTimeSessionWindows
from flinkpy.windowing.triggers import (
    CountTrigger,
    EventTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
)
from flinkpy.windowing.window_functions import ProcessWindowFunction
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from flinkpy.windowing.windows import TimeWindow
from tests.windowing.harness import FIRST, Mean, WindowHarness, listing, summing

CONTINUE = TriggerResult.CONTINUE
FIRE = TriggerResult.FIRE
PURGE = TriggerResult.PURGE
FIRE_AND_PURGE = TriggerResult.FIRE_AND_PURGE
TEN = TumblingEventTimeWindows(10)


class Told(Trigger[Any, Any]):
    """Does what the test says, and keeps what it was told."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.element = self.event = self.clock = CONTINUE
        self.timers: list[tuple[str, int]] = []  # set with each record

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        self.calls.append(("element", element, timestamp, tuple(window)))
        for call, time in self.timers:
            getattr(ctx, call)(time)
        return self.element

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        self.calls.append(("event time", time, tuple(window)))
        return self.event

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        self.calls.append(("clock", time, tuple(window)))
        return self.clock

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        self.calls.append(("merge", tuple(window)))

    def clear(self, window: Any, ctx: Any) -> None:
        self.calls.append(("clear", tuple(window)))

    def of(self, kind: str) -> list[Any]:
        return [call[1:] for call in self.calls if call[0] == kind]


REGISTER, DELETE = "register_event_time_timer", "delete_event_time_timer"


def harness(assigner: Any, trigger: Any = None, **options: Any) -> WindowHarness:
    return listing(assigner, trigger, **options)


# -- assigners -------------------------------------------------------------------------------------


class Chosen(WindowAssigner[Any, Any]):
    """Assigns the windows that the test says, and counts how often it is asked."""

    def __init__(self, *windows: tuple[int, int]) -> None:
        self.windows = [TimeWindow(*window) for window in windows]
        self.asked = []  # type: ignore[var-annotated]

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        self.asked.append((element, timestamp))
        return self.windows

    def get_default_trigger(self, env: Any = None) -> Any:
        return EventTimeTrigger()

    def get_window_serializer(self) -> Any:
        raise NotImplementedError

    def is_event_time(self) -> bool:
        return True


def test_an_assigner_is_asked_once_for_each_record() -> None:
    assigner = Chosen((0, 10))
    harness(assigner).push((("a", 1), 3), (("b", 2), 4)).push((("a", 1), 5))
    assert assigner.asked == [(("a", 1), 3), (("b", 2), 4), (("a", 1), 5)]


def test_a_record_goes_into_every_window_that_is_assigned() -> None:
    windows = harness(Chosen((0, 10), (5, 7), (100, 200))).push((("a", 1), 3))
    assert [stamp for _, stamp in windows.end().take()] == [6, 9, 199]


@pytest.mark.parametrize("given", [None, TimeWindow(0, 10)])
def test_an_assigner_that_gives_no_list_is_told_what_to_give(given: Any) -> None:
    assigner = Chosen()
    assigner.windows = given
    with pytest.raises(UserCodeError) as caught:
        harness(assigner).push((("a", 1), 3))
    assert (
        f"Chosen.assign_windows() gives a list of windows, [] for none; this is {given!r}\n"
        in str(caught.value)
    )
    assert caught.value.record == "('a', 1)"


def test_a_record_without_windows_is_nowhere_and_not_late() -> None:
    windows = harness(Chosen()).push((("a", 1), 3))
    assert windows.end().take() == []
    assert (windows.operator.late_records_dropped, windows.kept) == (0, 0)


def test_a_record_without_windows_behind_the_watermark_is_late() -> None:
    windows = harness(Chosen()).watermark(5).push((("a", 1), 5), (("a", 2), 6))
    assert windows.operator.late_records_dropped == 1


# -- triggers --------------------------------------------------------------------------------------


def test_a_trigger_is_told_of_each_record_once_for_each_of_its_windows() -> None:
    trigger = Told()
    harness(SlidingEventTimeWindows(4, 2), trigger).push((("a", 1), 5))
    assert sorted(trigger.of("element")) == [(("a", 1), 5, (2, 6)), (("a", 1), 5, (4, 8))]


def test_a_trigger_is_not_told_of_records_that_are_late() -> None:
    trigger = Told()
    harness(SlidingEventTimeWindows(4, 2), trigger).watermark(5).push((("a", 1), 5), (("a", 2), 1))
    assert trigger.of("element") == [(("a", 1), 5, (4, 8))]


def test_a_trigger_without_a_timer_hears_only_of_the_windows_end_of_life() -> None:
    trigger = Told()
    windows = harness(TEN, trigger, allowed_lateness=5).push((("a", 1), 1)).watermark(13)
    assert trigger.of("event time") == trigger.of("clear") == []
    windows.watermark(14)
    assert trigger.of("event time") == [(14, (0, 10))]
    assert trigger.of("clear") == [((0, 10),)]


def test_a_trigger_is_cleared_once_when_the_window_is_done_with_and_not_when_it_fires_or_purges() -> (
    None
):
    trigger = Told()
    windows = harness(TEN, trigger)
    for trigger.element in (FIRE, PURGE, FIRE_AND_PURGE):
        windows.push((("a", 1), 1))
    assert trigger.of("clear") == []
    windows.end()
    assert trigger.of("clear") == [((0, 10),)]


@pytest.mark.parametrize("answer", [FIRE, FIRE_AND_PURGE])
def test_what_a_trigger_answers_at_the_end_of_life_is_still_done(answer: TriggerResult) -> None:
    trigger = Told()
    windows = harness(TEN, trigger).push((("a", 1), 1))
    trigger.event = answer
    assert windows.watermark(9).take() == [(("a", [1]), 9)]
    assert windows.kept == 0


def test_a_timer_that_was_deleted_does_not_fire() -> None:
    trigger = Told()
    trigger.timers = [(REGISTER, 4), (REGISTER, 5), (DELETE, 4)]
    harness(TEN, trigger).push((("a", 1), 1)).watermark(8)
    assert trigger.of("event time") == [(5, (0, 10))]


def test_timers_are_of_one_key_and_window() -> None:
    trigger = Told()
    trigger.timers = [(REGISTER, 15)]
    windows = harness(TEN, trigger, allowed_lateness=10).push(
        (("a", 1), 1), (("b", 1), 1), (("a", 2), 12)
    )
    trigger.event = FIRE
    assert sorted(windows.watermark(15).values()) == [("a", [1]), ("a", [2]), ("b", [1])]


def test_a_timer_that_is_set_for_the_past_fires_with_the_next_watermark() -> None:
    trigger = Told()
    trigger.timers = [(REGISTER, 2)]
    windows = harness(TEN, trigger).watermark(4).push((("a", 1), 5))
    assert trigger.of("event time") == []
    windows.watermark(5)
    assert trigger.of("event time") == [(2, (0, 10))]


def test_a_purged_window_still_hears_its_timers_and_has_nothing_to_evaluate() -> None:
    trigger = Told()
    trigger.timers, trigger.element = [(REGISTER, 4)], PURGE
    windows = harness(TEN, trigger).push((("a", 1), 1))
    trigger.event = FIRE
    assert windows.watermark(4).take() == []
    assert trigger.of("event time") == [(4, (0, 10))]
    trigger.timers, trigger.element = [], CONTINUE
    assert windows.push((("a", 2), 2)).watermark(9).take() == [(("a", [2]), 9)], (
        "what comes after a purge is evaluated"
    )


def test_a_timer_behind_the_end_of_life_finds_an_empty_window() -> None:
    trigger = Told()
    trigger.timers = [(REGISTER, 20)]
    windows = harness(TEN, trigger).push((("a", 1), 1)).watermark(15)
    trigger.event = FIRE
    assert windows.watermark(30).take() == []
    assert windows.kept == 0


@pytest.mark.parametrize("by_clock", [False, True])
def test_merged_windows_tell_the_trigger_first_and_leave_no_timers_of_their_parts(
    by_clock: bool,
) -> None:
    trigger = Told()
    windows = harness(
        ProcessingTimeSessionWindows(10) if by_clock else EventTimeSessionWindows(10), trigger
    )
    begin = windows.timers.now_ms() if by_clock else 0
    windows.push((("a", 1), 0))
    windows.forward_to(3)
    windows.push((("a", 2), 3))
    first, both = (begin, begin + 10), (begin, begin + 13)
    assert [call[0] for call in trigger.calls] == ["element", "merge", "clear", "element"]
    assert trigger.of("merge") == [(both,)]
    assert trigger.of("clear") == [(first,)]
    windows.forward_to(100)
    windows.end()
    assert trigger.of("clear") == [(first,), (both,)]
    assert [call[1] for call in trigger.of("clock" if by_clock else "event time")] == [both], (
        "the first window's end of life went with it"
    )
    assert windows.kept == 0


def test_a_session_that_only_grows_inside_an_open_one_is_no_merge() -> None:
    trigger = Told()
    harness(EventTimeSessionWindows(10), trigger).push((("a", 1), 5), (("a", 2), 5))
    assert trigger.of("merge") == []


def test_windows_of_different_keys_do_not_merge() -> None:
    windows = harness(EventTimeSessionWindows(10)).push(
        (("a", 1), 0), (("b", 2), 5), (("a", 3), 15)
    )
    assert sorted(windows.end().take()) == [(("a", [1]), 9), (("a", [3]), 24), (("b", [2]), 14)]


def test_a_session_purged_by_a_record_goes_on_under_its_window() -> None:
    trigger = Told()
    trigger.element = PURGE
    windows = harness(EventTimeSessionWindows(10), trigger).push((("a", 1), 0))
    trigger.element = CONTINUE
    windows.push((("a", 2), 8))
    trigger.event = FIRE
    assert windows.end().take() == [(("a", [2]), 17)]
    assert trigger.of("merge") == [((0, 18),)]


# -- windows that have no end ----------------------------------------------------------------------


def test_the_global_window_and_the_last_one_have_no_timer_for_an_end_of_life() -> None:
    for assigner, stamp in ((GlobalWindows(), 5), (Chosen((0, MAX_TIMESTAMP + 1)), 5)):
        windows = harness(assigner, Told()).push((("a", 1), stamp))
        assert (
            len(windows.operator._service.event) == len(windows.operator._service.processing) == 0
        )


def test_lateness_that_would_pass_the_end_of_time_ends_there() -> None:
    windows = harness(Chosen((MAX_TIMESTAMP - 10, MAX_TIMESTAMP - 4)), allowed_lateness=100).push(
        (("a", 1), 5)
    )
    assert windows.watermark(MAX_TIMESTAMP - 5).take() == [(("a", [1]), MAX_TIMESTAMP - 5)]
    assert windows.push((("a", 2), 6)).take() == [(("a", [1, 2]), MAX_TIMESTAMP - 5)]


# -- window functions ------------------------------------------------------------------------------


class Lives(ProcessWindowFunction):
    """Says when it is called and cleared."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
        self.events.append(("process", key, tuple(context.window())))
        yield context.current_watermark(), context.current_processing_time()

    def clear(self, context: Any) -> None:
        self.events.append(("clear", tuple(context.window())))


@pytest.mark.parametrize(
    "assigner", [TEN, EventTimeSessionWindows(9), SlidingEventTimeWindows(10, 20)]
)
@pytest.mark.parametrize("trigger", [None, PurgingTrigger(EventTimeTrigger())])
def test_a_function_clears_up_once_for_each_key_when_the_window_is_done_with(
    assigner: Any, trigger: Any
) -> None:
    function = Lives()
    windows = (
        harness(assigner, trigger, function=function, allowed_lateness=5)
        .push((("a", 1), 0), (("a", 1), 1))
        .watermark(9)
    )
    windows.push((("a", 2), 1))
    end = 10
    assert function.events == [("process", "a", (0, end))] * 2
    windows.watermark(13)
    assert ("clear", (0, end)) not in function.events
    windows.watermark(14)
    assert function.events[2:] == [("clear", (0, end))]


def test_a_function_clears_up_also_for_a_window_that_never_fired() -> None:
    function = Lives()
    harness(TEN, CountTrigger(5), function=function).push((("a", 1), 0), (("b", 1), 0)).watermark(9)
    assert function.events == [("clear", (0, 10))] * 2


def test_a_function_clears_up_for_windows_of_the_clock() -> None:
    function = Lives()
    windows = harness(TumblingProcessingTimeWindows(10), CountTrigger(5), function=function)
    windows.push((("a", 1), None)).forward_to(25)
    assert [event[0] for event in function.events] == ["clear"]
    assert windows.kept == 0


def test_a_function_is_told_the_time_of_both_kinds() -> None:
    windows = harness(TEN, function=Lives()).push((("a", 1), 0))
    windows.forward_to(7)
    assert windows.watermark(12).values() == [(12, windows.timers.now_ms())]


def test_windows_of_the_clock_know_no_lateness() -> None:
    windows = harness(TumblingProcessingTimeWindows(10), allowed_lateness=50).push((("a", 1), None))
    windows.forward_to(25)
    assert windows.values() == [("a", [1])]
    assert windows.kept == 0


@pytest.mark.parametrize(
    "assigner", [SlidingProcessingTimeWindows(10, 5), ProcessingTimeSessionWindows(10)]
)
def test_records_are_never_late_by_the_clock_whatever_the_watermark_says(assigner: Any) -> None:
    windows = harness(assigner).watermark(10**15).push((("a", 1), 5))
    windows.forward_to(40)
    assert windows.values() != []
    assert windows.operator.late_records_dropped == 0


# -- a long life of sessions -----------------------------------------------------------------------


def test_sessions_without_lateness_drop_what_comes_for_one_that_is_over() -> None:
    """Gap 3: what is dropped, and what still counts as it joins a session that is open."""
    windows = summing(EventTimeSessionWindows(3)).push((("a", 1), 10)).watermark(11)
    windows.push((("a", 2), 12))  # [10, 15)
    assert windows.watermark(13).take() == []
    windows.push((("a", 4), 9))  # meets [10, 15): [9, 15)
    assert windows.watermark(14).take() == [(("a", 7), 14)]
    windows.push((("a", 8), 13))  # [13, 16) alone, as [9, 15) has gone: its last moment 15 is ahead
    windows.push((("a", 16), 11))  # [11, 14) meets [13, 16)
    windows.push((("a", 32), 8))  # [8, 11) meets [11, 16)
    windows.push((("a", 64), 4))  # [4, 7) is over
    assert windows.operator.late_records_dropped == 1
    assert windows.watermark(15).take() == [(("a", 56), 15)]
    assert windows.kept == 0


def test_purging_sessions_with_lateness_give_only_what_is_new_also_after_merging() -> None:
    windows = summing(
        EventTimeSessionWindows(3), PurgingTrigger(EventTimeTrigger()), allowed_lateness=10
    )
    windows.push((("a", 1), 0), (("a", 2), 6)).watermark(8)
    assert windows.take() == [(("a", 1), 2), (("a", 2), 8)]
    assert windows.push((("a", 4), 3)).take() == [(("a", 4), 8)], (
        "it joins [0, 3) and [6, 9), whose records have been given out"
    )
    assert windows.push((("a", 8), 1)).take() == [(("a", 8), 8)]
    windows.watermark(18)
    assert windows.kept == 0
    assert windows.push((("a", 16), 4)).operator.late_records_dropped == 1


def test_a_session_that_fires_late_by_a_merge_fires_once_for_the_record_that_merged() -> None:
    windows = (
        harness(EventTimeSessionWindows(3), allowed_lateness=100)
        .push((("a", 1), 0), (("a", 2), 20))
        .watermark(10)
    )
    assert windows.take() == [(("a", [1]), 2)]
    for number in range(3, 9):
        windows.push((("a", number), 3 * (number - 2)))
    assert [record[1] for record, _ in windows.take()] == [[1, 3], [1, 3, 4]], (
        "[0, 12) is ahead of the watermark from 9 on"
    )
    (((_, numbers), stamp),) = windows.watermark(50).take()
    assert (sorted(numbers), numbers[-1], stamp) == ([1, 2, 3, 4, 5, 6, 7, 8], 8, 22)


# -- evictors --------------------------------------------------------------------------------------


def test_a_time_evictor_behind_the_function_lets_it_see_everything_once() -> None:
    windows = harness(GlobalWindows(), CountTrigger(2), evictor=TimeEvictor(5, True))
    windows.push((("a", 1), 10), (("a", 2), 20), (("a", 3), 22), (("a", 4), 23))
    assert windows.values() == [("a", [1, 2]), ("a", [2, 3, 4])]


def test_a_time_evictor_leaves_records_without_timestamps() -> None:
    windows = harness(GlobalWindows(), CountTrigger(2), evictor=TimeEvictor(5)).push(
        (("a", 1), None), (("a", 2), None)
    )
    assert windows.values() == [("a", [1, 2])]


def test_a_delta_evictor_behind_the_function() -> None:
    windows = harness(
        GlobalWindows(),
        CountTrigger(2),
        evictor=DeltaEvictor(3, lambda record, last: last[1] - record[1], True),
    )
    windows.push(*[(("a", number), None) for number in (1, 9, 10, 11)])
    assert windows.values() == [("a", [1, 9]), ("a", [9, 10, 11])]


class Sizes(Evictor[Any, Any]):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        self.seen.append(
            ("before", size, [(each.value[1], each.timestamp) for each in elements], tuple(window))
        )
        del elements[0]

    def evict_after(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        self.seen.append(("after", size, [each.value[1] for each in elements], tuple(window)))
        del elements[0]


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (ListContents(), [("a", [2, 3])]),
        (ReduceContents(lambda a, b: b), [("a", 3)]),
        (AggregateContents(Mean()), [2.5]),
    ],
)
def test_an_evictor_sees_all_records_before_and_what_it_left_behind(
    contents: Any, expected: list[Any]
) -> None:
    evictor = Sizes()
    function = (
        None
        if not isinstance(contents, ListContents)
        else lambda key, window, inputs: [(key, [each[1] for each in inputs])]
    )
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(TEN, evictor=evictor, allowed_lateness=20),
            contents,
            window_function=function,
        )
    )
    windows.push((("a", 1), 4), (("a", 2), 2), (("a", 3), 3)).watermark(9)
    assert windows.values() == expected
    assert evictor.seen == [
        ("before", 3, [(1, 4), (2, 2), (3, 3)], (0, 10)),
        ("after", 2, [2, 3], (0, 10)),
    ]
    windows.push((("a", 4), 5))
    assert evictor.seen[2] == ("before", 2, [(3, 3), (4, 5)], (0, 10)), (
        "what was evicted does not come back"
    )


def test_an_evictor_is_called_for_windows_of_the_clock_and_per_key() -> None:
    windows = harness(TumblingProcessingTimeWindows(10), evictor=CountEvictor(1)).push(
        (("a", 1), None), (("b", 2), None), (("a", 3), None)
    )
    windows.forward_to(25)
    assert sorted(windows.values()) == [("a", [3]), ("b", [2])]


# -- nobody else's objects -------------------------------------------------------------------------


def spoil(windows: WindowHarness) -> list[Any]:
    """The results, as a consumer sees them that then changes them."""
    values = windows.values()
    seen = [list(value) for value in values]
    for value in values:
        value.append("spoiled")
    return seen


@pytest.mark.parametrize("trigger", [CountTrigger(1), PurgingTrigger(CountTrigger(1))])
@pytest.mark.parametrize("evictor", [None, CountEvictor(9)])
@pytest.mark.parametrize("kind", ["all", "reduce to the last", "reduce"])
def test_who_changes_a_result_does_not_change_the_window(
    kind: str, evictor: Any, trigger: Any
) -> None:
    contents = {
        "all": ListContents(),
        "reduce to the last": ReduceContents(lambda a, b: b),
        "reduce": ReduceContents(lambda a, b: [a[0], a[1] + b[1]]),
    }
    function = (lambda key, window, inputs: inputs) if kind == "all" else None
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(GlobalWindows(), trigger, evictor),
            contents[kind],
            window_function=function,
        )
    )
    assert spoil(windows.push((["a", 1], None))) == [["a", 1]]
    again = {"all": [["a", 1], ["a", 2]], "reduce to the last": [["a", 2]], "reduce": [["a", 3]]}[
        kind
    ]
    assert spoil(windows.push((["a", 2], None))) == (
        [["a", 2]] if isinstance(trigger, PurgingTrigger) else again
    )


@pytest.mark.parametrize("lateness", [0, 5])
@pytest.mark.parametrize("kind", ["all", "reduce to the last"])
def test_who_changes_a_result_does_not_change_windows_that_overlap(
    kind: str, lateness: int
) -> None:
    contents = ListContents() if kind == "all" else ReduceContents(lambda a, b: b)
    function = (lambda key, window, inputs: inputs) if kind == "all" else None
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(SlidingEventTimeWindows(10, 5), allowed_lateness=lateness),
            contents,
            window_function=function,
        )
    )
    windows.push((["a", 1], 6), (["a", 2], 7))
    expected = [["a", 1], ["a", 2]] if kind == "all" else [["a", 2]]
    assert spoil(windows.watermark(9)) == expected
    assert spoil(windows.watermark(14)) == expected


def test_with_object_reuse_results_are_the_objects_themselves() -> None:
    record = ["a", 1]
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(GlobalWindows(), CountTrigger(1)),
            ListContents(),
            window_function=lambda key, window, inputs: inputs,
        ),
        object_reuse=True,
    )
    assert windows.push((record, None)).values()[0] is record


def test_state_that_a_trigger_gives_to_its_function_is_its_own() -> None:
    """Two triggers' states of one name in one operator: the window's and the function's do not
    meet."""

    class Counts(ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
            state = context.global_state().get_state(ValueStateDescriptor("count"))
            own = context.window_state().get_reducing_state(
                ReducingStateDescriptor("count", lambda a, b: a + b, None)
            )
            state.update((state.value() or 0) + 1)
            own.add(10)
            yield state.value(), own.get()

    windows = harness(TEN, CountTrigger(2), function=Counts()).push(
        *[(("a", number), number) for number in range(4)]
    )
    assert windows.values() == [(1, 10), (2, 20)]
