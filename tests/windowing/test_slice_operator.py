"""Windows over slices against Flink's rules played through window by window: disorder, lateness,
side outputs, snapshots, rescaling."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.aggregates.of_records import FieldAggregate, RecordCount
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import MAX_TIMESTAMP, RowBatch, Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.functions import ReduceFunction, RuntimeContext
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.snapshots.saved_state import SavedState
from flinkpy.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.windowing.general.contents import AggregateContents, ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slices.times import SliceTimes, Standing
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.window_functions import ProcessAllWindowFunction, ProcessWindowFunction
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import ManualTimers
from tests.windowing.slice_harness import (
    ELEMENTS,
    LATE,
    SLICINGS,
    Alone,
    Model,
    by_time,
    elements_of,
    rescaled,
    row_windows,
)

FIRST = KeySpec(selector=lambda record: record[0])
TUMBLING, SLIDING = Slicing(10, 10, 0), Slicing(10, 5, 0)


def joined(left: tuple[str, int, Any], right: tuple[str, int, Any]) -> tuple[str, int, Any]:
    """Associative, and tells the order."""
    return left[0], left[1] + right[1], (*_listed(left[2]), *_listed(right[2]))


def _listed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def best(records: list[Any], better: Callable[[Any, Any], bool]) -> Any:
    return functools.reduce(lambda a, b: b if better(b[1], a[1]) else a, records)


EVALUATE: dict[str, Callable[[list[Any]], Any]] = {
    "sum": lambda records: (records[0][0], sum(record[1] for record in records), records[0][2]),
    "min": lambda records: (records[0][0], min(record[1] for record in records), records[0][2]),
    "max": lambda records: (records[0][0], max(record[1] for record in records), records[0][2]),
    "min_by": lambda records: best(records, lambda a, b: a < b),
    "max_by": lambda records: best(records, lambda a, b: a > b),
    "count": len,
    "reduce": lambda records: functools.reduce(joined, records),
}


def operator_of(
    kind: str, slicing: Slicing, lateness: int = 0, keyed: bool = True
) -> SliceOperator:
    return row_windows(
        FIRST if keyed else None,
        slicing,
        True,
        kind,
        1,
        joined if kind == "reduce" else None,
        None,
        lateness,
        LATE,
    )


@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(sorted(EVALUATE)),
    st.sampled_from([0, 0, 1, 3, 20, MAX_TIMESTAMP]),
    st.booleans(),
)
def test_windows_over_slices_give_what_windows_one_by_one_give(
    drawn: list[Any], slicing: Slicing, kind: str, lateness: int, keyed: bool
) -> None:
    alone = Alone(operator_of(kind, slicing, lateness, keyed))
    model = Model(
        slicing,
        EVALUATE[kind],
        FIRST.selector if keyed and FIRST.selector else lambda record: None,
        lateness,
    )
    for element in elements_of(drawn):
        alone.push(element)
        model.push(element)
        assert by_time(alone.results) == by_time(model.results)
        assert alone.out.side == model.late
    # at the end of time nothing is kept
    assert not alone.operator.store.starts  # type: ignore[attr-defined]


@given(ELEMENTS, SLICINGS, st.sampled_from([0, 3]))
def test_results_come_in_the_order_of_their_windows_and_late_ones_in_the_order_of_records(
    drawn: list[Any], slicing: Slicing, lateness: int
) -> None:
    alone = Alone(operator_of("sum", slicing, lateness, keyed=False))
    model = Model(slicing, EVALUATE["sum"], lambda record: None, lateness)
    for element in elements_of(drawn):
        alone.push(element)
        model.push(element)
    assert alone.results == model.results


@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(sorted(EVALUATE)),
    st.sampled_from([0, 4]),
    st.integers(0, 14),
)
def test_what_was_restored_goes_on_as_if_it_had_never_failed(
    drawn: list[Any], slicing: Slicing, kind: str, lateness: int, cut: int
) -> None:
    elements = elements_of(drawn)
    whole = Alone(operator_of(kind, slicing, lateness))
    for element in elements[:cut]:
        whole.push(element)
    again = Alone(operator_of(kind, slicing, lateness), whole.snapshot())
    for told in whole.out.watermarks[-1:]:
        again.push(Watermark(told))
    assert again.results == []  # what was evaluated is not evaluated again
    before = len(whole.results), len(whole.out.side)
    for element in elements[cut:]:
        whole.push(element)
        again.push(element)
    assert by_time(again.results) == by_time(whole.results[before[0] :])
    assert again.out.side == whole.out.side[before[1] :]


def share(element: RowBatch | Watermark, subtask: int, parallelism: int) -> RowBatch | Watermark:
    """What reaches one subtask."""
    if isinstance(element, Watermark) or element.timestamps is None:
        return element
    pairs = [
        (record, stamp)
        for record, stamp in zip(element.values, element.timestamps)
        if channel_of_key_group(key_group(record[0], 8), 8, parallelism) == subtask
    ]
    return RowBatch([record for record, _ in pairs], [stamp for _, stamp in pairs])


@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(["sum", "count"]),
    st.sampled_from([0, 4]),
    st.integers(0, 14),
    st.sampled_from([(1, 3), (3, 1), (2, 3)]),
)
def test_rescaled_subtasks_give_together_what_one_gives(
    drawn: list[Any], slicing: Slicing, kind: str, lateness: int, cut: int, scales: tuple[int, int]
) -> None:
    elements = elements_of(drawn)
    whole = Alone(operator_of(kind, slicing, lateness))
    for element in elements:
        whole.push(element)
    before = [
        Alone(operator_of(kind, slicing, lateness), None, subtask, scales[0])
        for subtask in range(scales[0])
    ]
    for element in elements[:cut]:
        for subtask, each in enumerate(before):
            each.push(share(element, subtask, scales[0]))
    saved = [each.snapshot() for each in before]
    after = [
        Alone(
            operator_of(kind, slicing, lateness),
            rescaled(saved, subtask, scales[1]),
            subtask,
            scales[1],
        )
        for subtask in range(scales[1])
    ]
    for told in before[0].out.watermarks[-1:]:
        for each in after:
            each.push(Watermark(told))
    for element in elements[cut:]:
        for subtask, each in enumerate(after):
            each.push(share(element, subtask, scales[1]))
    assert by_time([result for each in (*before, *after) for result in each.results]) == by_time(
        whole.results
    )


def test_keys_of_a_subtask_that_was_ahead_are_not_evaluated_twice() -> None:
    keys = {channel_of_key_group(key_group(key, 8), 8, 2): key for key in "abcdefgh"}
    attempts = []
    for subtask, key in keys.items():
        alone = Alone(operator_of("sum", SLIDING), None, subtask, 2)
        alone.push(RowBatch([(key, 1, 0), (key, 2, 0)], [3, 7]))
        attempts.append(alone)
    attempts[0].push(Watermark(9))
    assert len(attempts[0].results) == 2  # -5..5 and 0..10; the other subtask has not got there
    one = Alone(operator_of("sum", SLIDING), rescaled([each.snapshot() for each in attempts], 0, 1))
    one.push(Watermark(MAX_TIMESTAMP))
    first = attempts[0].results[0][0][0]
    second = next(key for key in keys.values() if key != attempts[0].results[0][0][0])
    assert by_time(one.results) == by_time(
        [((second, 1, 0), 4), ((second, 3, 0), 9), ((second, 2, 0), 14), ((first, 2, 0), 14)]
    )


class Report(ProcessWindowFunction):
    """All a context tells, and how often the window was evaluated for the key."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        (total,) = elements
        times, overall = (
            store().get_state(ValueStateDescriptor("times", Types.INT()))
            for store in (context.window_state, context.global_state)
        )
        for state in (times, overall):
            state.update((state.value() or 0) + 1)
        yield (
            key,
            tuple(context.window()),
            context.current_watermark(),
            times.value(),
            overall.value(),
            total,
        )
        if total[1] < 0:
            yield LATE, ("negative", key)


