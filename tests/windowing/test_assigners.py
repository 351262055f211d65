"""Which windows a record belongs to, against brute force over all windows there are."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flinkpy.common.time import Time
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    CountWindowSerializer,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    GlobalWindowSerializer,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TimeWindowSerializer,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.windowing.contexts import AssignerContext

HERE = AssignerContext()
SIZES, TIMES = st.integers(1, 60), st.integers(-300, 300)


def holding(timestamp: int, size: int, slide: int, offset: int) -> list[TimeWindow]:
    """Every window of the grid, asked one by one."""
    windows = [
        TimeWindow(number * slide + offset, number * slide + offset + size)
        for number in range(-500, 500)
    ]
    return [window for window in windows if window.start <= timestamp < window.end]


@given(TIMES, SIZES, st.integers(-59, 59))
def test_a_tumbling_window_is_the_one_of_the_grid_that_holds_the_record(
    timestamp: int, size: int, offset: int
) -> None:
    assume(abs(offset) < size)
    expected = holding(timestamp, size, size, offset)
    assert len(expected) == 1
    assert TumblingEventTimeWindows(size, offset).assign_windows("x", timestamp, HERE) == expected
    assert (
        TumblingProcessingTimeWindows(size, offset).assign_windows(
            "x", MIN_TIMESTAMP, AssignerContext(timestamp)
        )
        == expected
    )
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, size) == expected[0].start


@given(TIMES, SIZES, SIZES, st.integers(-59, 59))
def test_sliding_windows_are_all_of_the_grid_that_hold_the_record(
    timestamp: int, size: int, slide: int, offset: int
) -> None:
    assume(abs(offset) < slide)
    expected = holding(timestamp, size, slide, offset)
    assert (
        sorted(SlidingEventTimeWindows(size, slide, offset).assign_windows("x", timestamp, HERE))
        == expected
    )
    assert (
        sorted(
            SlidingProcessingTimeWindows(size, slide, offset).assign_windows(
                "x", MIN_TIMESTAMP, AssignerContext(timestamp)
            )
        )
        == expected
    )
    if size % slide == 0:
        assert len(expected) == size // slide


@pytest.mark.parametrize(
    ("assigner", "timestamp", "expected"),
    [
        (TumblingEventTimeWindows.of(Time.seconds(5)), 0, [(0, 5000)]),
        (TumblingEventTimeWindows.of(Time.seconds(5)), 4999, [(0, 5000)]),
        (TumblingEventTimeWindows.of(Time.seconds(5)), 5000, [(5000, 10000)]),
        (TumblingEventTimeWindows.of(Time.seconds(5)), -1, [(-5000, 0)]),
        (TumblingEventTimeWindows.of(Time.seconds(5), Time.milliseconds(100)), 99, [(-4900, 100)]),
        (
            TumblingEventTimeWindows.of(timedelta(seconds=5), timedelta(milliseconds=-100)),
            4900,
            [(4900, 9900)],
        ),
        (
            TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8)),
            1_700_000_000_000,
            [(1_699_977_600_000, 1_700_064_000_000)],
        ),
        (
            SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1)),
            4999,
            [(4000, 9000), (3000, 8000), (2000, 7000), (1000, 6000), (0, 5000)],
        ),
        (
            SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(2), Time.milliseconds(-50)),
            5000,
            [(3950, 8950), (1950, 6950)],
        ),
        (SlidingEventTimeWindows.of(Time.seconds(1), Time.seconds(3)), 1500, []),
        (SlidingEventTimeWindows.of(Time.seconds(1), Time.seconds(3)), 3500, [(3000, 4000)]),
        (EventTimeSessionWindows.with_gap(Time.seconds(5)), 7, [(7, 5007)]),
        (EventTimeSessionWindows.with_dynamic_gap(lambda element: len(element)), 7, [(7, 10)]),
    ],
)
def test_windows_of_single_records(
    assigner: Any, timestamp: int, expected: list[tuple[int, int]]
) -> None:
    assert assigner.assign_windows("abc", timestamp, HERE) == expected
    assert assigner.is_event_time()
    assert isinstance(assigner.get_default_trigger(None), EventTimeTrigger)


def test_windows_of_processing_time_ask_the_clock_and_not_the_record() -> None:
    second = Time.seconds(1)
    cases: list[tuple[Any, tuple[int, int]]] = [
        (TumblingProcessingTimeWindows.of(second), (1000, 2000)),
        (SlidingProcessingTimeWindows.of(second, second), (1000, 2000)),
        (ProcessingTimeSessionWindows.with_gap(second), (1700, 2700)),
        (ProcessingTimeSessionWindows.with_dynamic_gap(lambda x: 5), (1700, 1705)),
    ]
    for assigner, expected in cases:
        assert assigner.assign_windows("x", 99, AssignerContext(1700)) == [expected]
        assert not assigner.is_event_time()
        assert isinstance(assigner.get_default_trigger(), ProcessingTimeTrigger)


def test_the_global_window_holds_everything_and_never_fires_by_itself() -> None:
    assigner = GlobalWindows.create()
    assert assigner.assign_windows("x", MIN_TIMESTAMP, HERE) == [GlobalWindow.get()]
    assert GlobalWindow() == GlobalWindow.get()
    assert GlobalWindow.get().max_timestamp() == MAX_TIMESTAMP
    assert isinstance(assigner.get_default_trigger(), NeverTrigger)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 40))
def test_count_windows_hold_so_many_records_each(size: int, slide: int, records: int) -> None:
    sliding = CountSlidingWindowAssigner.of(size, slide)
    tumbling = CountTumblingWindowAssigner.of(size)
    context = AssignerContext()
    found: dict[CountWindow, list[int]] = {}
    for record in range(records):
        for window in sliding.assign_windows(record, MIN_TIMESTAMP, context):
            found.setdefault(window, []).append(record)
        assert tumbling.assign_windows(record, MIN_TIMESTAMP, context) == [
            CountWindow(record // size)
        ]
    expected = {
        CountWindow(number): list(range(number * slide, min(number * slide + size, records)))
        for number in range(-(-records // slide))
    }
    assert found == expected
    assert isinstance(sliding.get_default_trigger(), CountTrigger)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TumblingEventTimeWindows.of(Time.seconds(0)), "the size .* from 1 on, this is 0"),
        (lambda: TumblingEventTimeWindows.of(Time.seconds(-1)), "this is -1000"),
        (
            lambda: TumblingEventTimeWindows.of(Time.seconds(1), Time.seconds(1)),
            "offset .* must be smaller than the size",
        ),
        (
            lambda: TumblingProcessingTimeWindows.of(Time.seconds(1), Time.seconds(-1)),
            "offset .* must be smaller than the size",
        ),
        (lambda: TumblingEventTimeWindows.of(5), "is a Time or a Duration"),  # type: ignore[arg-type]
        (
            lambda: SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(0)),
            "the slide .* from 1 on, this is 0",
        ),
        (lambda: SlidingEventTimeWindows.of(Time.seconds(-2), Time.seconds(1)), "this is -2000"),
        (
            lambda: SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1), Time.seconds(1)),
            "must be smaller than the slide",
        ),
        (lambda: SlidingProcessingTimeWindows(2, 1, -1), "must be smaller than the slide"),
        (lambda: EventTimeSessionWindows.with_gap(Time.seconds(0)), "the gap .* from 1 on"),
        (lambda: ProcessingTimeSessionWindows.with_gap(Time.seconds(-1)), "the gap .* from 1 on"),
        (
            lambda: DynamicEventTimeSessionWindows.with_dynamic_gap(5),  # type: ignore[arg-type]
            "takes a SessionWindowTimeGapExtractor",
        ),
        (lambda: CountTumblingWindowAssigner.of(0), "from 1 on"),
        (lambda: CountSlidingWindowAssigner.of(3, -1), "a count window's slide"),
    ],
)
def test_mistakes_are_refused_while_the_program_is_built(
    make: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        make()


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows(5),
        SlidingEventTimeWindows(5, 1),
        EventTimeSessionWindows(5),
        DynamicEventTimeSessionWindows(lambda x: 1),
    ],
    ids=lambda assigner: type(assigner).__name__,
)
def test_a_record_without_a_timestamp_is_refused_by_windows_of_event_time(assigner: Any) -> None:
    with pytest.raises(ProgramError, match=r"call assign_timestamps_and_watermarks"):
        assigner.assign_windows("x", MIN_TIMESTAMP, HERE)


@pytest.mark.parametrize("gap", [0, -5, 1.5, None, True])
def test_a_dynamic_gap_must_be_positive(gap: Any) -> None:
    with pytest.raises(ProgramError, match="from 1 on, this one is"):
        DynamicEventTimeSessionWindows(lambda element: gap).assign_windows("x", 5, HERE)


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(Time.seconds(1)),
        SlidingProcessingTimeWindows(4, 2),
        EventTimeSessionWindows(4),
        GlobalWindows(),
        CountSlidingWindowAssigner(4, 2),
        CountTumblingWindowAssigner(3),
    ],
    ids=repr,
)
def test_assigners_travel_with_the_program(assigner: Any) -> None:
    assert repr(pickle.loads(pickle.dumps(assigner))) == repr(assigner)


@given(st.integers(-(2**62), 2**62), st.integers(0, 2**40))
def test_windows_are_values_and_survive_their_serialisers(start: int, length: int) -> None:
    kinds: list[tuple[Any, Any, int]] = [
        (TimeWindow(start, start + length), TimeWindowSerializer(), 16),
        (CountWindow(length), CountWindowSerializer(), 8),
        (GlobalWindow(), GlobalWindowSerializer(), 1),
    ]
    for value, serializer, size in kinds:
        stream = io.BytesIO()
        serializer.serialize(value, stream)
        assert len(stream.getvalue()) == size
        stream.seek(0)
        for copy in (serializer.deserialize(stream), pickle.loads(pickle.dumps(value))):
            assert (copy, hash(copy), type(copy)) == (value, hash(value), type(value))


def test_windows_print_and_order_as_flinks_do() -> None:
    windows = TimeWindow(1, 2), CountWindow(3), GlobalWindow()
    assert list(map(repr, windows)) == [
        "TimeWindow(start=1, end=2)",
        "CountWindow(id=3)",
        "GlobalWindow",
    ]
    assert sorted([TimeWindow(1, 5), TimeWindow(0, 9), TimeWindow(1, 2)]) == [
        TimeWindow(0, 9),
        TimeWindow(1, 2),
        TimeWindow(1, 5),
    ]
