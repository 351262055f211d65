"""SlotManager: which slot serves which request, and when a worker is started or stopped. Decides purely; the ResourceManager acts.

Its view of a slot is what the TaskExecutor last said, plus the allocations under way. Every event costs O(1) whatever the number of slots:
free slots and unmet requests lie in ordered tables by resource profile, of which a cluster has a handful.

A slot is *free*, *pending* (its TaskExecutor was asked to promise it), *allocated*, or *doubted*: the ask was not answered, so nobody knows what
the slot holds until its TaskExecutor reports again. A doubted slot is given to nobody.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flinkpy.actors.gateways import SlotReport, SlotRequest
from flinkpy.actors.resource_manager.managed_slots import ManagedExecutor, ManagedSlot, OpenRequests, TakenSlots
from flinkpy.actors.resource_manager.slot_actions import Action, AllocateSlot, FailRequest, StartWorker, StopWorker
from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import AllocationId, IdFactory, JobId, ResourceId, SlotId
from flinkpy.core.options.engine import SlotConfig
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


@dataclass(frozen=True)
class StartingWorker:
    slots: int
    profile: ResourceProfile
    since: float


class SlotManager:
    """``limit(profile)``: how many slots the cluster can ever have (None: no limit); ``explain(profile, wanted)`` says why no more."""

    FAILURES_IN_A_ROW = 3
    RETRY_S = 1.0

    def __init__(
        self, config: SlotConfig, ids: IdFactory,
        limit: Callable[[ResourceProfile], int | None] = lambda profile: None,
        explain: Callable[[ResourceProfile, int], str] = lambda profile, wanted: f"{wanted} slots are more than the cluster can have",
    ) -> None:
        self._config, self._ids, self._limit, self._explain = config, ids, limit, explain
        self._executors: dict[ResourceId, ManagedExecutor] = {}
        self._free: dict[ResourceProfile, OrderedDict[SlotId, ManagedSlot]] = {}  # a plain dict finds its first key in O(deleted ones)
        self._allocations: dict[AllocationId, ManagedSlot] = {}
        self._requests = OpenRequests()
        self._taken = TakenSlots()
        self._starting: dict[ResourceId, StartingWorker] = {}
        self._starting_slots: dict[ResourceProfile, int] = {}
        self._owned: set[ResourceId] = set()
        self._idle: dict[ResourceId, float] = {}  # idle since; in the order of time
        self._slots = 0
        self._failures, self._hold_until = 0, 0.0

    # -- TaskExecutors ---------------------------------------------------------------------------------------------------

    def knows(self, resource_id: ResourceId) -> bool:
        return resource_id in self._executors

    def owns(self, resource_id: ResourceId) -> bool:
        """Whether the worker was started here, and so may be stopped here."""
        return resource_id in self._owned

    def register(self, resource_id: ResourceId, report: SlotReport, now: float) -> list[Action]:
        """A TaskExecutor is there (or there again): its slots count from now on."""
        if resource_id in self._executors:
            return self.report(resource_id, report, now)
        self._forget_starting(resource_id)
        self._failures = 0
        executor = ManagedExecutor(resource_id, report)
        self._executors[resource_id] = executor
        self._slots += len(executor.slots)
        if not executor.keeps_results:
            self._idle[resource_id] = now
        actions: list[Action] = []
        for slot, status in zip(executor.slots.values(), report.slots):
            self._hold(slot, status.job_id, status.allocation_id, actions, now)
        return actions + self._provision(now)

    def report(self, resource_id: ResourceId, report: SlotReport, now: float) -> list[Action]:
        """What a TaskExecutor says of its slots; late reports are ignored."""
        executor = self._executors.get(resource_id)
        if executor is None or not executor.is_news(report):
            return []
        executor.sequence, executor.keeps_results = report.sequence, report.keeps_results
        actions: list[Action] = []
        for status in report.slots:
            slot = executor.slots.get(status.slot_index)
            if slot is not None:
                self._observe(slot, status.job_id, status.allocation_id, actions, now)
        if not executor.is_idle:
            self._idle.pop(resource_id, None)
        else:
            self._idle.setdefault(resource_id, now)
        return actions + self._provision(now) if actions or self._requests.unmet else actions

    def unregister(self, resource_id: ResourceId, now: float) -> list[Action]:
        """The TaskExecutor is gone; what it had promised is looked for elsewhere."""
        executor = self._executors.pop(resource_id, None)
        self._owned.discard(resource_id)
        self._idle.pop(resource_id, None)
        if executor is None:
            self._forget_starting(resource_id)
            return self._provision(now)
        actions: list[Action] = []
        self._slots -= len(executor.slots)
        for slot in executor.slots.values():
            self._remove_free(slot)
        for slot in executor.slots.values():
            orphan = slot.request
            self._clear(slot)
            if orphan is not None:
                self._serve(orphan, actions)
        return actions + self._provision(now)

    # -- requests --------------------------------------------------------------------------------------------------------

    def request(self, requests: Iterable[SlotRequest], now: float) -> list[Action]:
        """A JobMaster wants slots; those already asked for or given are not asked for twice.

        What can never be had is refused at once, and as a whole: part of it would be of no use. Only the requests made together are counted
        against the limits: what the job holds, or asked for before, may be on its way back. A JobMaster repeats all it waits for from time to
        time, so what comes in parts is found out too.
        """
        actions: list[Action] = []
        requests = tuple(requests)
        of_profile = Counter((request.job_id, request.profile) for request in requests)
        of_job = Counter(request.job_id for request in requests)
        for request in requests:
            if request.allocation_id in self._requests or request.allocation_id in self._allocations:
                continue
            wanted, total = (1, 1) if request.may_wait else (of_profile[request.job_id, request.profile], of_job[request.job_id])
            refusal = self._impossible(request.profile, wanted, total)
            if refusal is not None:
                actions.append(FailRequest(request, refusal))
                continue
            self._requests.add(request, now)
            self._serve(request, actions)
        return actions + self._provision(now)

    def cancel(self, allocation_ids: Iterable[AllocationId]) -> None:
        """Not wanted any more. What is already under way will be offered, rejected and freed."""
        for allocation_id in allocation_ids:
            self._requests.remove(allocation_id)

    def cancel_job(self, job_id: JobId) -> None:
        self.cancel(self._requests.of_job(job_id))

    def job_left(self, job_id: JobId) -> None:
        """The job needs nothing more. Its slots are about to be reported free, so they are counted on and no workers are started in their place."""
        self.cancel_job(job_id)
        self._taken.job_left(job_id)

    def stop_expecting(self, job_id: JobId, now: float) -> list[Action]:
        """What the job had may still come back, but nobody waits for it any longer."""
        self._taken.stop_expecting(job_id)
        return self._provision(now)

    def keep_only(self, job_id: JobId, wanted: Iterable[AllocationId], asked_before: float) -> None:
        """The JobMaster waits for ``wanted`` only: drops other requests of the job made before that time (a lost cancellation)."""
        held = self._requests.of_job(job_id)
        if held:
            self.cancel(held.difference(wanted) & self._requests.made_before(held, asked_before))

    def waiting_of(self, job_id: JobId) -> set[AllocationId]:
        """The requests of the job that are not served yet."""
        return set(self._requests.of_job(job_id))

    def _impossible(self, profile: ResourceProfile, wanted: int, total: int) -> ResourceUnavailableError | None:
        """``wanted`` slots of that profile, ``total`` of all, are wanted by one job at once."""
        limit = self._limit(profile)
        if limit is not None and wanted > limit:
            return ResourceUnavailableError(self._explain(profile, wanted))
        highest = self._config.max_slots
        if highest is not None and total > highest:
            return ResourceUnavailableError(
                f"the job needs at least {total} slots at once, slotmanager.number-of-slots.max allows {highest}: raise it or lower the parallelism"
            )
        return None

    # -- answers of TaskExecutors and of the driver ----------------------------------------------------------------------

    def allocation_answered(self, resource_id: ResourceId, allocations: Iterable[tuple[int, AllocationId]], report: SlotReport | None,
                            now: float) -> list[Action]:
        """The TaskExecutor answered (or did not: ``report`` is None) when asked for these slots. What it did not promise is looked for elsewhere."""
        actions = self.report(resource_id, report, now) if report is not None else []
        executor = self._executors.get(resource_id)
        if executor is None:
            return actions
        for slot_index, allocation_id in allocations:
            slot = executor.slots.get(slot_index)
            if slot is None or slot.request is None or slot.request.allocation_id != allocation_id:
                continue
            request = slot.request
            self._doubt(executor, slot)
            self._serve(request, actions)
        return actions + self._provision(now)

    def worker_failed(self, resource_id: ResourceId, reason: str, now: float) -> list[Action]:
        """A worker could not be started; after some failures in a row those who wait are told, until then it is tried again."""
        if resource_id not in self._starting:
            return self.unregister(resource_id, now) if resource_id in self._executors else []
        self._forget_starting(resource_id)
        self._owned.discard(resource_id)
        self._failures += 1
        if self._failures < self.FAILURES_IN_A_ROW:
            self._hold_until = now + self.RETRY_S * self._failures
            return []
        self._failures = 0
        failed = [self._requests.remove(allocation_id) for waiting in list(self._requests.unmet.values()) for allocation_id in list(waiting)]
        return [FailRequest(request, ResourceUnavailableError(f"no worker could be started: {reason}")) for request in failed if request is not None]

    def tick(self, now: float) -> list[Action]:
        """Stops what has been idle for too long, gives up workers that never came, tries again what was put off."""
        actions: list[Action] = []
        idle_before = now - max(0.0, self._config.idle_timeout.total_seconds())
        for resource_id, since in list(self._idle.items()):
            if since > idle_before:
                break
            self._idle.pop(resource_id)
            if resource_id in self._owned:
                actions += [StopWorker(resource_id, f"idle for {now - since:.0f} s"), *self.unregister(resource_id, now)]
        started_before = now - self._config.request_timeout.total_seconds()
        for resource_id, worker in list(self._starting.items()):
            if worker.since > started_before:
                break
            actions += [StopWorker(resource_id, "did not register in time"), *self.worker_failed(resource_id, "it did not register in time", now)]
        return actions + self._provision(now)

    # -- matching --------------------------------------------------------------------------------------------------------

    def _serve(self, request: SlotRequest, actions: list[Action]) -> None:
        """Gives the request a free slot, or lets it wait."""
        if request.allocation_id not in self._requests:
            return  # cancelled meanwhile
        slot = self._find(request)
        if slot is None:
            self._requests.wait(request)
        else:
            self._allocate(slot, request, actions)

    def _find(self, request: SlotRequest) -> ManagedSlot | None:
        for resource_id in request.preferred:
            executor = self._executors.get(resource_id)
            for slot in executor.free.values() if executor is not None else ():
                if request.profile.fits_in(slot.profile):
                    return slot
        exact = self._free.get(request.profile)
        if exact:
            return next(iter(exact.values()))
        for profile, slots in self._free.items():
            if request.profile.fits_in(profile):
                return next(iter(slots.values()))
        return None

    def _allocate(self, slot: ManagedSlot, request: SlotRequest, actions: list[Action]) -> None:
        self._requests.stop_waiting(request)
        self._remove_free(slot)
        slot.request = request
        self._taken.add(request.job_id, slot.profile)
        slot.executor.pending += 1
        self._idle.pop(slot.slot_id.resource_id, None)
        actions.append(AllocateSlot(slot.slot_id, request))

    def _observe(self, slot: ManagedSlot, job_id: JobId | None, allocation_id: AllocationId | None, actions: list[Action], now: float) -> None:
        request = slot.request
        if request is not None and allocation_id is None:
            return  # the report may be older than the ask under way, whose answer will tell
        if request is None and not slot.doubted and allocation_id == slot.allocation_id:
            return
        self._clear(slot)
        self._hold(slot, job_id, allocation_id, actions, now)
        if request is not None and request.allocation_id != allocation_id:
            self._serve(request, actions)

    def _hold(self, slot: ManagedSlot, job_id: JobId | None, allocation_id: AllocationId | None, actions: list[Action], now: float) -> None:
        """The slot, of which nothing was known, holds this; a free one serves who waits."""
        if allocation_id is not None:
            slot.job_id, slot.allocation_id = job_id, allocation_id
            if job_id is not None:
                self._taken.add(job_id, slot.profile)
            self._allocations[allocation_id] = slot
            self._requests.remove(allocation_id)
            self._idle.pop(slot.slot_id.resource_id, None)
            return
        executor = slot.executor
        executor.free[slot.slot_id.slot_index] = slot
        self._free.setdefault(slot.profile, OrderedDict())[slot.slot_id] = slot
        waiting = self._requests.next_for(slot.profile)
        if waiting is not None:
            self._allocate(slot, waiting, actions)
        elif executor.is_idle:
            self._idle.setdefault(slot.slot_id.resource_id, now)

    def _clear(self, slot: ManagedSlot) -> None:
        """Forgets what the slot holds; it is neither free nor taken until somebody says."""
        self._remove_free(slot)
        if slot.allocation_id is not None and self._allocations.get(slot.allocation_id) is slot:
            del self._allocations[slot.allocation_id]
        if slot.taken_by is not None:
            self._taken.remove(slot.taken_by, slot.profile)
        if slot.request is not None:
            slot.executor.pending -= 1
        if slot.doubted:
            slot.executor.doubted -= 1
        slot.job_id = slot.allocation_id = slot.request = None
        slot.doubted = False

    def _doubt(self, executor: ManagedExecutor, slot: ManagedSlot) -> None:
        self._clear(slot)
        slot.doubted = True
        executor.doubted += 1

    def _remove_free(self, slot: ManagedSlot) -> None:
        if slot.executor.free.pop(slot.slot_id.slot_index, None) is None:
            return
        same = self._free[slot.profile]
        del same[slot.slot_id]
        if not same:
            del self._free[slot.profile]

    # -- workers ---------------------------------------------------------------------------------------------------------

    def _provision(self, now: float) -> list[Action]:
        """Starts as many workers as the waiting requests need beyond those already starting and the slots coming back, within the limits."""
        actions: list[Action] = []
        if not self._requests.unmet or now < self._hold_until:
            return actions
        for profile, waiting in self._requests.unmet.items():
            actions += self._stop_idle_misfits(profile)
            missing = len(waiting) - self._starting_slots.get(profile, 0) - self._taken.coming_back(profile)
            while missing > 0:
                slots = min(self._config.slots_per_executor, self._room(profile))
                if slots <= 0:
                    misfit = self._idle_misfit(profile)
                    if misfit is None:
                        break
                    actions.append(StopWorker(misfit, "its slots fit nobody who waits, and take the room of those that would"))
                    self._drop_idle(misfit)
                    continue
                actions.append(self.start(StartWorker(self._ids.resource_id("taskexecutor"), slots, profile), now))
                missing -= slots
        return actions

    def start(self, worker: StartWorker, now: float) -> StartWorker:
        """Counts on the worker from now on, whether a request needs it or one is expected to."""
        self._starting[worker.resource_id] = StartingWorker(worker.slots, worker.profile, now)
        self._starting_slots[worker.profile] = self._starting_slots.get(worker.profile, 0) + worker.slots
        self._owned.add(worker.resource_id)
        return worker

    def _room(self, profile: ResourceProfile) -> int:
        """How many more slots of that profile there may be."""
        have = self._slots + sum(self._starting_slots.values())
        limits = [limit for limit in (self._config.max_slots, self._limit(profile)) if limit is not None]
        return min(limits) - have if limits else self._config.slots_per_executor

    def _stop_idle_misfits(self, profile: ResourceProfile) -> list[Action]:
        """In a cluster with limits, idle workers that cannot serve who waits hold what the workers under way need."""
        actions: list[Action] = []
        while self._limit(profile) is not None and (misfit := self._idle_misfit(profile)) is not None:
            actions.append(StopWorker(misfit, "its slots fit nobody who waits, and hold what those need"))
            self._drop_idle(misfit)
        return actions

    def _idle_misfit(self, profile: ResourceProfile) -> ResourceId | None:
        for resource_id in self._idle:
            if resource_id in self._owned and not any(profile.fits_in(slot.profile) for slot in self._executors[resource_id].slots.values()):
                return resource_id
        return None

    def _drop_idle(self, resource_id: ResourceId) -> None:
        executor = self._executors.pop(resource_id)
        self._idle.pop(resource_id)
        self._owned.discard(resource_id)
        self._slots -= len(executor.slots)
        for slot in executor.slots.values():
            self._remove_free(slot)

    def _forget_starting(self, resource_id: ResourceId) -> None:
        worker = self._starting.pop(resource_id, None)
        if worker is not None:
            left = self._starting_slots[worker.profile] - worker.slots
            self._starting_slots[worker.profile] = left
            if not left:
                del self._starting_slots[worker.profile]

    # -- looking in ------------------------------------------------------------------------------------------------------

    def executors(self) -> list[ResourceId]:
        return list(self._executors)

    def view(self, resource_id: ResourceId) -> dict[int, AllocationId | None]:
        """What each slot of the TaskExecutor is believed to hold."""
        return {index: slot.allocation_id for index, slot in self._executors[resource_id].slots.items()}

    def statistics(self) -> SlotManagerStatistics:
        executors = self._executors.values()
        return SlotManagerStatistics(
            len(self._executors), self._slots, sum(map(len, self._free.values())), sum(executor.pending for executor in executors),
            sum(executor.doubted for executor in executors), sum(map(len, self._requests.unmet.values())), len(self._starting),
        )

    def check_invariants(self) -> None:
        """Raises EngineError when the tables contradict each other. Looks at every slot: for tests."""
        for executor in self._executors.values():
            executor.check_invariants()
            for slot in executor.slots.values():
                if (slot.slot_id in self._free.get(slot.profile, ())) != slot.is_free:
                    raise EngineError(f"{slot!r} and the table of free slots disagree")
            if executor.is_idle != (executor.resource_id in self._idle) and executor.resource_id in self._owned:
                raise EngineError(f"{executor!r} is {'' if executor.is_idle else 'not '}idle, the table of idle ones says otherwise")
        self._taken.check_invariants(slot for executor in self._executors.values() for slot in executor.slots.values())
        pending = [slot.request.allocation_id for executor in self._executors.values() for slot in executor.slots.values() if slot.request]
        self._requests.check_invariants(pending)
        if self._requests.unmet and any(profile.fits_in(free) for profile in self._requests.unmet for free in self._free):
            raise EngineError(f"{self!r}: a request waits while a fitting slot is free")
        highest = self._config.max_slots
        owned = sum(len(executor.slots) for executor in self._executors.values() if executor.resource_id in self._owned)
        if highest is not None and owned + sum(self._starting_slots.values()) > highest:  # those that came by themselves are not counted
            raise EngineError(f"{self!r} has started more slots than slotmanager.number-of-slots.max = {highest}")

    def __repr__(self) -> str:
        return f"<SlotManager {self.statistics()}>"
