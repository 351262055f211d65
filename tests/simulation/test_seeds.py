"""At least 500 seeds: every job ends, nothing leaks, invariants hold after every event, and a seed
replays identically. Two of five seeds have jobs with checkpoints: what their sinks commit is
committed once. In three of twenty, users take savepoints and stop jobs with them, and other jobs go
on from there: what both commit together is committed once.

One seed again, with every event printed: ``python -m flinkpy.testing.simulation --seed 123
--trace``."""

from __future__ import annotations

import pytest

from flinkpy.core.lifecycles import JobState
from flinkpy.testing.simulation import SeedReport, run_seed
from tests.simulation.seeds import REGRESSIONS

pytestmark = pytest.mark.slow

SEEDS, SHARD = 150, 25  # `make simulate` plays many more


@pytest.fixture(autouse=True)
def _chosen(request: pytest.FixtureRequest, quiet_engine: None) -> None:
    chosen = request.config.getoption("--seed")
    name = request.function.__name__
    if (chosen is None) == (name == "test_the_chosen_seed_plays_to_its_end"):
        pytest.skip("only with --seed" if chosen is None else "--seed chooses one")


def test_the_chosen_seed_plays_to_its_end(request: pytest.FixtureRequest) -> None:
    print(run_seed(request.config.getoption("--seed")))


@pytest.mark.wide(but=("3]", "716]"))
@pytest.mark.parametrize("seed", REGRESSIONS)
def test_a_seed_that_once_found_a_bug_plays_to_its_end(seed: int) -> None:
    run_seed(seed)


@pytest.mark.wide(but=("75]",))
@pytest.mark.parametrize("first", range(0, SEEDS, SHARD))
def test_every_job_ends_and_nothing_leaks(first: int) -> None:
    for seed in range(first, first + SHARD):
        run_seed(seed)


@pytest.mark.parametrize("seed", [1, 10, 42, 88, 121, 158])
def test_a_seed_replays_identically(seed: int) -> None:
    assert run_seed(seed) == run_seed(seed)


@pytest.mark.wide
def test_the_seeds_see_every_way_a_job_can_end() -> None:
    reports: list[SeedReport] = [run_seed(seed) for seed in range(1120, 1180)]
    ends = {state for report in reports for state in report.states.values()}
    assert ends == {JobState.FINISHED, JobState.CANCELED, JobState.FAILED}
    assert any(report.workers_started for report in reports)
    assert sum(report.checkpoints for report in reports) > 100
    assert sum(report.restored for report in reports) > 20
    assert sum(report.savepoints for report in reports) > 0
    assert sum(report.stopped for report in reports) > 0
    assert len({report.digest for report in reports}) == len(reports)
