"""What an operator holds in a form of its own is written as it was at the barrier, whatever comes,
fires, is changed in place or cleared from then on, also while it is written; and nobody who looks
at the results can see that it was frozen. The specification is a twin whose state is written at
once, and one that is never asked for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import Turns
from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    ColumnBatch,
    ControlElement,
    RowBatch,
    Watermark,
)
from flinkpy.core.files.large_bytes import Data
from flinkpy.core.ids import OperatorId
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.columnar.tables_by_group import from_bytes
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.functions import KeyedProcessFunction
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.process.join_functions import ProcessJoinFunction
from flinkpy.operators.process.key_timers import TimerQueue
from flinkpy.operators.process.process_operators import KeyedProcessOperator
from flinkpy.state.descriptors import ListStateDescriptor
from flinkpy.state.snapshots.frozen_tables import FrozenTables
from flinkpy.state.snapshots.keyed_snapshots import KeyedSnapshot, load_group
from flinkpy.state.table_backend import TableBackend
from flinkpy.table.expressions import col
from flinkpy.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.windowing.general.contents import ListContents, ReduceContents
from flinkpy.windowing.general.per_window.window_timers import WindowTimerService
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.slices.column_slices import AggregateSlices, FieldSlices
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.triggers import CountTrigger, PurgingTrigger
from flinkpy.windowing.window_functions import ProcessWindowFunction
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import TASK, ManualTimers, do_all
from tests.values import COMPARABLE_KEYS, shown

Step: TypeAlias = "tuple[Any, ...]"
FIRST = KeySpec(itemgetter(0))
ARROW = b"\xff\xff\xff\xff"  # with this an Arrow stream begins
SLICING = Slicing(10, 5, 0)
TUMBLING = TumblingEventTimeWindows(10)
SLIDING = SlidingEventTimeWindows(10, 5)


def extended(one: Any, other: Any) -> Any:
    one[1].extend(other[1])
    return one


def noted(key: Any, window: Any, inputs: list[Any]) -> list[Any]:
    for record in inputs:
        record[1].append("seen")
    return [(key, [tuple(record[1]) for record in inputs])]


def paired(one: Any, other: Any) -> Any:
    one[1].append("left")
    other[1].append("right")
    return tuple(one[1]), tuple(other[1])


def grouped(ones: list[Any], others: list[Any]) -> list[Any]:
    return [
        (
            [tuple(extended(one, one)[1]) for one in ones],
            [tuple(extended(other, other)[1]) for other in others],
        )
    ]


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield paired(left, right)


class Kept(ProcessWindowFunction):
    """Keeps how often each window fired, in the window's state."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        fired = context.window_state().get_list_state(ListStateDescriptor("fired", Types.LONG()))
        fired.add(len(list(elements)))
        yield key, list(fired.get())

    def clear(self, context: Any) -> None:
        context.window_state().get_list_state(ListStateDescriptor("fired", Types.LONG())).clear()


