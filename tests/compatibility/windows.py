"""Windows, assigners and triggers called directly, with the contexts of their own tests."""

from __future__ import annotations

import io
from typing import Any

from flinkpy.common import Time, Types
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    CountWindowSerializer,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    GlobalWindowSerializer,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TimeWindowSerializer,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.windowing.contexts import AssignerContext, Merges, OneKey


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return int(element)


def windows() -> None:
    window = TimeWindow(0, 10)
    assert window.max_timestamp() == 9
    assert window.intersects(TimeWindow(5, 15))
    assert window.cover(TimeWindow(5, 15)) == TimeWindow(0, 15)
    assert TimeWindow.get_window_start_with_offset(17, 0, 5) == 15
    merges = Merges()
    TimeWindow.merge_windows([window, TimeWindow(5, 15)], merges)
    assert list(merges.results) == [TimeWindow(0, 15)]
    assert GlobalWindow.get().max_timestamp() == CountWindow(1).max_timestamp() == 2**63 - 1
    each: list[tuple[Any, Any]] = [
        (TimeWindowSerializer(), window),
        (CountWindowSerializer(), CountWindow(7)),
        (GlobalWindowSerializer(), GlobalWindow.get()),
    ]
    for serializer, value in each:
        stream = io.BytesIO()
        serializer.serialize(value, stream)
        stream.seek(0)
        assert serializer.deserialize(stream) == value


def assigners() -> None:
    five, gap = Time.milliseconds(5), Gap()
    made: list[Any] = [
        TumblingEventTimeWindows.of(five),
        TumblingProcessingTimeWindows.of(five),
        SlidingEventTimeWindows.of(five, five),
        SlidingProcessingTimeWindows.of(five, five),
        EventTimeSessionWindows.with_gap(five),
        ProcessingTimeSessionWindows.with_gap(five),
        EventTimeSessionWindows.with_dynamic_gap(gap),
        ProcessingTimeSessionWindows.with_dynamic_gap(gap),
        DynamicEventTimeSessionWindows.with_dynamic_gap(gap),
        DynamicProcessingTimeSessionWindows.with_dynamic_gap(gap),
        GlobalWindows.create(),
        CountTumblingWindowAssigner.of(2),
        CountSlidingWindowAssigner.of(2, 1),
    ]
    for assigner in made:
        context = AssignerContext(7)
        found = list(assigner.assign_windows(5, 7, context))
        assert found, assigner
        assert all(window.max_timestamp() >= 7 for window in found)
        assigner.get_default_trigger(None)
        assert assigner.get_window_serializer()
        assert isinstance(assigner.is_event_time(), bool)
        merge = getattr(assigner, "merge_windows", None)
        if merge is not None:
            merges = Merges()
            merge([TimeWindow(0, 10), TimeWindow(5, 15)], merges)
            assert list(merges.results) == [TimeWindow(0, 15)]


def triggers() -> None:
    window = TimeWindow(0, 10)
    made: list[Any] = [
        EventTimeTrigger.create(),
        ProcessingTimeTrigger.create(),
        CountTrigger.of(2),
        PurgingTrigger.of(CountTrigger.of(2)),
        NeverTrigger(),
        ContinuousEventTimeTrigger.of(Time.milliseconds(5)),
        ContinuousProcessingTimeTrigger.of(Time.milliseconds(5)),
    ]
    for trigger in made:
        key = OneKey()
        context = key.of(window)
        results = [
            trigger.on_element("x", 3, window, context),
            trigger.on_element("x", 4, window, context),
        ]
        results += [
            trigger.on_event_time(9, window, context),
            trigger.on_processing_time(9, window, context),
        ]
        assert set(map(type, results)) == {TriggerResult}
        if trigger.can_merge():
            trigger.on_merge(window, key.of(window, (window,)))
        elif isinstance(trigger, NeverTrigger):
            trigger.on_merge(GlobalWindow.get(), context)
        trigger.clear(window, context)
        assert not key.cells, trigger
    for again in (made[5], made[6]):
        register = again.register_next_fire_timestamp
        cells = OneKey().of(window)
        register(
            0,
            window,
            cells,
            cells.get_partitioned_state(ValueStateDescriptor("next", Types.LONG())),
        )
    assert TriggerResult.FIRE_AND_PURGE.is_fire()
    assert TriggerResult.FIRE_AND_PURGE.is_purge()


SCENARIOS = [windows, assigners, triggers]