def summed(left: Any, right: Any) -> Any:
    return left[0], left[1] + right[1], 0


@given(ELEMENTS, SLICINGS, st.sampled_from([0, 3]), st.booleans())
def test_a_window_function_sees_what_it_sees_behind_the_general_operator(
    drawn: list[Any], slicing: Slicing, lateness: int, process: bool
) -> None:
    function: Any = Report() if process else lambda key, window, inputs: [(key, window, *inputs)]
    elements = [
        e
        if isinstance(e, Watermark)
        else RowBatch([(k, n, 0) for k, n, _ in e.values], e.timestamps)
        for e in elements_of(drawn)
    ]
    slices = Alone(
        row_windows(FIRST, slicing, True, "reduce", None, summed, function, lateness, LATE)
    )
    assigner = SlidingEventTimeWindows(slicing.size, slicing.slide, slicing.offset)
    general = Alone(
        WindowOperator(
            FIRST,
            WindowingStrategy(assigner, allowed_lateness=lateness, late_tag=LATE),
            ReduceContents(summed),
            window_function=function,
        )
    )
    for element in elements:
        slices.push(element)
        general.push(element)
        assert by_time(slices.results) == by_time(general.results)
        assert by_time(slices.out.side) == by_time(general.out.side)
    assert slices.operator.backend.engine_values("_window state") == {}  # type: ignore[attr-defined]


