"""The window operator: when windows are evaluated, with what, and when they are gone. What is
expected follows from Flink's documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import MAX_TIMESTAMP, Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.operators.functions import ReduceFunction, RuntimeContext
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.ttl.config import StateTtlConfig
from flinkpy.windowing.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from flinkpy.windowing.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from flinkpy.windowing.general.contents import AggregateContents, ListContents, ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from flinkpy.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
)
from flinkpy.windowing.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from flinkpy.windowing.windows import GlobalWindow, TimeWindow
from tests.operators.harness import do_all
from tests.state_bytes import keyed_share
from tests.windowing.harness import (
    FIRST,
    MAX_PARALLELISM,
    Mean,
    WindowHarness,
    add,
    listing,
    summing,
)

LATE = OutputTag("late")
COPYING = pytest.mark.parametrize("copying", [False, True], ids=["heap", "copying"])


# -- event time: tumbling and sliding --------------------------------------------------------------


@COPYING
def test_a_tumbling_window_is_evaluated_when_the_watermark_reaches_its_last_timestamp(
    copying: bool,
) -> None:
    windows = summing(TumblingEventTimeWindows(10), copying=copying).push(
        (("a", 1), 3), (("b", 5), 0), (("a", 2), 9), (("a", 4), 10)
    )
    assert windows.watermark(8).take() == []
    assert windows.watermark(9).take() == [(("a", 3), 9), (("b", 5), 9)]
    assert windows.end().take() == [(("a", 4), 19)]
    assert windows.kept == 0


def test_the_watermark_follows_the_results_it_caused() -> None:
    windows = summing(TumblingEventTimeWindows(10)).push((("a", 1), 3))
    seen: list[int] = []
    windows.operator.output.emit_control = lambda element: seen.append(len(windows.output.main))
    windows.watermark(9)
    assert seen == [1]


def test_an_offset_shifts_windows() -> None:
    windows = summing(TumblingEventTimeWindows(10, 3)).push(
        (("a", 1), 2), (("a", 2), 3), (("a", 4), 12)
    )
    assert windows.end().take() == [(("a", 1), 2), (("a", 6), 12)]


@COPYING
def test_sliding_windows_overlap(copying: bool) -> None:
    windows = summing(SlidingEventTimeWindows(10, 5), copying=copying).push(
        (("a", 1), 1), (("a", 2), 6)
    )
    assert windows.watermark(4).take() == [(("a", 1), 4)]
    assert windows.watermark(9).take() == [(("a", 3), 9)]
    assert windows.watermark(14).take() == [(("a", 2), 14)]
    assert windows.kept == 0


def test_a_record_between_two_sliding_windows_is_in_none_and_not_late() -> None:
    windows = summing(SlidingEventTimeWindows(2, 10), late_tag=LATE).push(
        (("a", 1), 5), (("a", 2), 11)
    )
    assert windows.end().take() == [(("a", 2), 11)]
    assert windows.operator.late_records_dropped == 0
    assert windows.output.side == {}


def test_aggregate_adds_as_records_come_and_gives_the_result() -> None:
    windows = WindowHarness(
        WindowOperator(
            FIRST, WindowingStrategy(TumblingEventTimeWindows(10)), AggregateContents(Mean())
        )
    )
    windows.push((("a", 1), 1), (("a", 2), 2), (("b", 7), 3))
    assert windows.end().take() == [(1.5, 9), (7.0, 9)]


def test_a_window_function_gets_all_records_in_the_order_they_came() -> None:
    windows = (
        listing(TumblingEventTimeWindows(10)).push((("a", 3), 5), (("a", 1), 1)).push((("a", 2), 3))
    )
    assert windows.end().take() == [(("a", [3, 1, 2]), 9)]


class Described(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, tuple(context.window()), context.current_watermark(), list(elements)


class Named(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield key, tuple(window), list(inputs)


@pytest.mark.parametrize(
    ("contents", "given"),
    [
        (ReduceContents(add), [("a", 3)]),
        (AggregateContents(Mean()), [1.5]),
        (ListContents(), [("a", 1), ("a", 2)]),
    ],
)
def test_each_kind_of_contents_goes_with_each_kind_of_function(
    contents: Any, given: list[Any]
) -> None:
    for function, expected in (
        (Named(), ("a", (0, 10), given)),
        (Described(), ("a", (0, 10), 12, given)),
    ):
        windows = WindowHarness(
            WindowOperator(
                FIRST,
                WindowingStrategy(TumblingEventTimeWindows(10)),
                contents,
                window_function=function,
            )
        )
        windows.push((("a", 1), 1), (("a", 2), 2))
        assert windows.watermark(12).take() == [(expected, 9)]


def test_a_function_may_give_none_or_several_results() -> None:
    windows = listing(
        TumblingEventTimeWindows(10),
        function=lambda key, window, inputs: None if key == "a" else [1, 2],
    )
    windows.push((("a", 1), 1), (("b", 2), 2))
    assert windows.end().take() == [(1, 9), (2, 9)]


def test_without_keys_all_records_share_their_windows() -> None:
    class Everything(AllWindowFunction):
        def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
            yield window.start, len(list(inputs))

    class WithContext(ProcessAllWindowFunction):
        def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            yield context.window().start, len(list(elements))

    for function in (
        Everything(),
        WithContext(),
        lambda window, inputs: [(window.start, len(inputs))],
    ):
        windows = WindowHarness(
            WindowOperator(
                None, WindowingStrategy(TumblingEventTimeWindows(10)), window_function=function
            )
        )
        windows.push((("a", 1), 1), (("b", 2), 2), (("c", 2), 12))
        assert windows.end().take() == [((0, 2), 9), ((10, 1), 19)]


# -- sessions --------------------------------------------------------------------------------------


@COPYING
def test_records_within_the_gap_are_one_session(copying: bool) -> None:
    windows = summing(EventTimeSessionWindows(5), copying=copying).push(
        (("a", 1), 0), (("b", 9), 2), (("a", 2), 4), (("a", 4), 20)
    )
    assert windows.watermark(19).take() == [(("b", 9), 6), (("a", 3), 8)]
    assert windows.end().take() == [(("a", 4), 24)]
    assert windows.kept == 0


@COPYING
def test_a_record_between_two_sessions_makes_them_one(copying: bool) -> None:
    windows = listing(EventTimeSessionWindows(5), copying=copying).push(
        (("a", 1), 0), (("a", 2), 8)
    )
    windows.push((("a", 3), 4))
    assert windows.watermark(12).take() == [(("a", [1, 2, 3]), 12)]
    assert windows.kept == 0


def test_sessions_that_touch_are_one() -> None:
    windows = summing(EventTimeSessionWindows(5)).push((("a", 1), 0), (("a", 2), 5))
    assert windows.end().take() == [(("a", 3), 9)]


def test_a_record_inside_a_session_does_not_lengthen_it() -> None:
    windows = summing(EventTimeSessionWindows(10)).push((("a", 1), 0), (("a", 2), 5), (("a", 4), 2))
    assert windows.end().take() == [(("a", 7), 14)]


def test_dynamic_gaps_are_each_record_s_own() -> None:
    windows = summing(DynamicEventTimeSessionWindows(lambda record: record[1])).push(
        (("a", 10), 0), (("a", 1), 9), (("a", 3), 11)
    )
    assert windows.end().take() == [(("a", 11), 9), (("a", 3), 13)]


def test_merged_sessions_merge_accumulators() -> None:
    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(EventTimeSessionWindows(5)),
            AggregateContents(Mean()),
            window_function=Described(),
        )
    )
    windows.push((("a", 1), 0), (("a", 2), 8), (("a", 6), 4))
    assert windows.end().values() == [("a", (0, 13), MAX_TIMESTAMP, [3.0])]


class PointSessions(EventTimeSessionWindows):
    """A record with the number 33 ends its session: its window has no length."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return (
            [TimeWindow(timestamp, timestamp)]
            if element[1] == 33
            else super().assign_windows(element, timestamp, context)
        )


