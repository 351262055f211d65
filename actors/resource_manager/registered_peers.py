"""The TaskExecutors and the JobMasters that are registered at a ResourceManager, which watches each
and sends it heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flinkpy.actors.gateways import (
    JobMasterGateway,
    JobMasterHeartbeat,
    SlotReport,
    TaskExecutorGateway,
    TaskExecutorRegistration,
)
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.heartbeat import heartbeat_requester
from flinkpy.actors.rpc.service import Cancellable
from flinkpy.actors.task_executor_info import TaskExecutorInfo
from flinkpy.core.ids import InstanceId, JobId, ResourceId
from flinkpy.core.options.engine import RpcConfig
from flinkpy.graph.deployment import JobMasterRegistration, SlotStatus


@dataclass(frozen=True)
class RegisteredExecutor:
    instance_id: InstanceId
    gateway: TaskExecutorGateway
    watch: Cancellable
    registration: TaskExecutorRegistration
    registered_ms: int

    @property
    def sequence(self) -> int:
        """Its counter when it registered; older reports are ignored."""
        return self.registration.report.sequence


class RegisteredExecutors:
    """All calls come from the main thread of ``endpoint``. Calls ``on_lost(resource_id, reason)``
    when a TaskExecutor died or fell silent, and ``on_report`` with the payload of each
    heartbeat."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        own_id: ResourceId,
        config: RpcConfig,
        on_lost: Callable[[ResourceId, str], None],
        on_report: Callable[[ResourceId, SlotReport], None],
    ) -> None:
        self._endpoint = endpoint
        self._own_id = own_id
        self._on_lost = on_lost
        self._executors: dict[ResourceId, RegisteredExecutor] = {}
        self._heartbeats = heartbeat_requester(
            endpoint, config, lambda peer: on_lost(peer, "it sent no heartbeat in time"), on_report
        )

    def get_executor(self, resource_id: ResourceId) -> RegisteredExecutor | None:
        return self._executors.get(resource_id)

    def add_executor(
        self, registration: TaskExecutorRegistration, gateway: TaskExecutorGateway
    ) -> RegisteredExecutor:
        resource_id, service = registration.location.resource_id, self._endpoint.service
        watch = service.watch(
            self._endpoint,
            registration.location.address,
            lambda reason: self._on_lost(resource_id, reason),
        )
        executor = RegisteredExecutor(
            service.ids.instance_id(), gateway, watch, registration, service.clock.time_ms()
        )
        self._executors[resource_id] = executor
        self._heartbeats.monitor(
            resource_id, partial(gateway.heartbeat_from_resource_manager, self._own_id)
        )
        return executor

    def remove_executor(self, resource_id: ResourceId) -> RegisteredExecutor | None:
        executor = self._executors.pop(resource_id, None)
        if executor is not None:
            executor.watch.cancel()
            self._heartbeats.unmonitor(resource_id)
        return executor

    def heartbeat_received(self, resource_id: ResourceId, report: SlotReport) -> None:
        self._heartbeats.answer_received(resource_id, report)

    def described(
        self, slots_of: Callable[[ResourceId], tuple[SlotStatus, ...]]
    ) -> tuple[TaskExecutorInfo, ...]:
        """``slots_of`` tells the slots of one; of one that has not reported any, those that it
        registered with count."""
        clock = self._endpoint.service.clock
        now_ms, now = clock.time_ms(), clock.monotonic()
        found = []
        for resource_id, executor in self._executors.items():
            location = executor.registration.location
            heard = self._heartbeats.last_heard(resource_id)
            found.append(
                TaskExecutorInfo(
                    resource_id,
                    location.address,
                    location.host,
                    location.data_port,
                    executor.registration.process,
                    slots_of(resource_id) or executor.registration.report.slots,
                    executor.registered_ms,
                    now_ms - round((now - heard) * 1000),
                )
            )
        return tuple(found)

    def close(self, reason: str) -> list[ResourceId]:
        """Disconnects all of them and returns their ids."""
        self._heartbeats.stop()
        for executor in self._executors.values():
            executor.watch.cancel()
            executor.gateway.disconnect_resource_manager(reason)
        left = list(self._executors)
        self._executors.clear()
        return left


@dataclass(frozen=True)
class RegisteredJob:
    registration: JobMasterRegistration
    gateway: JobMasterGateway
    watch: Cancellable


class RegisteredJobs:
    """The JobMasters, like :class:`RegisteredExecutors`. Calls ``on_removed(job_id)`` for every job
    that is not registered any more, and ``on_heartbeat`` with the requests that a JobMaster waits
    for."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        own_id: ResourceId,
        config: RpcConfig,
        on_removed: Callable[[JobId], None],
        on_heartbeat: Callable[[JobId, JobMasterHeartbeat], None],
    ) -> None:
        self._endpoint = endpoint
        self._own_id = own_id
        self._on_removed = on_removed
        self._jobs: dict[JobId, RegisteredJob] = {}
        self._job_of: dict[ResourceId, JobId] = {}
        self._heartbeats = heartbeat_requester(
            endpoint,
            config,
            lambda peer: self.lose_job(self._job_of[peer], "it sent no heartbeat in time"),
            lambda peer, payload: on_heartbeat(self._job_of[peer], payload),
        )

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._jobs

    def is_registered(self, registration: JobMasterRegistration) -> bool:
        """Whether exactly this JobMaster is registered."""
        known = self._jobs.get(registration.job_id)
        return known is not None and known.registration == registration

    def get_job(self, job_id: JobId) -> RegisteredJob | None:
        return self._jobs.get(job_id)

    def add_job(self, registration: JobMasterRegistration, gateway: JobMasterGateway) -> None:
        """Registers the JobMaster. It replaces another JobMaster of the same job. Doing it twice
        does nothing."""
        if self.is_registered(registration):
            return
        job_id = registration.job_id
        self.remove_job(job_id)
        watch = self._endpoint.service.watch(
            self._endpoint, registration.address, lambda reason: self.lose_job(job_id, reason)
        )
        self._jobs[job_id] = RegisteredJob(registration, gateway, watch)
        self._job_of[registration.resource_id] = job_id
        self._heartbeats.monitor(
            registration.resource_id, partial(gateway.heartbeat_from_resource_manager, self._own_id)
        )

    def lose_job(self, job_id: JobId, reason: str) -> None:
        """Removes a JobMaster that died or fell silent, and disconnects it in case it lives."""
        job = self._jobs.get(job_id)
        if job is not None:
            self.remove_job(job_id)
            job.gateway.disconnect_resource_manager(reason)

    def remove_job(self, job_id: JobId) -> None:
        job = self._jobs.pop(job_id, None)
        if job is not None:
            job.watch.cancel()
            self._heartbeats.unmonitor(job.registration.resource_id)
            del self._job_of[job.registration.resource_id]
            self._on_removed(job_id)

    def heartbeat_received(self, resource_id: ResourceId, payload: JobMasterHeartbeat) -> None:
        self._heartbeats.answer_received(resource_id, payload)

    def close(self, reason: str) -> None:
        """Disconnects all of them."""
        self._heartbeats.stop()
        for job in self._jobs.values():
            job.watch.cancel()
            job.gateway.disconnect_resource_manager(reason)
        self._jobs.clear()
