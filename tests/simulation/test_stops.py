"""A job is stopped with a savepoint, and its masters die at any moment of that: before the
savepoint is complete, while sinks commit for it, while tasks end. The job stops all the same, and
what it and the one that goes on from the savepoint commit together is committed once: in jobs of
stand-ins for tasks, and in real programs."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan
from flinkpy.core.elements import SnapshotType
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.job_graph import DistributionPattern, JobGraph
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.programs.program_run import ProgramReport, ProgramRun, expected_of
from flinkpy.testing.simulation.programs.program_scenario import ProgramScenario
from flinkpy.testing.simulation.programs.programs import DRAWN_PROGRAMS
from flinkpy.testing.simulation.scenario import Crash, MastersCrash, Scenario
from flinkpy.testing.simulation.seeded_run import SeedReport, SimulationRun
from flinkpy.testing.simulation.simulated_jobs import (
    JobBuilder,
    SavepointAt,
    SimulatedJob,
    StreamBehaviour,
    TaskBehaviour,
)

# when it is asked for, when the stop gets so far, and when an undisturbed job has ended
STOP_S = 2.0
BEGINS_S = 3.0
ENDED_S = 4.6

# Files of a process that crashed are closed by nobody: of a real one, the system closes them.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quiet_engine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NEVER_S = 400.0  # such a crash only says that masters come back


def graph() -> JobGraph:
    """Two sources read for some ten seconds; two subtasks pass their records on to two sinks."""
    options = {
        "execution.checkpointing.interval": "400 ms",
        "execution.checkpointing.dir": DIRECTORY,
        "restart-strategy.type": "exponential-delay",
    }
    builder = JobBuilder(JobId("ab" * 16), configuration=options)
    source = builder.vertex(2, [], TaskBehaviour(run_s=0.0), splits=40)
    middle = builder.vertex(2, [(source, DistributionPattern.ALL_TO_ALL)])
    builder.vertex(2, [(middle, DistributionPattern.ALL_TO_ALL)])
    for vertex in builder.graph.vertices:
        stream = StreamBehaviour(vertex.operators[0].operator_id, read_s=0.2)
        vertex.chain = replace(pickle.loads(vertex.chain), stream=stream).dumps()
    return builder.build()


def run(
    kind: SnapshotType,
    seed: int,
    masters: tuple[MastersCrash, ...],
    workers: tuple[Crash, ...] = (),
) -> SeedReport:
    asked = SavepointAt(STOP_S, kind, "stop")
    scenario = Scenario(
        seed,
        3,
        SlotConfig(2, None, timedelta(seconds=8), timedelta(seconds=40), timedelta(seconds=3)),
        None,
        0.0,
        FaultPlan(max_delay_s=0.05, background_s=0.2),
        (SimulatedJob(graph(), 0.0, None, (asked,)),),
        workers,
        (),
        (),
        masters_crashes=masters,
    )
    return SimulationRun(scenario).run()


@pytest.mark.parametrize("kind", [SnapshotType.SUSPEND, SnapshotType.TERMINATE])
def test_an_undisturbed_job_stops_and_another_one_goes_on(kind: SnapshotType) -> None:
    report = run(kind, 1, ())
    assert (report.stopped, report.savepoints, report.terms) == (1, 1, 0)
    assert list(report.states.values()) == [JobState.FINISHED] * 2


@pytest.mark.parametrize("kind", [SnapshotType.SUSPEND, SnapshotType.TERMINATE])
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.wide) for n in range(8, 25))]
)
def test_a_job_stops_whenever_its_masters_die(kind: SnapshotType, seed: int) -> None:
    chance = Random(seed)
    first = MastersCrash(
        BEGINS_S + (ENDED_S - BEGINS_S) * chance.random(), chance.random() < 0.5, chance.random()
    )
    second = MastersCrash(first.at_s + first.back_after_s + 2 * chance.random(), True, 0.5)
    worker = Crash(first.at_s + chance.random(), seed, True, 0.5)
    report = run(
        kind,
        seed,
        (first, second) if seed % 4 == 0 else (first,),
        (worker,) if seed % 3 == 0 else (),
    )
    assert (report.stopped, report.savepoints) == (1, 1)
    assert list(report.states.values()) == [JobState.FINISHED] * 2


PROGRAMS = (*DRAWN_PROGRAMS, "global-commits", "columnar-changes", "sql-windows")
PLANS = {seed: ProgramScenario.of(seed, PROGRAMS).savepoint for seed in range(200)}
PROGRAM_SEEDS = [
    seed for seed, plan in PLANS.items() if plan is not None and plan.asked.kind.stops_job
]
# an attempt that began when a later one had begun removed the part files of that one
A_LATE_ORDER = 179
# who had been told of the savepoint and asked once more was refused: the job had ended, with it
ASKED_AGAIN = 71


def run_program(seed: int) -> ProgramReport:
    """Its masters die soon after the savepoint is complete."""
    chance = Random(seed)
    scenario = replace(
        ProgramScenario.of(seed, PROGRAMS), masters_crashes=(MastersCrash(NEVER_S, True, 1.0),)
    )
    played = ProgramRun(scenario, expected_of(scenario.program, scenario.parallelism))
    cluster, network, note = played.cluster, played.network, played.cluster.files.savepoint_appears
    crashes = iter([0.15 * chance.random()])

    def appears(location: str) -> None:
        note(location)
        for delay_s in crashes:
            network.schedule(
                delay_s, lambda: cluster.crash_masters(chance.random(), noticed=True), "crash"
            )

    cluster.files.savepoint_appears = appears
    return played.run()


@pytest.mark.wide(but=tuple(f"{seed}]" for seed in (*PROGRAM_SEEDS[:4], A_LATE_ORDER)))
@pytest.mark.parametrize("seed", sorted({*PROGRAM_SEEDS[:15], A_LATE_ORDER, ASKED_AGAIN}))
def test_a_program_stops_when_its_masters_die_behind_its_savepoint(seed: int) -> None:
    report = run_program(seed)
    # it may have ended before, or have been refused
    assert (report.savepoints, report.terms) in ((0, 1), (0, 2), (1, 2))