def test_sessions_merge_with_windows_of_no_length() -> None:
    windows = listing(PointSessions(3)).push(
        (("a", 1), 0), (("a", 33), 2), (("b", 33), 5), (("b", 2), 6)
    )
    assert windows.watermark(3).take() == [(("a", [1, 33]), 2)]
    assert windows.end().take() == [(("b", [33]), 4), (("b", [2]), 8)]


def test_purged_sessions_stay_open_and_begin_anew() -> None:
    windows = summing(
        EventTimeSessionWindows(5), PurgingTrigger(EventTimeTrigger()), allowed_lateness=10
    ).push((("a", 1), 0), (("a", 2), 3))
    assert windows.watermark(7).take() == [(("a", 3), 7)]
    assert windows.push((("a", 4), 5)).watermark(9).take() == [(("a", 4), 9)]
    windows.end()
    assert windows.kept == 0


def test_a_merged_session_counts_the_records_of_all_its_parts() -> None:
    windows = summing(EventTimeSessionWindows(5), CountTrigger(4)).push(
        (("a", 1), 0), (("a", 1), 1), (("a", 1), 8)
    )
    assert windows.take() == []
    assert windows.push((("a", 1), 4)).take() == [(("a", 4), 12)]
    windows.end()
    assert windows.kept == 0


def test_continuous_firings_go_on_in_the_merged_session() -> None:
    windows = summing(EventTimeSessionWindows(10), ContinuousEventTimeTrigger(4)).push(
        (("a", 1), 1), (("a", 2), 6)
    )
    assert windows.watermark(4).take() == [(("a", 3), 15)]
    assert windows.watermark(8).take() == [(("a", 3), 15)]
    assert windows.end().take() == [(("a", 3), 15), (("a", 3), 15)]
    assert windows.kept == 0


def test_an_assigner_that_merges_into_the_past_is_told_so() -> None:
    class Backwards(EventTimeSessionWindows):
        def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
            windows = list(windows)
            if len(windows) > 1:
                callback.merge(windows, TimeWindow(0, 3))

    windows = summing(Backwards(5)).push((("a", 1), 10)).watermark(8)
    with pytest.raises(ProgramError, match="which the watermark 8 has passed"):
        windows.push((("a", 1), 12))


# -- late records ----------------------------------------------------------------------------------


def test_late_records_are_dropped_and_counted() -> None:
    windows = summing(TumblingEventTimeWindows(10)).push((("a", 1), 1)).watermark(9)
    windows.push((("a", 2), 2), (("b", 2), 9), (("a", 3), 10))
    assert windows.end().take() == [(("a", 1), 9), (("a", 3), 19)]
    assert windows.operator.late_records_dropped == 2
    assert (
        RuntimeContext(windows.context)
        .get_metrics_group()
        .counter("numLateRecordsDropped")
        .get_count()
        == 2
    )


def test_late_records_go_to_the_side_output_with_their_timestamps() -> None:
    windows = (
        summing(TumblingEventTimeWindows(10), late_tag=LATE)
        .watermark(9)
        .push((("a", 2), 2), (("a", 3), 10), (("b", 2), 9))
    )
    assert windows.output.side == {"late": [(("a", 2), 2), (("b", 2), 9)]}
    assert windows.operator.late_records_dropped == 0


