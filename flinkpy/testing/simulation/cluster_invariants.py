"""What must hold after every event, and at the end of a run."""

from __future__ import annotations

from typing import cast

from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.resource_manager.resource_manager import ResourceManager
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedHost
from flinkpy.actors.task_executor.task_executor import TaskExecutor
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import AllocationId, JobId
from flinkpy.testing.simulation.cluster import SimulatedCluster
from flinkpy.testing.simulation.watched_runner import WatchedRunner


class Invariants:
    """Checks the endpoints in which the last event ran: nothing else can have changed. Of the
    events of TaskExecutors and of the ResourceManager, one of ``slots_every`` is looked at."""

    # How many of a JobMaster's events pass between checks of its whole state; what an event changed
    # is always checked
    FULL_EVERY = 16

    def __init__(self, cluster: SimulatedCluster, slots_every: int = 1) -> None:
        self._cluster, self._slots_every = cluster, slots_every
        self._seen = self._seen_of_slots = 0

    def __call__(self) -> None:
        for bug in self._cluster.network.bugs:
            raise EngineError(
                f"a call was answered with a bug, or a task failed with one: {bug}"
            ) from bug
        for host in self._cluster.network.touched_hosts():
            self._check(host)

    def _check(self, host: SimulatedHost) -> None:
        endpoint = host.endpoint
        if isinstance(endpoint, JobMaster):
            self._seen += 1
            endpoint.check_invariants(everything=self._seen % self.FULL_EVERY == 0)
            self._cluster.oracle.check_master(endpoint)
            return
        self._seen_of_slots += 1
        if self._seen_of_slots % self._slots_every:
            return
        if isinstance(endpoint, TaskExecutor):
            check_executor(endpoint)
        elif isinstance(endpoint, ResourceManager):
            endpoint.slots.check_invariants()


def check_executor(executor: TaskExecutor) -> None:
    """Checks that slots are in order, each task runs in a slot of its job, and every segment
    belongs to a task."""
    executor.check_invariants()
    runner = cast(WatchedRunner, executor.runner)
    runner.check_invariants()
    lost = runner.lost_results(executor.holdings.kept_results())
    if lost:
        raise EngineError(f"{executor.resource_id} believes to keep results that are gone: {lost}")
    for attempt_id, slot_index in runner.tasks_in_slots().items():
        slot = next(
            (
                slot
                for slot in executor.holdings.slots.of_job(attempt_id.job_id)
                if attempt_id in slot.tasks
            ),
            None,
        )
        if slot is None or slot.index != slot_index:
            raise EngineError(
                f"{attempt_id} runs in slot {slot_index} of {executor.resource_id}, which is "
                "not its own"
            )


def stale_requests(cluster: SimulatedCluster) -> set[tuple[JobId, AllocationId]]:
    """Nothing was lost for a while: the ResourceManager and the running JobMasters agree on which
    slots are waited for, but for what is being said in this moment. Raises EngineError for
    JobMasters that are not registered."""
    found: set[tuple[JobId, AllocationId]] = set()
    manager = cluster.resource_manager
    for job_id, master in cluster.job_masters.items():
        if master.status.has_ended:
            continue
        if master.slots.manager.gateway is None:
            raise EngineError(
                f"the JobMaster of {job_id} is not registered at the ResourceManager, which "
                "has been there for a while"
            )
        stale = manager.slots.waiting_of(job_id) - set(master.slots.pool.pending_ids())
        found.update((job_id, allocation_id) for allocation_id in stale)
    return found


def check_calm(cluster: SimulatedCluster) -> None:
    """Nothing was said for a while either: they agree. Raises EngineError."""
    stale = stale_requests(cluster)
    if stale:
        raise EngineError(f"the ResourceManager believes these to be waited for: {stale}")


def check_end(cluster: SimulatedCluster) -> None:
    """Checks, when all jobs have ended and nothing was lost for a while, that nothing is held, and
    everybody agrees on it. Raises EngineError."""
    manager = cluster.resource_manager
    for resource_id, worker in cluster.workers.items():
        statistics = worker.executor.statistics()
        slots, runner = statistics.slots, statistics.runner
        if slots.allocated + slots.active + slots.releasing + slots.tasks:
            held = [
                slot
                for job_id in worker.executor.holdings.slots.jobs()
                for slot in worker.executor.holdings.slots.of_job(job_id)
            ]
            raise EngineError(f"{resource_id} leaks slots: {worker.executor.holdings!r}, {held}")
        if (
            runner.tasks + runner.partitions + runner.gates + runner.segments_in_use
            or worker.runner.held()
        ):
            raise EngineError(f"{resource_id} leaks {runner} {worker.runner.held()}")
        if worker.executor.holdings.keeps_results:
            raise EngineError(
                f"{resource_id} keeps results that no task reads: "
                f"{worker.executor.holdings.kept_results()}"
            )
        if statistics.jobs:
            raise EngineError(
                f"{resource_id} still keeps {statistics.jobs} connections to JobMasters"
            )
        if not manager.slots.knows(resource_id):
            raise EngineError(f"the ResourceManager does not know {resource_id}")
        if any(manager.slots.view(resource_id).values()):
            raise EngineError(
                f"the ResourceManager believes {resource_id} to hold "
                f"{manager.slots.view(resource_id)}"
            )
    ghosts = set(manager.slots.executors()) - cluster.workers.keys()
    numbers = manager.slots.statistics()
    if (
        ghosts
        or numbers.pending
        or numbers.doubted
        or numbers.unmet_requests
        or numbers.workers_starting
        or numbers.free != numbers.slots
    ):
        raise EngineError(
            f"the ResourceManager is not at rest: {numbers}, dead TaskExecutors {ghosts}"
        )
    left = cluster.dispatcher.statistics()
    if left.running:
        raise EngineError(f"the Dispatcher is not at rest: {left}")