def test_state_may_be_kept_and_saved_on_disk() -> None:
    def restarted(saved: SavedState | None = None) -> Alone:
        return Alone(
            row_windows(FIRST, SLIDING, True, "sum", 1, None, Report(), 10, LATE),
            saved,
            backend="rocksdb",
        )

    one = restarted()
    one.push(RowBatch([("a", 1, 0), ("b", 2, 0)], [1, 7]))
    one.push(Watermark(9))
    other = restarted(one.snapshot())
    for each in (one, other):
        each.push(Watermark(9))
        each.push(RowBatch([("a", 5, 0)], [2]))
        each.push(Watermark(MAX_TIMESTAMP))
    later = [result for result, _ in other.results]
    assert later == [result for result, _ in one.results][-len(later) :]
    assert [(key, window, times, total[1]) for key, window, _, times, _, total in later] == [
        ("a", (0, 10), 2, 6),
        ("a", (-5, 5), 2, 6),
        ("b", (5, 15), 1, 2),
    ]
    operator: Any = other.operator
    assert list(operator.backend.keys("_window state")) == []
    for each in (one, other):
        each.operator.close()


@given(ELEMENTS, st.integers(1, 12), st.sampled_from(sorted(EVALUATE)), st.sampled_from([0, 3]))
@settings(max_examples=50)
def test_windows_that_do_not_overlap_are_the_general_operators(
    drawn: list[Any], size: int, kind: str, lateness: int
) -> None:
    slices = Alone(operator_of(kind, Slicing(size, size, 0), lateness))
    reduce = (
        joined if kind == "reduce" else FieldAggregate(kind, 1).update if kind != "count" else None
    )
    contents: Any = ReduceContents(reduce) if reduce else AggregateContents(RecordCount())
    general = Alone(
        WindowOperator(
            FIRST,
            WindowingStrategy(
                TumblingEventTimeWindows(size), allowed_lateness=lateness, late_tag=LATE
            ),
            contents,
        )
    )
    for element in elements_of(drawn):
        slices.push(element)
        general.push(element)
        assert by_time(slices.results) == by_time(general.results)
        assert slices.out.side == general.out.side


def test_a_function_of_all_records_gets_the_one_value_of_the_window() -> None:
    class Total(ProcessAllWindowFunction):
        def process(self, context: Any, elements: Any) -> Any:
            yield context.window().start, list(elements)

    alone = Alone(row_windows(None, TUMBLING, True, "count", None, None, Total()))
    alone.push(RowBatch(["x", "y"], [3, 12]))
    alone.push(Watermark(MAX_TIMESTAMP))
    assert alone.results == [((0, [1]), 9), ((10, [1]), 19)]


def test_a_function_that_clears_up_after_itself_is_left_to_the_general_operator() -> None:
    class Clearing(Report):
        def clear(self, context: Any) -> None: ...

    with pytest.raises(ProgramError, match="clear"):
        row_windows(FIRST, TUMBLING, True, "count", None, None, Clearing())


