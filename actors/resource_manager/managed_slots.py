"""The tables of the SlotManager: TaskExecutors with their slots, and requests not served yet."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from flinkpy.actors.gateways import SlotReport, SlotRequest
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import AllocationId, JobId, ResourceId, SlotId
from flinkpy.graph.deployment import SlotStatus
from flinkpy.graph.resources import ResourceProfile


class ManagedSlot:
    """One slot as the ResourceManager sees it. ``request`` is set while its TaskExecutor is asked
    to allocate it."""

    __slots__ = ("allocation_id", "doubted", "executor", "job_id", "profile", "request", "slot_id")

    def __init__(
        self, executor: ManagedExecutor, slot_index: int, profile: ResourceProfile
    ) -> None:
        self.executor = executor
        self.slot_id = SlotId(executor.resource_id, slot_index)
        self.profile = profile
        self.request: SlotRequest | None = None
        self.job_id: JobId | None = None
        self.allocation_id: AllocationId | None = None
        self.doubted = False

    @property
    def is_free(self) -> bool:
        return self.request is None and self.allocation_id is None and not self.doubted

    @property
    def taken_by(self) -> JobId | None:
        """The job that holds the slot, or for which the TaskExecutor is asked to allocate it."""
        return self.request.job_id if self.request is not None else self.job_id

    def __repr__(self) -> str:
        holds = (
            "doubted"
            if self.doubted
            else f"asked for {self.request.allocation_id:.8}"
            if self.request
            else (self.allocation_id or "free")[:8]
        )
        return f"<slot {self.slot_id.slot_index} of {self.slot_id.resource_id}: {holds}>"


class ManagedExecutor:
    """A registered TaskExecutor."""

    __slots__ = ("doubted", "free", "keeps_results", "pending", "resource_id", "sequence", "slots")

    def __init__(self, resource_id: ResourceId, report: SlotReport) -> None:
        self.resource_id = resource_id
        self.sequence, self.keeps_results = report.sequence, report.keeps_results
        self.slots = {
            status.slot_index: ManagedSlot(self, status.slot_index, status.profile)
            for status in report.slots
        }
        self.free: dict[int, ManagedSlot] = {}
        self.pending = 0
        self.doubted = 0

    @property
    def is_idle(self) -> bool:
        return len(self.free) == len(self.slots) and not self.keeps_results

    def is_news(self, report: SlotReport) -> bool:
        """Whether the report may tell something new. One as old as the last one may only if slots
        are in doubt or pending."""
        return report.sequence > self.sequence or (
            report.sequence == self.sequence and (self.doubted > 0 or self.pending > 0)
        )

    def statuses(self) -> tuple[SlotStatus, ...]:
        return tuple(
            SlotStatus(index, slot.profile, slot.taken_by, slot.allocation_id)
            for index, slot in sorted(self.slots.items())
        )

    def check_invariants(self) -> None:
        slots = self.slots.values()
        if self.pending != sum(slot.request is not None for slot in slots) or self.doubted != sum(
            slot.doubted for slot in slots
        ):
            raise EngineError(f"{self!r} counts its pending or doubted slots wrongly")
        for slot in slots:
            if (slot.slot_id.slot_index in self.free) != slot.is_free:
                raise EngineError(f"{slot!r} and its executor's table of free slots disagree")
            if (slot.request is not None) + (slot.allocation_id is not None) + slot.doubted > 1:
                raise EngineError(f"{slot!r} is in two states at once")

    def __repr__(self) -> str:
        return (
            f"<executor {self.resource_id}: {len(self.slots)} slots, {len(self.free)} free, "
            f"{self.pending} pending, {self.doubted} doubted>"
        )


class TakenSlots:
    """How many slots each job holds or is allocated, and which jobs have left: their slots are on
    their way back."""

    def __init__(self) -> None:
        self._of_job: dict[JobId, Counter[ResourceProfile]] = {}
        self._left: set[JobId] = set()

    def count_slot(self, job_id: JobId, supply: ResourceProfile) -> None:
        self._of_job.setdefault(job_id, Counter())[supply] += 1

    def uncount_slot(self, job_id: JobId, supply: ResourceProfile) -> None:
        taken = self._of_job[job_id]
        taken[supply] -= 1
        if not taken[supply]:
            del taken[supply]
        if not taken:
            del self._of_job[job_id]
            self._left.discard(job_id)

    def job_left(self, job_id: JobId) -> None:
        if job_id in self._of_job:
            self._left.add(job_id)

    def stop_expecting(self, job_id: JobId) -> None:
        self._left.discard(job_id)

    def main_profile(self) -> ResourceProfile | None:
        """The profile of most slots that jobs hold; None if they hold none."""
        total: Counter[ResourceProfile] = Counter()
        for job_id, taken in self._of_job.items():
            if job_id not in self._left:
                total.update(taken)
        return max(total, key=total.__getitem__) if total else None

    def coming_back(self, profile: ResourceProfile) -> int:
        """Counts the slots that a request of this profile may soon find free."""
        return sum(
            count
            for job_id in self._left
            for supply, count in self._of_job[job_id].items()
            if profile.fits_in(supply)
        )

    def check_invariants(self, slots: Iterable[ManagedSlot]) -> None:
        taken: dict[JobId, Counter[ResourceProfile]] = {}
        for slot in slots:
            if slot.taken_by is not None:
                taken.setdefault(slot.taken_by, Counter())[slot.profile] += 1
        if taken != self._of_job or not self._left <= taken.keys():
            raise EngineError(
                f"slots are taken as {taken}, they are counted as {self._of_job}, and as left "
                f"are known {self._left}"
            )


class OpenRequests:
    """Requests without a confirmed slot: those for which a TaskExecutor was asked to allocate one,
    and those that wait (``unmet``, by profile, oldest first)."""

    def __init__(self) -> None:
        self._all: dict[AllocationId, tuple[SlotRequest, float]] = {}
        self._of_job: dict[JobId, set[AllocationId]] = {}
        self.unmet: dict[ResourceProfile, OrderedDict[AllocationId, SlotRequest]] = {}

    def __contains__(self, allocation_id: AllocationId) -> bool:
        return allocation_id in self._all

    def __len__(self) -> int:
        return len(self._all)

    def add_request(self, request: SlotRequest, now: float) -> None:
        self._all[request.allocation_id] = (request, now)
        self._of_job.setdefault(request.job_id, set()).add(request.allocation_id)

    def remove_request(self, allocation_id: AllocationId) -> SlotRequest | None:
        request, _ = self._all.pop(allocation_id, (None, 0.0))
        if request is None:
            return None
        self.stop_waiting(request)
        of_job = self._of_job[request.job_id]
        of_job.discard(allocation_id)
        if not of_job:
            del self._of_job[request.job_id]
        return request

    def wait_for_slot(self, request: SlotRequest) -> None:
        self.unmet.setdefault(request.profile, OrderedDict())[request.allocation_id] = request

    def stop_waiting(self, request: SlotRequest) -> None:
        waiting = self.unmet.get(request.profile)
        if (
            waiting is not None
            and waiting.pop(request.allocation_id, None) is not None
            and not waiting
        ):
            del self.unmet[request.profile]

    def next_for(self, supply: ResourceProfile) -> SlotRequest | None:
        """Returns the request that has waited longest among those that fit in such a slot; one of
        exactly its profile goes first."""
        exact = self.unmet.get(supply)
        if exact:
            return next(iter(exact.values()))
        return next(
            (
                next(iter(waiting.values()))
                for profile, waiting in self.unmet.items()
                if profile.fits_in(supply)
            ),
            None,
        )

    def of_job(self, job_id: JobId) -> set[AllocationId]:
        return set(self._of_job.get(job_id, ()))

    def made_before(self, allocation_ids: Iterable[AllocationId], time: float) -> set[AllocationId]:
        return {
            allocation_id for allocation_id in allocation_ids if self._all[allocation_id][1] < time
        }

    def check_invariants(self, pending: list[AllocationId]) -> None:
        waiting = [allocation_id for requests in self.unmet.values() for allocation_id in requests]
        if len(set(waiting)) != len(waiting) or not set(waiting) <= self._all.keys():
            raise EngineError(f"requests wait that are not open: {set(waiting) - self._all.keys()}")
        if self._all.keys() - set(waiting) - set(pending):
            raise EngineError(
                "open requests that neither wait nor are asked for: "
                f"{self._all.keys() - set(waiting) - set(pending)}"
            )

    def __repr__(self) -> str:
        return f"<OpenRequests {len(self._all)}, waiting {sum(map(len, self.unmet.values()))}>"
