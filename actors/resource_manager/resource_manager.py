"""ResourceManager: knows the TaskExecutors and their slots, finds slots for JobMasters, and has
workers started and stopped.

The :class:`SlotManager` decides what to do; this endpoint talks to TaskExecutors, JobMasters and
the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.gateways import (
    ClusterOverview,
    JobMasterGateway,
    JobMasterHeartbeat,
    ResourceManagerGateway,
    SlotAllocation,
    SlotReport,
    SlotRequest,
    TaskExecutorGateway,
    TaskExecutorRegistration,
    WorkerDriver,
)
from flinkpy.actors.resource_manager.known_limits import KnownLimits
from flinkpy.actors.resource_manager.registered_peers import RegisteredExecutors, RegisteredJobs
from flinkpy.actors.resource_manager.slot_actions import (
    Action,
    AllocateSlot,
    FailRequest,
    StartWorker,
    StopWorker,
)
from flinkpy.actors.resource_manager.slot_manager import SlotManager
from flinkpy.actors.rpc.leadership import LeaderElectionService, LeadingEndpoint
from flinkpy.actors.rpc.registration import RegistrationResponse
from flinkpy.actors.task_executor_info import TaskExecutorInfo
from flinkpy.core.errors import NotRegisteredError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, JobId, ResourceId
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.deployment import JobMasterRegistration

log = engine_logger("flinkpy.resourcemanager")


class ResourceManager(LeadingEndpoint):
    """Manages the slots of a cluster while it leads."""

    gateway = ResourceManagerGateway

    TICK, SHORTEST_TICK = timedelta(seconds=1), timedelta(milliseconds=250)
    LAST_WORK = timedelta(seconds=10)  # for a worker that ends by itself: its tasks, its files

    def __init__(
        self,
        services: EndpointServices,
        driver: WorkerDriver,
        *,
        first_worker: StartWorker | None = None,
        election: LeaderElectionService | None = None,
        previous_workers: Sequence[ResourceId] = (),
    ) -> None:
        super().__init__(services.rpc, "resourcemanager", election)
        # of a ResourceManager that has died: they will register here
        self._previous_workers = previous_workers
        self._first_worker = first_worker  # for the job that the session is started for
        self.resource_id = ResourceId(self.name)
        self._driver = driver
        self._slot_config = services.slot_config
        self._rpc_config = services.rpc_config
        self._limits = KnownLimits(driver)
        self.slots = SlotManager(
            self._slot_config, self.service.ids, self._limits.of, driver.explain_limit
        )
        self._executors = RegisteredExecutors(
            self, self.resource_id, self._rpc_config, self._lose_executor, self.report_slots
        )
        self._jobs = RegisteredJobs(
            self, self.resource_id, self._rpc_config, self._on_job_left, self._on_job_heartbeat
        )
        # workers it has stopped: it refuses their late registrations
        self._stopped: set[ResourceId] = set()
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            StartWorker: self._start_worker,
            StopWorker: self._remove_worker,
            FailRequest: self._refuse_request,
        }

    def on_leadership(self) -> None:
        self.slots.workers.expect_workers(self._previous_workers, self._now())
        if self._first_worker is not None:
            self._carry_out([self.slots.start_worker(self._first_worker, self._now())])
        self._tick()

    def on_stop(self) -> Future[None] | None:
        super().on_stop()
        for resource_id in self._executors.close("the ResourceManager stops"):
            self._driver.stop_worker(resource_id)
        self._jobs.close("the ResourceManager stops")
        return None

    def _tick(self) -> None:
        pause = max(self.SHORTEST_TICK, min(self.TICK, self._slot_config.idle_timeout / 2))
        # first: an error in one tick must not end all of them
        self.schedule_run_async(pause.total_seconds(), self._tick)
        self._limits.forget()
        self._carry_out(self.slots.tick(self._now()))

    def _now(self) -> float:
        return self.service.clock.monotonic()

    # -- TaskExecutors -----------------------------------------------------------------------------

    async def register_task_executor(
        self, registration: TaskExecutorRegistration
    ) -> RegistrationResponse:
        resource_id, address = registration.location.resource_id, registration.location.address
        known = self._executors.get_executor(resource_id)
        if known is None:
            gateway = await self.connect(address, TaskExecutorGateway)
            known = self._executors.get_executor(resource_id)  # the message may have come twice
        if resource_id in self._stopped:
            return RegistrationResponse(
                False, self.resource_id, reason=f"{resource_id} was told to stop"
            )
        if known is None:
            known = self._executors.add_executor(registration, gateway)
            log.info(
                "%s is here: process %d on %s",
                resource_id,
                registration.process.pid,
                registration.location.host,
            )
        return RegistrationResponse(True, self.resource_id, known.instance_id)

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        """The TaskExecutor stops, and ends its process itself."""
        self._lose_executor(resource_id, reason, self.LAST_WORK.total_seconds())

    def _lose_executor(
        self, resource_id: ResourceId, reason: str, last_work_s: float = 0.0
    ) -> None:
        executor = self._executors.remove_executor(resource_id)
        if executor is not None:
            log.info("%s is lost: %s", resource_id, reason)
            executor.gateway.disconnect_resource_manager(reason)
            if self.slots.workers.owns(resource_id):
                self._stop_worker(resource_id, last_work_s)
        self._carry_out(self.slots.unregister_executor(resource_id, self._now()))

    def report_slots(self, resource_id: ResourceId, report: SlotReport) -> None:
        """Registers the slots of a TaskExecutor with its first report. The TaskExecutor sends that
        once it has the answer to its registration, and so knows whose requests to accept; a request
        for slots sent earlier might overtake the answer."""
        executor = self._executors.get_executor(resource_id)
        if executor is not None and (
            self.slots.knows(resource_id) or report.sequence >= executor.sequence
        ):
            self._carry_out(self.slots.register_executor(resource_id, report, self._now()))

    def heartbeat_from_task_executor(self, resource_id: ResourceId, payload: SlotReport) -> None:
        self._executors.heartbeat_received(resource_id, payload)

    # -- JobMasters --------------------------------------------------------------------------------

    async def register_job_master(
        self, registration: JobMasterRegistration
    ) -> RegistrationResponse:
        if not self._jobs.is_registered(registration):
            self._jobs.add_job(
                registration,
                await self.connect(registration.address, JobMasterGateway, registration.token),
            )
        return RegistrationResponse(True, self.resource_id)

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None:
        self._jobs.remove_job(job_id)

    def _on_job_left(self, job_id: JobId) -> None:
        """Expects the job's slots back once their TaskExecutors lose it too. Waiting requests get
        those slots; workers are started only if the slots do not come back soon."""
        self.slots.job_left(job_id)
        self.schedule_run_async(
            self._slot_config.requirement_check_delay.total_seconds(),
            lambda: self._carry_out(self.slots.stop_expecting(job_id, self._now())),
        )

    def heartbeat_from_job_master(
        self, resource_id: ResourceId, payload: JobMasterHeartbeat
    ) -> None:
        self._jobs.heartbeat_received(resource_id, payload)

    def _on_job_heartbeat(self, job_id: JobId, payload: JobMasterHeartbeat) -> None:
        patience = 2 * self._rpc_config.ask_timeout.total_seconds()
        self.slots.keep_only(job_id, payload.requested, self._now() - patience)

    # -- slots -------------------------------------------------------------------------------------

    def request_slots(self, requests: tuple[SlotRequest, ...]) -> dict[AllocationId, BaseException]:
        strangers = {request.job_id for request in requests if request.job_id not in self._jobs}
        if strangers:
            raise NotRegisteredError(
                f"the JobMaster of job {min(strangers)} is not registered at {self.address}"
            )
        actions = self.slots.request_slots(requests, self._now())
        refused = [action for action in actions if isinstance(action, FailRequest)]
        self._carry_out(action for action in actions if not isinstance(action, FailRequest))
        return {action.request.allocation_id: action.error for action in refused}

    def cancel_slot_requests(self, allocation_ids: tuple[AllocationId, ...]) -> None:
        self.slots.cancel_requests(allocation_ids)

    def _carry_out(self, actions: Iterable[Action]) -> None:
        allocations: dict[ResourceId, list[SlotAllocation]] = {}  # one message to each TaskExecutor
        for action in actions:
            if isinstance(action, AllocateSlot):
                allocations.setdefault(action.slot_id.resource_id, []).append(
                    SlotAllocation(action.slot_id.slot_index, action.request)
                )
            else:
                self._handlers[type(action)](action)
        for resource_id, wanted in allocations.items():
            self._allocate_slots(resource_id, tuple(wanted))

    def _allocate_slots(self, resource_id: ResourceId, wanted: tuple[SlotAllocation, ...]) -> None:
        asked = [(allocation.slot_index, allocation.request.allocation_id) for allocation in wanted]
        executor = self._executors.get_executor(resource_id)
        if executor is None or self.token is None:
            return  # lost while the actions were carried out; its requests were served elsewhere

        def answered(done: Future[SlotReport]) -> None:
            report = done.result(timeout=0) if done.error is None else None
            if report is None and self._executors.get_executor(resource_id) is not None:
                # So that it soon reports what these slots hold
                executor.gateway.heartbeat_from_resource_manager(self.resource_id)
            self._carry_out(self.slots.allocation_answered(resource_id, asked, report, self._now()))

        executor.gateway.request_slots(self.token, wanted).add_done_callback(answered)

    def _refuse_request(self, action: FailRequest) -> None:
        job = self._jobs.get_job(action.request.job_id)
        if job is not None:
            job.gateway.notify_allocation_failed(action.request.allocation_id, action.error)

    # -- workers -----------------------------------------------------------------------------------

    def _start_worker(self, action: StartWorker) -> None:
        resource_id = action.resource_id
        log.info("%s is started, with %d slots of %s", resource_id, action.slots, action.profile)

        def worker_failed(reason: str) -> None:
            log.info("%s has ended, or could not start: %s", resource_id, reason)
            if self._executors.get_executor(resource_id) is not None:
                self._lose_executor(resource_id, reason)
            else:
                self._carry_out(self.slots.worker_failed(resource_id, reason, self._now()))

        self._driver.start_worker(
            resource_id,
            action.slots,
            action.profile,
            lambda reason: self.run_async(partial(worker_failed, reason)),
        )

    def _remove_worker(self, action: StopWorker) -> None:
        log.info("%s is stopped: %s", action.resource_id, action.reason)
        self._executors.remove_executor(action.resource_id)
        self._stop_worker(action.resource_id)

    def _stop_worker(self, resource_id: ResourceId, last_work_s: float = 0.0) -> None:
        self._stopped.add(resource_id)
        if last_work_s:
            self.schedule_run_async(last_work_s, partial(self._driver.stop_worker, resource_id))
        else:
            self._driver.stop_worker(resource_id)

    # -- inspection --------------------------------------------------------------------------------

    def request_overview(self) -> ClusterOverview:
        numbers = self.slots.statistics()
        return ClusterOverview(numbers.executors, numbers.slots, numbers.free, len(self._jobs))

    def request_task_executors(self) -> tuple[TaskExecutorInfo, ...]:
        return self._executors.described(self.slots.slots_of)
