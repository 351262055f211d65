"""Real programs in the simulated cluster: TaskExecutors and masters crash, or are taken for dead
and work on; functions fail; messages and bytes are lost, late and cut; storage fails and hangs;
jobs go on with another parallelism. What the sinks commit is what the undisturbed run commits,
exactly; nothing is left; and a seed replays identically.

One seed again, with every event printed: ``python -m flinkpy.testing.simulation --programs --seed
123 --trace``. More seeds: ``python -m flinkpy.testing.simulation --programs --seeds 0:2000 -j 2``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext

import pytest

from flinkpy.common import RowKind
from flinkpy.core.elements import SnapshotType
from flinkpy.core.errors import EngineError
from flinkpy.testing.simulation.programs import program_run
from flinkpy.testing.simulation.programs.outside_world import OutsideWorld
from flinkpy.testing.simulation.programs.program_run import (
    ProgramRun,
    expected_of,
    run_program_seed,
)
from flinkpy.testing.simulation.programs.program_scenario import ProgramScenario
from flinkpy.testing.simulation.programs.programs import DRAWN_PROGRAMS, PROGRAMS
from flinkpy.testing.simulation.programs.standing_rows import Change, standing
from flinkpy.testing.simulation.seeded_run import SimulationFailure
from tests.simulation.seeds import PROGRAM_REGRESSIONS, PROGRAM_SEEDS, REGRESSIONS_OF_PROGRAMS

SHARD = 20
CHANGING = ("sql-q4", "sql-q9", "sql-q18", "sql-q20")

# Files of a process that crashed are closed by nobody: of a real one, the system closes them.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quiet_engine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.wide(but=("749]", "835]"))
@pytest.mark.parametrize("seed", PROGRAM_REGRESSIONS)
def test_a_seed_that_once_found_a_bug_plays_to_its_end(seed: int) -> None:
    run_program_seed(seed)


@pytest.mark.wide
@pytest.mark.parametrize(("program", "seed"), REGRESSIONS_OF_PROGRAMS)
def test_a_seed_of_a_program_that_once_found_a_bug_plays_to_its_end(
    program: str, seed: int
) -> None:
    run_program_seed(seed, (program,))


@pytest.mark.wide(but=("[60]",))
@pytest.mark.parametrize("first", range(0, PROGRAM_SEEDS, SHARD))
def test_what_is_committed_is_what_the_undisturbed_run_commits_and_nothing_leaks(
    first: int,
) -> None:
    for seed in range(first, first + SHARD):
        run_program_seed(seed)


@pytest.mark.parametrize("first", [0, pytest.param(8, marks=pytest.mark.wide)])
def test_a_global_committer_commits_all_of_a_checkpoint_together_whatever_dies(first: int) -> None:
    """Writers, the committer, masters: before a commit, in it, and behind it."""
    for seed in range(first, first * 6 + 8):
        run_program_seed(seed, ("global-commits",))


@pytest.mark.wide(but=("from 0]",))
@pytest.mark.parametrize("first", range(0, 100, 5), ids="from {}".format)
def test_kinds_of_columns_survive_what_befalls_a_job(first: int) -> None:
    """Crashes, unaligned checkpoints, savepoints and other parallelisms: what is committed has the
    kinds of the undisturbed run."""
    for seed in range(first, first + 5):
        run_program_seed(seed, ("columnar-changes",))


@pytest.mark.wide(but=("windows-from 0]",))
@pytest.mark.parametrize("first", range(0, 6, 2), ids="from {}".format)
@pytest.mark.parametrize("what", ["windows", "join", "over", "versions"])
def test_queries_of_sql_survive_what_befalls_a_job(what: str, first: int) -> None:
    """The same for windows, a join and OVER of two tables, and a join with versions."""
    for seed in range(first, first + 2):
        run_program_seed(seed, (f"sql-{what}",))


@pytest.mark.wide
@pytest.mark.parametrize(("query", "seed"), [*zip(CHANGING, (7, 0, 9, 11))])
def test_queries_over_tables_that_change_survive_what_befalls_a_job(query: str, seed: int) -> None:
    """Joins, groups and ranks whose rows are corrected and withdrawn, into tables with a key and
    without: the rows that stand at the end are those of the undisturbed run. ``make simulate``
    plays more seeds."""
    run_program_seed(seed, (query,))


@pytest.mark.wide(but=("[patterns-0]", "[dynamic-patterns-0]"))
@pytest.mark.parametrize("first", range(0, 6, 2))
@pytest.mark.parametrize("program", ["patterns", "dynamic-patterns"])
def test_patterns_survive_what_befalls_a_job(program: str, first: int) -> None:
    """Crashes, savepoints and other parallelisms: matches, what timed out, and what is complete
    because nothing came are those of the undisturbed run."""
    for seed in range(first, first + 2):
        run_program_seed(seed, (program,))


PLAYED_TWICE = """
from flinkpy.testing.simulation.programs.program_run import run_program_seed