@COPYING
def test_within_the_lateness_each_late_record_fires_again(copying: bool) -> None:
    windows = (
        summing(TumblingEventTimeWindows(10), allowed_lateness=5, copying=copying)
        .push((("a", 1), 1))
        .watermark(9)
    )
    windows.push((("a", 2), 2), (("a", 4), 3))
    assert windows.take() == [(("a", 1), 9), (("a", 3), 9), (("a", 7), 9)]
    assert windows.push((("b", 1), 4)).take() == [(("b", 1), 9)]
    windows.watermark(13).push((("a", 8), 5))
    assert windows.take() == [(("a", 15), 9)]
    windows.watermark(14).push((("a", 16), 6))
    assert windows.take() == []
    assert windows.operator.late_records_dropped == 1
    assert windows.kept == 0


def test_a_purging_trigger_s_late_firings_hold_only_what_is_new() -> None:
    windows = (
        summing(
            TumblingEventTimeWindows(10), PurgingTrigger(EventTimeTrigger()), allowed_lateness=5
        )
        .push((("a", 1), 1))
        .watermark(9)
    )
    windows.push((("a", 2), 2), (("a", 4), 3)).watermark(14)
    assert windows.take() == [(("a", 1), 9), (("a", 2), 9), (("a", 4), 9)]
    assert windows.kept == 0


def test_a_record_late_for_one_sliding_window_only_is_not_late() -> None:
    windows = (
        summing(SlidingEventTimeWindows(10, 5), late_tag=LATE)
        .watermark(9)
        .push((("a", 1), 7), (("a", 2), 4))
    )
    assert windows.output.side == {"late": [(("a", 2), 4)]}
    assert windows.end().take() == [(("a", 1), 14)]


def test_a_late_record_that_joins_a_session_that_is_not_late_is_taken() -> None:
    windows = summing(EventTimeSessionWindows(5), late_tag=LATE).push((("a", 1), 10)).watermark(11)
    windows.push((("a", 2), 6), (("b", 4), 6))
    assert windows.output.side == {"late": [(("b", 4), 6)]}
    assert windows.end().take() == [(("a", 3), 14)]


def test_sessions_merge_within_the_lateness_and_fire_as_one() -> None:
    windows = (
        summing(EventTimeSessionWindows(3), allowed_lateness=10)
        .push((("a", 1), 0), (("a", 2), 5))
        .watermark(7)
    )
    assert windows.take() == [(("a", 1), 2), (("a", 2), 7)]
    assert windows.push((("a", 4), 2)).take() == [(("a", 7), 7)]
    assert windows.watermark(16).kept > 0
    assert windows.watermark(17).kept == 0
    assert windows.push((("a", 8), 4)).operator.late_records_dropped == 1


def test_a_late_session_leaves_nothing_behind() -> None:
    windows = summing(EventTimeSessionWindows(3)).watermark(20).push((("a", 1), 5))
    assert windows.kept == 0
    assert windows.operator.late_records_dropped == 1


@pytest.mark.parametrize("trigger", [None, PurgingTrigger(EventTimeTrigger())])
def test_a_lateness_beyond_the_end_of_time_keeps_windows_until_then(trigger: Any) -> None:
    windows = summing(
        TumblingEventTimeWindows(10), trigger, allowed_lateness=MAX_TIMESTAMP - 5
    ).push((("a", 1), 1))
    assert len(windows.operator._service.event) == 1, (
        "only the trigger's: none for an end of life that never comes"
    )
    assert windows.watermark(9).take() == [(("a", 1), 9)]
    windows.push((("a", 2), 2))
    assert [stamp for _, stamp in windows.take()] == [9]
    assert windows.end().take() == []


def test_results_of_windows_at_the_end_of_time_are_stamped_with_it() -> None:
    windows = summing(GlobalWindows(), CountTrigger(1)).push((("a", 1), 1))
    assert windows.take() == [(("a", 1), MAX_TIMESTAMP)]


# -- triggers --------------------------------------------------------------------------------------


def test_a_count_trigger_fires_with_every_so_many_records_and_keeps_them() -> None:
    windows = summing(TumblingEventTimeWindows(10), CountTrigger(2)).push(
        (("a", 1), 1), (("a", 2), 2), (("b", 7), 3), (("a", 4), 4), (("a", 8), 5)
    )
    assert windows.take() == [(("a", 3), 9), (("a", 15), 9)]
    assert windows.end().take() == []
    assert windows.kept == 0


@COPYING
def test_global_windows_purged_by_count_are_tumbling_count_windows(copying: bool) -> None:
    windows = listing(GlobalWindows(), PurgingTrigger(CountTrigger(2)), copying=copying)
    windows.push(*[(("a", number), None) for number in range(5)])
    assert windows.values() == [("a", [0, 1]), ("a", [2, 3])]
    assert windows.push((("a", 5), None)).values() == [("a", [4, 5])]
    assert windows.kept == 0


def test_global_windows_do_not_fire_by_themselves() -> None:
    windows = listing(GlobalWindows()).push((("a", 1), 1)).end()
    assert windows.take() == []
    assert isinstance(windows.operator.trigger, NeverTrigger)


def test_an_event_time_trigger_in_the_global_window_fires_at_the_end_of_time() -> None:
    windows = listing(GlobalWindows(), EventTimeTrigger()).push((("a", 1), 1), (("a", 2), 7))
    assert windows.watermark(10**15).take() == []
    assert windows.end().take() == [(("a", [1, 2]), MAX_TIMESTAMP)]


def test_continuous_event_time_fires_at_multiples_of_the_interval_and_at_the_end() -> None:
    windows = summing(TumblingEventTimeWindows(10), ContinuousEventTimeTrigger(4)).push(
        (("a", 1), 1)
    )
    assert windows.watermark(3).take() == []
    assert windows.watermark(4).take() == [(("a", 1), 9)]
    assert windows.push((("a", 2), 5)).watermark(8).take() == [(("a", 3), 9)]
    assert windows.watermark(9).take() == [(("a", 3), 9)]
    assert windows.kept == 0


