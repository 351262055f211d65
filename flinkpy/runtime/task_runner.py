"""The runner of a TaskExecutor: one slot loop for all its slots, one shuffle environment, and the
tasks in them; and beside it a loop in which connections are made, so that nobody waits for a slow
function before the first record. What happens to a task happens in its thread, which is the slot
loop's or one of its own (``flinkpy.runtime.loop.task_home``)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ExecutionAttemptId, JobId, ResourceId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.options.engine import CANCELLATION_INTERVAL, CANCELLATION_TIMEOUT, NetworkConfig
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState, TaskMetrics
from flinkpy.metrics.readings import ProcessReading
from flinkpy.network.port import ShuffleEnvironment, ShuffleStatistics
from flinkpy.network.wire.transport import Transport
from flinkpy.runtime.files.cached_files import cached_files_of
from flinkpy.runtime.files.file_cache import FileCache
from flinkpy.runtime.files.worker_files import WorkerFiles
from flinkpy.runtime.loop.interruption import Interruptions
from flinkpy.runtime.loop.task_thread import task_of_this_thread
from flinkpy.runtime.machine import Machine
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.runtime.memory.slots_memory import SlotsMemory, WorkerSlots
from flinkpy.runtime.memory_relief import MemoryOwners, WatchedMemory
from flinkpy.runtime.output.task_output import TaskOutput
from flinkpy.runtime.runner_port import RunnerStatistics, TaskReporter
from flinkpy.runtime.task import Task, TaskPlace
from flinkpy.runtime.task_measures import TaskMeasures
from flinkpy.runtime.task_messages import MessageToTask
from flinkpy.state.checkpoints.local_backup import LocalBackups

LOG = engine_logger(__name__)

STOP_TIMEOUT_S = 10.0
INTERRUPTED_EACH_S = 1.0  # functions that do not return when the TaskExecutor stops


class SlotTaskRunner:
    """Implements ``flinkpy.runtime.runner_port.TaskRunner``.

    Calls come from the TaskExecutor's thread and are carried out in the tasks'; what the tasks say
    goes from there to the reporter. ``machine`` is a simulated one in the simulation. With
    ``show_output`` what tasks print is sent to who waits for their job."""

    def __init__(
        self,
        config: NetworkConfig,
        secret: bytes,
        resource_id: ResourceId,
        clock: Clock = SYSTEM_CLOCK,
        *,
        machine: Machine | None = None,
        slots: WorkerSlots | None = None,
        show_output: bool = False,
    ) -> None:
        self._machine = machine = machine or Machine()
        slots = slots or WorkerSlots()
        self._loop = machine.make_loop(f"slots of {resource_id}", clock)
        # without tasks: nothing of the user's ever runs there
        self._acceptor = machine.make_loop(f"data port of {resource_id}", clock)
        self._interruptions = Interruptions(self._acceptor)
        self._shuffle = _shuffle_service(config, secret, resource_id, machine.transport)
        self._segment_size = config.segment_size
        self._files = machine.make_file_threads(str(resource_id), slots.count)
        self._backups = LocalBackups(machine.backup_folder)
        self._cached_files = FileCache()
        self._tasks: dict[ExecutionAttemptId, Task] = {}
        self._clock = clock
        owners = MemoryOwners(
            lambda: list(self._tasks.values()),
            SlotsMemory(slots),
            lambda: self._shuffle.statistics().segments_in_use * self._segment_size,
            clock,
        )
        self._memory = WatchedMemory(
            resource_id, owners, slots, self._acceptor, machine.measure_memory
        )
        self._cancel_asked: dict[ExecutionAttemptId, float] = {}  # and not done
        self._running = False
        self._output: TaskOutput | None = None
        if show_output:
            self._output = TaskOutput(self._running_task)
            self._output.install()

    def _calling_task(self) -> Task | None:
        """The task that the calling thread runs."""
        task = self._loop.current_task or task_of_this_thread()
        return task if isinstance(task, Task) and self._tasks.get(task.attempt_id) is task else None

    def _running_task(self) -> TaskDeploymentDescriptor | None:
        task = self._calling_task()
        return None if task is None else task.descriptor

    def is_calling(self) -> bool:
        """Whether the caller is a function of one of its tasks: the task stands still until that
        returns."""
        return self._calling_task() is not None

    @property
    def data_address(self) -> tuple[str, int]:
        return self._shuffle.data_address

    def start(self) -> None:
        if self._running:
            raise EngineError(f"{self!r} was started already")
        try:
            # before the loops have their threads, so there is nobody to hand this over to yet
            self._shuffle.start(self._loop, self._acceptor)
        except BaseException:
            self._loop.stop()
            self._acceptor.stop()
            raise
        self._running = True
        self._loop.start()
        self._acceptor.start()
        self._memory.start()

    def submit(
        self, slot_index: int, descriptor: TaskDeploymentDescriptor, reporter: TaskReporter
    ) -> None:
        if not self._running:
            error = EngineError(
                f"{descriptor.subtask_name} was submitted to a runner that does not run"
            )
            reporter.state_changed(
                TaskExecutionState(descriptor.attempt_id, ExecutionState.FAILED, error)
            )
            return
        if self._output is not None:
            reporter = self._output.deployed(descriptor, reporter)
        job_id, values = descriptor.attempt_id.job_id, descriptor.configuration
        self._cached_files.join(job_id, cached_files_of(descriptor.out_of_band), values)
        files = WorkerFiles(
            self._files.lane().run,
            self._machine.file_stores,
            self._backups.of_job(job_id, values),
            partial(self._cached_files.path, job_id),
        )
        task = Task(
            descriptor,
            self._shuffle,
            self._loop,
            reporter,
            self._forget,
            TaskPlace(
                files,
                self._memory.owners.memory.of_slot(slot_index, descriptor.managed_memory),
                self._machine.has_task_threads,
            ),
        )
        self._tasks[descriptor.attempt_id] = task
        self._loop.schedule_threadsafe(task)

    def _forget(self, task: Task) -> None:
        self._tasks.pop(task.attempt_id, None)

    def cancel(self, attempt_id: ExecutionAttemptId) -> float:
        task = self._tasks.get(attempt_id)
        if task is None:
            return 0.0
        self._cancel_asked.setdefault(attempt_id, self._clock.monotonic())
        task.is_to_end = True

        def carry_out() -> None:
            try:
                task.cancel()
            finally:
                self._cancel_asked.pop(attempt_id, None)

        task.home.run(carry_out)
        interval: timedelta = read(task.descriptor.configuration, CANCELLATION_INTERVAL)
        if self._machine.has_task_threads and interval > timedelta():
            self._interruptions.begin(
                task.home, interval.total_seconds(), lambda: attempt_id in self._cancel_asked
            )
        patience: timedelta = read(task.descriptor.configuration, CANCELLATION_TIMEOUT)
        return patience.total_seconds()

    def stuck_for_s(self) -> float:
        """For how long a cancellation has not been carried out, as a function of a task does not
        return; 0.0 in general."""
        oldest = min(list(self._cancel_asked.values()), default=None)
        return 0.0 if oldest is None else self._clock.monotonic() - oldest

    def overdue(self) -> str | None:
        for attempt_id in list(self._cancel_asked):
            task = self._tasks.get(attempt_id)
            waited_s = None if task is None else self._waited_too_long_s(task)
            if task is not None and waited_s is not None:
                return (
                    f"{task.descriptor.subtask_name} was cancelled {waited_s:.0f} s ago, "
                    "and a function in this process does not return"
                )
        return None

    def _waited_too_long_s(self, task: Task) -> float | None:
        """How long ago the task was cancelled, if that is longer than its job waits for it."""
        asked = self._cancel_asked.get(task.attempt_id)
        if asked is None:
            return None
        patience: timedelta = read(task.descriptor.configuration, CANCELLATION_TIMEOUT)
        waited_s = self._clock.monotonic() - asked
        return waited_s if timedelta() < patience <= timedelta(seconds=waited_s) else None

    def fail(self, attempt_id: ExecutionAttemptId, error: BaseException) -> None:
        self._with_task(attempt_id, lambda task: task.fail(error))

    def deliver_message(self, attempt_id: ExecutionAttemptId, message: MessageToTask) -> None:
        self._with_task(attempt_id, lambda task: task.deliver_message(message))

    def release_partitions(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        dropped = tuple(attempt_ids)

        def carry_out() -> None:
            for attempt_id in dropped:
                self._shuffle.release_partitions(attempt_id)

        self._loop.call_soon_threadsafe(carry_out)

    def leave_job(self, job_id: JobId) -> None:
        backup = self._backups.left(job_id)
        if backup is not None:
            self._files.lane().run(backup.close)
        for folder in self._cached_files.leave(job_id):
            self._files.lane().run(folder.remove)

    def _with_task(self, attempt_id: ExecutionAttemptId, action: Callable[[Task], None]) -> None:
        """In the task's thread, if it is still there."""
        task = self._tasks.get(attempt_id)
        if task is not None:
            task.home.run(lambda: action(task))

    def metrics(self) -> list[TaskMetrics]:
        return [task.metrics() for task in list(self._tasks.values())]

    def read_accumulators(self, then: Callable[[], object]) -> None:
        def carry_out() -> None:
            changed = [task.read_accumulators() for task in self._sharing()]  # all of them are read
            if any(changed):
                then()

        def carry_out_for(task: Task) -> None:
            if task.read_accumulators():
                then()

        self._loop.call_soon_threadsafe(carry_out)
        for task in self._tasks_with_threads():
            task.home.run(partial(carry_out_for, task))

    def _sharing(self) -> list[Task]:
        """In the loop's thread: the tasks that have no other."""
        return [task for task in list(self._tasks.values()) if task.home.own_thread_id is None]

    def _tasks_with_threads(self) -> list[Task]:
        return [task for task in list(self._tasks.values()) if task.home.own_thread_id is not None]

    def glance(self) -> list[tuple[int, ExecutionAttemptId | None]]:
        stepping, found = self._loop.stepping, list[tuple[int, ExecutionAttemptId | None]]()
        is_shared = not isinstance(stepping, Task) or stepping.home.own_thread_id is None
        if self._loop.thread_id is not None and is_shared:
            found.append(
                (self._loop.thread_id, stepping.attempt_id if isinstance(stepping, Task) else None)
            )
        for task in self._tasks_with_threads():
            thread = task.home.stepping_thread_id
            if thread is not None:
                found.append((thread, task.attempt_id))
        return found

    def reading(self) -> ProcessReading:
        tasks = list(self._tasks.values())
        values = {
            **_network_values(self._shuffle.statistics(), self._segment_size),
            **self._memory.owners.values(),
            "numRunningTasks": len(tasks),
        }
        return ProcessReading(
            values, tuple(task.measures.read() for task in tasks if task.measures is not None)
        )

    def memory(self) -> MemoryReport | None:
        return self._memory.report()

    def on_memory_pressure(self, listener: Callable[[], None]) -> None:
        self._memory.relief.on_change = listener

    def read_functions(self, then: Callable[[], object]) -> None:
        asked = [
            (task, task.measures)
            for task in list(self._tasks.values())
            if task.measures is not None
        ]
        told = itertools.count(1)

        def read(measures: TaskMeasures) -> None:
            try:
                measures.read_in_task()
            finally:
                if next(told) == len(asked):
                    then()

        for task, measures in asked:
            measures.send_mail()
            task.home.run(partial(read, measures))
        if not asked:
            then()

    def statistics(self) -> RunnerStatistics:
        shuffle = self._shuffle.statistics()
        return RunnerStatistics(
            len(self._tasks), shuffle.partitions, shuffle.gates, shuffle.segments_in_use
        )

    def stop(self) -> None:
        if not self._running:
            return
        self._running = False
        self._memory.stop()
        self._files.stop(self._delete_files)
        self._end_tasks_with_threads()
        self._loop.call_soon_threadsafe(self._stop_all)
        if not self._loop.stop(STOP_TIMEOUT_S):
            LOG.error(
                "%r did not end within %s s: user code blocks it in %s",
                self,
                STOP_TIMEOUT_S,
                list(self._tasks.values()),
            )

    def _delete_files(self) -> None:
        self._backups.close()
        self._cached_files.close()

    def _end_tasks_with_threads(self) -> None:
        """While the loop still turns, as their steps may wait for it. Functions that do not return
        are interrupted. A task that its job has waited for too long already is not waited for."""
        tasks, deadline = self._tasks_with_threads(), self._clock.monotonic() + STOP_TIMEOUT_S
        for task in tasks:
            task.is_to_end = True
            task.home.run(partial(self._stop_task, task))
            self._interruptions.begin(
                task.home, INTERRUPTED_EACH_S, partial(self._is_to_stop, task)
            )
        for task in tasks:
            if self._waited_too_long_s(task) is not None:
                continue
            if not task.home.join(max(0.0, deadline - self._clock.monotonic())):
                LOG.error(
                    "%r did not end within %s s: user code blocks its thread", task, STOP_TIMEOUT_S
                )

    def _is_to_stop(self, task: Task) -> bool:
        return task.attempt_id in self._tasks

    def _stop_task(self, task: Task) -> None:
        task.fail(EngineError(f"the TaskExecutor of {task.descriptor.subtask_name} was stopped"))

    def _stop_all(self) -> None:
        for task in self._sharing():
            self._stop_task(task)
        for task in self._tasks_with_threads():  # they got theirs just now, or do not return
            task.home.run(partial(self._stop_task, task))
        self._shuffle.stop()
        self._acceptor.stop()  # behind what the shuffle environment asked of it

    def __repr__(self) -> str:
        return f"<SlotTaskRunner: {len(self._tasks)} tasks, {self._loop!r}>"


def _network_values(network: ShuffleStatistics, segment_size: int) -> dict[str, float]:
    segments = {
        "Total": network.segments_total,
        "Available": network.segments_total - network.segments_in_use,
        "Used": network.segments_in_use,
    }
    return {
        **{f"Status.Shuffle.Netty.{what}MemorySegments": count for what, count in segments.items()},
        **{
            f"Status.Shuffle.Netty.{what}Memory": count * segment_size
            for what, count in segments.items()
        },
        "Status.Network.bytesSent": network.bytes_sent,
        "Status.Network.bytesReceived": network.bytes_received,
    }


def _shuffle_service(
    config: NetworkConfig, secret: bytes, resource_id: ResourceId, transport: Transport
) -> ShuffleEnvironment:
    from flinkpy.network.shuffle import ShuffleService

    service: ShuffleEnvironment = ShuffleService(config, secret, resource_id, transport)
    return service