for seed in (3, 8, 17, 46, 50, 109):
    first, second = run_program_seed(seed), run_program_seed(seed)
    assert first == second, f"{first} is not {second}"
"""


def test_programs_replay_identically() -> None:
    """In a process of its own: on Python 3.10 a seed's first run differed from its second behind
    thousands of other tests."""
    command = [sys.executable, "-c", PLAYED_TWICE]
    played = subprocess.run(command, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr


@pytest.mark.wide
@pytest.mark.parametrize("seed", [13, 46])
def test_a_program_replays_identically_in_another_process(seed: int) -> None:
    """The hashes of texts differ there, and so does the order of sets of them. One of them has
    databases and a savepoint."""
    command = [
        sys.executable,
        "-m",
        "flinkpy.testing.simulation",
        "--programs",
        "--seed",
        str(seed),
    ]
    environments = [{**os.environ, "PYTHONHASHSEED": hash_seed} for hash_seed in ("1", "2")]
    told = {
        subprocess.run(command, env=each, capture_output=True, text=True, check=True).stdout
        for each in environments
    }
    assert len(told) == 1
    assert repr(run_program_seed(seed)) in told.pop()


@pytest.mark.wide
def test_the_seeds_see_what_they_are_for() -> None:
    reports = [run_program_seed(seed) for seed in range(1000, 1030)]
    scenarios = [ProgramScenario.of(seed, DRAWN_PROGRAMS) for seed in range(1000, 1030)]
    assert {report.program for report in reports} == set(DRAWN_PROGRAMS)
    assert sum(report.checkpoints for report in reports) > 100
    assert sum(report.restored for report in reports) > 20
    assert sum(report.failures for report in reports) > 5
    assert sum(report.terms > 1 for report in reports) > 3
    assert any(scenario.rescale for scenario in scenarios)
    assert any(scenario.partitions for scenario in scenarios)
    assert len({report.digest for report in reports}) == len(reports)


@pytest.mark.wide
def test_the_seeds_see_savepoints_of_every_kind_and_incremental_checkpoints() -> None:
    scenarios = [ProgramScenario.of(seed, DRAWN_PROGRAMS) for seed in range(45, 60)]
    reports = [run_program_seed(scenario.seed) for scenario in scenarios]
    taken = {
        scenario.savepoint.asked.kind
        for scenario, report in zip(scenarios, reports)
        if scenario.savepoint and report.savepoints
    }
    assert taken == {SnapshotType.SAVEPOINT, SnapshotType.SUSPEND, SnapshotType.TERMINATE}
    assert sum(report.shared_files for report in reports) > 100


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.wide] if name in CHANGING else []) for name in PROGRAMS],
)
def test_a_program_commits_the_same_with_any_parallelism(name: str) -> None:
    expected = Counter(map(repr, expected_of(name, 1)))
    assert expected
    if PROGRAMS[name].rescales:
        assert Counter(map(repr, expected_of(name, 3))) == expected


def test_whatever_a_run_raises_is_told_with_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raise_bug(run: ProgramRun) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(ProgramRun, "run", raise_bug)
    monkeypatch.setattr(program_run, "expected_of", lambda program, parallelism: ())
    with pytest.raises(
        SimulationFailure,
        match=r"seed 5 \(timers\): 'a bug'\n.* --programs timers --seed 5 --trace",
    ):
        run_program_seed(5, ("timers",))


def test_a_job_that_loses_or_doubles_a_record_is_found() -> None:
    world = OutsideWorld(random.Random(1), expected=["a", "b"])
    world.write("first", ["a"])
    world.commit("first")
    with pytest.raises(EngineError, match="never committed"):
        world.check_whole()
    world.write("second", ["a"])
    with pytest.raises(EngineError, match="too often"):
        world.commit("second")


def test_a_row_that_does_not_stand_or_should_not_is_found() -> None:
    """A deletion that is lost, an update that is, and the same update twice, which changes
    nothing."""
    first, second = Change(RowKind.INSERT, (1, "a"), (1,)), Change(RowKind.INSERT, (2, "b"), (2,))
    update = Change(RowKind.UPDATE_AFTER, (1, "c"), (1,))
    delete = Change(RowKind.DELETE, (2, "b"), (2,))
    for changes, problem in (
        ([first, second, update], "wrong: .*2, 'b'"),
        ([first, second, delete], "wrong: .*1, 'a'"),
        ([second, delete], "never committed: .*1, 'c'"),
        ([first, second, update, delete, update], None),
    ):
        world = OutsideWorld(random.Random(1), expected=[(1, "c")])
        world.write("only", changes)
        world.commit("only")
        with pytest.raises(EngineError, match=problem) if problem else nullcontext():
            world.check_whole()


def test_equal_rows_are_taken_back_one_by_one() -> None:
    add, take = (Change(kind, ("a",)) for kind in (RowKind.INSERT, RowKind.UPDATE_BEFORE))
    assert standing([take, add, add]) == [("a",)]  # of two subtasks: any order
    with pytest.raises(EngineError, match="more often"):
        standing([add, take, take])
