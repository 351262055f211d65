"""Chains in isolation: contexts, writers and timers that only record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import (
    Batch,
    ControlElement,
    Element,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.ids import (
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    OperatorId,
)
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.graph.checkpoints import ChannelKey
from flinkpy.graph.partitioning import FORWARD
from flinkpy.network.port import Traffic
from flinkpy.operators.base import StreamOperator, Work, run_to_end
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.operators.context import OperatorContext, OwnMemory, TaskInfo

ATTEMPT = ExecutionAttemptId(JobId("job"), JobVertexId("vertex"), 0, 0)
# seconds: a delay added to now and the same time reached in steps differ in the last digit
ROUNDING = 1e-9
TASK = TaskInfo("job", "task", ATTEMPT, 1, 128)


def do_all(work: Work | None) -> None:
    """What a method of an operator called by the test itself gives back."""
    if work is not None:
        run_to_end(work)


class ManualTimers:
    """Timers that fire when the test says so."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pending: list[ManualTimer] = []

    def now_ms(self) -> int:
        return self.clock.time_ms()

    def call_later(self, delay_s: float, action: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self, self.clock.monotonic() + delay_s, action)
        self.pending.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for timer in sorted(self.pending, key=lambda timer: timer.when):
            if timer.when <= self.clock.monotonic() + ROUNDING and timer in self.pending:
                self.pending.remove(timer)
                timer.action()


class ManualTimer:
    def __init__(self, timers: ManualTimers, when: float, action: Callable[[], None]) -> None:
        self._timers = timers
        self.when = when
        self.action = action

    def cancel(self) -> None:
        if self in self._timers.pending:
            self._timers.pending.remove(self)


class RecordingWriter:
    """A RecordWriter that keeps everything."""

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self.records = self.flushes = 0
        self.available = self.consumed = True
        self.listener: Callable[[], None] | None = None
        self.lock: AbstractContextManager[Any] = nullcontext()

    def traffic(self) -> Traffic:
        return Traffic(local_batches=len(self.elements))

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self.listener = on_available

    def emit(self, batch: Batch) -> None:
        self.records += len(batch)
        self.elements.append(batch)

    def emit_control(self, element: ControlElement) -> None:
        self.elements.append(element)

    def flush(self) -> None:
        self.flushes += 1

    def overtake(self, checkpoint_id: int) -> list[list[Element]]:
        return []

    def holds_barrier(self, checkpoint_id: int) -> bool:
        return False

    @property
    def holds_ends(self) -> bool:
        return False

    def set_barrier_listener(self, on_barrier_left: Callable[[int], None]) -> None: ...

    def key_of(self, channel: int) -> ChannelKey:
        return ChannelKey(IntermediateDataSetId("output"), 0, channel)

    def restore(self, channel: int | None, element: Element) -> None:
        self.elements.append(element)

    @property
    def values(self) -> list[Any]:
        return list(
            itertools.chain.from_iterable(
                batch.values for batch in self.elements if isinstance(batch, RowBatch)
            )
        )

    @property
    def stamped(self) -> list[tuple[Any, int | None]]:
        stamped: list[tuple[Any, int | None]] = []
        for batch in self.elements:
            if isinstance(batch, RowBatch):
                stamped += (
                    zip(batch.values, batch.timestamps)
                    if batch.timestamps is not None
                    else zip(batch.values, [None] * len(batch))
                )
        return stamped

    @property
    def controls(self) -> list[Element]:
        return [element for element in self.elements if not isinstance(element, RowBatch)]


def linear(*operators: StreamOperator, inputs: int = 1) -> ChainConfig[Any]:
    """Operators one behind the other, the last one writing to network output 0."""
    last = len(operators) - 1
    return ChainConfig(
        tuple(
            ChainedOperator(
                OperatorId(f"op{i}"),
                f"op {i}",
                f"uid-{i}",
                operator,
                (ChainedEdge(i + 1),) if i < last else (NetworkEdge(0, FORWARD),),
            )
            for i, operator in enumerate(operators)
        ),
        inputs,
    )


class ChainHarness:
    """An open chain over recording writers."""

    def __init__(
        self,
        config: ChainConfig[Any],
        *,
        writers: int = 1,
        fusion: bool = True,
        object_reuse: bool = False,
        open_it: bool = True,
        had_finished: bool = False,
        batch_records: int = 4,
        configuration: dict[str, Any] | None = None,
        memory: int | None = None,
    ) -> None:
        self.managed_memory = OwnMemory(1 << 60 if memory is None else memory)
        self._configuration = configuration or {"user.word": "hello"}
        self.writers = [RecordingWriter() for _ in range(writers)]
        self.timers = ManualTimers()
        self.events: list[tuple[OperatorId, Any]] = []
        self.accumulators: dict[str, Any] = {}
        self.object_reuse, self.batch_records = object_reuse, batch_records
        self.chain = OperatorChain(
            config, self.writers, self.context, fusion=fusion, object_reuse=object_reuse
        )
        self.chain.setup()
        if not had_finished:
            self.chain.initialize_state(None)
        if open_it:
            self.chain.open(had_finished=had_finished)

    def context(self, operator: ChainedOperator[Any]) -> OperatorContext:
        return OperatorContext(
            operator.operator_id,
            operator.name,
            operator.uid,
            TASK,
            self.timers.clock,
            self.timers,
            run_in_task=lambda action: action(),
            send_operator_event=lambda event: self.events.append((operator.operator_id, event)),
            configuration=dict(self._configuration),
            accumulators=self.accumulators,
            object_reuse=self.object_reuse,
            batch_records=self.batch_records,
            memory=self.managed_memory,
        )

    def push(
        self, values: Sequence[Any], timestamps: Sequence[int] | None = None, input_index: int = 0
    ) -> None:
        self.chain.batch_inputs()[input_index](
            RowBatch(list(values), None if timestamps is None else list(timestamps))
        )
        self.settle()

    def control(self, element: Watermark | WatermarkStatus | LatencyMarker) -> None:
        self.chain.control(element)
        self.settle()

    def settle(self) -> None:
        """Does all the work that is parked."""
        while self.chain.parked_work.pending():
            self.chain.parked_work.go_on()

    @property
    def output(self) -> list[Any]:
        return self.writers[0].values


def run(
    operators: Sequence[StreamOperator],
    values: Sequence[Any],
    timestamps: Sequence[int] | None = None,
    *,
    fusion: bool = True,
) -> list[Any]:
    """What a linear chain makes of the values, with their timestamps if they have any."""
    harness = ChainHarness(linear(*operators), fusion=fusion)
    harness.push(values, timestamps)
    harness.chain.finish()
    assert harness.chain.close() == []
    return harness.writers[0].stamped if timestamps is not None else harness.output
