"""The scenario of a program's run: how wide it is, what its cluster is like, and what goes wrong
when."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan
from flinkpy.core.elements import SavepointFormatType, SnapshotType
from flinkpy.core.options.checkpointing import RECOVER_FROM_LOCAL, RECOVERY_CLAIM
from flinkpy.core.options.engine import NetworkConfig, RpcConfig
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.machine.data_faults import DataFaults
from flinkpy.testing.simulation.machine.simulated_stream import BUFFER_AT_LEAST
from flinkpy.testing.simulation.programs.programs import PROGRAMS, Program
from flinkpy.testing.simulation.scenario import Crash, MastersCrash, Partition
from flinkpy.testing.simulation.simulated_jobs import SavepointAt

FAULTS_END_S = 12.0  # of virtual time
DIRECTORY_OPTION = "execution.checkpointing.dir"
RETENTION_OPTION = "execution.checkpointing.externalized-checkpoint-retention"
RPC = RpcConfig(
    ask_timeout=timedelta(seconds=1),
    heartbeat_interval=timedelta(milliseconds=500),
    heartbeat_timeout=timedelta(seconds=2),
    registration_initial=timedelta(milliseconds=100),
    registration_max=timedelta(seconds=1),
)
RESTARTS = {
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "100 ms",
    "restart-strategy.exponential-delay.max-backoff": "1 s",
}


DIE_TOGETHER_FROM = 1000  # seeds before it that found something stay as they were


@dataclass(frozen=True)
class Rescale:
    """After so many seconds the job is cancelled, and another one goes on from its newest
    checkpoint, with this parallelism. If it ``claims`` that, it deletes it when it needs it no
    more."""

    after_s: float
    parallelism: int
    claims: bool = False


@dataclass(frozen=True)
class SavepointPlan:
    """What a user asks for, and the job that then starts from it: with this parallelism, and with
    these options beside those of the first."""

    asked: SavepointAt
    parallelism: int
    options: dict[str, Any]


@dataclass(frozen=True)
class ProgramScenario:
    """``network`` and ``data`` are what goes wrong with control messages, and in the machines of
    the TaskExecutors. ``failing`` is how likely a function fails with each record,
    ``failing_files`` a step of the store; ``echoes``, that what a task has said comes once more,
    long after."""

    seed: int
    program: str
    parallelism: int
    chaining: bool
    workers: int
    slots: int
    pace_s: float
    configuration: dict[str, Any]
    config: NetworkConfig
    network: FaultPlan
    data: DataFaults
    crashes: tuple[Crash, ...] = ()
    partitions: tuple[Partition, ...] = ()
    masters_crashes: tuple[MastersCrash, ...] = ()
    failing: float = 0.0
    failing_files: float = 0.0
    rescale: Rescale | None = None
    savepoint: SavepointPlan | None = None
    echoes: float = 0.0
    workers_ask: bool = False  # who leads, as on Ray; else they are told

    @staticmethod
    def undisturbed(program: str, parallelism: int) -> ProgramScenario:
        """Nothing goes wrong."""
        configuration = {**RESTARTS, "execution.checkpointing.interval": "1 s"}
        return ProgramScenario(
            0,
            program,
            parallelism,
            True,
            parallelism,
            1,
            0.01,
            configuration,
            NetworkConfig(),
            FaultPlan(),
            DataFaults(),
        )

    @staticmethod
    def of(seed: int, programs: tuple[str, ...]) -> ProgramScenario:
        chance = random.Random(seed * 7919 + 5)
        parallelism, slots = chance.choice((1, 2, 2, 3)), chance.choice((1, 1, 2))
        rough, program = chance.choice((0.0, 0.3, 1.0)), programs[seed % len(programs)]
        configuration = _configuration(chance) | _more_configuration(
            random.Random(seed * 104729 + 11)
        )
        rescale = None
        if chance.random() < 0.25 and DIRECTORY_OPTION in configuration:
            rescale = Rescale(0.5 + 4 * chance.random(), chance.choice((1, 2, 3)))
            configuration[RETENTION_OPTION] = "RETAIN_ON_CANCELLATION"
        chained = chance.random() < 0.6
        return ProgramScenario(
            seed,
            program,
            parallelism,
            chained,
            -(-parallelism // slots) + chance.choice((0, 1)),
            slots,
            chance.choice((0.1, 0.3, 0.6)),
            configuration,
            _network_config(chance, chained),
            _network_faults(chance, rough),
            _data_faults(chance, rough),
            tuple(_crash(chance) for _ in range(chance.choice((0, 1, 1, 2, 4)))),
            tuple(_partition(chance) for _ in range(chance.choice((0, 0, 1, 2)))),
            tuple(_masters_crash(chance) for _ in range(chance.choice((0, 0, 0, 1, 2)))),
            failing=chance.choice((0.0, 0.0, 0.002, 0.01)),
            failing_files=chance.choice((0.0, 0.0, 0.01, 0.05)),
            rescale=rescale,
        )._extended(len(programs), random.Random(seed * 7919 + 6))

    def _extended(self, programs: int, chance: random.Random) -> ProgramScenario:
        """Some have state in RocksDB, some restart from local backups, some hear echoes, and of
        some a user asks for a savepoint: every program, and no seed that found something before."""
        turn, extended = self.seed // programs, self
        if turn % 5 in (2, 3):
            extended = replace(
                extended, configuration={**extended.configuration, **_rocksdb(chance)}
            )
        # who leads next goes on from a checkpoint, so another job could not start from a savepoint
        # that stopped this one
        if turn % 4 == 3:
            plan = _claimed(
                _savepoint(chance, PROGRAMS[self.program]), random.Random(self.seed * 7919 + 7)
            )
            extended = replace(extended, savepoint=plan, rescale=None, masters_crashes=())
        if turn % 6 in (4, 5):
            extended = replace(
                extended, configuration={**extended.configuration, **_local_recovery(chance)}
            )
        if turn % 7 in (1, 4):
            extended = replace(extended, echoes=0.3)
        if self.seed >= DIE_TOGETHER_FROM and extended.masters_crashes:
            extended = extended._with_workers_that_die_with_masters(
                random.Random(self.seed * 7919 + 8)
            )
        if extended.rescale is not None:
            extended = replace(extended, rescale=replace(extended.rescale, claims=turn % 3 == 1))
        return extended

    def _with_workers_that_die_with_masters(self, chance: random.Random) -> ProgramScenario:
        """At each death of the masters a worker dies, in the same instant or a moment before or
        after."""
        together = [
            max(0.0, each.at_s + chance.choice((0.0, 0.0, -0.01, 0.01, 0.3)))
            for each in self.masters_crashes
        ]
        crashes = tuple(
            Crash(at_s, chance.randrange(100), chance.random() < 0.5, 2 * chance.random())
            for at_s in together
        )
        return replace(self, crashes=(*self.crashes, *crashes), workers_ask=True)


def _rocksdb(chance: random.Random) -> dict[str, Any]:
    """Most checkpoints are made of the files of the databases. Those of a job that is cancelled
    stay, and nothing else."""
    memory = Path("/dev/shm")
    return {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(memory) if memory.is_dir() else tempfile.gettempdir(),
        "state.backend.rocksdb.block.cache-size": "1 mb",
        "state.backend.rocksdb.writebuffer.size": "1 mb",
        "execution.checkpointing.incremental": chance.random() < 0.8,
        DIRECTORY_OPTION: DIRECTORY,
        "execution.checkpointing.data-inline-threshold": chance.choice((0, 0, 64)),
        RETENTION_OPTION: "RETAIN_ON_CANCELLATION",
    }


def _local_recovery(chance: random.Random) -> dict[str, Any]:
    """Workers keep copies of what is saved in files, and nearly all is."""
    return {
        RECOVER_FROM_LOCAL.key: True,
        DIRECTORY_OPTION: DIRECTORY,
        "execution.checkpointing.data-inline-threshold": chance.choice((0, 0, 64)),
    }


def _savepoint(chance: random.Random, program: Program) -> SavepointPlan:
    """A job whose results are in files stops with it: later ones would not be told from those of
    the job that starts from it."""
    goes_on = SnapshotType.SAVEPOINT if program.seen is None else SnapshotType.SUSPEND
    kind = chance.choice(
        (
            goes_on,
            goes_on,
            SnapshotType.SUSPEND,
            SnapshotType.TERMINATE if program.drains else SnapshotType.SUSPEND,
        )
    )
    form = chance.choice(
        (SavepointFormatType.NATIVE, SavepointFormatType.NATIVE, SavepointFormatType.CANONICAL)
    )
    cancels_after_s = (
        chance.choice((None, 2 * chance.random())) if kind is SnapshotType.SAVEPOINT else None
    )
    asked = SavepointAt(
        0.2 + 3 * chance.random(),
        kind,
        f"{chance.getrandbits(64):016x}",
        form,
        cancels_after_s,
        again=12,
    )
    return SavepointPlan(
        asked,
        chance.choice((1, 2, 3)),
        chance.choice(({}, {"state.backend.type": "hashmap"}, _rocksdb(chance))),
    )


def _claimed(plan: SavepointPlan, chance: random.Random) -> SavepointPlan:
    """Every third job that starts from a savepoint takes it over, and deletes it when it needs it
    no more."""
    return (
        replace(plan, options={**plan.options, RECOVERY_CLAIM.key: "CLAIM"})
        if chance.random() < 1 / 3
        else plan
    )


def _crash(chance: random.Random) -> Crash:
    return Crash(
        0.3 + 6.0 * chance.random(),
        chance.randrange(100),
        chance.random() < 0.7,
        2 * chance.random(),
    )


def _masters_crash(chance: random.Random) -> MastersCrash:
    return MastersCrash(0.3 + 6.0 * chance.random(), chance.random() < 0.5, 2 * chance.random())


def _partition(chance: random.Random) -> Partition:
    """A TaskExecutor that the masters take for dead works on: its tasks run, and talk to those of
    others."""
    both = chance.random() < 0.5
    to_master = both or chance.random() < 0.5
    return Partition(
        5.0 * chance.random(),
        chance.randrange(100),
        to_master,
        both or not to_master,
        chance.choice((1.0, 9.0)) * chance.random(),
    )


def _network_config(chance: random.Random, chained: bool) -> NetworkConfig:
    """Few small segments, so that credit and room run out; but more where each operator of a query
    is a task of its own, so that all tasks of a worker get what they must have."""
    few = chance.choice((128, 512))
    return NetworkConfig(
        total_segments=few if chained else 512,
        segment_size=chance.choice((64, 256, 4096)),
        buffers_per_channel=chance.choice((1, 2)),
        floating_buffers=chance.choice((0, 2, 8)),
        batch_records=chance.choice((1, 2, 8, 64)),
        batch_bytes=chance.choice((256, 4096)),
    )


def _network_faults(chance: random.Random, rough: float) -> FaultPlan:
    return FaultPlan(
        max_delay_s=chance.choice((0.002, 0.05)),
        drop=0.05 * rough * chance.random(),
        duplicate=0.05 * rough * chance.random(),
        reorder=0.05 * rough * chance.random(),
        late=0.02 * rough * chance.random(),
        late_s=3.0,
        crash_noticed=0.7,
        background_s=chance.choice((0.01, 0.5)),
        until_s=FAULTS_END_S,
    )


def _data_faults(chance: random.Random, rough: float) -> DataFaults:
    return DataFaults(
        turn_s=chance.choice((0.001, 0.01)),
        delay_s=chance.choice((0.001, 0.02)),
        file_s=chance.choice((0.01, 0.1)),
        in_flight=chance.choice((BUFFER_AT_LEAST, 2048, 1 << 16)),
        slow=0.02 * rough * chance.random(),
        cut=rough * chance.random(),
        late=0.02 * rough * chance.random(),
        late_s=2.0,
        lost=chance.choice((0.0, 0.0, 0.003)) * rough,
        refused=0.2 * rough * chance.random(),
        hangs=chance.choice((0.0, 0.05)) * rough,
        hang_s=5.0,
        half_open=0.3,
        keepalive_s=6.0,
        until_s=FAULTS_END_S,
    )


def _configuration(chance: random.Random) -> dict[str, Any]:
    """How checkpoints are taken, and how large batches are."""
    checkpoints: dict[str, Any] = {
        "interval": f"{chance.choice((50, 200, 500))} ms",
        "timeout": f"{chance.choice((2, 10, 600))} s",
        "min-pause": f"{chance.choice((0, 0, 100))} ms",
        "max-concurrent-checkpoints": chance.choice((1, 1, 3)),
        "tolerable-failed-checkpoints": chance.choice((0, 2, 1000)),
        "num-retained": chance.choice((1, 1, 3)),
    }
    if chance.random() < 0.4:
        overtakes_after = f"{chance.choice((0, 0, 30, 300))} ms"
        checkpoints |= {
            "unaligned.enabled": True,
            "aligned-checkpoint-timeout": overtakes_after,
            "max-concurrent-checkpoints": 1,
        }
    if chance.random() < 0.7:
        checkpoints |= {"dir": DIRECTORY, "data-inline-threshold": chance.choice((0, 64, 20 << 10))}
    return {
        **RESTARTS,
        **{f"execution.checkpointing.{key}": value for key, value in checkpoints.items()},
        "taskmanager.network.batch.max-records": chance.choice((1, 3, 16)),
    }


def _more_configuration(chance: random.Random) -> dict[str, Any]:
    """What has been added, drawn apart: a seed that once found a bug stays what it was in all
    else."""
    return {"execution.checkpointing.incremental": True} if chance.random() < 0.5 else {}