def test_a_reduce_function_that_changes_its_argument_changes_no_other_window() -> None:
    class Gather(ReduceFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.opened = True

        def reduce(self, value1: Any, value2: Any) -> Any:
            assert self.opened
            value1["all"].extend(value2["all"])
            return value1

    alone = Alone(row_windows(None, SLIDING, True, "reduce", None, Gather()))
    alone.push(RowBatch([{"all": [n]} for n in (1, 2, 3)], [1, 6, 11]))
    alone.push(Watermark(9))
    given_first = alone.results[-1][0]
    given_first["all"].append("changed downstream")
    alone.push(Watermark(MAX_TIMESTAMP))
    assert [result["all"] for result, _ in alone.results] == [
        [1],
        [1, 2, "changed downstream"],
        [2, 3],
        [3],
    ]


@dataclass(frozen=True)
class Sale:
    shop: str
    price: float


def test_fields_are_found_in_whatever_the_records_are_also_when_that_changes() -> None:
    records: list[Any] = [
        Sale("a", 1.0),
        Sale("b", 5.0),
        {"shop": "c", "price": 2.0},
        Sale("a", 3.0),
    ]
    select = KeySpec(selector=lambda sale: sale["shop"] if isinstance(sale, dict) else sale.shop)
    alone = Alone(row_windows(select, TUMBLING, True, "sum", "price"))
    alone.push(RowBatch(records, [1, 2, 3, 4]))
    alone.push(Watermark(9))
    assert alone.results == [
        (Sale("a", 4.0), 9),
        (Sale("b", 5.0), 9),
        ({"shop": "c", "price": 2.0}, 9),
    ]


def test_plain_numbers_are_their_own_first_field() -> None:
    alone = Alone(row_windows(None, TUMBLING, True, "max", 0))
    alone.push(RowBatch([3, 7, 5], [1, 2, 3]))
    alone.push(Watermark(9))
    assert alone.results == [(7, 9)]


def test_processing_time_windows_are_evaluated_when_the_clock_has_passed_their_end() -> None:
    timers = ManualTimers()
    begin = timers.now_ms() // 1000 * 1000
    timers.advance((begin + 1000 - timers.now_ms()) / 1000)
    alone = Alone(row_windows(FIRST, Slicing(1000, 500, 0), False, "count"), timers=timers)
    alone.push(RowBatch(["a", "b", "a"]))
    timers.advance(0.499)
    assert alone.results == []
    timers.advance(0.001)
    end = begin + 1000 + 500
    assert alone.results == [(2, end - 1), (1, end - 1)]
    alone.push(RowBatch(["a"]))
    timers.advance(0.5)
    assert alone.results[2:] == [(3, end + 499), (1, end + 499)]
    timers.advance(0.5)
    assert alone.results[4:] == [(1, end + 999)]
    assert timers.pending == []


def test_processing_time_windows_that_ended_while_the_job_was_down_are_evaluated_at_once() -> None:
    timers = ManualTimers()
    alone = Alone(row_windows(FIRST, Slicing(1000, 1000, 0), False, "count"), timers=timers)
    alone.push(RowBatch(["a", "b"]))
    saved = alone.snapshot()
    alone.operator.close()
    assert timers.pending == []
    timers.advance(5)
    again = Alone(row_windows(FIRST, Slicing(1000, 1000, 0), False, "count"), saved, timers=timers)
    timers.advance(0)
    assert [value for value, _ in again.results] == [1, 1]


def test_an_idle_stream_costs_no_timers_and_a_watermark_passes_behind_the_results() -> None:
    alone = Alone(operator_of("count", TUMBLING))
    alone.push(Watermark(5))
    alone.push(RowBatch([("a", 1, 1)], [7]))
    alone.push(Watermark(9))
    assert alone.results == [(1, 9)]
    assert alone.out.watermarks == [5, 9]
    assert alone.timers.pending == []


def test_late_records_without_a_side_output_are_counted() -> None:
    alone = Alone(row_windows(FIRST, TUMBLING, True, "count"))
    alone.push(Watermark(20))
    alone.push(RowBatch(["a", "b", "c"], [5, 25, 19]))
    operator: Any = alone.operator
    assert operator.late_records_dropped == 2


def test_records_without_timestamps_are_refused_saying_what_to_call() -> None:
    alone = Alone(operator_of("count", TUMBLING))
    with pytest.raises(ProgramError, match="assign_timestamps_and_watermarks"):
        alone.push(RowBatch([("a", 1, 1)]))


@pytest.mark.parametrize(("kind", "keyed"), [("sum", True), ("sum", False), ("count", True)])
def test_a_failing_function_is_told_with_its_record(kind: str, keyed: bool) -> None:
    key = KeySpec(selector=lambda record: 1 // record[1] and "a") if kind == "count" else FIRST
    bad = ("a", 0, 0) if kind == "count" else ("a", "no number", 0)
    alone = Alone(row_windows(key if keyed else None, TUMBLING, True, kind, 1))
    with pytest.raises(UserCodeError) as caught:
        alone.push(RowBatch([("a", 1, 0), ("a", 1, 0), bad, ("a", 1, 0)], [1, 2, 3, 4]))
    assert caught.value.record == repr(bad)


def test_what_cannot_be_aggregated_is_refused_when_the_operator_is_made() -> None:
    with pytest.raises(ProgramError, match="'median' is no aggregate"):
        row_windows(FIRST, TUMBLING, True, "median", 1)
    with pytest.raises(ProgramError, match="position"):
        row_windows(FIRST, TUMBLING, True, "sum", 1.5)
    with pytest.raises(ProgramError, match="reduce"):
        row_windows(FIRST, TUMBLING, True, "reduce")


@given(SLICINGS, st.integers(-100, 100), st.integers(-120, 160), st.integers(0, 30))
def test_how_a_slice_stands_to_time_follows_from_its_windows(
    slicing: Slicing, moment: int, now: int, lateness: int
) -> None:
    start = slicing.slice_of(moment)
    times = SliceTimes(slicing, lateness)
    times.now = now
    windows = list(slicing.windows_of(start))
    evaluated = [window for window in windows if window.end - 1 <= now]
    kept = [window for window in evaluated if window.end - 1 + lateness > now]
    over = [window for window in evaluated if window not in kept]
    expected = (
        Standing.OUTSIDE
        if not windows
        else Standing.OVER
        if over == windows
        else Standing.REOPENED
        if kept
        else Standing.OPEN
    )
    assert times.standing(start) is expected
    if windows:
        assert times.evaluated(start) == kept
        assert times.due([start], now + 25) == [
            window for window in windows if now < window.end - 1 <= now + 25
        ]
        assert (times.over([start]) == [start]) == (expected is Standing.OVER)