class Timed(KeyedProcessFunction):
    """Each record sets a timer; a number that can be divided by three deletes the one of the record
    before it."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        number = value[1][0]
        ctx.timer_service().register_event_time_timer(number)
        ctx.timer_service().register_event_time_timer(2 * number)
        if number % 3 == 0:
            ctx.timer_service().delete_event_time_timer(number - 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp, ctx.get_current_key()


def counted(column: Any) -> Any:
    return aggregate_calls([column.sum.alias("total"), column.count.alias("count")], "test")


OPERATORS: dict[str, Callable[[], Any]] = {
    "slices of rows, summed": lambda: SliceOperator(
        RowSlices(FIRST, "max_by", 2), SLICING, True, 3
    ),
    "slices of rows, counted": lambda: SliceOperator(RowSlices(FIRST, "count"), SLICING, True),
    "slices of rows, reduced in place": lambda: SliceOperator(
        RowSlices(FIRST, "reduce", None, extended), SLICING, True, 3
    ),
    "slices of all rows": lambda: SliceOperator(
        RowSlices(None, "reduce", None, extended), SLICING, True
    ),
    "slices of rows, then a function": lambda: SliceOperator(
        RowSlices(FIRST, "reduce", None, extended, noted), Slicing(10, 10, 0), True
    ),
    "slices of columns": lambda: SliceOperator(
        AggregateSlices(["key"], counted(col("number"))), SLICING, True, 3
    ),
    "slices of columns, a field": lambda: SliceOperator(
        FieldSlices(["key"], "max", "number"), SLICING, True
    ),
    "sessions, reduced in place": lambda: WindowOperator(
        FIRST, WindowingStrategy(EventTimeSessionWindows(4)), ReduceContents(extended)
    ),
    "sessions, all records": lambda: WindowOperator(
        FIRST,
        WindowingStrategy(EventTimeSessionWindows(4), allowed_lateness=3),
        window_function=noted,
    ),
    "windows that overlap": lambda: WindowOperator(
        FIRST, WindowingStrategy(SLIDING), ListContents(), window_function=noted
    ),
    "windows with a trigger": lambda: WindowOperator(
        FIRST,
        WindowingStrategy(TUMBLING, PurgingTrigger.of(CountTrigger.of(3))),
        window_function=noted,
    ),
    "windows with state": lambda: WindowOperator(
        FIRST, WindowingStrategy(TUMBLING, allowed_lateness=5), window_function=Kept()
    ),
    "window join": lambda: WindowJoinOperator(paired, FIRST, FIRST, SLIDING, 3),
    "window co-group": lambda: WindowCoGroupOperator(grouped, FIRST, FIRST, TUMBLING),
    "window join of columns": lambda: ColumnarJoinOperator(["key"], ["key"], SLIDING),
    "interval join": lambda: IntervalJoinOperator(Pairs(), FIRST, FIRST, -4, 4),
    "timers": lambda: KeyedProcessOperator(Timed(), FIRST),
    "running aggregates of columns": lambda: KeyedAggregatesOperator(
        ["key"], counted(col("number"))
    ),
}


class Gathered(Output):
    def __init__(self) -> None:
        self.found: list[Any] = []

    def emit(self, batch: Batch) -> None:
        if isinstance(batch, ColumnBatch):
            self.found += [shown(tuple(row.values())) for row in batch.data.to_pylist()]
        else:
            self.found += map(shown, batch.values)

    def emit_side(self, tag_id: str, batch: Batch) -> None: ...

    def emit_control(self, element: ControlElement) -> None: ...


class Subject:
    """An operator in a task. ``copies``: a freeze copies all state of which it can."""

    def __init__(self, name: str, copies: bool) -> None:
        self.operator, self.out, timers = OPERATORS[name](), Gathered(), ManualTimers()
        self.columnar = "columns" in name
        at_once = 1 << 20 if copies else 0
        if isinstance(store := getattr(self.operator, "store", None), RowSlices):
            store.copied_at_once = at_once
        context = OperatorContext(
            OperatorId("op"),
            "op",
            None,
            TASK,
            timers.clock,
            timers,
            lambda action: action(),
            lambda event: None,
        )
        self.operator.setup(context, self.out)
        self.operator.initialize_state(None)
        with (
            mock.patch.object(TableBackend, "layered_from", at_once),
            mock.patch.object(TimerQueue, "copied_at_once", at_once),
        ):
            self.operator.open()
        if isinstance(service := getattr(self.operator, "_service", None), WindowTimerService):
            for queue in (service.event, service.processing):
                queue.few_moments, queue.few_timers = 3, at_once

    def batch(self, side: int, records: Sequence[tuple[Any, int, int]]) -> None:
        batch = of_columns(records) if self.columnar else of_rows(records)
        process = (
            getattr(self.operator, "process_batch", None)
            or (self.operator.process_batch1, self.operator.process_batch2)[side]
        )
        do_all(process(batch))

    def watermark(self, time: int) -> None:
        do_all(self.operator.process_watermark(Watermark(time)))

    def freeze(self) -> FrozenTables:
        frozen = self.operator.freeze_state(CheckpointBarrier(1, 0)).keyed
        assert isinstance(frozen, FrozenTables)
        return frozen

    def do(self, step: Step) -> None:
        self.watermark(step[1]) if step[0] == "watermark" else self.batch(*step[1:])


def of_rows(records: Sequence[tuple[Any, int, int]]) -> Batch:
    return RowBatch(
        [(key, [number], number) for key, number, _ in records], [at for _, _, at in records]
    )


def of_columns(records: Sequence[tuple[Any, int, int]]) -> Batch:
    data = {
        "key": [repr(shown(key)) for key, _, _ in records],
        "number": [number for _, number, _ in records],
    }
    return ColumnBatch(pa.RecordBatch.from_pydict(data), np.array([at for _, _, at in records]))


def contents(chunks: Iterable[Data]) -> dict[str, list[str]]:
    """What is in saved state, by the names of the states."""
    found: dict[str, list[str]] = {}
    for data in KeyedSnapshot.from_bytes(b"".join(chunks)).groups.values():
        for name, pairs in load_group(data).items():
            found.setdefault(name, []).extend(
                repr((shown(key), readable(value))) for key, value in pairs
            )
    return {name: sorted(entries) for name, entries in found.items()}


def readable(value: Any) -> Any:
    if isinstance(value, bytes) and value.startswith(ARROW):
        return sorted(map(repr, from_bytes(value).to_pylist()))
    if isinstance(value, (tuple, list)):
        return [readable(each) for each in value]
    if isinstance(value, dict):
        return sorted(repr((shown(key), readable(each))) for key, each in value.items())
    return shown(value)


RECORD = st.tuples(
    st.integers(0, 2) | COMPARABLE_KEYS.filter(lambda key: not isinstance(key, frozenset)),
    st.integers(1, 30),
    st.integers(-3, 12),
)
BATCH = st.tuples(st.just("batch"), st.integers(0, 1), st.lists(RECORD, min_size=1, max_size=5))
STEPS = st.lists(
    st.one_of(
        BATCH,
        st.just(("freeze",)),
        BATCH,
        st.tuples(st.just("watermark"), st.integers(0, 8)),
        st.tuples(st.just("write"), st.booleans()),
        st.just(("abort",)),
    ),
    min_size=4,
    max_size=25,
)


def in_order(steps: list[Step]) -> list[Step]:
    """With watermarks that rise, and records around the watermark."""
    time, found = 0, list[Step]()
    for step in steps:
        if step[0] == "watermark":
            time += step[1]
            step = "watermark", time
        elif step[0] == "batch":
            step = *step[:2], [(key, number, time + at) for key, number, at in step[2]]
        found.append(step)
    return [*found, ("watermark", MAX_TIMESTAMP)]


@pytest.mark.wide(but=("windows with state", "slices of columns]", "reduce"))
@pytest.mark.parametrize("name", OPERATORS)
@given(steps=STEPS)
def test_what_was_frozen_is_written_as_it_was_and_nobody_sees_it(
    name: str, steps: list[Step]
) -> None:
    subject, copied, undisturbed = Subject(name, False), Subject(name, True), Subject(name, True)
    left, frozen = deque(in_order(steps)), deque[tuple[FrozenTables, Any]]()

    def do(step: Step) -> None:
        for each in (subject, copied, undisturbed):
            each.do(step)

    def go_on(pause_s: float) -> None:
        """What happens while something is written."""
        if left and left[0][0] in ("batch", "watermark"):
            do(left.popleft())

    while left:
        step = left.popleft()
        if step[0] == "freeze":
            frozen.append((subject.freeze(), contents(copied.freeze().chunks())))
        elif step[0] == "write" and frozen:
            written, wanted = frozen.popleft()
            turns = Turns(0.0, pause=go_on) if step[1] else Turns()
            assert contents(written.entries(turns).chunks(turns)) == wanted
            del written
        elif step[0] == "abort" and frozen:
            frozen.pop()
        elif step[0] in ("batch", "watermark"):
            do(step)
    for written, wanted in frozen:
        assert contents(written.chunks()) == wanted
    assert subject.out.found == copied.out.found == undisturbed.out.found


HELD: dict[str, Callable[[Any], Any]] = {
    "timers": lambda operator: operator.timer_service.event_timers._registered,
    "sessions, reduced in place": lambda operator: operator._contents.state.mapping,
    "windows that overlap": lambda operator: operator._service.event._waiting,
    "interval join": lambda operator: operator._buffers,
}


@pytest.mark.parametrize("name", HELD)
def test_state_is_a_plain_dict_again_although_only_time_goes_on_after_a_checkpoint(
    name: str,
) -> None:
    subject = Subject(name, False)
    subject.batch(0, [(key, 40 + key, 3 * key) for key in range(8)])
    frozen = subject.freeze()
    assert type(HELD[name](subject.operator)) is not dict
    assert contents(frozen.chunks()) == contents(Subject.freeze(subject).chunks())
    del frozen
    for time in range(20):
        subject.watermark(time)
    held = HELD[name](subject.operator)
    assert type(held) is dict
    assert held


def test_counts_that_came_after_a_checkpoint_are_not_added_twice_when_they_are_moved_back() -> None:
    subject = Subject("slices of rows, counted", False)
    copied = Subject("slices of rows, counted", True)
    for number in range(4):
        frozen = subject.freeze()
        for each in (subject, copied):
            each.batch(0, [(key, 1, 5) for key in (*range(number, 5), "a")])
        del frozen
        for each in (subject, copied):
            each.batch(0, [("b", 1, 5)])
        assert contents(subject.freeze().chunks()) == contents(copied.freeze().chunks())
