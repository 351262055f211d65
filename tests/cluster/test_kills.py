"""Workers and the JobManager are killed again and again while one job runs (``kill -9``): nothing
is lost, nothing comes twice, nothing is left.

``python -m benchmarks.kills`` does so for longer, and at random times."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from benchmarks.kills.journal import Attempt, Journal
from benchmarks.kills.program import Input
from benchmarks.kills.run import disturbed, left_behind, options_of, undisturbed, wrong_output
from benchmarks.kills.strikes import Killer, Target
from benchmarks.kills.transaction_log import TransactionLog
from tests.cluster.test_recovery import newest_checkpoint
from tests.waiting import eventually

pytestmark = pytest.mark.wide

# enough for five minutes on a slow machine; what is left then comes at once
COUNT = 60_000
RATE = 200.0


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.finding("faults 1")
def test_a_job_whose_processes_are_killed_six_times_writes_what_the_undisturbed_one_writes(
    on_ray: None, tmp_path: Path
) -> None:
    mine = tmp_path / "disturbed"
    expected = tmp_path / "undisturbed"
    released = tmp_path / "released"
    undisturbed(Input(COUNT, RATE, 0), expected, {})
    records = Input(COUNT, RATE, int(time.time_ns() // 1_000_000), str(released))
    chance = random.Random(5)
    strikes = [
        (target, by)
        for target in (Target.WORKER, Target.JOB_MANAGER)
        for by in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
    ]
    chance.shuffle(strikes)
    with disturbed(records, mine, options_of("kills", mine)) as run:
        killer = Killer(run.processes, run.journal, chance, run.has_ended)
        for target, by in strikes:
            taken = newest_checkpoint(mine / "checkpoints")
            eventually(lambda before=taken: newest_checkpoint(mine / "checkpoints") > before)  # type: ignore[misc]
            eventually(run.is_committing)  # as soon as sinks have prepared the next one
            killer.await_output(killer.strike_surely(target, by))
        released.touch()
        run.await_end()
    assert wrong_output(mine, expected) == []
    assert left_behind(mine, run.processes) == []
    assert len(killer.strikes) == len(strikes)
    assert killer.attempts() > len(strikes)


# -- the log ---------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> TransactionLog:
    log = TransactionLog(tmp_path)
    log.create()
    return log


def test_a_transaction_is_seen_once_it_is_committed_and_committing_twice_changes_nothing(
    log: TransactionLog, tmp_path: Path
) -> None:
    begun = log.begin("a")
    begun.write(["1", "2"])
    name = begun.prepare()
    assert log.read() == []
    another_process = TransactionLog(tmp_path)
    another_process.commit(name)
    log.commit(name)
    assert log.read() == ["1", "2"]
    assert log.unfinished() == []


def test_a_transaction_that_was_aborted_can_neither_be_prepared_nor_committed(
    log: TransactionLog,
) -> None:
    begun, prepared = log.begin("0_3_1"), log.begin("0_2_1")
    prepared.prepare()
    log.abort(lambda name: name.startswith("0_"))
    with pytest.raises(FileNotFoundError):
        begun.prepare()
    with pytest.raises(LookupError, match="0_2_1 is neither prepared nor committed"):
        log.commit("0_2_1")
    assert log.unfinished() == []


def test_a_journal_has_the_entries_of_all_processes_in_their_order(tmp_path: Path) -> None:
    mine = Journal(str(tmp_path / "j"))
    other = Journal(str(tmp_path / "j"))
    attempt = Attempt("sums", 1, 7)
    mine.add("opened", attempt)
    assert [entry.what for entry in mine.entries()] == ["opened"]
    other.add("output", attempt)
    assert [(entry.what, entry.attempt) for entry in mine.entries()] == [
        ("opened", attempt),
        ("output", attempt),
    ]
    assert mine.entries()[0].at <= mine.entries()[1].at