def test_a_delta_trigger_fires_when_records_have_moved_far_enough() -> None:
    windows = listing(GlobalWindows(), DeltaTrigger(5, lambda old, new: new[1] - old[1]))
    windows.push(*[(("a", number), None) for number in (0, 5, 6, 8, 12)])
    assert windows.values() == [("a", [0, 5, 6]), ("a", [0, 5, 6, 8, 12])]


class Scripted(Trigger[Any, Any]):
    """The record's number says what it does; timers say so too."""

    results = {
        1: TriggerResult.CONTINUE,
        2: TriggerResult.FIRE,
        3: TriggerResult.PURGE,
        4: TriggerResult.FIRE_AND_PURGE,
    }

    def __init__(self) -> None:
        self.timer = TriggerResult.CONTINUE

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(5)
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + 5)
        return self.results[element[1]]

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.timer

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.timer if time == 5 else TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None: ...

    def can_merge(self) -> bool:
        return True

    def clear(self, window: Any, ctx: Any) -> None: ...


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows(10), EventTimeSessionWindows(10)])
def test_each_answer_to_a_record_is_carried_out(assigner: Any) -> None:
    windows = listing(assigner, Scripted())
    for number in (1, 2, 3, 2, 4, 2):
        windows.push((("a", number), 0))
    assert windows.values() == [("a", [1, 2]), ("a", [2]), ("a", [2, 4]), ("a", [2])]


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows(10), EventTimeSessionWindows(10)])
@pytest.mark.parametrize("by_clock", [False, True])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (TriggerResult.CONTINUE, [[1, 2]]),
        (TriggerResult.FIRE, [[1], [1, 2]]),
        (TriggerResult.PURGE, [[2]]),
        (TriggerResult.FIRE_AND_PURGE, [[1], [2]]),
    ],
)
def test_each_answer_to_a_timer_is_carried_out(
    assigner: Any, by_clock: bool, answer: TriggerResult, expected: list[Any]
) -> None:
    trigger = Scripted()
    windows = listing(assigner, trigger).push((("a", 1), 0))
    trigger.timer = answer
    if by_clock:
        windows.forward_to(7)
    else:
        windows.watermark(5)
    trigger.timer = TriggerResult.CONTINUE
    windows.push((("a", 2), 0))
    assert windows.values() == [("a", numbers) for numbers in expected]


def test_a_purged_window_has_nothing_to_fire() -> None:
    trigger = Scripted()
    windows = listing(TumblingEventTimeWindows(10), trigger).push((("a", 3), 0))
    trigger.timer = TriggerResult.FIRE
    assert windows.watermark(5).take() == []


def test_timers_that_a_trigger_leaves_behind_do_nothing_to_merged_windows() -> None:
    trigger = Scripted()
    windows = listing(EventTimeSessionWindows(3), trigger).push((("a", 1), 3), (("a", 1), 4))
    trigger.timer = TriggerResult.FIRE
    assert windows.watermark(5).take() == [(("a", [1, 1]), 6)], "once, for the merged window"


def test_a_window_of_event_time_can_be_triggered_by_the_clock() -> None:
    windows = summing(TumblingEventTimeWindows(10), ContinuousProcessingTimeTrigger(4)).push(
        (("a", 1), 1)
    )
    assert windows.forward_to(12).take() != []
    assert windows.end().take() == []
    assert len(windows.operator._service.event) == 0


def test_what_a_trigger_remembers_is_per_key_and_window_and_goes_with_it() -> None:
    class Remembers(Scripted):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            ctx.get_partitioned_state(ListStateDescriptor("list", Types.INT())).add(element[1])
            ctx.get_partitioned_state(MapStateDescriptor("map", Types.INT(), Types.INT())).put(
                element[1], 1
            )
            value = ctx.get_partitioned_state(ValueStateDescriptor("value", Types.INT()))
            value.update((value.value() or 0) + 1)
            total = ctx.get_partitioned_state(AggregatingStateDescriptor("mean", Mean()))
            total.add((None, element[1]))
            seen.append(
                (
                    element[0],
                    window.start,
                    value.value(),
                    total.get(),
                    list(ctx.get_partitioned_state(ListStateDescriptor("list", Types.INT())).get()),
                )
            )
            return TriggerResult.CONTINUE

    seen: list[Any] = []
    windows = listing(TumblingEventTimeWindows(10), Remembers()).push(
        (("a", 1), 0), (("a", 3), 1), (("b", 5), 1), (("a", 7), 12)
    )
    assert seen == [
        ("a", 0, 1, 1.0, [1]),
        ("a", 0, 2, 2.0, [1, 3]),
        ("b", 0, 1, 5.0, [5]),
        ("a", 10, 1, 7.0, [7]),
    ]
    windows.end()
    assert windows.kept == 0


@pytest.mark.parametrize(
    ("descriptor", "read"),
    [
        (ListStateDescriptor("s", Types.INT()), list),
        (ReducingStateDescriptor("s", lambda a, b: a + b, Types.INT()), lambda total: total),
    ],
)
def test_trigger_state_of_merged_windows_is_merged(descriptor: Any, read: Any) -> None:
    class Merges(Scripted):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            state = ctx.get_partitioned_state(descriptor)
            state.add(element[1])
            seen.append(read(state.get()))
            return TriggerResult.CONTINUE

        def on_merge(self, window: Any, ctx: Any) -> None:
            ctx.merge_partitioned_state(descriptor)

    seen: list[Any] = []
    windows = listing(EventTimeSessionWindows(5), Merges()).push(
        (("a", 1), 0), (("a", 2), 8), (("a", 4), 4)
    )
    assert seen == [[1], [2], [1, 2, 4]] if read is list else [1, 2, 7]
    windows.end()
    assert windows.kept == 0


