"""The scenario of a seed: the cluster's size and limits, the network's faults, the jobs, and when
which process crashes or is cut off."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import timedelta

from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan
from flinkpy.core.ids import IdFactory, JobId
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.testing.simulation.checkpointed_jobs import with_checkpoints, with_savepoints
from flinkpy.testing.simulation.simulated_jobs import SimulatedJob, random_job

FAULTS_END_S = 25.0
# Seeds 0 and 1, 5 and 6, ...: those that found something before there were checkpoints are all
# among the others.
CHECKPOINTED_OF_FIVE = 2
MASTERS_DIE = (1, 2)  # seeds 1 and 2, 6 and 7, ...: with checkpoints and without
# and 31 and 32, ...: some of these seeds, none that found something before
WORKERS_DIE_WITH_MASTERS = (11, 12)

RPC = RpcConfig(
    ask_timeout=timedelta(seconds=2),
    heartbeat_interval=timedelta(seconds=2),
    heartbeat_timeout=timedelta(seconds=7),
    registration_initial=timedelta(milliseconds=200),
    registration_max=timedelta(seconds=3),
)


@dataclass(frozen=True)
class Crash:
    """One of the workers alive at that time dies; ``noticed`` or not. After ``restart_s`` another
    one starts in its place."""

    at_s: float
    victim: int
    noticed: bool
    restart_s: float


@dataclass(frozen=True)
class ManagerCrash:
    """The ResourceManager dies, ``noticed`` or not, and another one leads after a while."""

    at_s: float
    noticed: bool
    back_after_s: float


@dataclass(frozen=True)
class MastersCrash:
    """The process of all masters dies, ``noticed`` or not, and others take over after a while."""

    at_s: float
    noticed: bool
    back_after_s: float


@dataclass(frozen=True)
class Partition:
    """A process (the client is number 0) is cut off from the masters: messages from them, to them,
    or both ways are lost."""

    at_s: float
    victim: int
    to_master: bool
    from_master: bool
    lasts_s: float


@dataclass(frozen=True)
class Scenario:
    seed: int
    static_workers: int
    slots: SlotConfig
    max_slots: int | None
    failing: float
    faults: FaultPlan
    jobs: tuple[SimulatedJob, ...]
    crashes: tuple[Crash, ...]
    partitions: tuple[Partition, ...]
    manager_crashes: tuple[ManagerCrash, ...]
    failing_files: float = 0.0
    masters_crashes: tuple[MastersCrash, ...] = ()
    workers_ask: bool = False  # who leads, as on Ray; else they are told

    @staticmethod
    def of(seed: int) -> Scenario:
        scenario = Scenario._without_checkpoints(seed)
        if seed % 5 in MASTERS_DIE:
            scenario = scenario._with_dying_masters(random.Random(seed * 7919 + 5))
        if seed % 20 in WORKERS_DIE_WITH_MASTERS:
            scenario = scenario._with_workers_that_die_with_masters(random.Random(seed * 7919 + 7))
        has_checkpoints = seed % 5 < CHECKPOINTED_OF_FIVE
        if has_checkpoints:
            scenario = scenario._with_checkpoints(random.Random(seed * 7919 + 4))
        return (
            scenario._with_savepoints(random.Random(seed * 7919 + 6))
            if _has_savepoints(seed)
            else scenario
        )

    def _with_savepoints(self, chance: random.Random) -> Scenario:
        return replace(self, jobs=tuple(with_savepoints(job, chance) for job in self.jobs))

    def _with_dying_masters(self, chance: random.Random) -> Scenario:
        crashes = tuple(
            MastersCrash(_moment(chance), chance.random() < 0.5, 4 * chance.random())
            for _ in range(chance.choice((1, 1, 2, 3)))
        )
        return replace(self, masters_crashes=crashes)

    def _with_workers_that_die_with_masters(self, chance: random.Random) -> Scenario:
        """At each death of the masters a worker dies, in the same instant or a moment before or
        after. Soon after some deaths masters die once more. The ResourceManager never dies alone,
        as on Ray."""
        masters = list(self.masters_crashes)
        again = [each for each in masters if chance.random() < 0.5]
        masters += [
            replace(each, at_s=each.at_s + each.back_after_s + chance.choice((0.01, 0.1, 1.0)))
            for each in again
        ]
        together = [
            max(0.0, each.at_s + chance.choice((0.0, 0.0, -0.01, 0.01, 0.3))) for each in masters
        ]
        crashes = tuple(
            Crash(at_s, chance.randrange(100), chance.random() < 0.5, 4 * chance.random())
            for at_s in together
        )
        return replace(
            self,
            masters_crashes=tuple(masters),
            crashes=(*self.crashes, *crashes),
            manager_crashes=(),
            workers_ask=True,
        )

    def _with_checkpoints(self, chance: random.Random) -> Scenario:
        """The same faults, and a store of files that fails, too."""
        jobs = tuple(with_checkpoints(job, chance) for job in self.jobs)
        return replace(self, jobs=jobs, failing_files=chance.choice((0.0, 0.0, 0.01, 0.1)))

    @staticmethod
    def _without_checkpoints(seed: int) -> Scenario:
        chance = random.Random(seed * 7919 + 1)
        ids, masters = IdFactory(seed * 7919 + 2), random.Random(seed * 7919 + 3)
        static, per_worker = 3, chance.choice((1, 1, 2, 3))
        # some jobs hold their slots for long, so that others wait
        stay_s = 40.0 * (masters.random() < 0.2)
        total = static * per_worker + chance.choice((0, 2, 4, 8))
        return Scenario(
            seed,
            static,
            SlotConfig(
                per_worker,
                total if chance.random() < 0.5 else None,
                timedelta(seconds=chance.choice((0, 3, 8))),
                timedelta(seconds=chance.choice((15, 40))),
                timedelta(seconds=3),
            ),
            total if chance.random() < 0.3 else None,
            chance.choice((0.0, 0.0, 0.3)),
            _faults(chance),
            tuple(
                _staying(random_job(chance, JobId(ids.hex())), stay_s)
                for _ in range(chance.choice((1, 2, 2, 3, 4)))
            ),
            tuple(_crash(chance) for _ in range(chance.choice((0, 0, 1, 2)))),
            tuple(_partition(chance) for _ in range(chance.choice((0, 0, 1, 1, 2, 3)))),
            tuple(
                ManagerCrash(_moment(masters), masters.random() < 0.5, 4 * masters.random())
                for _ in range(masters.choice((0, 0, 0, 1, 2)))
            ),
        )


def _has_savepoints(seed: int) -> bool:
    """Some with checkpoints whose masters live: again none that found something before."""
    return seed > 10 and seed % 20 in (0, 5, 10)


def _moment(chance: random.Random) -> float:
    return (FAULTS_END_S - 1) * chance.random()


def _staying(job: SimulatedJob, seconds: float) -> SimulatedJob:
    """Returns the job with a later cancellation, if its client cancels it at all."""
    return (
        replace(job, cancel_after_s=job.cancel_after_s + seconds)
        if job.cancel_after_s is not None
        else job
    )


def _crash(chance: random.Random) -> Crash:
    return Crash(_moment(chance), chance.randrange(100), chance.random() < 0.6, 4 * chance.random())


def _partition(chance: random.Random) -> Partition:
    both = chance.random() < 0.5
    to_master = both or chance.random() < 0.5
    return Partition(
        _moment(chance),
        chance.randrange(100),
        to_master,
        both or not to_master,
        chance.choice((1.0, 4.0, 12.0)) * chance.random(),
    )


def _faults(chance: random.Random) -> FaultPlan:
    """Returns the network's faults: none in one run of five."""
    if chance.random() < 0.2:
        return FaultPlan()
    rough = chance.choice((0.01, 0.05, 0.15))
    return FaultPlan(
        max_delay_s=chance.choice((0.002, 0.05, 0.3)),
        drop=rough * chance.random(),
        duplicate=rough * chance.random(),
        reorder=rough * chance.random(),
        late=rough * chance.random(),
        late_s=5.0,
        crash_noticed=0.5,
        until_s=FAULTS_END_S,
    )
