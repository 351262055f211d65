"""One TaskExecutor that a job uses, as its JobMaster sees it: the tasks deployed there, and which
of them the TaskExecutor has confirmed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from flinkpy.actors.gateways import (
    JobHeartbeat,
    MessagesToTask,
    SubmitAnswer,
    TaskExecutorGateway,
    TaskMessages,
)
from flinkpy.actors.rpc.delivery.courier import Courier, EventOutbox, EventReceiver
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.service import Cancellable
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, FencingToken, ResourceId
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskManagerLocation
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.runtime.task_messages import MessageFromTask, MessageToTask


class DeployedTask:
    """An attempt that was sent to a TaskExecutor and has not ended, as far as the JobMaster
    knows."""

    __slots__ = ("attempt_id", "cancelling", "confirmed", "executor", "heard", "name")

    def __init__(
        self, attempt_id: ExecutionAttemptId, name: str, executor: ExecutorConnection
    ) -> None:
        self.attempt_id = attempt_id
        self.name = name
        self.executor = executor
        # the TaskExecutor's sequence when it confirmed that it has the task
        self.confirmed: int | None = None
        self.cancelling = False
        self.heard: EventReceiver[MessageFromTask] | None = None

    def fresh_messages(self, messages: TaskMessages) -> tuple[MessageFromTask, ...]:
        """Returns those of its messages that have not come yet."""
        if self.heard is None:
            self.heard = EventReceiver()
        return self.heard.fresh(messages.first, messages.events)


class _Cancellations:
    """The attempts to cancel, until the TaskExecutor has answered. ``on_unknown(attempt_id)`` is
    called for one that it does not have."""

    def __init__(
        self, gateway: TaskExecutorGateway, on_unknown: Callable[[ExecutionAttemptId], None]
    ) -> None:
        self._gateway = gateway
        self._on_unknown = on_unknown
        self.attempts: dict[ExecutionAttemptId, None] = {}

    def due(self) -> tuple[ExecutionAttemptId, ...] | None:
        return tuple(self.attempts) or None

    def send(self, batch: tuple[ExecutionAttemptId, ...]) -> Future[tuple[ExecutionAttemptId, ...]]:
        return self._gateway.cancel_tasks(batch)

    def answered(
        self, batch: tuple[ExecutionAttemptId, ...], answer: tuple[ExecutionAttemptId, ...]
    ) -> None:
        for attempt_id in batch:
            self.attempts.pop(attempt_id, None)
        for attempt_id in answer:
            self._on_unknown(attempt_id)

    def failed(self, error: BaseException) -> None:
        """It is repeated."""


class _Messages:
    """What the tasks of a TaskExecutor have not heard yet. ``on_unknown(attempt_ids)`` is called
    for those that do not run there (yet, or any more): what they should hear is ``held`` back."""

    def __init__(
        self,
        gateway: TaskExecutorGateway,
        on_unknown: Callable[[tuple[ExecutionAttemptId, ...]], None],
    ) -> None:
        self._gateway = gateway
        self._on_unknown = on_unknown
        self.outbox: EventOutbox[ExecutionAttemptId, MessageToTask] = EventOutbox()
        self.held: dict[ExecutionAttemptId, None] = {}
        self.is_about_to_go = False

    def due(self) -> tuple[MessagesToTask, ...] | None:
        self.is_about_to_go = False
        waiting = self.outbox.waiting()
        if self.held:
            waiting = tuple(each for each in waiting if each.receiver not in self.held)
        return waiting or None

    def send(self, batch: tuple[MessagesToTask, ...]) -> Future[tuple[ExecutionAttemptId, ...]]:
        return self._gateway.deliver_messages(batch)

    def answered(
        self, batch: tuple[MessagesToTask, ...], answer: tuple[ExecutionAttemptId, ...]
    ) -> None:
        self.outbox.arrived(each for each in batch if each.receiver not in answer)
        if answer:
            self.held.update(dict.fromkeys(answer))
            self._on_unknown(answer)

    def failed(self, error: BaseException) -> None:
        """It is repeated."""

    def forget(self, attempt_id: ExecutionAttemptId) -> None:
        self.outbox.forget(attempt_id)
        self.held.pop(attempt_id, None)


class ExecutorConnection:
    """One registered TaskExecutor.

    Calls ``on_rejected(task, reason)`` for a task that the TaskExecutor did not take, and
    ``on_unknown(task)`` for one that it confirmed and does not know any more. The owner of the
    connection sends the heartbeats."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        token: FencingToken,
        location: TaskManagerLocation,
        gateway: TaskExecutorGateway,
        retry_s: float,
        on_rejected: Callable[[DeployedTask, str], None],
        on_unknown: Callable[[DeployedTask], None],
    ) -> None:
        self._endpoint = endpoint
        self._token = token
        self._retry_s = retry_s
        self.location, self.gateway = location, gateway
        self._on_rejected, self._on_unknown = on_rejected, on_unknown
        self.watch: Cancellable | None = None
        self.tasks: dict[ExecutionAttemptId, DeployedTask] = {}
        self.memory: MemoryReport | None = None  # as its last heartbeat told
        self._cancellations = _Cancellations(gateway, self._cancel_again_later)
        self._cancels: Courier[tuple[ExecutionAttemptId, ...], tuple[ExecutionAttemptId, ...]] = (
            Courier(endpoint.main_thread, retry_s, self._cancellations)
        )
        self._messages = _Messages(gateway, self._deliver_again_later)
        self._deliveries: Courier[tuple[MessagesToTask, ...], tuple[ExecutionAttemptId, ...]] = (
            Courier(endpoint.main_thread, retry_s, self._messages)
        )

    @property
    def resource_id(self) -> ResourceId:
        return self.location.resource_id

    def close_connection(self) -> None:
        """Sends nothing more: the TaskExecutor is lost, or the job has ended."""
        if self.watch is not None:
            self.watch.cancel()
        self._cancels.close()
        self._deliveries.close()

    # -- deploying ---------------------------------------------------------------------------------

    def submit_tasks(self, descriptors: tuple[TaskDeploymentDescriptor, ...]) -> list[DeployedTask]:
        """Sends the tasks. Reports each task that is refused, or not confirmed in time, to
        ``on_rejected``."""
        tasks = [
            DeployedTask(descriptor.attempt_id, descriptor.subtask_name, self)
            for descriptor in descriptors
        ]
        for task in tasks:
            self.tasks[task.attempt_id] = task
        self.gateway.submit_tasks(self._token, descriptors).add_done_callback(
            lambda done: self._submitted(tasks, done)
        )
        return tasks

    def _submitted(self, tasks: Iterable[DeployedTask], done: Future[SubmitAnswer]) -> None:
        answer = done.result(timeout=0) if done.error is None else None
        for task in tasks:
            if self.tasks.get(task.attempt_id) is not task:
                continue
            refusal = answer.refused.get(task.attempt_id) if answer is not None else str(done.error)
            if refusal is None:
                assert answer is not None
                self.confirm_task(task, answer.sequence)
            elif answer is not None or task.confirmed is None:
                if answer is None:
                    # perhaps only the answer was lost, and the tasks run
                    self.cancel_attempt(task.attempt_id)
                self._on_rejected(task, refusal)

    def confirm_task(self, task: DeployedTask, sequence: int) -> None:
        """The TaskExecutor has the task. If a report of this sequence or a later one lacks the
        task, it is lost."""
        if task.confirmed is None or sequence > task.confirmed:
            task.confirmed = sequence

    # -- cancelling --------------------------------------------------------------------------------

    def cancel_task(self, task: DeployedTask) -> None:
        task.cancelling = True
        self.cancel_attempt(task.attempt_id)

    def cancel_attempt(self, attempt_id: ExecutionAttemptId) -> None:
        """Sends the cancellation, and repeats it until answered. The TaskExecutor ignores attempts
        that it does not know."""
        self._cancellations.attempts[attempt_id] = None
        # Not at once: cancellations often come together, and share a message
        self._endpoint.run_async(self._cancels.kick)

    def _cancel_again_later(self, attempt_id: ExecutionAttemptId) -> None:
        """Sends the cancellation again, if it has overtaken the submission; unless the task is
        rejected meanwhile."""
        task = self.tasks.get(attempt_id)
        if task is None or task.confirmed is not None:
            return

        def again() -> None:
            if self.tasks.get(attempt_id) is task and task.cancelling:
                self.cancel_attempt(attempt_id)

        self._endpoint.schedule_run_async(self._retry_s, again)

    # -- the end of a task -------------------------------------------------------------------------

    def forget_task(self, attempt_id: ExecutionAttemptId) -> None:
        """The task has ended."""
        self.tasks.pop(attempt_id, None)
        self._messages.forget(attempt_id)

    # -- messages to tasks ---------------------------------------------------------------

    def send_to_task(self, task: DeployedTask, message: MessageToTask) -> None:
        """Sends the message: it arrives once and in order, unless the task ends first."""
        self._messages.outbox.add(task.attempt_id, message)
        if not self._messages.is_about_to_go:
            # Not at once: those to the tasks of one TaskExecutor often come together
            self._messages.is_about_to_go = True
            self._endpoint.run_async(self._deliveries.kick)

    def _deliver_again_later(self, attempt_ids: Collection[ExecutionAttemptId]) -> None:
        """The message has overtaken the submission, or the task has ended, which its TaskExecutor
        is about to say."""

        def again() -> None:
            for attempt_id in attempt_ids:
                self._messages.held.pop(attempt_id, None)
            self._deliveries.kick()

        self._endpoint.schedule_run_async(self._retry_s, again)

    # -- heartbeats --------------------------------------------------------------------------------

    def reconcile(self, payload: JobHeartbeat) -> None:
        """Compares the tasks that the TaskExecutor runs with those it should run: reports lost
        ones, cancels the others."""
        running = set(payload.running)
        for attempt_id in running:
            task = self.tasks.get(attempt_id)
            if task is None or task.cancelling:
                self.cancel_attempt(attempt_id)
        for task in [task for attempt_id, task in self.tasks.items() if attempt_id not in running]:
            if task.confirmed is not None and task.confirmed <= payload.sequence:
                self._on_unknown(task)

    def __repr__(self) -> str:
        return (
            f"<ExecutorConnection to {self.resource_id}: {len(self.tasks)} tasks, "
            f"{len(self._cancellations.attempts)} to cancel>"
        )
