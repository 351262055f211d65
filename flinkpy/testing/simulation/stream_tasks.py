"""A simulated task that takes part in checkpoints: it reads splits or what its producers send,
passes records on, and commits at a sink.

Its barriers are aligned by the real aligner, and the real part of a task in checkpoints talks to
the JobMaster and writes its state."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from flinkpy.connectors.source_api.source import (
    NoMoreSplits,
    ReaderRegistered,
    SplitRequested,
    SplitsAdded,
)
from flinkpy.core.clock import Clock
from flinkpy.core.elements import CheckpointBarrier, EndOfPartition
from flinkpy.core.errors import EngineError, UserCodeError
from flinkpy.core.ids import OperatorId
from flinkpy.graph.checkpoint_messages import (
    CheckpointCompleted,
    CheckpointToTask,
    FinalCheckpointAwaited,
)
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.alignment import AlignmentStep, BarrierAligner
from flinkpy.runtime.checkpointing.snapshot_writer import SnapshotWriter
from flinkpy.runtime.checkpointing.task_checkpoints import TaskCheckpoints
from flinkpy.runtime.files.worker_files import WorkerFiles
from flinkpy.runtime.task_messages import MessageFromTask, OperatorEvent
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.snapshots.saved_state import FrozenState
from flinkpy.testing.simulation.checkpoint_oracle import CheckpointOracle
from flinkpy.testing.simulation.data_plane import ChannelId, DataPlane, Record
from flinkpy.testing.simulation.simulated_jobs import (
    RECORDS_PER_SPLIT,
    SimulatedSplit,
    StreamBehaviour,
    TaskBehaviour,
)


@dataclass
class Transaction:
    """What a sink has prepared for a checkpoint, and can commit under a name that nobody else
    uses."""

    checkpoint_id: int
    name: str
    records: list[Record]


@dataclass
class StreamState:
    """What a task saves: the splits it has not read to their end, each with its next record; how
    many records it has seen; what it prepared."""

    left: list[tuple[str, int]] = field(default_factory=list)
    seen: int = 0
    prepared: list[Transaction] = field(default_factory=list)


class Surroundings(Protocol):
    """Where a simulated task runs."""

    plane: DataPlane
    oracle: CheckpointOracle
    clock: Clock

    def chance(self) -> float:
        """From 0 to 1."""
        ...

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Runs the action in so many seconds, unless the task has ended by then."""
        ...

    def run_io(self, action: Callable[[], None]) -> None:
        """Runs the action a little later, unless the process has ended: a thread for files outlives
        its tasks."""
        ...

    def say(self, message: MessageFromTask) -> None:
        """To the JobMaster, or to a coordinator there."""
        ...

    def finish(self) -> None:
        """The task has ended well."""
        ...


