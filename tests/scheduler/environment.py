"""The world around a scheduler, in miniature: it hands out slots, runs tasks, and loses both when
told to. Checks every command it gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from flinkpy.core.errors import FlinkpyError, TaskExecutorLostError
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, IdFactory, ResourceId, SlotRequestId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskManagerLocation
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.execution_model import TERMINAL
from flinkpy.scheduler.protocol import (
    CancelSlotRequest,
    CancelTask,
    Command,
    DeployTasks,
    DiscardCheckpoint,
    DiscardSharedFiles,
    Event,
    JobStateChanged,
    ReleaseResults,
    ReleaseSlot,
    RequestSlot,
    ResetCoordinators,
    RestoreFrom,
    SetTimer,
    SlotAssigned,
    SlotLost,
    SlotRequestFailed,
    SnapshotEnded,
    TaskStateChanged,
    TimerFired,
    TriggerCheckpoint,
)
from flinkpy.scheduler.scheduler import Scheduler, SchedulerConfig
from tests.scheduler.checkpoint_ledger import CheckpointCommand, CheckpointLedger

S = ExecutionState
NEXT = {S.DEPLOYING: S.INITIALIZING, S.INITIALIZING: S.RUNNING, S.RUNNING: S.FINISHED}


class Boom(FlinkpyError):
    """A failure of the test's making."""


@dataclass
class RunningTask:
    descriptor: TaskDeploymentDescriptor
    location: TaskManagerLocation
    state: ExecutionState = S.DEPLOYING
    cancelled: bool = False


