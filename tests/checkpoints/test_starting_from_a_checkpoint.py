"""A job that starts from a checkpoint of an earlier run goes on where that was, with any
parallelism."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Types
from flinkpy.common.job_client import JobClient
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.errors import JobCancelledError, JobExecutionError, ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from tests.checkpoints.paced import failing_at, run_until_it_fails, visible_lines
from tests.checkpoints.test_recovery import COUNT, FAILING, keyed, last_of_keys, source, totals
from tests.waiting import eventually

NEVER = {
    "restart-strategy.type": "none",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}


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
    run_until_it_fails(env)
    return list(map(ast.literal_eval, visible_lines(out)))


def folder_of_job(folder: Path) -> Path:
    (job,) = folder.iterdir()
    return job


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 2), (2, 1), (2, 3)])
def test_it_goes_on_where_the_other_was(before: int, after: int, tmp_path: Path) -> None:
    fails = failing_at(tmp_path / "failed", FAILING[-1])
    out = tmp_path / "out"
    assert 0 < len(run(environment(before, tmp_path / "first", **NEVER), out, fails)) < COUNT
    job = folder_of_job(tmp_path / "first")
    found = run(
        environment(after, tmp_path / "second", **{"execution.state-recovery.path": str(job)}),
        out,
        fails,
    )
    assert last_of_keys(found) == (COUNT, sorted(totals().items()))
    # it is not the second job's to delete
    assert [each.name[:4] for each in job.iterdir()] == ["chk-"]
    assert list((tmp_path / "second").iterdir()) == []


@pytest.mark.finding("faults 5")
@pytest.mark.parametrize("claim", ["CLAIM", "NO_CLAIM"])
def test_a_checkpoint_of_a_job_that_still_runs_is_refused_and_a_savepoint_of_it_is_not(
    claim: str, tmp_path: Path
) -> None:
    def start(out: str, **options: Any) -> JobClient:
        env = environment(1, tmp_path / "checkpoints", **options)
        numbers = (
            env.generate(lambda index: index, count=10**6, rate=1000)
            .uid("numbers")
            .key_by(lambda number: number % 7)
        )
        numbers.reduce(lambda a, b: max(a, b)).uid("largest").sink_to(FileSink(tmp_path / out)).uid(
            "out"
        )
        return env.execute_async("numbers")

    first = start("first", **{"execution.checkpointing.num-retained": 1000})
    eventually(lambda: any((tmp_path / "checkpoints").glob("*/chk-1/_metadata")))
    job = folder_of_job(tmp_path / "checkpoints")
    (tmp_path / "link").symlink_to(job)
    (tmp_path / "chk-of-it").symlink_to(job / "chk-1")
    (tmp_path / "all").symlink_to(tmp_path / "checkpoints")
    elsewhere = (
        tmp_path / "link",
        tmp_path / "link" / "chk-1",
        tmp_path / "chk-of-it",
        tmp_path / "all" / job.name,
        f"file://{tmp_path}/link",
    )
    for path in (job, job / "chk-1", job / "chk-1" / "_metadata", *elsewhere):
        with pytest.raises(
            ProgramError,
            match=(
                f"{path} belongs to job {job.name}, which still runs and deletes its checkpoints: "
                "take a savepoint"
            ),
        ):
            start(
                "second",
                **{
                    "execution.state-recovery.path": str(path),
                    "execution.state-recovery.claim-mode": claim,
                },
            )
    savepoint = first.trigger_savepoint(str(tmp_path / "savepoints")).result()
    second = start("second", **{"execution.state-recovery.path": savepoint})
    eventually(lambda: any((tmp_path / "second").glob("part-*")))
    for client in (first, second):
        client.cancel().result()


@pytest.mark.parametrize("claim", ["CLAIM", "NO_CLAIM"])
def test_a_savepoint_that_a_running_job_has_claimed_is_refused(claim: str, tmp_path: Path) -> None:
    def start(**options: Any) -> JobClient:
        env = environment(1, tmp_path / "checkpoints", **options)
        env.generate(lambda index: index, count=10**6, rate=100).uid("numbers").filter(
            lambda number: False
        ).uid("none").print().uid("out")
        return env.execute_async("numbers")

    def from_savepoint(path: str, claim: str) -> dict[str, Any]:
        return {
            "execution.state-recovery.path": path,
            "execution.state-recovery.claim-mode": claim,
            "execution.checkpointing.interval": "1 h",
        }

    savepoint = start().stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    (tmp_path / "link").symlink_to(savepoint)
    first = start(**from_savepoint(savepoint, "CLAIM"))
    for path in (savepoint, f"{savepoint}/_metadata", f"file://{tmp_path}/link/"):
        with pytest.raises(
            ProgramError, match=f"was claimed by job {first.get_job_id()}, which still runs"
        ):
            start(**from_savepoint(path, claim))
    first.cancel().result()
    with pytest.raises(JobCancelledError):
        first.get_job_execution_result().result(30)
    start(**from_savepoint(savepoint, claim)).cancel().result()


def test_state_that_no_operator_asks_for_is_refused_or_left_behind(tmp_path: Path) -> None:
    fails = failing_at(tmp_path / "failed", FAILING[-1])
    run(environment(1, tmp_path / "first", **NEVER), tmp_path / "out", fails)
    path = {"execution.state-recovery.path": str(folder_of_job(tmp_path / "first"))}
    with pytest.raises(
        JobExecutionError,
        match=(
            r"operators that the job does not have: 'Sum' \(uid "
            r"'sums'\).*--allow-non-restored-state"
        ),
    ):
        run(environment(1, tmp_path / "second", **path), tmp_path / "out", fails, uid="others")
    left_behind = environment(
        1, tmp_path / "third", **path, **{"execution.state-recovery.ignore-unclaimed-state": True}
    )
    found = run(left_behind, tmp_path / "anew", fails, uid="others")
    assert 0 < len(found) < COUNT  # the source goes on, the sums begin anew


def test_a_checkpoint_may_be_named_by_its_manifest(tmp_path: Path) -> None:
    fails = failing_at(tmp_path / "failed", FAILING[-1])
    run(environment(1, tmp_path / "first", **NEVER), tmp_path / "out", fails)
    (manifest,) = folder_of_job(tmp_path / "first").glob("chk-*/_metadata")
    found = run(
        environment(1, tmp_path / "second", **{"execution.state-recovery.path": str(manifest)}),
        tmp_path / "out",
        fails,
    )
    assert last_of_keys(found) == (COUNT, sorted(totals().items()))


def test_a_folder_that_has_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(JobExecutionError, match=f"the job cannot start from {path}"):
            run(
                environment(1, tmp_path / "out", **{"execution.state-recovery.path": str(path)}),
                tmp_path,
                lambda record: record,
            )
    env = environment(
        1,
        tmp_path / "out",
        **{"execution.state-recovery.path": "x", "execution.runtime-mode": "BATCH"},
    )
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match="BATCH cannot start from a checkpoint"):
        env.execute()


def test_a_damaged_checkpoint_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    fails = failing_at(tmp_path / "failed", FAILING[-1])
    run(environment(1, tmp_path / "first", **NEVER), tmp_path / "out", fails)
    (manifest,) = folder_of_job(tmp_path / "first").glob("chk-*/_metadata")
    manifest.write_bytes(manifest.read_bytes().replace(b"keyed", b"kezed", 1))
    with pytest.raises(JobExecutionError, match="the job cannot start from"):
        run(
            environment(
                1, tmp_path / "second", **{"execution.state-recovery.path": str(manifest.parent)}
            ),
            tmp_path / "out",
            fails,
        )


def test_a_job_whose_checkpoints_can_never_be_written_fails_before_it_has_done_anything(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    env = environment(1, tmp_path / "file" / "checkpoints")
    source(env).map(lambda record: (tmp_path / "done").write_text(str(record))).print()
    with pytest.raises(
        JobExecutionError,
        match=r"option execution\.checkpointing\.dir: no checkpoint can be written there: .*/file",
    ):
        env.execute()
    assert not (tmp_path / "done").exists()


def test_keys_of_another_declared_type_are_refused_as_they_would_find_no_state(
    tmp_path: Path,
) -> None:
    def start(selector: Any, key_type: TypeInformation, **options: Any) -> JobClient:
        env = environment(1, tmp_path / "checkpoints", **options)
        numbers = env.generate(lambda index: index, count=10**6, rate=1000).uid("numbers")
        numbers.key_by(selector, key_type=key_type).reduce(max).uid("largest").sink_to(
            FileSink(tmp_path / "out")
        ).uid("out")
        return env.execute_async("numbers")

    first = start(lambda number: number % 7, Types.LONG())
    savepoint = first.trigger_savepoint(str(tmp_path / "savepoints")).result()
    first.cancel().result()
    path = {"execution.state-recovery.path": savepoint}
    with pytest.raises(
        JobExecutionError,
        match=(
            r"the type of keys has changed .*: 'Reduce' \(uid 'largest'\) \(from number to "
            r"string\)"
        ),
    ):
        start(
            lambda number: str(number % 7), Types.STRING(), **path
        ).get_job_execution_result().result()
    second = start(lambda number: float(number % 7), Types.DOUBLE(), **path)
    assert second.trigger_savepoint(str(tmp_path / "savepoints")).result()
    second.cancel().result()
