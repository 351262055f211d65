"""One run of a program in the simulated cluster, from beginning to end: what it has committed is
what the undisturbed run commits, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.errors import BoundToParallelismError, EngineError, SavepointRestoreError
from flinkpy.core.ids import IdFactory, ResourceId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import RECOVERY_CLAIM, RECOVERY_PATH
from flinkpy.core.options.engine import SlotConfig
from flinkpy.core.options.schema import read
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.state.checkpoints.locations import join
from flinkpy.testing.simulation.cluster import CLIENT, DISPATCHER, SimulatedCluster
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.cluster_invariants import Invariants, check_end
from flinkpy.testing.simulation.machine.data_network import DataNetwork
from flinkpy.testing.simulation.machine.machine_task_runner import RealMachines
from flinkpy.testing.simulation.machine.simulated_disk import SimulatedDisk
from flinkpy.testing.simulation.programs.outside_world import OutsideWorld, exchange, opened
from flinkpy.testing.simulation.programs.program_graphs import graph_of
from flinkpy.testing.simulation.programs.program_inputs import WORLD
from flinkpy.testing.simulation.programs.program_scenario import (
    FAULTS_END_S,
    RPC,
    ProgramScenario,
    Rescale,
    SavepointPlan,
)
from flinkpy.testing.simulation.programs.programs import DRAWN_PROGRAMS, PROGRAMS
from flinkpy.testing.simulation.programs.repeatable_databases import repeatable_databases
from flinkpy.testing.simulation.scenario import Crash, MastersCrash, Partition
from flinkpy.testing.simulation.seeded_run import SimulatedClient, played
from flinkpy.testing.simulation.simulated_jobs import SavepointAt, SimulatedJob

AGAIN_S = 60.0  # how long a job may still fail of what went wrong before
SLOTS_EVERY = 8  # of slots, simulated jobs see more than programs do
PATIENCE_S = 600.0  # of virtual time, for the job to end
# timeouts of slots
IDLE = timedelta(seconds=5)
REQUEST = timedelta(seconds=40)
OFFER = timedelta(seconds=3)
CALM_S = 15.0  # after it: the last heartbeats, timeouts and keepalives


@dataclass(frozen=True)
class ProgramReport:
    """How a run went. Equal seeds give equal reports."""

    seed: int
    program: str
    digest: str
    events: int
    virtual_s: float
    records: int  # that were committed
    checkpoints: int  # that were complete
    restored: int  # attempts that started from one
    failures: int  # of functions
    attempts: int  # of all subtasks
    terms: int  # of masters, one after the other
    savepoints: int  # that users were told of
    shared_files: int  # of incremental checkpoints
    backups_read: int  # local ones
    backups_refused: int  # because they were damaged


class ProgramRun:
    """A scenario that is being played. Without ``expected``, what comes out is not compared."""

    def __init__(self, scenario: ProgramScenario, expected: tuple[Any, ...] | None) -> None:
        self.scenario, self._program = scenario, PROGRAMS[scenario.program]
        self._attempts = self._workers = 0
        slots = SlotConfig(scenario.slots, None, IDLE, REQUEST, OFFER)
        self.cluster = cluster = SimulatedCluster(
            scenario.seed,
            scenario.network,
            rpc_config=RPC,
            slot_config=slots,
            failing_files=scenario.failing_files,
            machines=self,
            masters_come_back=bool(scenario.masters_crashes),
            workers_ask=scenario.workers_ask,
        )
        self.network = network = cluster.network
        network.echoes = scenario.echoes
        cluster.files.tears_manifests = not scenario.masters_crashes
        network.after_event = Invariants(cluster, SLOTS_EVERY)
        self._machines = RealMachines(
            DataNetwork(network, scenario.data),
            scenario.config,
            network.bugs.append,
            self._task_comes,
            lambda: cluster.files.steps,
            lambda process: SimulatedDisk(f"{scenario.seed} {process}", scenario.failing_files),
        )
        self.runner_of = self._machines.runner_of
        cluster.files.process_dies = self._writer_dies
        cluster.files.is_used_by_dead = self._is_in_dead_process
        self.world = OutsideWorld(
            network.random,
            expected,
            scenario.failing,
            scenario.pace_s,
            network.schedule,
            network.bugs.append,
        )
        self._worlds: dict[str, OutsideWorld] = {}  # as it was at each savepoint
        cluster.files.savepoint_appears = lambda location: self._worlds.update(
            {location: self.world.fork()}
        )
        self._ids = IdFactory(scenario.seed)
        for _ in range(scenario.workers):
            self._start_worker()
        for crash in scenario.crashes:
            network.schedule(crash.at_s, lambda crash=crash: self._crash(crash), "crash")  # type: ignore[misc]
        for masters in scenario.masters_crashes:
            network.schedule(
                masters.at_s,
                lambda masters=masters: self._crash_masters(masters),  # type: ignore[misc]
                "crash",
            )
        for partition in scenario.partitions:
            network.schedule(
                partition.at_s,
                lambda partition=partition: self._cut_off(partition),  # type: ignore[misc]
                "partition",
            )
        network.schedule(FAULTS_END_S, self._faults_end, "the faults end")

    def _task_comes(self, descriptor: TaskDeploymentDescriptor) -> None:
        self._attempts += 1
        if read(descriptor.configuration, RECOVERY_PATH) is None:
            self.cluster.oracle.task_comes(descriptor)

    # -- workers -----------------------------------------------------------------------------------

    def _start_worker(self) -> None:
        self._workers += 1
        self.cluster.start_worker(ResourceId(f"worker-{self._workers}"), self.scenario.slots)

    def _crash(self, crash: Crash) -> None:
        names = list(self.cluster.workers)
        if names:
            self._end_worker(names[crash.victim % len(names)], crash.restart_s)

    def _end_worker(self, name: ResourceId, restart_s: float) -> None:
        worker = self.cluster.crash_worker(name)
        if worker.on_failure is None:
            self.network.schedule(restart_s, self._start_worker, "a worker is started anew")
        else:  # its driver started it, and tells the ResourceManager
            worker.on_failure("the simulated process died")

    def _crash_masters(self, crash: MastersCrash) -> None:
        if DISPATCHER in self.network.processes:
            self.cluster.crash_masters(crash.back_after_s, crash.noticed)

    def _cut_off(self, partition: Partition) -> None:
        """Loses all messages between a TaskExecutor and the masters for a while."""
        names = list(self.cluster.workers)
        if names:
            name = names[partition.victim % len(names)]
            masters = [each for each in self.network.processes if each not in (CLIENT, *names)]
            self.cluster.cut_off(name, masters, partition)

    def _writer_dies(self) -> bool:
        """The worker that is writing a file now crashes in the middle of that."""
        place = self.network.current
        name = ResourceId(place.process) if isinstance(place, SimulatedRpcService) else None
        if name is None or name not in self.cluster.workers:
            return False
        self._end_worker(name, 1.0)
        return True

    def _is_in_dead_process(self) -> bool:
        return self.network.current is not None and not self.network.current.alive

    def _faults_end(self) -> None:
        self.cluster.files.faults_last = self.cluster.oracle.faults_last = False
        self.world.failing = self.network.echoes = 0.0
        self.network.heal()

    # -- the run -----------------------------------------------------------------------------------

    def run(self) -> ProgramReport:
        """Raises EngineError when something is wrong."""
        self._program.clear()
        try:
            with opened(WORLD, self.world), repeatable_databases():
                self._run_jobs()
                if self._program.seen is not None:
                    self.world.see(self._program.seen())
                self.world.check_whole()
                self.network.run_for(max(0.0, FAULTS_END_S - self.network.now) + CALM_S)
        finally:
            self._program.clear()
        check_end(self.cluster)
        oracle = self.cluster.oracle
        oracle.check_savepoints()
        return ProgramReport(
            self.scenario.seed,
            self.scenario.program,
            self.network.trace_digest(),
            self.network.events,
            self.network.now,
            self.world.committed.total(),
            oracle.completed,
            oracle.restored,
            self.world.failures,
            self._attempts,
            self.cluster.terms,
            len(oracle.savepoints),
            oracle.shared_files,
            sum(each.statistics.taken for each in self._machines.backups),
            sum(each.statistics.refused for each in self._machines.backups),
        )

    def _run_jobs(self) -> None:
        rescale = self.scenario.rescale if self._program.rescales else None
        if self.scenario.savepoint is not None:
            self._run_with_savepoint(self.scenario.savepoint)
        elif rescale is None:
            self._run_job(self.scenario.parallelism)
        else:
            self._run_rescaled(rescale)

    def _run_rescaled(self, rescale: Rescale) -> None:
        first, state = self._run_job(self.scenario.parallelism, cancel_after_s=rescale.after_s)
        another, claimed = rescale.parallelism, None
        claim = {RECOVERY_CLAIM.key: "CLAIM"} if rescale.claims else {}
        # a job that cannot read where it is to start from is submitted again
        while state is not JobState.FINISHED:
            has_one = self.cluster.files.has_checkpoint(first.job_id)
            newest = {RECOVERY_PATH.key: join(DIRECTORY, first.job_id), **claim} if has_one else {}
            claimed = (
                self.cluster.files.newest_checkpoint(first.job_id) if newest and claim else None
            )
            refused, state = self._run_job(another, newest)
            if refused.result is not None and isinstance(
                refused.result.error, BoundToParallelismError
            ):
                another = self.scenario.parallelism
        if claimed is not None and self.cluster.files.is_left(first.job_id, claimed):
            raise EngineError(
                f"checkpoint {claimed} of {first.job_id} was claimed, and is still there"
            )

    def _run_with_savepoint(self, plan: SavepointPlan) -> None:
        """Another job starts from the savepoint, if there is one. What it commits belongs to what
        was committed when the savepoint was taken."""
        first, state = self._run_job(self.scenario.parallelism, savepoints=(plan.asked,))
        if not first.savepoints:
            return
        if not plan.asked.kind.stops_job:
            if state is JobState.FINISHED:
                self.world.check_whole()
            self.world = self._worlds[first.savepoints[0]]
            exchange(WORLD, self.world)
        options = {**plan.options, RECOVERY_PATH.key: first.savepoints[0]}
        parallelism = plan.parallelism if self._program.rescales else self.scenario.parallelism
        while self._run_job(parallelism, options)[1] is not JobState.FINISHED:
            pass
        if RECOVERY_CLAIM.key in plan.options:
            self.cluster.oracle.savepoint_was_claimed(first.savepoints[0])

    def _run_job(
        self,
        parallelism: int,
        options: dict[str, Any] | None = None,
        cancel_after_s: float | None = None,
        savepoints: tuple[SavepointAt, ...] = (),
    ) -> tuple[SimulatedClient, JobState]:
        scenario = self.scenario
        graph = graph_of(
            scenario.program,
            parallelism,
            self._ids.job_id(),
            {**scenario.configuration, **(options or {})},
            scenario.chaining,
            self.cluster.files.as_seen(),
        )
        client = SimulatedClient(self.cluster, SimulatedJob(graph, 0.0, cancel_after_s, savepoints))
        self.network.run_until(lambda: client.result is not None, PATIENCE_S)
        result = client.result
        if result is None:
            master = self.cluster.job_masters.get(client.job_id)
            raise EngineError(
                "the job has no end: "
                f"{master.scheduler.details() if master is not None else 'it never began'}"
            )
        is_late = self.network.now >= FAULTS_END_S + AGAIN_S
        may_fail = bool(options) and isinstance(
            result.error, BoundToParallelismError if is_late else SavepointRestoreError
        )
        is_cancelled = cancel_after_s is not None or any(
            asked.cancels_after_s is not None for asked in savepoints
        )
        if not (
            result.state is JobState.FINISHED
            or (is_cancelled and result.state is JobState.CANCELED)
            or may_fail
        ):
            raise EngineError(f"the job is {result.state}: {result.error!r}")
        self.cluster.oracle.check_files(client.job_id)
        return client, result.state


@lru_cache(maxsize=256)
def expected_of(program: str, parallelism: int) -> tuple[Any, ...]:
    """What the program commits when nothing goes wrong."""
    run = ProgramRun(ProgramScenario.undisturbed(program, parallelism), None)
    run.run()
    return tuple(run.world.records)


def run_program_seed(
    seed: int,
    programs: tuple[str, ...] = DRAWN_PROGRAMS,
    trace: Callable[[float, str], None] | None = None,
) -> ProgramReport:
    """Plays one seed. Raises SimulationFailure when the output is not that of the undisturbed run,
    the job does not end, an invariant breaks, or something leaks."""
    scenario = ProgramScenario.of(seed, programs)
    run = ProgramRun(scenario, expected_of(scenario.program, scenario.parallelism))
    # what a seed means depends on their number
    chosen = "".join(f" {name}" for name in programs) if programs != DRAWN_PROGRAMS else ""
    return played(
        run.run,
        run.network,
        trace,
        f"seed {seed} ({scenario.program})",
        f"--programs{chosen} --seed {seed}",
    )
