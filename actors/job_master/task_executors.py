"""The TaskExecutors registered at a JobMaster, and the tasks deployed to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import nlargest

from flinkpy.actors.gateways import JobHeartbeat, TaskExecutorGateway, TaskMessages
from flinkpy.actors.job_master.executor_connection import DeployedTask, ExecutorConnection
from flinkpy.actors.job_master.scheduler_driver import Feed
from flinkpy.actors.job_master.slot_book import SlotBook
from flinkpy.actors.killed_for_memory import why_lost
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.heartbeat import heartbeat_requester
from flinkpy.core.errors import EngineError, NotRegisteredError, TaskExecutorLostError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, ResourceId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.options.engine import RpcConfig
from flinkpy.graph.deployment import JobMasterRegistration, TaskManagerLocation
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.runtime.task_messages import MessageFromTask, MessageToTask
from flinkpy.scheduler.protocol import (
    CancelTask,
    DeploymentRejected,
    DeployTasks,
    ReleaseResults,
    ResultsLost,
    SlotLost,
    TaskStateChanged,
)


class TaskExecutors:
    """All calls come from the JobMaster's main thread.

    ``feed(*events)`` hands events to the scheduler, and ``on_heartbeat(resource_id, payload)`` gets
    what a registered TaskExecutor holds."""

    # a request for metrics sooner than this after the last one reads nothing new
    METRICS_AGE_S = 0.25

    def __init__(
        self,
        endpoint: RpcEndpoint,
        job_master: JobMasterRegistration,
        config: RpcConfig,
        slots: SlotBook,
        feed: Feed,
        on_heartbeat: Callable[[ResourceId, JobHeartbeat], None],
    ) -> None:
        self._endpoint = endpoint
        self._job_master = job_master
        self._feed = feed
        self._slots = slots
        self._retry_s = config.registration_initial.total_seconds()
        self._executors: dict[ResourceId, ExecutorConnection] = {}
        self._tasks: dict[ExecutionAttemptId, DeployedTask] = {}
        self._metrics_asked_at = float("-inf")  # the answers may be on their way
        # when they were asked for the time before: those answers are here
        self._metrics_known_from = float("-inf")
        # open while newer counters are on their way
        self._counted: Future[None] = Future.completed(None)
        self._heartbeats = heartbeat_requester(
            endpoint,
            config,
            lambda peer: self.lose_executor(peer, "it sent no heartbeat in time"),
            on_heartbeat,
        )

    def close(self, reason: str) -> None:
        """Disconnects all of them."""
        self._heartbeats.stop()
        for executor in self._executors.values():
            executor.close_connection()
            executor.gateway.disconnect_job_master(self._job_master.job_id, reason)
        self._executors.clear()
        self._tasks.clear()
        self._counted.complete(None)

    # -- TaskExecutors -----------------------------------------------------------------------------

    def is_registered(self, location: TaskManagerLocation) -> bool:
        """Whether the TaskExecutor is registered at exactly this location."""
        known = self._executors.get(location.resource_id)
        return known is not None and known.location == location

    def get_registered(self, resource_id: ResourceId) -> ExecutorConnection:
        """Returns the registered TaskExecutor. Raises NotRegisteredError when it is not known."""
        executor = self._executors.get(resource_id)
        if executor is None:
            raise NotRegisteredError(f"{resource_id} is not registered at {self._endpoint.address}")
        return executor

    def add_executor(self, location: TaskManagerLocation, gateway: TaskExecutorGateway) -> None:
        """Registers the TaskExecutor. One with the same id at another location is lost thereby.
        Doing it twice does nothing."""
        if self.is_registered(location):
            return
        resource_id = location.resource_id
        self.lose_executor(resource_id, "it was started anew")
        executor = ExecutorConnection(
            self._endpoint,
            self._job_master.token,
            location,
            gateway,
            self._retry_s,
            self._on_rejected,
            self._on_unknown,
        )
        executor.watch = self._endpoint.service.watch(
            self._endpoint, location.address, lambda reason: self.lose_executor(resource_id, reason)
        )
        self._executors[resource_id] = executor
        self._heartbeats.monitor(
            resource_id, partial(gateway.heartbeat_from_job_master, self._job_master.resource_id)
        )

    def lose_executor(self, resource_id: ResourceId, reason: str) -> None:
        """Gives up the TaskExecutor, with everything that ran there."""
        executor = self._executors.pop(resource_id, None)
        if executor is None:
            return
        self._heartbeats.unmonitor(resource_id)
        executor.close_connection()
        executor.gateway.disconnect_job_master(self._job_master.job_id, reason)
        for attempt_id in executor.tasks:
            self._tasks.pop(attempt_id, None)
        error = TaskExecutorLostError(f"{resource_id} is lost: {why_lost(reason, executor.memory)}")
        lost = self._slots.remove_slots_of(resource_id)
        self._feed(
            ResultsLost(resource_id),
            *(SlotLost(allocation_id, error) for allocation_id in lost),
            # for tasks whose slot had been given back
            *(DeploymentRejected(attempt_id, error) for attempt_id in executor.tasks),
        )

    def heartbeat_received(self, resource_id: ResourceId, payload: JobHeartbeat) -> None:
        self._note_memory(resource_id, payload)
        self._heartbeats.answer_received(resource_id, payload)

    def heard_from(self, resource_id: ResourceId, heartbeat: JobHeartbeat | None) -> None:
        """A report is a sign of life, too, and may bring the heartbeat."""
        if heartbeat is None:
            self._heartbeats.answer_received(resource_id)
        else:
            self._note_memory(resource_id, heartbeat)
            self._heartbeats.came_unasked(resource_id, heartbeat)

    def _note_memory(self, resource_id: ResourceId, heartbeat: JobHeartbeat) -> None:
        """Should the TaskExecutor be lost, this may say why."""
        executor = self._executors.get(resource_id)
        if executor is not None and heartbeat.memory is not None:
            executor.memory = heartbeat.memory

    def fullest(self) -> tuple[tuple[ResourceId, MemoryReport], ...]:
        """The three TaskExecutors that use the largest share of their memory, each with its last
        memory report."""
        reports = [
            (resource_id, executor.memory)
            for resource_id, executor in self._executors.items()
            if executor.memory is not None
        ]
        return tuple(nlargest(3, reports, key=lambda each: (each[1].share, each[1].used)))

    def request_metrics(self, fresh_s: float = 0.0) -> Future[None]:
        """Has every TaskExecutor send its counters now, unless they were asked for a moment ago.
        The future completes when they have had time to, or when these connections close; at once if
        what they have sent was asked for less than ``fresh_s`` ago."""
        if not self._executors:
            return Future.completed(None)
        now = self._endpoint.service.clock.monotonic()
        if now - self._metrics_asked_at >= self.METRICS_AGE_S:
            self._metrics_known_from, self._metrics_asked_at = self._metrics_asked_at, now
            for executor in self._executors.values():
                executor.gateway.heartbeat_from_job_master(self._job_master.resource_id)
        if now - self._metrics_known_from < fresh_s:
            return Future.completed(None)
        if self._counted.done:
            self._counted = Future()
            self._endpoint.schedule_run_async(
                self.METRICS_AGE_S, partial(self._counted.complete, None)
            )
        return self._counted

    def free_slots(
        self, resource_id: ResourceId, allocation_ids: Sequence[AllocationId], reason: str
    ) -> None:
        executor = self._executors.get(resource_id)
        if executor is not None and allocation_ids:
            executor.gateway.free_slots(tuple(allocation_ids), reason)

    # -- tasks -------------------------------------------------------------------------------------

    def deploy_tasks(self, command: DeployTasks) -> list[ExecutionAttemptId]:
        """Sends the tasks and returns the attempts that were sent. The scheduler gets an event for
        each one that is refused."""
        executor = self._executors.get(command.location.resource_id)
        if executor is None:
            lost = TaskExecutorLostError(
                f"{command.location.resource_id} was lost before the tasks were sent"
            )
            self._feed(
                *(
                    DeploymentRejected(descriptor.attempt_id, lost)
                    for descriptor in command.descriptors
                )
            )
            return []
        tasks = executor.submit_tasks(command.descriptors)
        self._tasks.update((task.attempt_id, task) for task in tasks)
        return [task.attempt_id for task in tasks]

    def cancel_task(self, command: CancelTask) -> None:
        task = self._tasks.get(command.attempt_id)
        # it was lost with its TaskExecutor, and the scheduler is about to get that event
        if task is None:
            self._feed(TaskStateChanged(command.attempt_id, ExecutionState.CANCELED))
        else:
            task.executor.cancel_task(task)

    def forget_task(self, attempt_id: ExecutionAttemptId) -> None:
        """The task has ended."""
        task = self._tasks.pop(attempt_id, None)
        if task is not None:
            task.executor.forget_task(attempt_id)

    def release_results(self, command: ReleaseResults) -> None:
        self.release_results_on(command.location.resource_id, command.attempt_ids)

    def release_results_on(
        self, resource_id: ResourceId, attempt_ids: Iterable[ExecutionAttemptId]
    ) -> None:
        """Tells the TaskExecutor that the blocking results of these attempts are not needed any
        more."""
        executor, released = self._executors.get(resource_id), tuple(attempt_ids)
        if executor is not None and released:
            executor.gateway.release_results(released)

    def _on_rejected(self, task: DeployedTask, reason: str) -> None:
        self.forget_task(task.attempt_id)
        error = TaskExecutorLostError(
            f"{task.name} could not be started on {task.executor.resource_id}: {reason}"
        )
        self._feed(DeploymentRejected(task.attempt_id, error))

    def _on_unknown(self, task: DeployedTask) -> None:
        """The TaskExecutor had confirmed the task, and does not know it any more."""
        self.forget_task(task.attempt_id)
        state = ExecutionState.CANCELED if task.cancelling else ExecutionState.FAILED
        error = (
            None
            if task.cancelling
            else TaskExecutorLostError(f"{task.executor.resource_id} lost track of {task.name}")
        )
        self._feed(TaskStateChanged(task.attempt_id, state, error))

    # -- messages to and from tasks ----------------------------------------------------------------

    def send_to_task(self, attempt_id: ExecutionAttemptId, message: MessageToTask) -> None:
        """Sends the message; for a task that has ended it is dropped."""
        task = self._tasks.get(attempt_id)
        if task is not None:
            task.executor.send_to_task(task, message)

    def fresh_messages(self, messages: TaskMessages) -> tuple[MessageFromTask, ...]:
        """Those of a task's messages that were not seen before; none of a task that has ended."""
        task = self._tasks.get(messages.receiver)
        return () if task is None else task.fresh_messages(messages)

    # -- inspection --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._executors)

    def check_invariants(self) -> None:
        """Raises EngineError when tasks and TaskExecutors contradict each other."""
        for attempt_id, task in self._tasks.items():
            if (
                self._executors.get(task.executor.resource_id) is not task.executor
                or task.executor.tasks.get(attempt_id) is not task
            ):
                raise EngineError(
                    f"{self!r}: {attempt_id} runs on a TaskExecutor that is not registered"
                )

    def __repr__(self) -> str:
        return f"<TaskExecutors {list(self._executors)}: {len(self._tasks)} tasks>"
