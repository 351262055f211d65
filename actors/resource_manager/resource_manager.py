"""ResourceManager: knows the TaskExecutors and their slots, gets slots for JobMasters, and has workers started and stopped.

What to do is decided by the :class:`SlotManager`; this endpoint talks to TaskExecutors, JobMasters and the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from flinkpy.actors.gateways import (
    ClusterOverview,
    JobMasterGateway,
    JobMasterHeartbeat,
    RegistrationResponse,
    ResourceManagerGateway,
    SlotAllocation,
    SlotReport,
    SlotRequest,
    TaskExecutorGateway,
    TaskExecutorRegistration,
    WorkerDriver,
)
from flinkpy.actors.resource_manager.slot_actions import Action, AllocateSlot, FailRequest, StartWorker, StopWorker
from flinkpy.actors.resource_manager.slot_manager import SlotManager
from flinkpy.actors.rpc.heartbeat import heartbeat_requester
from flinkpy.actors.rpc.leadership import LeaderElectionService, LeadingEndpoint
from flinkpy.actors.rpc.service import Cancellable, RpcService
from flinkpy.core.errors import NotRegisteredError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, InstanceId, JobId, ResourceId
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.graph.deployment import JobMasterRegistration
from flinkpy.graph.resources import ResourceProfile


@dataclass(frozen=True)
class RegisteredExecutor:
    instance_id: InstanceId
    address: str
    gateway: TaskExecutorGateway
    watch: Cancellable
    sequence: int  # of its reports when it registered; what it said before is of no interest


@dataclass(frozen=True)
class RegisteredJob:
    registration: JobMasterRegistration
    gateway: JobMasterGateway
    watch: Cancellable


class ResourceManager(LeadingEndpoint):
    """One leads a cluster."""

    gateway = ResourceManagerGateway

    TICK, SHORTEST_TICK = timedelta(seconds=1), timedelta(milliseconds=250)

    def __init__(
        self, service: RpcService, driver: WorkerDriver, *, slot_config: SlotConfig | None = None, rpc_config: RpcConfig | None = None,
        name: str = "resourcemanager", first_worker: StartWorker | None = None, election: LeaderElectionService | None = None,
    ) -> None:
        super().__init__(service, name, election)
        self._first_worker = first_worker  # of the job the session is started for
        self.resource_id = ResourceId(name)
        self._driver = driver
        self._slot_config, self._rpc_config = slot_config or SlotConfig(), rpc_config or RpcConfig()
        self._limits: dict[ResourceProfile, int | None] = {}
        self.slots = SlotManager(self._slot_config, service.ids, self._limit, driver.explain_limit)
        self._executors: dict[ResourceId, RegisteredExecutor] = {}
        self._jobs: dict[JobId, RegisteredJob] = {}
        self._job_of: dict[ResourceId, JobId] = {}
        self._stopped: set[ResourceId] = set()  # workers told to stop: a late registration of theirs is refused
        config = self._rpc_config
        self._executor_heartbeats = heartbeat_requester(
            self, config, lambda peer: self._lose_executor(peer, "it sent no heartbeat in time"), self.report_slots)
        self._job_heartbeats = heartbeat_requester(
            self, config, lambda peer: self._lose_job(self._job_of[peer], "it sent no heartbeat in time"), self._job_beat)

    def on_leadership(self) -> None:
        if self._first_worker is not None:
            self._carry_out([self.slots.start_worker(self._first_worker, self._now())])
        self._tick()

    def on_stop(self) -> Future[None] | None:
        super().on_stop()
        self._executor_heartbeats.stop()
        self._job_heartbeats.stop()
        for resource_id, executor in list(self._executors.items()):
            executor.watch.cancel()
            executor.gateway.disconnect_resource_manager("the ResourceManager stops")
            self._driver.stop_worker(resource_id)
        for job in self._jobs.values():
            job.watch.cancel()
            job.gateway.disconnect_resource_manager("the ResourceManager stops")
        self._executors.clear()
        self._jobs.clear()
        return None

    def _limit(self, profile: ResourceProfile) -> int | None:
        """What the driver says, asked once between two ticks: it may have to ask around."""
        if profile not in self._limits:
            self._limits[profile] = self._driver.max_slots(profile)
        return self._limits[profile]

    def _tick(self) -> None:
        self._limits.clear()
        self._carry_out(self.slots.tick(self._now()))
        pause = max(self.SHORTEST_TICK, min(self.TICK, self._slot_config.idle_timeout / 2))
        self.schedule_run_async(pause.total_seconds(), self._tick)

    def _now(self) -> float:
        return self.service.clock.monotonic()

    # -- TaskExecutors -----------------------------------------------------------------------------------------------------

    async def register_task_executor(self, registration: TaskExecutorRegistration) -> RegistrationResponse:
        resource_id, address = registration.location.resource_id, registration.location.address
        known = self._executors.get(resource_id)
        if known is None:
            gateway = await self.connect(address, TaskExecutorGateway)
            known = self._executors.get(resource_id)  # the message may have come twice
        if resource_id in self._stopped:
            return RegistrationResponse(False, self.resource_id, reason=f"{resource_id} was told to stop")
        if known is None:
            known = RegisteredExecutor(
                self.service.ids.instance_id(), address, gateway, self._watch(address, resource_id), registration.report.sequence)
            self._executors[resource_id] = known
            self._executor_heartbeats.monitor(resource_id, partial(gateway.heartbeat_from_resource_manager, self.resource_id))
        return RegistrationResponse(True, self.resource_id, known.instance_id)

    def _watch(self, address: str, resource_id: ResourceId) -> Cancellable:
        return self.service.watch(self, address, lambda reason: self._lose_executor(resource_id, reason))

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        self._lose_executor(resource_id, reason)

    def _lose_executor(self, resource_id: ResourceId, reason: str) -> None:
        executor = self._executors.get(resource_id)
        if executor is not None:
            self._forget_executor(resource_id)
            executor.gateway.disconnect_resource_manager(reason)
            if self.slots.owns(resource_id):
                self._stop_worker(resource_id)
        self._carry_out(self.slots.unregister_executor(resource_id, self._now()))

    def _forget_executor(self, resource_id: ResourceId) -> None:
        executor = self._executors.pop(resource_id, None)
        if executor is not None:
            executor.watch.cancel()
            self._executor_heartbeats.unmonitor(resource_id)

    def report_slots(self, resource_id: ResourceId, report: SlotReport) -> None:
        """With the first report its slots count. It comes when the TaskExecutor has the answer to its registration, and so knows who asks for them:
        that answer and the first ask might overtake each other."""
        executor = self._executors.get(resource_id)
        if executor is not None and (self.slots.knows(resource_id) or report.sequence >= executor.sequence):
            self._carry_out(self.slots.register_executor(resource_id, report, self._now()))

    def heartbeat_from_task_executor(self, resource_id: ResourceId, payload: SlotReport) -> None:
        self._executor_heartbeats.answer_received(resource_id, payload)

    # -- JobMasters --------------------------------------------------------------------------------------------------------

    async def register_job_master(self, registration: JobMasterRegistration) -> RegistrationResponse:
        job_id = registration.job_id
        known = self._jobs.get(job_id)
        if known is None or known.registration != registration:
            gateway = await self.connect(registration.address, JobMasterGateway, registration.token)
            known = self._jobs.get(job_id)
            if known is not None and known.registration != registration:
                self._forget_job(job_id)
                known = None
            if known is None:
                self._add_job(registration, gateway)
        return RegistrationResponse(True, self.resource_id)

    def _add_job(self, registration: JobMasterRegistration, gateway: JobMasterGateway) -> None:
        job_id = registration.job_id
        watch = self.service.watch(self, registration.address, lambda reason: self._lose_job(job_id, reason))
        self._jobs[job_id] = RegisteredJob(registration, gateway, watch)
        self._job_of[registration.resource_id] = job_id
        self._job_heartbeats.monitor(registration.resource_id, partial(gateway.heartbeat_from_resource_manager, self.resource_id))

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None:
        if job_id in self._jobs:
            self._forget_job(job_id)

    def _lose_job(self, job_id: JobId, reason: str) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            self._forget_job(job_id)
            job.gateway.disconnect_resource_manager(reason)

    def _forget_job(self, job_id: JobId) -> None:
        """Its slots come back when their TaskExecutors lose it too. Who waits for slots gets those; if they do not come in a moment, workers are
        started."""
        job = self._jobs.pop(job_id)
        job.watch.cancel()
        self._job_heartbeats.unmonitor(job.registration.resource_id)
        del self._job_of[job.registration.resource_id]
        self.slots.job_left(job_id)
        self.schedule_run_async(self._slot_config.requirement_check_delay.total_seconds(), partial(self._stop_expecting, job_id))

    def _stop_expecting(self, job_id: JobId) -> None:
        self._carry_out(self.slots.stop_expecting(job_id, self._now()))

    def heartbeat_from_job_master(self, resource_id: ResourceId, payload: JobMasterHeartbeat) -> None:
        self._job_heartbeats.answer_received(resource_id, payload)

    def _job_beat(self, resource_id: ResourceId, payload: JobMasterHeartbeat) -> None:
        patience = 2 * self._rpc_config.ask_timeout.total_seconds()
        self.slots.keep_only(self._job_of[resource_id], payload.requested, self._now() - patience)

    # -- slots -------------------------------------------------------------------------------------------------------------

    def request_slots(self, requests: tuple[SlotRequest, ...]) -> dict[AllocationId, BaseException]:
        strangers = {request.job_id for request in requests} - self._jobs.keys()
        if strangers:
            raise NotRegisteredError(f"the JobMaster of job {min(strangers)} is not registered at {self.address}")
        actions = self.slots.request_slots(requests, self._now())
        refused = [action for action in actions if isinstance(action, FailRequest)]
        self._carry_out(action for action in actions if not isinstance(action, FailRequest))
        return {action.request.allocation_id: action.error for action in refused}

    def cancel_slot_requests(self, allocation_ids: tuple[AllocationId, ...]) -> None:
        self.slots.cancel_requests(allocation_ids)

    def _carry_out(self, actions: Iterable[Action]) -> None:
        allocations: dict[ResourceId, list[SlotAllocation]] = {}
        for action in actions:
            if isinstance(action, AllocateSlot):
                allocations.setdefault(action.slot_id.resource_id, []).append(SlotAllocation(action.slot_id.slot_index, action.request))
            elif isinstance(action, StartWorker):
                self._start_worker(action.resource_id, action.slots, action.profile)
            elif isinstance(action, StopWorker):
                self._forget_executor(action.resource_id)
                self._stop_worker(action.resource_id)
            else:
                self._refuse(action)
        for resource_id, wanted in allocations.items():
            self._allocate(resource_id, tuple(wanted))

    def _allocate(self, resource_id: ResourceId, wanted: tuple[SlotAllocation, ...]) -> None:
        asked = [(allocation.slot_index, allocation.request.allocation_id) for allocation in wanted]
        executor = self._executors.get(resource_id)
        if executor is None or self.token is None:
            return  # lost while the actions were carried out, and its requests with it

        def answered(done: Future[SlotReport]) -> None:
            report = done.result(timeout=0) if done.error is None else None
            if report is None and resource_id in self._executors:
                executor.gateway.heartbeat_from_resource_manager(self.resource_id)  # so that it tells soon what these slots hold
            self._carry_out(self.slots.allocation_answered(resource_id, asked, report, self._now()))

        executor.gateway.request_slots(self.token, wanted).add_done_callback(answered)

    def _start_worker(self, resource_id: ResourceId, slots: int, profile: ResourceProfile) -> None:
        on_failure: Callable[[str], None] = lambda reason: self.run_async(partial(self._worker_failed, resource_id, reason))  # noqa: E731
        self._driver.start_worker(resource_id, slots, profile, on_failure)

    def _worker_failed(self, resource_id: ResourceId, reason: str) -> None:
        if resource_id in self._executors:
            self._lose_executor(resource_id, reason)
        else:
            self._carry_out(self.slots.worker_failed(resource_id, reason, self._now()))

    def _stop_worker(self, resource_id: ResourceId) -> None:
        self._stopped.add(resource_id)
        self._driver.stop_worker(resource_id)

    def _refuse(self, action: FailRequest) -> None:
        job = self._jobs.get(action.request.job_id)
        if job is not None:
            job.gateway.notify_allocation_failed(action.request.allocation_id, action.error)

    # -- looking in --------------------------------------------------------------------------------------------------------

    def request_overview(self) -> ClusterOverview:
        numbers = self.slots.statistics()
        return ClusterOverview(numbers.executors, numbers.slots, numbers.free, len(self._jobs))