def test_trigger_state_that_cannot_be_merged_is_refused() -> None:
    class Merges(Scripted):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            ctx.get_partitioned_state(ValueStateDescriptor("s")).update(1)
            return TriggerResult.CONTINUE

        def on_merge(self, window: Any, ctx: Any) -> None:
            ctx.merge_partitioned_state(ValueStateDescriptor("s"))

    with pytest.raises(ProgramError, match="value state, which cannot be merged"):
        listing(EventTimeSessionWindows(5), Merges()).push((("a", 1), 0), (("a", 2), 2))


# -- processing time -------------------------------------------------------------------------------


def at_a_round_moment(windows: WindowHarness, size: int) -> WindowHarness:
    """The clock at a multiple of ``size``, called 0 from now on."""
    while windows.timers.now_ms() % size:
        windows.timers.advance(0.001)
    windows._origin = windows.timers.now_ms()
    return windows


@pytest.mark.parametrize("trigger", [None, PurgingTrigger(ProcessingTimeTrigger())])
def test_a_tumbling_window_of_the_clock_is_evaluated_when_its_last_millisecond_is_over(
    trigger: Any,
) -> None:
    windows = at_a_round_moment(
        summing(TumblingProcessingTimeWindows(10), trigger, allowed_lateness=50), 10
    ).push((("a", 1), None))
    windows.forward_to(9).push((("a", 2), None), (("b", 4), None))
    assert windows.take() == []
    assert [value for value, _ in windows.forward_to(10).take()] == [("a", 3), ("b", 4)]
    windows.push((("a", 8), None))
    assert [
        (value, stamp - windows._origin)
        for value, stamp in windows.forward_to(20).take()
        if stamp is not None
    ] == [(("a", 8), 19)]
    assert windows.kept == 0


def test_sliding_windows_of_the_clock() -> None:
    windows = at_a_round_moment(summing(SlidingProcessingTimeWindows(10, 5)), 10).push(
        (("a", 1), None)
    )
    assert windows.forward_to(5).values() == [("a", 1)]
    windows.forward_to(6).push((("a", 2), None))
    assert windows.forward_to(10).values() == [("a", 3)]
    assert windows.forward_to(15).values() == [("a", 2)]
    assert windows.kept == 0


@pytest.mark.parametrize(
    "assigner",
    [ProcessingTimeSessionWindows(5), DynamicProcessingTimeSessionWindows(lambda record: 5)],
)
def test_sessions_of_the_clock(assigner: Any) -> None:
    windows = summing(assigner).push((("a", 1), None))
    windows.forward_to(4).push((("a", 2), None))
    assert windows.forward_to(8).take() == []
    assert windows.forward_to(9).values() == [("a", 3)]
    windows.forward_to(20).push((("a", 4), None))
    assert windows.forward_to(25).values() == [("a", 4)]
    assert windows.kept == 0


def test_watermarks_do_nothing_to_windows_of_the_clock() -> None:
    windows = (
        at_a_round_moment(summing(TumblingProcessingTimeWindows(10)), 10).end().push((("a", 1), 5))
    )
    assert windows.take() == []
    assert windows.operator.late_records_dropped == 0
    assert windows.forward_to(10).values() == [("a", 1)]


def test_continuous_processing_time_fires_every_interval() -> None:
    windows = at_a_round_moment(
        summing(TumblingProcessingTimeWindows(20), ContinuousProcessingTimeTrigger(5)), 20
    ).push((("a", 1), None))
    assert windows.forward_to(6).values() == [("a", 1)]
    windows.push((("a", 2), None))
    assert windows.forward_to(11).values() == [("a", 3)]
    assert windows.forward_to(20).values() == [("a", 3), ("a", 3)], "at 15, and at the end"
    assert windows.kept == 0


def test_closing_stops_the_clock_s_timers() -> None:
    windows = at_a_round_moment(summing(TumblingProcessingTimeWindows(10)), 10).push(
        (("a", 1), None)
    )
    windows.operator.close()
    assert windows.forward_to(30).take() == []
    assert windows.timers.pending == []


# -- evictors --------------------------------------------------------------------------------------


@COPYING
def test_a_count_evictor_before_the_function(copying: bool) -> None:
    windows = listing(GlobalWindows(), CountTrigger(2), evictor=CountEvictor(3), copying=copying)
    windows.push(*[(("a", number), None) for number in range(6)])
    assert windows.values() == [("a", [0, 1]), ("a", [1, 2, 3]), ("a", [3, 4, 5])]


def test_a_count_evictor_behind_the_function() -> None:
    windows = listing(GlobalWindows(), CountTrigger(2), evictor=CountEvictor(3, True))
    windows.push(*[(("a", number), None) for number in range(6)])
    assert windows.values() == [("a", [0, 1]), ("a", [0, 1, 2, 3]), ("a", [1, 2, 3, 4, 5])]


def test_a_time_evictor_goes_by_timestamps() -> None:
    windows = listing(GlobalWindows(), CountTrigger(3), evictor=TimeEvictor(2)).push(
        (("a", 1), 10), (("a", 2), 12), (("a", 3), 11)
    )
    assert windows.values() == [("a", [2, 3])]


def test_a_delta_evictor_goes_by_distance() -> None:
    windows = listing(
        GlobalWindows(),
        CountTrigger(3),
        evictor=DeltaEvictor(5, lambda record, last: last.__getitem__(1) - record[1]),
    )
    windows.push((("a", 1), 1), (("a", 4), 2), (("a", 7), 3))
    assert windows.values() == [("a", [4, 7])]


@pytest.mark.parametrize(
    ("contents", "expected"),
    [(ReduceContents(add), [("a", 5), ("a", 9)]), (AggregateContents(Mean()), [2.5, 4.5])],
)
def test_behind_an_evictor_what_is_left_is_reduced(contents: Any, expected: list[Any]) -> None:
    windows = WindowHarness(
        WindowOperator(
            FIRST, WindowingStrategy(GlobalWindows(), CountTrigger(2), CountEvictor(2)), contents
        )
    )
    windows.push(*[(("a", number), 0) for number in (2, 3, 4, 5)])
    assert windows.values() == expected


