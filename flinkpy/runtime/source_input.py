"""Asks the source at the head of a chain for records, so many at a time that the processor's cache
still holds what the chain makes of them when its consumers read it (measured on a word count: 1.7
times as fast as whole batches of 1,000 lines)."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.elements import CheckpointBarrier, EndOfData
from flinkpy.core.errors import EngineError
from flinkpy.operators.base import InputStatus, SourceOperator
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.operators.user_errors import raise_told
from flinkpy.runtime.checkpointing.task_checkpoints import TaskCheckpoints
from flinkpy.runtime.loop.adaptive_batch_size import AdaptiveBatchSize
from flinkpy.runtime.memory.task_memory import SourcesRest

EMISSIONS_PER_LOOK = 64
NOTABLE_EXPANSION = 1.5
RECORDS_IN_CACHE = 1024


class SourceInput:
    """The input of a task whose head is a source. ``wake_up`` is called by the source, from any
    thread, when it has something again. While sources rest, it has nothing."""

    end_of_data = EndOfData()

    def __init__(
        self,
        chain: OperatorChain,
        batch_size: AdaptiveBatchSize,
        batch_records: int,
        wake_up: Callable[[], None],
        checkpoints: TaskCheckpoints,
        sources_rest: SourcesRest,
    ) -> None:
        head = chain.head
        if not isinstance(head, SourceOperator):
            raise EngineError(f"the task has no input, but its head is {head!r}")
        head.wake_up = wake_up
        self._checkpoints = checkpoints
        self._sources_rest = sources_rest
        self._chain = chain
        self._head = head
        self._emit_next = head.emit_next
        self._batch_size, self._batch_records = batch_size, batch_records
        self._emissions, self._in_cache = 0, batch_records

    def event_time_and_barriers(self) -> dict[str, float]:
        """Nothing: a source's task has no inputs from which either could come."""
        return {}

    def process_some(self) -> InputStatus:
        if self._chain.enough.reached:
            return InputStatus.END_OF_INPUT
        if self._sources_rest.is_on:
            return InputStatus.NOTHING_AVAILABLE
        head = self._head
        head.batch_size = (
            self._in_cache if head.is_columnar else min(self._in_cache, self._batch_size.rows)
        )
        try:
            status = self._emit_next()
        except BaseException as error:
            raise_told(error, head.context)
        self._batch_size.rows_taken = head.rows_emitted
        if status is InputStatus.MORE_AVAILABLE:
            self._emissions += 1
            # at first always: a source soon fills queues
            if self._emissions <= EMISSIONS_PER_LOOK or not self._emissions % EMISSIONS_PER_LOOK:
                self._fit_to_cache()
        return InputStatus.MORE_AVAILABLE if self._chain.enough.reached else status

    def _fit_to_cache(self) -> None:
        """Takes fewer records at a time if the chain makes many of each. Looks anew each time: the
        first records may be unlike the others."""
        expansion = self._chain.metrics.expansion
        fitting = (
            max(1, int(RECORDS_IN_CACHE / expansion))
            if expansion >= NOTABLE_EXPANSION
            else self._batch_records
        )
        self._in_cache = min(self._batch_records, fitting)

    def end_event_time(self) -> None:
        self._head.end_event_time()

    def begin_checkpoint(self, barrier: CheckpointBarrier) -> None:
        """The barrier goes behind what the source has given so far."""
        self._checkpoints.pass_barrier(barrier)

    def leave(self) -> None:
        """Nobody sends a source anything."""

    def drain(self) -> bool:
        """A source has no producers to wait for."""
        return True

    def close(self) -> None:
        """The source is closed with the chain."""
