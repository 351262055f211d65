"""SlotManager: which slot serves which request. It only decides; the ResourceManager acts.

Its view of a slot is what the TaskExecutor last reported, plus the allocations under way. Every
event costs O(1) whatever the number of slots: free slots and unmet requests are in ordered tables
by resource profile, and a cluster has few profiles.

A slot is *free*, *pending* (its TaskExecutor was asked to allocate it), *allocated*, or *doubted*:
that call was not answered, so what the slot holds is unknown until its TaskExecutor reports again.
A doubted slot serves no request.

The :class:`SlotInventory` keeps the tables of slots; the :class:`WorkerProvisioner` decides when
workers start and stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flinkpy.actors.gateways import SlotReport, SlotRequest
from flinkpy.actors.resource_manager.managed_slots import ManagedSlot, OpenRequests
from flinkpy.actors.resource_manager.slot_actions import (
    Action,
    AllocateSlot,
    FailRequest,
    StartWorker,
    StopWorker,
)
from flinkpy.actors.resource_manager.slot_inventory import SlotInventory
from flinkpy.actors.resource_manager.worker_provisioner import WorkerProvisioner
from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import AllocationId, IdFactory, JobId, ResourceId
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.deployment import SlotStatus
from flinkpy.graph.resources import ResourceProfile


@dataclass(frozen=True)
class SlotManagerStatistics:
    executors: int
    slots: int
    free: int
    pending: int
    doubted: int
    unmet_requests: int
    workers_starting: int


class SlotManager:
    """``limit(profile)``: how many slots the cluster can ever have (None: no limit);
    ``explain(profile, wanted)`` says why there are no more."""

    def __init__(
        self,
        config: SlotConfig,
        ids: IdFactory,
        limit: Callable[[ResourceProfile], int | None] = lambda profile: None,
        explain: Callable[[ResourceProfile, int], str] = lambda profile, wanted: (
            f"{wanted} slots are more than the cluster can have"
        ),
    ) -> None:
        self._idle_timeout_s = max(0.0, config.idle_timeout.total_seconds())
        self._inventory = SlotInventory()
        self._requests = OpenRequests()
        self.workers = WorkerProvisioner(config, ids, self._inventory, limit, explain)

    # -- TaskExecutors -----------------------------------------------------------------------------

    def knows(self, resource_id: ResourceId) -> bool:
        return resource_id in self._inventory.executors

    def register_executor(
        self, resource_id: ResourceId, report: SlotReport, now: float
    ) -> list[Action]:
        """A TaskExecutor has registered (perhaps again): its slots count from now on."""
        if self.knows(resource_id):
            return self.report_slots(resource_id, report, now)
        self.workers.worker_registered(resource_id, now)
        executor = self._inventory.add_executor(resource_id, report)
        actions: list[Action] = []
        for slot, status in zip(executor.slots.values(), report.slots):
            self._update_slot(slot, status.job_id, status.allocation_id, actions, now)
        self._inventory.update_idle(executor, now)
        return actions + self.workers.provision(self._requests, now)

    def report_slots(self, resource_id: ResourceId, report: SlotReport, now: float) -> list[Action]:
        """Takes a TaskExecutor's report about its slots; ignores late reports."""
        executor = self._inventory.executors.get(resource_id)
        if executor is None or not executor.is_news(report):
            return []
        executor.sequence, executor.keeps_results = report.sequence, report.keeps_results
        actions: list[Action] = []
        for status in report.slots:
            slot = executor.slots.get(status.slot_index)
            if slot is not None:
                self._compare_slot(slot, status.job_id, status.allocation_id, actions, now)
        self._inventory.update_idle(executor, now)
        return (
            actions + self.workers.provision(self._requests, now)
            if actions or self._requests.unmet
            else actions
        )

    def unregister_executor(self, resource_id: ResourceId, now: float) -> list[Action]:
        """Removes a lost TaskExecutor, and looks elsewhere for slots that it was asked to
        allocate."""
        self.workers.worker_gone(resource_id)
        self.workers.worker_lost(now)
        actions: list[Action] = []
        executor = self._inventory.remove_executor(resource_id)
        for slot in executor.slots.values() if executor is not None else ():
            orphan = slot.request
            self._inventory.clear_slot(slot)
            if orphan is not None:
                self._serve(orphan, actions)
        return actions + self.workers.provision(self._requests, now)

    # -- requests ----------------------------------------------------------------------------------

    def request_slots(self, requests: Iterable[SlotRequest], now: float) -> list[Action]:
        """Takes a JobMaster's requests for slots, except those that are open or served already.

        Requests that can never be served are refused at once, and all together: a part of them
        would be of no use. Only the requests made together count against the limits, since slots
        that the job holds or requested before may be on their way back. A JobMaster repeats all its
        open requests from time to time, so too large a demand is detected even if it came in parts.
        """
        actions: list[Action] = []
        requests = tuple(requests)
        of_profile = Counter((request.job_id, request.profile) for request in requests)
        of_job = Counter(request.job_id for request in requests)
        for request in requests:
            if request.allocation_id in self._requests or self._inventory.is_held(
                request.allocation_id
            ):
                continue
            wanted, total = (
                (1, 1)
                if request.may_wait
                else (of_profile[request.job_id, request.profile], of_job[request.job_id])
            )
            refusal = self.workers.refusal(request.profile, wanted, total)
            if refusal is not None:
                actions.append(FailRequest(request, refusal))
                continue
            self._requests.add_request(request, now)
            self._serve(request, actions)
        return actions + self.workers.provision(self._requests, now)

    def cancel_requests(self, allocation_ids: Iterable[AllocationId]) -> None:
        """Drops requests that are not needed any more. Slots already being allocated will be
        offered, rejected and freed."""
        for allocation_id in allocation_ids:
            self._requests.remove_request(allocation_id)

    def job_left(self, job_id: JobId) -> None:
        """Drops the job's requests. Its slots are about to be reported free, so no workers are
        started in their place."""
        self.cancel_requests(self._requests.of_job(job_id))
        self._inventory.taken.job_left(job_id)

    def stop_expecting(self, job_id: JobId, now: float) -> list[Action]:
        """Stops counting on the slots of a job that left; they may still come back."""
        self._inventory.taken.stop_expecting(job_id)
        return self.workers.provision(self._requests, now)

    def keep_only(self, job_id: JobId, wanted: Iterable[AllocationId], asked_before: float) -> None:
        """Drops the job's requests that are not among ``wanted`` and were made before
        ``asked_before`` (a cancellation was lost)."""
        held = self._requests.of_job(job_id)
        if held:
            self.cancel_requests(
                held.difference(wanted) & self._requests.made_before(held, asked_before)
            )

    def waiting_of(self, job_id: JobId) -> set[AllocationId]:
        """Returns the requests of the job that are not served yet."""
        return self._requests.of_job(job_id)

    # -- answers of TaskExecutors and of the driver ------------------------------------------------

    def allocation_answered(
        self,
        resource_id: ResourceId,
        allocations: Iterable[tuple[int, AllocationId]],
        report: SlotReport | None,
        now: float,
    ) -> list[Action]:
        """The TaskExecutor answered the request for these slots (or did not: ``report`` is None).
        Looks elsewhere for those it did not allocate."""
        actions = self.report_slots(resource_id, report, now) if report is not None else []
        executor = self._inventory.executors.get(resource_id)
        if executor is None:
            return actions
        for slot_index, allocation_id in allocations:
            slot = executor.slots.get(slot_index)
            if slot is None or slot.request is None or slot.request.allocation_id != allocation_id:
                continue
            request = slot.request
            self._inventory.doubt_slot(slot)
            self._serve(request, actions)
        return actions + self.workers.provision(self._requests, now)

    def start_worker(self, worker: StartWorker, now: float) -> StartWorker:
        """Counts on the worker before any request needs it."""
        return self.workers.add_worker(worker, now)

    def worker_failed(self, resource_id: ResourceId, reason: str, now: float) -> list[Action]:
        """A worker could not be started, or died. After some failed starts in a row the waiting
        requests fail."""
        if not self.workers.is_starting(resource_id):
            return self.unregister_executor(resource_id, now) if self.knows(resource_id) else []
        if not self.workers.start_failed(resource_id, now):
            return []
        failed = [
            self._requests.remove_request(allocation_id)
            for waiting in list(self._requests.unmet.values())
            for allocation_id in list(waiting)
        ]
        return [
            FailRequest(request, ResourceUnavailableError(f"no worker could be started: {reason}"))
            for request in failed
            if request is not None
        ]

    def tick(self, now: float) -> list[Action]:
        """Stops workers that have been idle for too long, gives up workers that never registered,
        and retries what was put off."""
        actions: list[Action] = []
        for resource_id, since in self._inventory.pop_idle_since(now - self._idle_timeout_s):
            if self.workers.is_spare(resource_id):
                # it is looked at again
                self._inventory.update_idle(self._inventory.executors[resource_id], now)
            elif self.workers.owns(resource_id):
                actions += [
                    StopWorker(resource_id, f"idle for {now - since:.0f} s"),
                    *self.unregister_executor(resource_id, now),
                ]
        for resource_id in self.workers.overdue_workers(now):
            actions += [
                StopWorker(resource_id, "did not register in time"),
                *self.worker_failed(resource_id, "it did not register in time", now),
            ]
        actions += self.workers.provision(self._requests, now)
        return actions + self.workers.provide_spares(self._requests, now)

    # -- matching ----------------------------------------------------------------------------------

    def _serve(self, request: SlotRequest, actions: list[Action]) -> None:
        """Allocates a free slot to the request, or lets the request wait."""
        if request.allocation_id not in self._requests:
            return  # cancelled meanwhile
        slot = self._inventory.find_free(request)
        if slot is None:
            self._requests.wait_for_slot(request)
        else:
            self._allocate(slot, request, actions)

    def _allocate(self, slot: ManagedSlot, request: SlotRequest, actions: list[Action]) -> None:
        self._requests.stop_waiting(request)
        self._inventory.reserve_slot(slot, request)
        actions.append(AllocateSlot(slot.slot_id, request))

    def _compare_slot(
        self,
        slot: ManagedSlot,
        job_id: JobId | None,
        allocation_id: AllocationId | None,
        actions: list[Action],
        now: float,
    ) -> None:
        """Compares the slot with what a report says that it holds, and updates it."""
        request = slot.request
        if request is not None and allocation_id is None:
            return  # the report may be older than the call under way; wait for the call's answer
        if request is None and not slot.doubted and allocation_id == slot.allocation_id:
            return
        self._inventory.clear_slot(slot)
        self._update_slot(slot, job_id, allocation_id, actions, now)
        if request is not None and request.allocation_id != allocation_id:
            self._serve(request, actions)

    def _update_slot(
        self,
        slot: ManagedSlot,
        job_id: JobId | None,
        allocation_id: AllocationId | None,
        actions: list[Action],
        now: float,
    ) -> None:
        """Records what a cleared slot holds; a free one serves the request that has waited
        longest."""
        if allocation_id is not None:
            self._inventory.occupy_slot(slot, job_id, allocation_id)
            self._requests.remove_request(allocation_id)
            return
        self._inventory.free_slot(slot)
        waiting = self._requests.next_for(slot.profile)
        if waiting is not None:
            self._allocate(slot, waiting, actions)
        else:
            self._inventory.update_idle(slot.executor, now)

    # -- inspection --------------------------------------------------------------------------------

    def executors(self) -> list[ResourceId]:
        return list(self._inventory.executors)

    def view(self, resource_id: ResourceId) -> dict[int, AllocationId | None]:
        """Returns what each slot of the TaskExecutor is believed to hold."""
        return {
            index: slot.allocation_id
            for index, slot in self._inventory.executors[resource_id].slots.items()
        }

    def slots_of(self, resource_id: ResourceId) -> tuple[SlotStatus, ...]:
        """The slots of a TaskExecutor, with the jobs that hold them or are to have them."""
        executor = self._inventory.executors.get(resource_id)
        return () if executor is None else executor.statuses()

    def statistics(self) -> SlotManagerStatistics:
        executors = self._inventory.executors.values()
        return SlotManagerStatistics(
            len(executors),
            self._inventory.size,
            sum(map(len, self._inventory.free.values())),
            sum(executor.pending for executor in executors),
            sum(executor.doubted for executor in executors),
            sum(map(len, self._requests.unmet.values())),
            self.workers.workers_starting,
        )

    def check_invariants(self) -> None:
        """Raises EngineError when the tables contradict each other. Looks at every slot: for
        tests."""
        self._inventory.check_invariants(self.workers.owns)
        self._requests.check_invariants(
            [slot.request.allocation_id for slot in self._inventory.slots() if slot.request]
        )
        if self._requests.unmet and any(
            profile.fits_in(free)
            for profile in self._requests.unmet
            for free in self._inventory.free
        ):
            raise EngineError(f"{self!r}: a request waits while a fitting slot is free")
        self.workers.check_invariants()

    def __repr__(self) -> str:
        return f"<SlotManager {self.statistics()}>"