class DropEverything(Evictor[Any, Any]):
    def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        assert size == len(elements) > 0
        assert (
            evictor_context.get_current_watermark() < evictor_context.get_current_processing_time()
        )
        elements.clear()

    def evict_after(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        assert size == 0


def test_a_window_whose_records_were_all_evicted_is_empty_and_then_gone() -> None:
    windows = listing(GlobalWindows(), CountTrigger(2), evictor=DropEverything())
    windows.push((("a", 1), 1), (("a", 2), 1), (("a", 3), 1), (("a", 4), 1))
    assert windows.values() == [("a", []), ("a", [])]
    assert windows.kept == 0
    reduced = summing(GlobalWindows(), CountTrigger(1), evictor=DropEverything()).push(
        (("a", 1), 1)
    )
    assert reduced.take() == [], "of no records there is no reduction"


def test_evicted_sessions_merge_and_keep_late_records_apart() -> None:
    windows = listing(EventTimeSessionWindows(5), evictor=CountEvictor(2), allowed_lateness=3).push(
        (("a", 1), 0), (("a", 2), 8), (("a", 3), 4)
    )
    assert windows.watermark(12).take() == [(("a", [2, 3]), 12)]
    assert windows.push((("a", 4), 9)).take() == [], "the session ends later now"
    assert windows.watermark(13).take() == [(("a", [3, 4]), 13)]
    windows.end().push((("a", 5), 1))
    assert windows.operator.late_records_dropped == 1
    assert windows.kept == 0


def test_an_evictor_with_time_windows_fires_as_without() -> None:
    windows = listing(TumblingEventTimeWindows(10), evictor=CountEvictor(2), allowed_lateness=5)
    windows.push((("a", 1), 1), (("a", 2), 2), (("a", 3), 3)).watermark(9)
    assert windows.take() == [(("a", [2, 3]), 9)]
    assert windows.push((("a", 4), 4)).take() == [(("a", [3, 4]), 9)]
    windows.end()
    assert windows.kept == 0


# -- count windows ---------------------------------------------------------------------------------


def test_tumbling_count_windows_are_evaluated_when_full() -> None:
    windows = listing(CountTumblingWindowAssigner(2), PurgingTrigger(CountTrigger(2)))
    windows.push(*[(("ab"[number % 2], number), None) for number in range(7)])
    assert windows.values() == [("a", [0, 2]), ("b", [1, 3]), ("a", [4, 6])]


def test_sliding_count_windows_begin_with_every_slide() -> None:
    windows = listing(CountSlidingWindowAssigner(3, 2), PurgingTrigger(CountTrigger(3)))
    windows.push(*[(("a", number), None) for number in range(8)])
    assert windows.values() == [("a", [0, 1, 2]), ("a", [2, 3, 4]), ("a", [4, 5, 6])]


def test_full_count_windows_leave_only_the_count() -> None:
    windows = listing(CountTumblingWindowAssigner(2), PurgingTrigger(CountTrigger(2))).push(
        (("a", 1), None), (("a", 2), None)
    )
    assert {name for name, keys in windows.operator.backend.statistics.keys.items() if keys} == {
        "tumble-count-assigner"
    }


# -- state of functions ----------------------------------------------------------------------------


class Counting(ProcessWindowFunction):
    """Counts the firings of the window, and of the key."""

    def __init__(self) -> None:
        self.cleared: list[Any] = []

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        totals = []
        for store in (context.window_state(), context.global_state()):
            state = store.get_state(ValueStateDescriptor("firings", Types.INT()))
            state.update((state.value() or 0) + 1)
            totals.append(state.value())
        yield key, context.window().start, *totals

    def clear(self, context: Any) -> None:
        self.cleared.append(
            (
                context.window(),
                context.window_state()
                .get_state(ValueStateDescriptor("firings", Types.INT()))
                .value(),
            )
        )


@COPYING
@pytest.mark.parametrize("trigger", [None, ContinuousEventTimeTrigger(20)])
def test_window_state_is_per_window_and_goes_with_it_and_global_state_stays(
    copying: bool, trigger: Any
) -> None:
    function = Counting()
    windows = listing(
        TumblingEventTimeWindows(10),
        trigger,
        function,  # type: ignore[arg-type]
        allowed_lateness=5,
        copying=copying,
    )
    windows.push((("a", 1), 1), (("a", 2), 12), (("b", 3), 1)).watermark(9)
    windows.push((("a", 1), 2)).watermark(24)
    assert windows.values() == [("a", 0, 1, 1), ("b", 0, 1, 1), ("a", 0, 2, 2), ("a", 10, 1, 3)]
    assert function.cleared == [((0, 10), 2), ((0, 10), 1), ((10, 20), 1)]
    assert {
        name: keys for name, keys in windows.operator.backend.statistics.keys.items() if keys
    } == {"firings": 2}


def test_there_is_no_window_state_where_windows_merge() -> None:
    windows = listing(EventTimeSessionWindows(5), function=Counting()).push((("a", 1), 1))  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="no state per window where windows merge"):
        windows.end()


def test_window_state_of_another_kind_or_with_a_time_to_live_is_refused() -> None:
    def asking(*descriptors: Any) -> None:
        class Asks(ProcessWindowFunction):
            def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
                for descriptor in descriptors:
                    store = context.window_state()
                    ask = (
                        store.get_state
                        if isinstance(descriptor, ValueStateDescriptor)
                        else store.get_list_state
                    )
                    ask(descriptor)

        listing(TumblingEventTimeWindows(5), function=Asks()).push((("a", 1), 1)).end()  # type: ignore[arg-type]

    with pytest.raises(ProgramError, match="is a value state, and cannot be a list state too"):
        asking(ValueStateDescriptor("s"), ListStateDescriptor("s"))
    expiring = ValueStateDescriptor("s")
    from flinkpy.common.time import Time

    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    with pytest.raises(ProgramError, match="the state goes with its window"):
        asking(expiring)
    with pytest.raises(ProgramError, match="takes a ListStateDescriptor"):
        asking(ReducingStateDescriptor("s", add))


