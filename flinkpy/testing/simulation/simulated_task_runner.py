"""A TaskRunner whose tasks take virtual time instead of processing records. They borrow segments
from a real pool and give them back, leave blocking results behind, and fail when a blocking result
they read is gone. Those of a job with checkpoints pass records on (``stream_tasks``)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from flinkpy.actors.rpc.service import Cancellable
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.connectors.source_api.source import (
    NoMoreSplits,
    ReaderRegistered,
    SplitRequested,
    SplitsAdded,
)
from flinkpy.core.clock import Clock
from flinkpy.core.errors import EngineError, FlinkpyError, PartitionNotFoundError, UserCodeError
from flinkpy.core.ids import ExecutionAttemptId, JobId, ResourceId
from flinkpy.core.lifecycles import TASK, ExecutionState, StateMachine
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState, TaskMetrics
from flinkpy.metrics.readings import ProcessReading
from flinkpy.network.flow.segments import LocalBufferPool, NetworkBufferPool
from flinkpy.runtime.runner_port import RunnerStatistics, TaskReporter
from flinkpy.runtime.task_messages import MessageToTask, OperatorEvent
from flinkpy.testing.simulation.simulated_jobs import SimulatedSplit, StreamBehaviour, TaskBehaviour
from flinkpy.testing.simulation.stream_surroundings import Streams, TaskSurroundings
from flinkpy.testing.simulation.stream_tasks import StreamTaskModel

_S = ExecutionState

SEGMENTS_PER_CHANNEL = 2
SEGMENTS_AT_MOST = 8


@dataclass
class SimulatedTask:
    slot_index: int
    descriptor: TaskDeploymentDescriptor
    behaviour: TaskBehaviour
    reporter: TaskReporter
    lifecycle: StateMachine[ExecutionState]
    clock: Clock
    partitions: list[LocalBufferPool] = field(default_factory=list)
    gates: list[LocalBufferPool] = field(default_factory=list)
    timer: Cancellable | None = None
    splits: list[str] = field(default_factory=list)
    model: StreamTaskModel | None = None  # of a task that takes part in checkpoints, while it runs

    @property
    def attempt_id(self) -> ExecutionAttemptId:
        return self.descriptor.attempt_id

    @property
    def pools(self) -> tuple[LocalBufferPool, ...]:
        return (*self.partitions, *self.gates)

    def borrow_segments(self, pool: NetworkBufferPool, chance: Random) -> None:
        """Creates a pool per partition and per gate; each takes some segments, as if batches were
        in flight."""

        def make_pool(channels: int) -> LocalBufferPool:
            most = min(SEGMENTS_AT_MOST, SEGMENTS_PER_CHANNEL * channels)
            return pool.create_pool(self.descriptor.subtask_name, min(2, most), most)

        for partition in self.descriptor.partitions:
            self.partitions.append(make_pool(partition.subpartitions))
        for gate in self.descriptor.gates:
            self.gates.append(make_pool(len(gate.producers)))
        for lent in self.pools:
            lent.take_segments_up_to(chance.randint(0, lent.size))

    def metrics(self) -> TaskMetrics:
        now_ms = int(1000 * self.clock.monotonic())
        return TaskMetrics(self.attempt_id, records_out=now_ms, read_ms=now_ms)

    def move(self, state: ExecutionState) -> None:
        self.lifecycle.move(state)
        self.report(None)

    def report(self, error: BaseException | None) -> None:
        """Tells its TaskExecutor of the state it is in."""
        state = self.lifecycle.state
        accumulators = {"tasks": 1, "splits": list(self.splits)} if state is _S.FINISHED else {}
        if state in (_S.INITIALIZING, _S.RUNNING) or self.lifecycle.is_terminal:
            self.reporter.state_changed(
                TaskExecutionState(self.attempt_id, state, error, accumulators, self.metrics())
            )

    def missing_result(
        self, is_kept: Callable[[ResourceId, ExecutionAttemptId], bool]
    ) -> ExecutionAttemptId | None:
        """A producer whose blocking result is gone; None if it reads no such result."""
        for gate in self.descriptor.gates:
            for producer in gate.producers if gate.partition_type.is_blocking else ():
                if not is_kept(producer.location.resource_id, producer.partition_id.producer):
                    return producer.partition_id.producer
        return None

    def send_event(self, event: Any) -> None:
        """To the coordinator of its source."""
        assert self.behaviour.reads_splits is not None
        self.reporter.send_message(
            self.attempt_id, OperatorEvent(self.behaviour.reads_splits, event)
        )


def _nothing_to_read(then: Callable[[], object]) -> None:
    then()


class WithoutThread:
    """A runner whose tasks have no thread that could be looked at."""

    def glance(self) -> list[tuple[int, ExecutionAttemptId | None]]:
        return []


class SimulatedTaskRunner(WithoutThread):
    """Runs simulated tasks in one process of the simulated network."""

    def __init__(
        self,
        service: SimulatedRpcService,
        segments: int = 2048,
        is_kept: Callable[
            [ResourceId, ExecutionAttemptId], bool
        ] = lambda resource_id, attempt_id: True,
        streams: Streams | None = None,
    ) -> None:
        """``is_kept`` says whether that TaskExecutor has, or still makes, the results of that
        attempt. ``streams``: for jobs with checkpoints."""
        self._service = service
        self._is_kept = is_kept
        self._streams = streams
        self.results: dict[ExecutionAttemptId, int] = {}  # blocking partitions of finished attempts
        self._chance = service.network.random
        self.pool = NetworkBufferPool(segments)
        self._tasks: dict[ExecutionAttemptId, SimulatedTask] = {}
        self._seen: set[ExecutionAttemptId] = set()

    @property
    def data_address(self) -> tuple[str, int]:
        return self._service.process, 0

    def start(self) -> None:
        """Does nothing."""

    # -- the port ----------------------------------------------------------------------------------

    def submit(
        self, slot_index: int, descriptor: TaskDeploymentDescriptor, reporter: TaskReporter
    ) -> None:
        attempt_id = descriptor.attempt_id
        if attempt_id in self._seen:
            raise EngineError(f"{attempt_id} was submitted twice")
        self._seen.add(attempt_id)
        if self._streams is not None:
            self._streams.oracle.task_comes(descriptor)
        behaviour: TaskBehaviour = pickle.loads(descriptor.chain)
        lifecycle = StateMachine(TASK, descriptor.subtask_name)
        task = self._tasks[attempt_id] = SimulatedTask(
            slot_index, descriptor, behaviour, reporter, lifecycle, self._service.clock
        )
        task.move(_S.DEPLOYING)
        try:
            task.borrow_segments(self.pool, self._chance)
        except FlinkpyError as error:
            self._end(task, _S.FAILED, error)
            return
        task.move(_S.INITIALIZING)
        self._later(task, behaviour.start_s, self._run)

    def cancel(self, attempt_id: ExecutionAttemptId) -> float:
        task = self._tasks.get(attempt_id)
        if task is not None and task.lifecycle.try_move(_S.CANCELING):
            task.report(None)
            self._later(task, 0.02 * self._chance.random(), partial(self._end, state=_S.CANCELED))
        return 0.0

    def overdue(self) -> str | None:
        return None

    def fail(self, attempt_id: ExecutionAttemptId, error: BaseException) -> None:
        task = self._tasks.get(attempt_id)
        if task is not None:
            self._end(task, _S.FAILED, error)

    def deliver_message(self, attempt_id: ExecutionAttemptId, message: MessageToTask) -> None:
        task = self._tasks.get(attempt_id)
        if task is None or task.lifecycle.state is not _S.RUNNING:
            return
        if isinstance(message, OperatorEvent):
            self._handle_event(task, message.event)
        elif task.model is not None:
            task.model.handle_message(message)

    def release_partitions(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        for attempt_id in attempt_ids:
            self.results.pop(attempt_id, None)

    def leave_job(self, job_id: JobId) -> None:
        """Does nothing: simulated tasks leave nothing else behind."""

    def keeps(self, attempt_id: ExecutionAttemptId) -> bool:
        """Whether the attempt runs here or left its results here."""
        return attempt_id in self._tasks or attempt_id in self.results

    def metrics(self) -> list[TaskMetrics]:
        return [task.metrics() for task in self._tasks.values()]

    reading = staticmethod(ProcessReading)  # nothing: simulated tasks have no metrics
    read_functions = staticmethod(_nothing_to_read)

    def read_accumulators(self, then: Callable[[], object]) -> None:
        """Does nothing: simulated tasks have accumulators only at their end."""

    def memory(self) -> None:
        """Simulated tasks have none."""

    def on_memory_pressure(self, listener: Callable[[], None]) -> None:
        """There is never any."""

    def statistics(self) -> RunnerStatistics:
        tasks = self._tasks.values()
        partitions = sum(len(task.partitions) for task in tasks) + sum(self.results.values())
        return RunnerStatistics(
            len(tasks), partitions, sum(len(task.gates) for task in tasks), self.pool.in_use
        )

    def stop(self) -> None:
        for task in list(self._tasks.values()):
            self._end(task, _S.FAILED, EngineError("the TaskExecutor stops"))
        self.results.clear()

    # -- a task's life -----------------------------------------------------------------------------

    def _run(self, task: SimulatedTask) -> None:
        missing = task.missing_result(self._is_kept)
        if missing is not None:
            self._end(task, _S.FAILED, PartitionNotFoundError(f"the results of {missing} are gone"))
            return
        if task.behaviour.stream is not None:
            self._run_stream(task, task.behaviour.stream)
            return
        task.move(_S.RUNNING)
        behaviour, attempt_id = task.behaviour, task.attempt_id
        if (
            attempt_id.subtask_index == behaviour.failing
            and attempt_id.attempt < behaviour.failures
        ):
            error = UserCodeError(
                "ValueError: simulated",
                operator=task.descriptor.task_name,
                subtask=task.descriptor.subtask_name,
            )
            self._later(
                task, (behaviour.run_s or 1.0) / 2, partial(self._end, state=_S.FAILED, error=error)
            )
        elif behaviour.reads_splits is not None:
            task.send_event(ReaderRegistered(self._service.process))
            task.send_event(SplitRequested(self._service.process))
        elif behaviour.run_s is not None:
            self._later(task, behaviour.run_s, partial(self._end, state=_S.FINISHED))

    def _run_stream(self, task: SimulatedTask, stream: StreamBehaviour) -> None:
        assert self._streams is not None
        outside = TaskSurroundings(
            self._streams,
            self._service,
            lambda: task.lifecycle.state is _S.RUNNING,
            partial(task.reporter.send_message, task.attempt_id),
            lambda: self._end(task, _S.FINISHED),
        )
        try:
            model = self._streams.model_of(task.descriptor, task.behaviour, outside)
        except FlinkpyError as error:
            self._end(task, _S.FAILED, error)
            return
        except OSError as error:
            self._end(task, _S.FAILED, UserCodeError(str(error), operator="state"))
            return
        task.move(_S.RUNNING)
        task.model = model
        attempt_id, behaviour, descriptor = task.attempt_id, task.behaviour, task.descriptor
        if (
            attempt_id.subtask_index == behaviour.failing
            and attempt_id.attempt < behaviour.failures
        ):
            fails = UserCodeError(
                "ValueError: simulated",
                operator=descriptor.task_name,
                subtask=descriptor.subtask_name,
            )
            self._later(
                task, stream.fails_after_s, partial(self._end, state=_S.FAILED, error=fails)
            )
        model.start()

    def _end(
        self, task: SimulatedTask, state: ExecutionState, error: BaseException | None = None
    ) -> None:
        if task.timer is not None:
            task.timer.cancel()
        for pool in task.pools:
            pool.close_pool()
        if task.model is not None:
            task.model.forget()
            task.model = None
        del self._tasks[task.attempt_id]
        left = sum(partition.partition_type.is_blocking for partition in task.descriptor.partitions)
        if left and state is _S.FINISHED:
            self.results[task.attempt_id] = left
        task.lifecycle.move(state)
        task.report(error)

    def _later(self, task: SimulatedTask, delay_s: float, action: Any) -> None:
        if task.timer is not None:
            task.timer.cancel()
        task.timer = self._service.schedule(delay_s, partial(action, task))

    # -- splits ------------------------------------------------------------------------------------

    def _handle_event(self, task: SimulatedTask, event: Any) -> None:
        if task.model is not None:
            task.model.handle_event(event)
        elif isinstance(event, SplitsAdded):
            splits: list[SimulatedSplit] = pickle.loads(event.splits)
            task.splits += [split.split_id for split in splits]
            self._later(
                task,
                0.5 * self._chance.random(),
                lambda task: task.send_event(SplitRequested(self._service.process)),
            )
        elif isinstance(event, NoMoreSplits):
            self._later(task, task.behaviour.run_s or 0.0, partial(self._end, state=_S.FINISHED))

    # -- inspection --------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Raises EngineError when a segment belongs to no task."""
        lent = sum(pool.in_use for task in self._tasks.values() for pool in task.pools)
        if lent != self.pool.in_use:
            raise EngineError(f"{self.pool!r}: tasks hold {lent} segments")
        pools = sum(len(task.pools) for task in self._tasks.values())
        if pools != self.pool.statistics().pools:
            raise EngineError(f"{self.pool!r}: tasks own {pools} pools")

    def process_gone(self) -> None:
        """Does nothing: its tasks have no connections."""

    def held(self) -> str | None:
        """What is left though no task runs; None in general."""
        pools = self.pool.statistics().pools
        return f"{self.pool!r}" if pools else None

    def lost_results(self, kept: Collection[ExecutionAttemptId]) -> set[ExecutionAttemptId]:
        """Those of them whose results are not here."""
        return set(kept) - self.results.keys()

    def tasks_in_slots(self) -> dict[ExecutionAttemptId, int]:
        return {attempt_id: task.slot_index for attempt_id, task in self._tasks.items()}
