"""A job that starts from a checkpoint of an earlier run goes on where that was, with any parallelism."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Types
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from tests.checkpoints.paced import failing_at
from tests.checkpoints.test_recovery import COUNT, FAILING, RECORDS, keyed, last_of_keys, source

NEVER = {"restart-strategy.type": "none", "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}


def environment(parallelism: int, folder: Path, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.program.values.update({"execution.checkpointing.dir": str(folder), **options})
    return env


def run(env: StreamExecutionEnvironment, out: Path, fails: Any, uid: str = "sums") -> list[Any]:
    """Runs a job until it fails, or to its end; gives what is in the folder of its results then."""
    sums = keyed(source(env).uid("records").map(fails)).sum(1).uid(uid)
    sums.map(str, Types.STRING()).sink_to(FileSink(out)).uid("out")
    try:
        env.execute()
    except JobExecutionError as error:
        if "for the first time" not in str(error):
            raise
    parts = [part for part in out.iterdir() if not part.name.startswith(".")]
    return [ast.literal_eval(line) for part in parts for line in part.read_text().splitlines()]


def folder_of_job(folder: Path) -> Path:
    (job,) = folder.iterdir()
    return job


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 2), (2, 1), (2, 3)])
def test_it_goes_on_where_the_other_was(before: int, after: int, tmp_path: Path) -> None:
    fails = failing_at(tmp_path / "failed", FAILING[-1])
    out = tmp_path / "out"
    assert 0 < len(run(environment(before, tmp_path / "first", **NEVER), out, fails)) < COUNT
    job = folder_of_job(tmp_path / "first")
    found = run(environment(after, tmp_path / "second", **{"execution.state-recovery.path": str(job)}), out, fails)
    totals: dict[int, int] = {}
    for key, number in (record for record, _ in RECORDS):
        totals[key] = totals.get(key, 0) + number
    assert last_of_keys(found) == (COUNT, sorted(totals.items()))
    assert [each.name[:4] for each in job.iterdir()] == ["chk-"]  # it is not the second job's to delete
    assert list((tmp_path / "second").iterdir()) == []


def test_state_that_no_operator_asks_for_is_refused_or_left_behind(tmp_path: Path) -> None:
    fails = failing_at(tmp_path / "failed", FAILING[-1])
    run(environment(1, tmp_path / "first", **NEVER), tmp_path / "out", fails)
    path = {"execution.state-recovery.path": str(folder_of_job(tmp_path / "first"))}
    with pytest.raises(JobExecutionError, match=r"has state of operators that the job does not have.*allow"):
        run(environment(1, tmp_path / "second", **path), tmp_path / "out", fails, uid="others")
    left_behind = environment(1, tmp_path / "third", **path, **{"execution.state-recovery.ignore-unclaimed-state": True})
    found = run(left_behind, tmp_path / "anew", fails, uid="others")
    assert 0 < len(found) < COUNT  # the source goes on, the sums begin anew


def test_a_folder_that_has_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(JobExecutionError, match=f"the job cannot start from {path}"):
            run(environment(1, tmp_path / "out", **{"execution.state-recovery.path": str(path)}), tmp_path, lambda record: record)
    env = environment(1, tmp_path / "out", **{"execution.state-recovery.path": "x", "execution.runtime-mode": "BATCH"})
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match="BATCH cannot start from a checkpoint"):
        env.execute()


def test_a_damaged_checkpoint_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    fails = failing_at(tmp_path / "failed", FAILING[-1])
    run(environment(1, tmp_path / "first", **NEVER), tmp_path / "out", fails)
    (manifest,) = folder_of_job(tmp_path / "first").glob("chk-*/_metadata")
    manifest.write_bytes(manifest.read_bytes().replace(b"keyed", b"kezed", 1))
    with pytest.raises(JobExecutionError, match="the job cannot start from"):
        run(environment(1, tmp_path / "second", **{"execution.state-recovery.path": str(manifest.parent)}), tmp_path / "out", fails)
