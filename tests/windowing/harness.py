"""A window operator alone: records, watermarks and the clock in, results with timestamps out."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    ControlElement,
    RowBatch,
    Watermark,
)
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.core.options.state import ROCKSDB_DIRECTORY
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.context import OperatorContext, Output, TaskInfo
from flinkpy.operators.functions import AggregateFunction
from flinkpy.state.snapshots.saved_state import SavedState
from flinkpy.windowing.general.contents import ListContents, ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import ManualTimers, do_all

MAX_PARALLELISM = 128
FIRST = KeySpec(lambda record: record[0])


class Recorder(Output):
    """Keeps everything, with timestamps."""

    def __init__(self) -> None:
        self.main: list[tuple[Any, int | None]] = []
        self.side: dict[str, list[tuple[Any, int | None]]] = {}
        self.controls: list[ControlElement] = []

    def emit(self, batch: Batch) -> None:
        self.main += _stamped(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.side.setdefault(tag_id, []).extend(_stamped(batch))

    def emit_control(self, element: ControlElement) -> None:
        self.controls.append(element)


def _stamped(batch: Batch) -> Iterator[tuple[Any, int | None]]:
    assert isinstance(batch, RowBatch)
    return zip(
        batch.values, batch.timestamps if batch.timestamps is not None else [None] * len(batch)
    )


ON_DISK: dict[str, Any] = {"state.backend.type": "rocksdb"}
if os.access("/dev/shm", os.W_OK):
    ON_DISK[ROCKSDB_DIRECTORY.key] = "/dev/shm"
_AT_ONCE = 8  # databases that are open at the same time; a test that opens more has done with them
_open: deque[Any] = deque()


class WindowHarness:
    """``copying``: with RocksDB. ``saved``: what an earlier one's ``snapshot``
    gave."""

    def __init__(
        self,
        operator: Any,
        saved: SavedState | None = None,
        *,
        subtask: int = 0,
        parallelism: int = 1,
        copying: bool = False,
        timers: ManualTimers | None = None,
        object_reuse: bool = False,
        configuration: dict[str, Any] | None = None,
    ) -> None:
        self.operator = operator
        self.output = Recorder()
        self.timers = timers or ManualTimers()
        attempt = ExecutionAttemptId(JobId("job"), JobVertexId("vertex"), subtask, 0)
        task = TaskInfo("job", "task", attempt, parallelism, MAX_PARALLELISM)
        context = OperatorContext(
            OperatorId("window"),
            "windows",
            "uid",
            task,
            self.timers.clock,
            self.timers,
            run_in_task=lambda action: action(),
            send_operator_event=lambda event: None,
            object_reuse=object_reuse,
            batch_records=4,
            configuration={**(configuration or {}), **(ON_DISK if copying else {})},
        )
        operator.setup(context, self.output)
        operator.initialize_state(saved)
        if copying:
            _open.append(operator.backend)
            while len(_open) > _AT_ONCE:
                _open.popleft().close()
        self._origin, self.context = self.timers.now_ms(), context
        operator.open()

    def push(self, *pairs: tuple[Any, int | None]) -> WindowHarness:
        """(record, timestamp) pairs, as one batch; None for all timestamps: there are none."""
        stamps = [stamp for _, stamp in pairs]
        do_all(
            self.operator.process_batch(
                RowBatch([record for record, _ in pairs], None if None in stamps else stamps)  # type: ignore[arg-type]
            )
        )
        return self

    def watermark(self, time: int) -> WindowHarness:
        do_all(self.operator.process_watermark(Watermark(time)))
        return self

    def end(self) -> WindowHarness:
        return self.watermark(MAX_TIMESTAMP)

    @property
    def now(self) -> int:
        """Milliseconds since the harness was made, or ``at_zero`` was called."""
        return self.timers.now_ms() - self._origin

    def forward_to(self, now: int) -> WindowHarness:
        """Millisecond by millisecond, so that timers fire at their own."""
        while self.now < now:
            self.timers.advance(0.001)
        return self

    def take(self) -> list[tuple[Any, int | None]]:
        """The results since the last call."""
        taken, self.output.main = self.output.main, []
        return taken

    def values(self) -> list[Any]:
        return [value for value, _ in self.take()]

    def snapshot(self) -> SavedState:
        return self.operator.freeze_state(CheckpointBarrier(1, 0)).write()  # type: ignore[no-any-return]

    @property
    def kept(self) -> int:
        """How much state and how many timers there are."""
        service = self.operator._service
        return (
            int(sum(self.operator.backend.statistics.keys.values()))
            + len(service.event)
            + len(service.processing)
        )


def add(one: Any, other: Any) -> Any:
    """Of (key, number) records."""
    return one[0], one[1] + other[1]


class Mean(AggregateFunction):
    """(sum, count) of the numbers; its result is the mean."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1] if accumulator[1] else 0.0

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def numbers(key: Any, window: Any, inputs: Any) -> Any:
    """A window function: the key and its numbers."""
    return [(key, [record[1] for record in inputs])]


def summing(assigner: Any, trigger: Any = None, **options: Any) -> WindowHarness:
    """Windows of (key, number) records, reduced to their sum."""
    harness = {name: options.pop(name) for name in ("copying", "object_reuse") if name in options}
    function = options.pop("window_function", None)
    windows = WindowingStrategy(assigner, trigger, **options)
    return WindowHarness(WindowOperator(FIRST, windows, ReduceContents(add), function), **harness)


def listing(
    assigner: Any, trigger: Any = None, function: Callable[..., Any] = numbers, **options: Any
) -> WindowHarness:
    """Windows of (key, number) records, all kept for a function."""
    harness = {name: options.pop(name) for name in ("copying", "object_reuse") if name in options}
    windows = WindowingStrategy(assigner, trigger, **options)
    return WindowHarness(WindowOperator(FIRST, windows, ListContents(), function), **harness)
