"""The jobs that a TaskExecutor works for: a connection to each JobMaster, and what happens to
slots, tasks and results when one is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from flinkpy.actors.gateways import JobHeartbeat
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.heartbeat import heartbeat_responder
from flinkpy.actors.task_executor.cancellations import Cancellations
from flinkpy.actors.task_executor.holdings import Holdings
from flinkpy.actors.task_executor.job_connection import JobConnection, JobLeader
from flinkpy.actors.task_executor.worker_process import WorkerProcess
from flinkpy.core.errors import TaskExecutorLostError
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, FencingToken, JobId, ResourceId
from flinkpy.core.options.engine import RpcConfig
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.runtime.runner_port import TaskRunner


class ConnectedJobs:
    """All calls come from the TaskExecutor's main thread. It is the listener of its connections.

    It calls ``on_slots_freed()`` when slots or the last results became free, and tells its process
    when the last connection is closed."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        config: RpcConfig,
        holdings: Holdings,
        runner: TaskRunner,
        cancellations: Cancellations,
        on_slots_freed: Callable[[], None],
        process: WorkerProcess,
    ) -> None:
        self._endpoint = endpoint
        self._config = config
        self._holdings = holdings
        self._runner = runner
        self._cancellations = cancellations
        self._on_slots_freed = on_slots_freed
        self._process = process
        self._jobs: dict[JobId, JobConnection] = {}
        self._job_of: dict[ResourceId, JobId] = {}
        self._heartbeats = heartbeat_responder(endpoint, config, self._on_silence)

    def __len__(self) -> int:
        return len(self._jobs)

    def get_job(self, job_id: JobId) -> JobConnection | None:
        return self._jobs.get(job_id)

    # -- connections -------------------------------------------------------------------------------

    def connect_job(
        self, location: TaskManagerLocation, job_id: JobId, address: str, token: FencingToken
    ) -> None:
        """Connects to the JobMaster, unless that is done already. Another JobMaster of the same
        job, with another token, is lost thereby."""
        known = self._jobs.get(job_id)
        if known is not None and known.token != token:
            self.lose_job(job_id, known.token, f"job {job_id} has a new JobMaster")
            known = None
        if known is None:
            self._jobs[job_id] = JobConnection(
                self._endpoint,
                location,
                self._config,
                self._holdings,
                self,
                JobLeader(job_id, address, token),
            )

    def job_registered(self, job: JobConnection) -> None:
        assert job.resource_id is not None
        self._job_of[job.resource_id] = job.job_id
        self._heartbeats.monitor(
            job.resource_id,
            lambda: job.send_heartbeat(self._runner.metrics(), self._runner.memory()),
        )

    def heartbeat_received(self, resource_id: ResourceId) -> None:
        """Answers at once, whatever the tasks are doing, and once more when they have reported
        their accumulators."""
        self._heartbeats.request_received(resource_id)
        job_id = self._job_of.get(resource_id)
        if job_id is not None:
            self._read_accumulators(job_id)

    def _send_heartbeat(self, job_id: JobId) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            job.send_heartbeat(self._runner.metrics(), self._runner.memory())

    def job_answered(self, job: JobConnection) -> None:
        if job.resource_id is not None:
            self._heartbeats.answer_received(job.resource_id)

    def heartbeat_of(self, job: JobConnection) -> JobHeartbeat:
        self._read_accumulators(job.job_id)
        return job.heartbeat(self._runner.metrics(), self._runner.memory())

    def _read_accumulators(self, job_id: JobId) -> None:
        """Sends one more heartbeat when the tasks have reported them."""
        self._runner.read_accumulators(
            lambda: self._endpoint.run_async(partial(self._send_heartbeat, job_id))
        )

    def tell_memory(self) -> None:
        """The process is short of memory, or no longer: all JobMasters get to know at once, since
        it may be killed before the next heartbeat."""
        for job_id in list(self._jobs):
            self._send_heartbeat(job_id)

    def disconnect_job(self, job_id: JobId, reason: str) -> None:
        """The JobMaster has disconnected."""
        job = self._jobs.get(job_id)
        if job is not None:
            self.lose_job(job_id, job.token, reason)

    def _on_silence(self, resource_id: ResourceId) -> None:
        job = self._jobs[self._job_of[resource_id]]
        job.send_disconnect("no heartbeat came in time")
        self.lose_job(
            job.job_id,
            job.token,
            f"the JobMaster of job {job.job_id} is lost: it sent no heartbeat in time",
        )

    def lose_job(self, job_id: JobId, token: FencingToken, reason: str) -> None:
        """The JobMaster is lost: fails its tasks, frees its slots and results, and reports nothing
        more to it."""
        job = self._jobs.get(job_id)
        if job is None or job.token != token:
            return
        self._close_job(job)
        self._remove_results(self._holdings.results_of(job_id))
        error = TaskExecutorLostError(reason)
        for slot in self._holdings.slots.of_job(job_id):
            for attempt_id in self._holdings.slots.free_slot(slot.allocation_id, reason):
                self._runner.fail(attempt_id, error)
        self._on_slots_freed()

    def close_if_done(self, job_id: JobId) -> None:
        """Closes the connection if nothing of the job is left here and its JobMaster knows the end
        of every task."""
        job = self._jobs.get(job_id)
        if job is not None and not job.is_needed:
            self._close_job(job)

    def _close_job(self, job: JobConnection) -> None:
        del self._jobs[job.job_id]
        job.close_connection()
        self._runner.leave_job(job.job_id)
        if job.resource_id is not None:
            self._job_of.pop(job.resource_id, None)
            self._heartbeats.unmonitor(job.resource_id)
        if not self._jobs:
            self._process.idle()

    def close(self, reason: str) -> None:
        """The TaskExecutor stops: disconnects every JobMaster."""
        for job in self._jobs.values():
            job.send_disconnect(reason)
            job.close_connection()
        self._heartbeats.stop()

    # -- slots, tasks and results ------------------------------------------------------------------

    def free_slots(self, allocation_ids: Iterable[AllocationId], reason: str) -> None:
        """Cancels the tasks in these slots and frees each slot, now or when its last task has
        ended."""
        slots = self._holdings.slots
        allocation_ids = tuple(allocation_ids)
        jobs = {
            slot.job_id
            for allocation_id in allocation_ids
            if (slot := slots.get_slot(allocation_id)) is not None
        }
        for allocation_id in allocation_ids:
            self._cancellations.cancel(slots.free_slot(allocation_id, reason))
        if jobs:
            self._on_slots_freed()
        for job_id in jobs:
            self.close_if_done(job_id)

    def cancel_unknown_tasks(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        self._cancellations.cancel(attempt_ids)

    def release_results(self, attempt_ids: Collection[ExecutionAttemptId]) -> None:
        """Releases blocking results that nobody will read any more."""
        self._remove_results(attempt_ids)
        for job_id in {attempt_id.job_id for attempt_id in attempt_ids}:
            self.close_if_done(job_id)

    def _remove_results(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        removed = self._holdings.remove_results(attempt_ids)
        if removed:
            self._runner.release_partitions(removed)
            if not self._holdings.keeps_results:
                self._on_slots_freed()  # the ResourceManager may stop this worker when it is idle

    def __repr__(self) -> str:
        return f"<ConnectedJobs {list(self._jobs.values())}>"
