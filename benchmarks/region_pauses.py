"""The pause at a barrier for what operators hold in forms of their own: windows, joins, timers,
columns. Each record has its own key."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import Batch, CheckpointBarrier, ColumnBatch, ControlElement, RowBatch
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import StreamOperator, Work, run_to_end
from flinkpy.operators.context import OperatorContext, Output, TaskInfo
from flinkpy.operators.functions import KeyedProcessFunction
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.process.join_functions import ProcessJoinFunction
from flinkpy.operators.process.process_operators import KeyedProcessOperator
from flinkpy.table.expressions import col
from flinkpy.windowing.assigners import TumblingEventTimeWindows
from flinkpy.windowing.general.contents import ListContents, ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.slices.column_slices import AggregateSlices
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windowing_strategy import WindowingStrategy

BATCH = 4096  # records
HOUR = 3_600_000  # milliseconds
FIRST = KeySpec(itemgetter(0))
SLICING, WINDOWS = Slicing(HOUR, HOUR, 0), TumblingEventTimeWindows(HOUR)


class Timed(KeyedProcessFunction):
    """One timer for each record."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1])


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        return [(left, right)]


# what the state is, and the operator that holds it
REGIONS: dict[str, Callable[[], StreamOperator]] = {
    "windows by slices, rows": lambda: SliceOperator(RowSlices(FIRST, "sum", 1), SLICING, True),
    "windows by slices, columns": lambda: SliceOperator(
        AggregateSlices(["key"], aggregate_calls([col("number").sum], "")), SLICING, True
    ),
    "sessions, reduced": lambda: WindowOperator(
        FIRST, WindowingStrategy(EventTimeSessionWindows(HOUR)), ReduceContents(max)
    ),
    "sessions, all records": lambda: WindowOperator(
        FIRST,
        WindowingStrategy(EventTimeSessionWindows(HOUR)),
        ListContents(),
        window_function=lambda key, window, inputs: list(inputs),
    ),
    "window join, rows": lambda: WindowJoinOperator(
        lambda one, other: (one, other), FIRST, FIRST, WINDOWS
    ),
    "window join, columns": lambda: ColumnarJoinOperator(["key"], ["key"], WINDOWS),
    "interval join": lambda: IntervalJoinOperator(Pair(), FIRST, FIRST, -HOUR, HOUR),
    "timers": lambda: KeyedProcessOperator(Timed(), FIRST),
    "running sums of columns": lambda: KeyedAggregatesOperator(
        ["key"], aggregate_calls([col("number").sum], "")
    ),
}


class Nowhere(Output):
    def emit(self, batch: Batch) -> None: ...

    def emit_side(self, tag_id: str, batch: Batch) -> None: ...

    def emit_control(self, element: ControlElement) -> None: ...


class NoTimers:
    def now_ms(self) -> int:
        return 0

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Any:
        return None


def opened(operator: StreamOperator) -> Callable[[Batch], None]:
    """The operator in a task of its own; returns what processes a batch, of the left side of a
    join."""
    task = TaskInfo(
        "job", "task", ExecutionAttemptId(JobId("job"), JobVertexId("vertex"), 0, 0), 1, 128
    )
    context = OperatorContext(
        OperatorId("op"),
        "op",
        None,
        task,
        SYSTEM_CLOCK,
        NoTimers(),
        lambda action: action(),
        lambda event: None,
    )
    operator.setup(context, Nowhere())
    operator.initialize_state(None)
    operator.open()
    process: Callable[[Batch], Work | None] = (
        getattr(operator, "process_batch", None) or operator.process_batch1  # type: ignore[attr-defined]
    )

    def given(batch: Batch) -> None:
        work = process(batch)
        if work is not None:
            run_to_end(work)

    return given


def batches(columnar: bool, keys: int) -> list[Batch]:
    """One record for each key, in the middle of the first hour."""
    import numpy as np
    import pyarrow as pa

    found: list[Batch] = []
    for start in range(0, keys, BATCH):
        of = range(start, min(keys, start + BATCH))
        if columnar:
            numbers = pa.array(of, pa.int64())
            found.append(
                ColumnBatch(
                    pa.RecordBatch.from_pydict({"key": numbers, "number": numbers}),
                    np.full(len(of), HOUR // 2),
                )
            )
        else:
            found.append(RowBatch([(key, key) for key in of], [HOUR // 2] * len(of)))
    return found


def pauses(name: str, keys: int, checkpoints: int) -> list[float]:
    """Seconds of the processor for each freeze. Between two freezes some batches come, and what was
    frozen is given up."""
    operator = REGIONS[name]()
    given, found = opened(operator), []
    records = batches("columns" in name, keys)
    for batch in records:
        given(batch)
    for number in range(checkpoints):
        gc.collect()
        began = time.thread_time()
        frozen = operator.freeze_state(CheckpointBarrier(number, 0))
        found.append(time.thread_time() - began)
        given(records[number % len(records)])
        del frozen
        for at in range(3):
            given(records[(number + at) % len(records)])
    return found


def report(keys: int, checkpoints: int) -> None:
    for name in REGIONS:
        found = [1000 * each for each in pauses(name, keys, checkpoints)]
        print(
            (
                f"{name}, {keys:,} keys: {len(found)} freezes, of {min(found):.2f} to "
                f"{max(found):.2f} ms of the processor"
            ),
            flush=True,
        )