class StreamTaskModel:
    """Made when the task is about to run: raises when its state cannot be read. To its checkpoints
    it is both the task and the chain."""

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        behaviour: TaskBehaviour,
        storage: CheckpointStorage,
        outside: Surroundings,
    ) -> None:
        assert behaviour.stream is not None
        self._descriptor = descriptor
        self._behaviour = behaviour
        self._outside = outside
        self._stream: StreamBehaviour = behaviour.stream
        self._attempt_id = descriptor.attempt_id
        info = TaskInfo(
            descriptor.job_name,
            descriptor.task_name,
            self._attempt_id,
            descriptor.parallelism,
            descriptor.max_parallelism,
        )
        snapshots = SnapshotWriter(
            info,
            lambda: storage,
            WorkerFiles(run_io=outside.run_io),
            outside.say,
            {},
            outside.clock,
        )
        self._checkpoints = TaskCheckpoints(self, self, snapshots, clock=outside.clock)
        self._inputs = [
            ChannelId(producer.partition_id, gate.subpartition_index)
            for gate in descriptor.gates
            for producer in gate.producers
        ]
        self._outputs = [
            [ChannelId(each.partition_id, number) for number in range(each.subpartitions)]
            for each in descriptor.partitions
        ]
        self._aligner = BarrierAligner(len(self._inputs))
        self._blocked: set[int] = set()
        self._open_inputs, self._unread_outputs = len(self._inputs), sum(map(len, self._outputs))
        self._written: list[Record] = []  # since the last barrier, at a sink
        self._has_ended = self._waits_for_split = self._has_left = self._is_over = False
        # while it stands at the barrier of a savepoint to stop with
        self._put_off: list[Callable[[], None]] = []
        self.state = self._restored(storage)

    def _restored(self, storage: CheckpointStorage) -> StreamState:
        restore = self._descriptor.restore
        saved = None if restore is None else restore.operators.get(self._stream.operator_id)
        handle = None if saved is None else saved.subtasks[self._attempt_id.subtask_index].operator
        if restore is None or handle is None:
            return StreamState()
        state = pickle.loads(storage.reader(restore.location).read(handle))
        assert isinstance(state, StreamState)
        return state

    @property
    def _is_sink(self) -> bool:
        return not self._outputs

    def start(self) -> None:
        """The task runs. Commits what the checkpoint has first."""
        self._commit(None)
        for number, channel_id in enumerate(self._inputs):
            self._outside.plane.listen(
                channel_id, partial(self._outside.later, 0.0, partial(self._read_channel, number))
            )
        restore = self._descriptor.restore
        if restore is not None and restore.stops:
            self._has_left = True
            self._close()
        if self._inputs:
            for number in range(len(self._inputs)):
                self._read_channel(number)
        elif restore is not None and restore.stops:
            return
        elif restore is not None and restore.finished:
            self.end_input()
        elif self._behaviour.reads_splits is not None:
            self._say_to_enumerator(ReaderRegistered("simulated"))
            self._read_on()
        elif self._behaviour.run_s is not None:
            self._outside.later(self._behaviour.run_s, self.end_input)

    # -- records -----------------------------------------------------------------------------------

    def _pass_record(self, record: Record) -> None:
        """A record was read, or has come: it goes to one consumer of each data set, always the
        same."""
        self.state.seen += 1
        who = f"{self._attempt_id.vertex_id}[{self._attempt_id.subtask_index}]"
        passed = Record(record.key, (*record.hops, (who, self.state.seen)))
        for channels in self._outputs:
            self._outside.plane.send(
                channels[zlib.crc32(record.key.encode()) % len(channels)], passed
            )
        if self._is_sink:
            self._written.append(passed)

    def _stands(self, action: Callable[[], None]) -> bool:
        """Whether the task stands at the barrier of a savepoint to stop with: then the action comes
        when it goes on."""
        if self._checkpoints.awaits_stop:
            self._put_off.append(action)
        return self._checkpoints.awaits_stop

    def _read_channel(self, number: int) -> None:
        """Reads what has come, until a barrier has to wait for others, or the task stands still."""
        while number not in self._blocked and (
            self._checkpoints.was_drained or not self._stands(partial(self._read_channel, number))
        ):
            element = self._outside.plane.take(self._inputs[number])
            if element is None:
                return
            if isinstance(element, EndOfPartition):
                self._channel_ended(number)
            elif isinstance(element, Record) and (self._has_left or self._checkpoints.was_drained):
                raise EngineError(
                    f"{element} comes behind the savepoint at which {self._attempt_id} has "
                    "left its input"
                )
            elif isinstance(element, Record):
                self._pass_record(element)
            elif not self._has_left:
                self._align(self._aligner.barrier(number, element))

    def _channel_ended(self, number: int) -> None:
        self._open_inputs -= 1
        if self._has_left:
            self._finish_when_read()
            return
        self._align(self._aligner.channel_ended(number))
        if not self._open_inputs:
            self.end_input()

    def _align(self, step: AlignmentStep) -> None:
        self._blocked.difference_update(step.unblock)
        self._blocked.update(step.block)
        if step.forward is not None:
            self._checkpoints.pass_barrier(step.forward)
        for number in step.unblock:
            self._outside.later(0.0, partial(self._read_channel, number))

    # -- splits ------------------------------------------------------------------------------------

    def _say_to_enumerator(self, event: Any) -> None:
        assert self._behaviour.reads_splits is not None
        self._outside.say(OperatorEvent(self._behaviour.reads_splits, event))

    def _read_on(self) -> None:
        if self.state.left:
            self._outside.later(self._stream.read_s * self._outside.chance(), self._read_record)
        else:
            self._waits_for_split = True
            self._say_to_enumerator(SplitRequested("simulated"))

    def _read_record(self) -> None:
        if self._has_left or self._stands(self._read_record):
            return
        split_id, number = self.state.left.pop(0)
        if number + 1 < RECORDS_PER_SPLIT:
            self.state.left.insert(0, (split_id, number + 1))
        self._pass_record(Record(f"{self._attempt_id.vertex_id}/{split_id}/{number}"))
        self._read_on()

    def handle_event(self, event: Any) -> None:
        """The enumerator's."""
        if isinstance(event, SplitsAdded):
            splits: list[SimulatedSplit] = pickle.loads(event.splits)
            self.state.left += [(split.split_id, 0) for split in splits]
            if self._waits_for_split:
                self._waits_for_split = False
                self._read_on()
        elif isinstance(event, NoMoreSplits) and self._behaviour.run_s is not None:
            self._outside.later(self._behaviour.run_s, self.end_input)

    # -- checkpoints -------------------------------------------------------------------------------

    def handle_message(self, message: CheckpointToTask) -> None:
        """The JobMaster's."""
        if isinstance(message, CheckpointCompleted):
            self._outside.oracle.heard_complete(self._attempt_id, message.checkpoint_id)
        self._checkpoints.handle_message(message)

    @property
    def reads_source(self) -> bool:
        """Its sources are drained where they stand: what they have not read stays unread."""
        return False

    def begin_barrier(self, barrier: CheckpointBarrier) -> None:
        if self._inputs:
            self._align(self._aligner.barrier_at_end(barrier))
        else:
            self._checkpoints.pass_barrier(barrier)

    def process_barrier(
        self, barrier: CheckpointBarrier, then: Callable[[CheckpointBarrier], None]
    ) -> None:
        """It goes to all consumers, and nothing comes between it and the state that is saved."""
        for channels in self._outputs:
            for channel_id in channels:
                self._outside.plane.send(channel_id, barrier)
        then(barrier)

    def freeze_state(self, barrier: CheckpointBarrier) -> Mapping[OperatorId, FrozenState]:
        """A sink prepares what it has written. Sometimes this raises."""
        if self._outside.chance() < self._stream.declines and self._outside.oracle.faults_last:
            raise UserCodeError(
                "ValueError: simulated",
                operator=self._descriptor.task_name,
                subtask=self._descriptor.subtask_name,
            )
        if self._written:
            name = (
                f"{self._descriptor.subtask_name} of {self._attempt_id.vertex_id}, "
                f"checkpoint {barrier.checkpoint_id}"
            )
            self.state.prepared.append(Transaction(barrier.checkpoint_id, name, self._written))
            self._written = []
        return {self._stream.operator_id: FrozenState(operator=pickle.dumps(self.state))}

    def notify_checkpoint(self, checkpoint_id: int, is_complete: bool) -> None:
        if is_complete:
            self._commit(checkpoint_id)

    def _commit(self, checkpoint_id: int | None) -> None:
        """What was prepared up to this checkpoint; None: all."""
        while self.state.prepared and (
            checkpoint_id is None or self.state.prepared[0].checkpoint_id <= checkpoint_id
        ):
            transaction = self.state.prepared.pop(0)
            self._outside.oracle.commit(self._attempt_id, transaction.name, transaction.records)

    # -- the end -----------------------------------------------------------------------------------

    def stand_still(self) -> None:
        """Whatever it would do next asks whether it ``_stands``."""

    def go_on(self) -> None:
        """As ``stand_still``."""

    def resume(self) -> None:
        """A checkpoint has ended: perhaps the one that the task stands at."""
        if self._checkpoints.awaits_stop:
            return
        if self._checkpoints.may_stop and not self._has_ended and not self._has_left:
            self._has_left = True
            self._close()
        put_off, self._put_off = self._put_off, []
        for action in put_off:
            self._outside.later(0.0, action)
        self._close_when_committed()

    def end_input(self) -> None:
        if self._has_left or self._stands(self.end_input):
            return
        self._has_ended = True
        if self._written or self.state.prepared:
            self._outside.say(FinalCheckpointAwaited())
        self._close_when_committed()

    def _close_when_committed(self) -> None:
        if (
            not self._has_ended
            or self._written
            or self.state.prepared
            or self._checkpoints.awaits_stop
        ):
            return
        self._has_ended, self._has_left = False, True  # once
        self._close()

    def _close(self) -> None:
        self._checkpoints.close()
        for channels in self._outputs:
            for channel_id in channels:
                self._outside.plane.when_end_is_taken(
                    channel_id, lambda: self._outside.later(0.0, partial(self._finish_when_read, 1))
                )
                self._outside.plane.send(channel_id, EndOfPartition())
        self._finish_when_read()

    def _finish_when_read(self, outputs: int = 0) -> None:
        """So many more consumers have read all. The task ends when all have, and when it has read
        its input to the end."""
        self._unread_outputs -= outputs
        if not self._unread_outputs and not self._open_inputs and not self._is_over:
            self._is_over = True
            self._outside.finish()

    def forget(self) -> None:
        """The task has ended, in whatever way."""
        self._checkpoints.end()
        for channels in self._outputs:
            for channel_id in channels:
                self._outside.plane.forget(channel_id)
