"""WorkerProvisioner: when to start or stop workers, so that waiting requests get slots within the
cluster's limits. It only decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flinkpy.actors.resource_manager.managed_slots import OpenRequests
from flinkpy.actors.resource_manager.slot_actions import Action, StartWorker, StopWorker
from flinkpy.actors.resource_manager.slot_inventory import SlotInventory
from flinkpy.core.errors import EngineError, ResourceUnavailableError
from flinkpy.core.ids import IdFactory, ResourceId
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.resources import ResourceProfile


@dataclass(frozen=True)
class StartingWorker:
    slots: int
    profile: ResourceProfile
    since: float


class WorkerProvisioner:
    """``limit(profile)``: how many slots the cluster can ever have (None: no limit);
    ``explain(profile, wanted)`` says why there are no more."""

    FAILURES_IN_A_ROW = 3
    RETRY_S = 1.0
    # a worker was lost, or has come: jobs that start there need the machine more than a new spare
    # does
    SPARES_AFTER_S = 3.0

    def __init__(
        self,
        config: SlotConfig,
        ids: IdFactory,
        inventory: SlotInventory,
        limit: Callable[[ResourceProfile], int | None],
        explain: Callable[[ResourceProfile, int], str],
    ) -> None:
        self._config = config
        self._ids = ids
        self._inventory = inventory
        self._limit = limit
        self._explain = explain
        self._starting: dict[ResourceId, StartingWorker] = {}
        self._starting_slots: dict[ResourceProfile, int] = {}
        self._owned: set[ResourceId] = set()
        # those of them that an earlier ResourceManager has started
        self._inherited: set[ResourceId] = set()
        self._failures, self._hold_until = 0, 0.0
        self._spares_from = 0.0
        self._expected: set[ResourceId] = set()
        self._expected_until = 0.0

    @property
    def workers_starting(self) -> int:
        return len(self._starting)

    def is_starting(self, resource_id: ResourceId) -> bool:
        return resource_id in self._starting

    def owns(self, resource_id: ResourceId) -> bool:
        """Whether this ResourceManager started the worker, and so may stop it."""
        return resource_id in self._owned

    def refusal(
        self, profile: ResourceProfile, wanted: int, total: int
    ) -> ResourceUnavailableError | None:
        """Returns why one job cannot have ``wanted`` slots of that profile, and ``total`` of all
        profiles, at once; None when it can."""
        limit = self._limit(profile)
        if limit is not None and wanted > limit:
            return ResourceUnavailableError(self._explain(profile, wanted))
        highest = self._config.max_slots
        if highest is not None and total > highest:
            return ResourceUnavailableError(
                f"the job needs at least {total} slots at once, "
                f"slotmanager.number-of-slots.max allows {highest}: raise it or lower the "
                "parallelism"
            )
        return None

    # -- the life of a worker ----------------------------------------------------------------------

    def add_worker(self, worker: StartWorker, now: float) -> StartWorker:
        """Counts on the worker's slots from now on, whether a request needs them already or is only
        expected to."""
        self._starting[worker.resource_id] = StartingWorker(worker.slots, worker.profile, now)
        self._starting_slots[worker.profile] = (
            self._starting_slots.get(worker.profile, 0) + worker.slots
        )
        self._owned.add(worker.resource_id)
        return worker

    def expect_workers(self, resource_ids: Iterable[ResourceId], now: float) -> None:
        """Counts on workers of an earlier ResourceManager, which belong to this one from now on."""
        self._expected.update(resource_ids)
        self._inherited.update(self._expected)
        self._owned.update(self._expected)
        self._expected_until = now + self._config.previous_workers_timeout.total_seconds()

    def worker_registered(self, resource_id: ResourceId, now: float) -> None:
        self._spares_from = now + self.SPARES_AFTER_S
        self._expected.discard(resource_id)
        self._end_start(resource_id)
        self._failures = 0

    def start_failed(self, resource_id: ResourceId, now: float) -> bool:
        """Whether too many workers in a row could not be started. Until then another is started
        after a growing pause."""
        self.worker_gone(resource_id)
        self._failures += 1
        if self._failures < self.FAILURES_IN_A_ROW:
            self._hold_until = now + self.RETRY_S * self._failures
            return False
        self._failures = 0
        return True

    def worker_gone(self, resource_id: ResourceId) -> None:
        self._end_start(resource_id)
        self._owned.discard(resource_id)
        self._inherited.discard(resource_id)
        self._expected.discard(resource_id)

    def worker_lost(self, now: float) -> None:
        self._spares_from = now + self.SPARES_AFTER_S

    def overdue_workers(self, now: float) -> list[ResourceId]:
        """Returns the workers that have not registered in time."""
        started_before = now - self._config.request_timeout.total_seconds()
        return [
            resource_id
            for resource_id, worker in self._starting.items()
            if worker.since <= started_before
        ]

    def _end_start(self, resource_id: ResourceId) -> None:
        worker = self._starting.pop(resource_id, None)
        if worker is not None:
            left = self._starting_slots[worker.profile] - worker.slots
            self._starting_slots[worker.profile] = left
            if not left:
                del self._starting_slots[worker.profile]

    # -- deciding ----------------------------------------------------------------------------------

    def provision(self, requests: OpenRequests, now: float) -> list[Action]:
        """Starts as many workers as the waiting requests need beyond those already starting and the
        slots coming back, within the limits."""
        actions: list[Action] = []
        if not requests.unmet or self._holds_off(now):
            return actions
        for profile, waiting in requests.unmet.items():
            while (
                self._limit(profile) is not None
                and (misfit := self._inventory.find_idle_misfit(profile, self.owns)) is not None
            ):
                actions.append(
                    self._stop_misfit(
                        misfit, "its slots fit no waiting request, and hold what the requests need"
                    )
                )
            missing = (
                len(waiting)
                - self._starting_slots.get(profile, 0)
                - self._inventory.taken.coming_back(profile)
            )
            while missing > 0:
                slots = min(self._config.slots_per_executor, self._room(profile))
                if slots > 0:
                    actions.append(
                        self.add_worker(
                            StartWorker(self._ids.resource_id("taskexecutor"), slots, profile), now
                        )
                    )
                    missing -= slots
                    continue
                misfit = self._inventory.find_idle_misfit(profile, self.owns)
                if misfit is None:
                    break
                actions.append(
                    self._stop_misfit(
                        misfit,
                        "its slots fit no waiting request, and take the room of slots that would",
                    )
                )
        return actions

    def provide_spares(self, requests: OpenRequests, now: float) -> list[Action]:
        """Starts workers that no request needs yet, so that those of a worker that dies are served
        at once."""
        actions: list[Action] = []
        profile = self._spare_profile()
        if profile is None or requests.unmet or self._holds_off(now) or now < self._spares_from:
            return actions
        while self._free_soon(profile) < self._spare_slots:
            slots = min(self._config.slots_per_executor, self._room(profile))
            if slots <= 0:
                break
            actions.append(
                self.add_worker(
                    StartWorker(self._ids.resource_id("taskexecutor"), slots, profile), now
                )
            )
        return actions

    def is_spare(self, resource_id: ResourceId) -> bool:
        """Whether the idle worker is one of those that are kept for the case that another one
        dies."""
        profile = self._spare_profile()
        if profile is None:
            return False
        own = sum(
            profile.fits_in(slot.profile)
            for slot in self._inventory.executors[resource_id].slots.values()
        )
        return own > 0 and self._free_soon(profile) - own < self._spare_slots

    def _holds_off(self, now: float) -> bool:
        """Whether no worker is started now: a start has just failed, or workers of an earlier
        ResourceManager may still come."""
        return now < self._hold_until or (bool(self._expected) and now < self._expected_until)

    def _spare_profile(self) -> ResourceProfile | None:
        """The profile of spare workers; None if there are to be none."""
        return self._inventory.taken.main_profile() if self._config.spare_workers else None

    @property
    def _spare_slots(self) -> int:
        return self._config.spare_workers * self._config.slots_per_executor

    def _free_soon(self, profile: ResourceProfile) -> int:
        return self._inventory.count_free(profile) + self._starting_slots.get(profile, 0)

    def _room(self, profile: ResourceProfile) -> int:
        """How many more slots of that profile the limits allow."""
        have = self._inventory.size + sum(self._starting_slots.values())
        limits = [
            limit for limit in (self._config.max_slots, self._limit(profile)) if limit is not None
        ]
        return min(limits) - have if limits else self._config.slots_per_executor

    def _stop_misfit(self, resource_id: ResourceId, reason: str) -> StopWorker:
        self._inventory.remove_executor(resource_id)
        self._owned.discard(resource_id)
        return StopWorker(resource_id, reason)

    def check_invariants(self) -> None:
        """Raises EngineError when more slots were started than the configuration allows.
        TaskExecutors not started here are not counted, nor are those of an earlier ResourceManager:
        they may come when others were started in their place, and are stopped when they are
        idle."""
        highest, started = self._config.max_slots, self._owned - self._inherited
        owned = sum(
            len(executor.slots)
            for executor in self._inventory.executors.values()
            if executor.resource_id in started
        )
        if highest is not None and owned + sum(self._starting_slots.values()) > highest:
            raise EngineError(
                f"{self!r} has started more slots than slotmanager.number-of-slots.max = {highest}"
            )

    def __repr__(self) -> str:
        return (
            f"<WorkerProvisioner: {len(self._owned)} workers, {len(self._starting)} of them "
            "starting>"
        )