@dataclass
class World:
    """Drives a scheduler. ``step`` methods are events of the world; ``commands`` keeps everything
    the scheduler asked for."""

    scheduler: Scheduler
    executors: int = 3
    now: float = 0.0
    commands: list[Command] = field(default_factory=list)
    requests: dict[SlotRequestId, RequestSlot] = field(default_factory=dict)
    slots: dict[AllocationId, TaskManagerLocation] = field(default_factory=dict)
    tasks: dict[ExecutionAttemptId, RunningTask] = field(default_factory=dict)
    timers: dict[str, float] = field(default_factory=dict)
    states: list[JobState] = field(default_factory=list)
    ended: dict[ExecutionAttemptId, ExecutionState] = field(default_factory=dict)
    error: BaseException | None = None
    granted: int = 0
    checkpoints: CheckpointLedger = field(default_factory=CheckpointLedger)

    @staticmethod
    def of(job_graph: JobGraph, config: SchedulerConfig | None = None) -> World:
        settings = CheckpointSettings() if config is None else config.checkpoints
        return World(
            Scheduler(job_graph, config, IdFactory(7)), checkpoints=CheckpointLedger(settings)
        )

    def send(self, event: Event) -> list[Command]:
        """Gives the scheduler an event, carries its commands out, and checks everything."""
        before = self.scheduler.job_graph
        commands = self.scheduler.handle(event, self.now)
        for command in commands:
            ends = isinstance(
                command, (ReleaseSlot, DiscardCheckpoint, DiscardSharedFiles, SnapshotEnded)
            )
            assert ends or not self._is_over(), f"{command} after the end"
            self._carry_out(command, before)
        self.scheduler.check_invariants()
        self.checkpoints.check_retained(self.states[-1] if self._is_over() else None)
        self.commands += commands
        return commands

    # -- what can happen ---------------------------------------------------------------------------

    def grant(self, request_id: SlotRequestId) -> list[Command]:
        del self.requests[request_id]
        self.granted += 1
        allocation_id = AllocationId(f"slot{self.granted}")
        location = TaskManagerLocation(
            ResourceId(f"tm{self.granted % self.executors}"),
            f"tm{self.granted % self.executors}/taskexecutor",
        )
        self.slots[allocation_id] = location
        return self.send(SlotAssigned(request_id, allocation_id, location))

    def refuse(self, request_id: SlotRequestId) -> list[Command]:
        del self.requests[request_id]
        return self.send(SlotRequestFailed(request_id, Boom("no slot")))

    def progress(self, attempt_id: ExecutionAttemptId) -> list[Command]:
        task = self.tasks[attempt_id]
        task.state = S.CANCELED if task.cancelled else NEXT[task.state]
        return self._report(task)

    def fail(
        self, attempt_id: ExecutionAttemptId, error: BaseException | None = None
    ) -> list[Command]:
        task = self.tasks[attempt_id]
        task.state = S.FAILED
        return self._report(task, error or Boom(f"{attempt_id} failed"))

    def lose(
        self, allocation_id: AllocationId, error: BaseException | None = None
    ) -> list[Command]:
        del self.slots[allocation_id]
        for attempt_id in [
            each
            for each, task in self.tasks.items()
            if task.descriptor.allocation_id == allocation_id
        ]:
            del self.tasks[attempt_id]
            self.ended[attempt_id] = S.FAILED
        return self.send(
            SlotLost(allocation_id, error or TaskExecutorLostError("the TaskExecutor died"))
        )

    def restore(
        self, checkpoint: CompletedCheckpoint, claim: bool = False, is_own: bool = False
    ) -> list[Command]:
        """The job is to begin with that checkpoint."""
        self.checkpoints.restore(checkpoint, claim, is_own)
        return self.send(RestoreFrom(checkpoint, claim=claim, is_own=is_own))

    def answer(self, event: Event) -> list[Command]:
        """A message about a checkpoint arrives."""
        self.checkpoints.heard(event)
        return self.send(event)

    def fire(self, timer_id: str) -> list[Command]:
        self.now += self.timers.pop(timer_id)
        return self.send(TimerFired(timer_id))

    def run_fairly(self, limit: int = 10_000) -> JobState:
        """From now on all goes well, until nothing is left to do."""
        for _ in range(limit):
            if self.requests:
                self.grant(next(iter(self.requests)))
            elif self.checkpoints.answers and not self._is_over():
                self.answer(self.checkpoints.answers[0])
            elif self.tasks:
                self.progress(next(iter(self.tasks)))
            elif self.timers:
                self.fire(next(iter(self.timers)))
            else:
                return self.scheduler.state
        raise AssertionError(f"{self.scheduler} does not come to an end")

    # -- shorthands --------------------------------------------------------------------------------

    def grant_all(self) -> None:
        while self.requests:
            self.grant(next(iter(self.requests)))

    def attempt(self, name: str, subtask: int) -> ExecutionAttemptId:
        """The running attempt of that subtask."""
        return next(
            each for each in self.tasks if (each.vertex_id, each.subtask_index) == (name, subtask)
        )

    def run_to(self, state: ExecutionState, name: str | None = None) -> None:
        """Brings every task (of that vertex) to the state."""
        for attempt_id in [each for each in self.tasks if name in (None, each.vertex_id)]:
            while attempt_id in self.tasks and self.tasks[attempt_id].state is not state:
                self.progress(attempt_id)

    @property
    def running(self) -> set[str]:
        """The tasks there are: ``{"A0#0", "B1#2"}``."""
        return {short(attempt_id) for attempt_id in self.tasks}

    def _is_over(self) -> bool:
        return bool(self.states) and self.states[-1] in (
            JobState.FINISHED,
            JobState.CANCELED,
            JobState.FAILED,
        )

    def _report(self, task: RunningTask, error: BaseException | None = None) -> list[Command]:
        attempt_id = task.descriptor.attempt_id
        if task.state in TERMINAL:
            del self.tasks[attempt_id]
            self.ended[attempt_id] = task.state
        return self.send(TaskStateChanged(attempt_id, task.state, error))

    # -- carrying commands out ---------------------------------------------------------------------

    def _carry_out(self, command: Command, before: JobGraph) -> None:
        if isinstance(command, RequestSlot):
            assert command.request_id not in self.requests
            self.requests[command.request_id] = command
        elif isinstance(command, CancelSlotRequest):
            del self.requests[command.request_id]
        elif isinstance(command, ReleaseSlot):
            assert command.allocation_id not in {
                task.descriptor.allocation_id for task in self.tasks.values()
            }, "released under a running task"
            del self.slots[command.allocation_id]
        elif isinstance(command, DeployTasks):
            for descriptor in command.descriptors:
                self._deploy(command.location, descriptor)
        elif isinstance(command, CancelTask):
            if command.attempt_id in self.tasks:
                assert self.tasks[command.attempt_id].location == command.location
                self.tasks[command.attempt_id].cancelled = True
        elif isinstance(command, SetTimer):
            self.timers[command.timer_id] = command.delay_s
        elif isinstance(command, ResetCoordinators):
            assert not set(command.attempts) & set(self.tasks), "reset while running"
            self.checkpoints.check_reset(command, before)
        elif isinstance(command, CheckpointCommand):
            if isinstance(command, TriggerCheckpoint):
                assert {task.state for task in self.tasks.values()} == {S.RUNNING}
            self.checkpoints.carry_out(command, self._barrier_sources(), self._live())
        elif isinstance(command, JobStateChanged):
            self.states.append(command.state)
            self.error = command.error
        elif isinstance(command, SnapshotEnded):
            self.checkpoints.answer_request(command, self.states[-1] if self.states else None)
        elif isinstance(command, ReleaseResults):
            assert not set(command.attempt_ids) & set(self.tasks), "released while running"
        else:
            unknown(command)

    def _deploy(self, location: TaskManagerLocation, descriptor: TaskDeploymentDescriptor) -> None:
        attempt = descriptor.attempt_id
        assert self.slots[descriptor.allocation_id] == location, (
            "deployed to a slot it does not have"
        )
        assert attempt.vertex not in {each.vertex for each in self.tasks}, "deployed twice"
        assert attempt not in self.ended, "an attempt is deployed once"
        neighbours = [
            each
            for each, task in self.tasks.items()
            if task.descriptor.allocation_id == descriptor.allocation_id
        ]
        assert attempt.vertex_id not in {each.vertex_id for each in neighbours}, (
            "two subtasks of one vertex in one slot"
        )
        for gate in descriptor.gates:
            for producer in gate.producers:
                self._check_producer(
                    gate.partition_type.is_blocking, producer.partition_id.producer, attempt
                )
        self.checkpoints.check_restore(descriptor)
        self.tasks[attempt] = RunningTask(descriptor, location)

    def _live(self) -> list[ExecutionAttemptId]:
        return [each for each, task in self.tasks.items() if not task.cancelled]

    def _barrier_sources(self) -> set[ExecutionAttemptId]:
        """The tasks that no other one would send a barrier to."""
        return {
            each
            for each, task in self.tasks.items()
            if not any(
                producer.partition_id.producer in self.tasks
                for gate in task.descriptor.gates
                for producer in gate.producers
            )
        }

    def _check_producer(
        self, blocking: bool, producer: ExecutionAttemptId, consumer: ExecutionAttemptId
    ) -> None:
        current = self.scheduler.graph.current(producer)
        reader = self.scheduler.graph.current(consumer)
        assert current is not None, "reads from an attempt of the past"
        assert reader is not None
        if blocking and current.vertex.region is not reader.vertex.region:
            assert self.ended[producer] is S.FINISHED, "reads a blocking result that is not there"


def unknown(command: NoReturn) -> NoReturn:
    """Mypy says which command comes here."""
    raise AssertionError(f"this environment does not know what {command!r} asks for")


def short(attempt_id: ExecutionAttemptId) -> str:
    return f"{attempt_id.vertex_id}{attempt_id.subtask_index}#{attempt_id.attempt}"


def shorts(attempts: tuple[ExecutionAttemptId, ...] | list[ExecutionAttemptId]) -> set[str]:
    return {short(attempt_id) for attempt_id in attempts}