def test_functions_are_opened_and_closed_and_may_send_to_side_outputs() -> None:
    events: list[str] = []

    class Lives(ReduceFunction):
        def open(self, runtime_context: Any) -> None:
            events.append("open reduce")

        def reduce(self, value1: Any, value2: Any) -> Any:
            return add(value1, value2)

        def close(self) -> None:
            events.append("close reduce")

    class Sends(WindowFunction):
        def open(self, runtime_context: Any) -> None:
            self.sum = runtime_context.get_reducing_state(
                ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
            )
            events.append("open function")

        def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
            for record in inputs:
                self.sum.add(record[1])
                yield LATE, record
            yield key, self.sum.get()

        def close(self) -> None:
            events.append("close function")

    windows = WindowHarness(
        WindowOperator(
            FIRST,
            WindowingStrategy(TumblingEventTimeWindows(10)),
            ReduceContents(Lives()),
            window_function=Sends(),
        )
    )
    windows.push((("a", 1), 1), (("a", 2), 2), (("a", 3), 13), (("b", 4), 4)).end()
    windows.operator.close()
    assert windows.take() == [(("a", 3), 9), (("b", 4), 9), (("a", 6), 19)]
    assert windows.output.side["late"] == [(("a", 3), 9), (("b", 4), 9), (("a", 3), 19)]
    assert events == ["open reduce", "open function", "close function", "close reduce"]


def test_a_reduce_that_changes_its_first_argument_changes_neither_other_windows_nor_what_was_given_out() -> (
    None
):
    def grow(one: list[Any], other: list[Any]) -> list[Any]:
        one.extend(other[1:])
        return one

    def harness(assigner: Any, lateness: int = 0) -> WindowHarness:
        return WindowHarness(
            WindowOperator(
                FIRST, WindowingStrategy(assigner, allowed_lateness=lateness), ReduceContents(grow)
            )
        )

    sliding = (
        harness(SlidingEventTimeWindows(10, 5))
        .push((["a", 1], 6), (["a", 2], 7), (["a", 3], 11))
        .end()
    )
    assert sliding.values() == [["a", 1, 2], ["a", 1, 2, 3], ["a", 3]]
    late = (
        harness(TumblingEventTimeWindows(10), 10)
        .push((["a", 1], 1))
        .watermark(9)
        .push((["a", 2], 2))
    )
    assert late.values() == [["a", 1], ["a", 1, 2]]


# -- restoring -------------------------------------------------------------------------------------


def operators() -> dict[str, WindowOperator]:
    """One of many kinds."""
    return {
        "tumbling": WindowOperator(
            FIRST,
            WindowingStrategy(TumblingEventTimeWindows(10), allowed_lateness=7),
            ReduceContents(add),
        ),
        "sliding": WindowOperator(
            FIRST,
            WindowingStrategy(SlidingEventTimeWindows(10, 4)),
            AggregateContents(Mean()),
            window_function=Described(),
        ),
        "sessions": WindowOperator(
            FIRST,
            WindowingStrategy(EventTimeSessionWindows(6), allowed_lateness=3),
            ListContents(),
            window_function=Named(),
        ),
        "counted": WindowOperator(
            FIRST,
            WindowingStrategy(GlobalWindows(), PurgingTrigger(CountTrigger(3))),
            ReduceContents(add),
        ),
        "counted sessions": WindowOperator(
            FIRST,
            WindowingStrategy(EventTimeSessionWindows(6), CountTrigger(3)),
            ReduceContents(add),
        ),
        "continuous": WindowOperator(
            FIRST,
            WindowingStrategy(TumblingEventTimeWindows(30), ContinuousEventTimeTrigger(7)),
            ReduceContents(add),
        ),
        "evicting": WindowOperator(
            FIRST,
            WindowingStrategy(SlidingEventTimeWindows(10, 5), evictor=CountEvictor(2)),
            ListContents(),
            window_function=Named(),
        ),
        "state": WindowOperator(
            FIRST,
            WindowingStrategy(TumblingEventTimeWindows(10), allowed_lateness=8),
            ListContents(),
            window_function=Counting(),
        ),
    }


BEFORE = [(("a", 1), 1), (("b", 2), 3), (("c", 3), 4), (("a", 4), 9), (("d", 5), 14)]
BEHIND = [
    (("a", 6), 12),
    (("b", 7), 11),
    (("e", 8), 21),
    (("d", 9), 22),
    (("c", 1), 23),
    (("a", 1), 24),
]


def in_any_order(results: list[Any]) -> list[str]:
    """Timers of one moment fire in no particular order."""
    return sorted(map(repr, results))


def going_on(windows: WindowHarness) -> list[Any]:
    windows.watermark(10).take()
    windows.push(*BEHIND)
    windows.watermark(15)
    return windows.end().take()


@COPYING
@pytest.mark.parametrize("kind", operators())
def test_what_was_restored_goes_on_as_if_nothing_had_happened(kind: str, copying: bool) -> None:
    first = WindowHarness(operators()[kind], copying=copying).push(*BEFORE).watermark(10)
    first.take()
    saved = first.snapshot()
    again = WindowHarness(operators()[kind], saved, copying=copying)
    assert in_any_order(going_on(again)) == in_any_order(going_on(first))
    assert again.kept == first.kept


@pytest.mark.parametrize("kind", operators())
def test_windows_kept_on_disk_are_those_kept_in_memory(kind: str) -> None:
    on_disk = {"state.backend.type": "rocksdb"}
    memory = WindowHarness(operators()[kind])
    disk = WindowHarness(operators()[kind], configuration=on_disk)
    for windows in (memory, disk):
        windows.push(*BEFORE).watermark(10)
    assert disk.take() == memory.take()
    again = WindowHarness(operators()[kind], memory.snapshot(), configuration=on_disk)
    assert type(again.operator.backend) is not type(memory.operator.backend)
    expected = in_any_order(going_on(memory))
    for windows in (disk, again):
        assert in_any_order(going_on(windows)) == expected
        assert windows.kept == memory.kept
        windows.operator.close()


@pytest.mark.parametrize("kind", operators())
def test_rescaling_shares_out_windows_and_timers_by_key(kind: str) -> None:
    first = WindowHarness(operators()[kind]).push(*BEFORE).watermark(10)
    first.take()
    saved = first.snapshot()
    half = MAX_PARALLELISM // 2
    parts = [
        WindowHarness(
            operators()[kind],
            keyed_share([saved], range(part * half, part * half + half)),
            subtask=part,
            parallelism=2,
        )
        for part in range(2)
    ]
    for part in parts:
        part.watermark(10)
    again = WindowHarness(
        operators()[kind], keyed_share([part.snapshot() for part in parts], range(MAX_PARALLELISM))
    )
    assert in_any_order(going_on(again)) == in_any_order(going_on(first))


def test_timers_of_the_clock_are_restored() -> None:
    first = at_a_round_moment(summing(TumblingProcessingTimeWindows(10)), 10).push((("a", 1), None))
    saved = first.snapshot()
    operator = WindowOperator(
        FIRST, WindowingStrategy(TumblingProcessingTimeWindows(10)), ReduceContents(add)
    )
    again = WindowHarness(operator, saved, timers=first.timers)
    first.operator.close()
    assert again.forward_to(12).values() == [("a", 1)]


# -- mistakes --------------------------------------------------------------------------------------


def test_records_without_timestamps_have_no_place_in_event_time() -> None:
    for assigner in (TumblingEventTimeWindows(10), EventTimeSessionWindows(10)):
        with pytest.raises(
            ProgramError, match=r"needs records with timestamps, .*assign_timestamps_and_watermarks"
        ):
            summing(assigner).push((("a", 1), None))


def test_parts_that_do_not_fit_together_are_refused() -> None:
    def refused(match: str, *arguments: Any, **options: Any) -> None:
        with pytest.raises(ProgramError, match=match):
            WindowOperator(*arguments, **options)

    tumbling = WindowingStrategy(TumblingEventTimeWindows(10))
    reduce = ReduceContents(add)
    merging = WindowingStrategy(EventTimeSessionWindows(5), DeltaTrigger(1, lambda a, b: 0))
    refused("can_merge", FIRST, merging, reduce)
    early = WindowingStrategy(TumblingEventTimeWindows(10), allowed_lateness=-1)
    refused("from 0 on", FIRST, early, reduce)
    refused("there is none", FIRST, tumbling)
    refused(
        r"take a WindowFunction or a ProcessWindowFunction",
        FIRST,
        tumbling,
        window_function=Every(),
    )
    refused(r"\(window_all\) take an? AllWindowFunction", None, tumbling, window_function=Named())
    refused(r"write Named\(\)", FIRST, tumbling, window_function=Named)
    refused(
        "a WindowFunction or a ProcessWindowFunction is needed", FIRST, tumbling, window_function=3
    )
    with pytest.raises(ProgramError, match="AggregateFunction"):
        AggregateContents(Mean)

    class Asks(ReduceFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor("own"))

        def reduce(self, value1: Any, value2: Any) -> Any: ...

    with pytest.raises(
        ProgramError, match="'own': reduce and aggregate of windows have no keyed state"
    ):
        WindowHarness(WindowOperator(FIRST, tumbling, ReduceContents(Asks())))


class Every(AllWindowFunction):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None: ...


def fail(*arguments: Any) -> Any:
    raise ValueError("no")


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows(10), EventTimeSessionWindows(10)])
def test_a_failing_function_is_reported_with_its_record(assigner: Any) -> None:
    reducing = WindowHarness(
        WindowOperator(FIRST, WindowingStrategy(assigner), ReduceContents(fail))
    )
    with pytest.raises(UserCodeError, match=r"ValueError: no") as caught:
        reducing.push((("a", 1), 1), (("b", 2), 1), (("a", 3), 1))
    assert caught.value.record == "('a', 3)"
    with pytest.raises(UserCodeError, match="ValueError: no"):
        listing(assigner, function=fail).push((("a", 1), 1)).end()


def test_a_failing_custom_assigner_or_trigger_is_the_user_s() -> None:
    class Fails(Scripted):
        on_element: Any = fail

    with pytest.raises(UserCodeError, match="ValueError: no"):
        listing(TumblingEventTimeWindows(10), Fails()).push((("a", 1), 1))


def test_results_are_passed_on_in_batches() -> None:
    windows = summing(TumblingEventTimeWindows(10)).push(
        *[((f"k{number}", 1), 1) for number in range(10)]
    )
    batches: list[int] = []
    emit = windows.output.emit

    def counting(batch: Any) -> None:
        batches.append(len(batch))
        emit(batch)

    windows.operator.output.emit = counting
    do_all(windows.operator.process_watermark(Watermark(9)))
    assert batches == [4, 4, 2]
    assert len(windows.take()) == 10


def test_windows_say_what_they_are() -> None:
    operator = WindowOperator(
        FIRST,
        WindowingStrategy(GlobalWindows(), PurgingTrigger(CountTrigger(2)), CountEvictor(2)),
        ReduceContents(add),
    )
    assert repr(operator) == (
        "<WindowOperator GlobalWindows(), PurgingTrigger(CountTrigger(2)), CountEvictor, Reduce>"
    )
    assert GlobalWindow.get().max_timestamp() == MAX_TIMESTAMP
