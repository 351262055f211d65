"""A job goes on from a checkpoint that was written anew in the canonical form, at any parallelism
and on any backend; and tasks write that form themselves if the barrier says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core.elements import CheckpointBarrier, CheckpointOptions, SavepointFormatType
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.core.ids import ExecutionAttemptId, JobVertexId
from flinkpy.graph.checkpoints import OperatorRestore, TaskRestore
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.state_io import read_states, write_snapshot
from flinkpy.state.canonical.rewriting import rewrite
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.stored_checkpoints import load_checkpoint
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.state.inspection.checkpoint_contents import contents_of
from tests.checkpoints.made import COUNTS, JOB, SOURCE, keyed_states, operator_states
from tests.checkpoints.paced import failing_at
from tests.checkpoints.test_recovery import (
    FAILING,
    PROGRAMS,
    Program,
    by_key,
    column_joins,
    interval_joined,
    joined,
    results,
    rules,
    unions,
)
from tests.checkpoints.test_starting_from_a_checkpoint import NEVER, environment, folder_of_job

CANONICAL, NATIVE = SavepointFormatType.CANONICAL, SavepointFormatType.NATIVE
# two like sources
TOLD = {
    program: told
    for program, told in PROGRAMS
    if program not in (joined, interval_joined, unions, rules, column_joins)
}


def interrupted(program: Program, parallelism: int, tmp_path: Path) -> Path:
    """Runs the program until it fails in the middle, and gives the folder of its last
    checkpoint."""
    with pytest.raises(JobExecutionError, match="for the first time"):
        results(
            program,
            environment(parallelism, tmp_path / "first", **NEVER),
            failing_at(tmp_path / "failed", FAILING[-1]),
        )
    (checkpoint,) = folder_of_job(tmp_path / "first").iterdir()
    return checkpoint


def rest(
    program: Program, parallelism: int, savepoint: Path, tmp_path: Path, backend: str
) -> list[Any]:
    """What the job gives that goes on from there."""
    options = {"execution.state-recovery.path": str(savepoint), "state.backend.type": backend}
    return results(
        program,
        environment(parallelism, tmp_path / f"of {savepoint.name} at {parallelism}", **options),
        lambda record: record,
    )


@pytest.mark.wide(but=("sessions", "column_windows"))
@pytest.mark.parametrize("program", TOLD, ids=lambda each: each.__name__)
def test_a_job_goes_on_from_the_canonical_form_as_from_its_own(
    program: Program, tmp_path: Path
) -> None:
    checkpoint = interrupted(program, 2, tmp_path)
    canonical, native = tmp_path / "canonical", tmp_path / "native"
    rewrite(str(checkpoint), str(canonical))
    rewrite(str(canonical), str(native), NATIVE)
    told = TOLD[program]
    wanted = told(rest(program, 2, checkpoint, tmp_path, "hashmap"))
    assert told(rest(program, 2, canonical, tmp_path, "rocksdb")) == wanted
    assert told(rest(program, 3, canonical, tmp_path, "hashmap")) == wanted
    # with one reader, records of the other split would be late
    assert told(rest(program, 2, native, tmp_path, "hashmap")) == wanted
    assert wanted


def test_only_the_canonical_form_has_tables_and_both_hold_the_same(tmp_path: Path) -> None:
    checkpoint = interrupted(by_key, 2, tmp_path)
    rewrite(str(checkpoint), str(tmp_path / "canonical"))
    rewrite(str(tmp_path / "canonical"), str(tmp_path / "native"), NATIVE)
    before, canonical, after = (
        contents_of(str(folder))
        for folder in (checkpoint, tmp_path / "canonical", tmp_path / "native")
    )
    assert [
        [(state.name, state.kind, state.type, state.entries) for state in operator.states]
        for operator in before.operators
    ] == [
        [(state.name, state.kind, state.type, state.entries) for state in operator.states]
        for operator in canonical.operators
    ]
    assert [operator.states for operator in before.operators] == [
        operator.states for operator in after.operators
    ]
    assert (before.job_id, before.checkpoint_id, before.timestamp_ms) == (
        canonical.job_id,
        canonical.checkpoint_id,
        canonical.timestamp_ms,
    )
    files = {path.name.partition(".")[2] for path in (tmp_path / "canonical").glob("*.parquet")}
    assert {"waiting.0-0.parquet", "_splits.split.0-0.parquet"} <= files
    assert list((tmp_path / "native").glob("*.parquet")) == []


def test_a_target_that_is_in_use_is_refused_and_a_failure_leaves_nothing(tmp_path: Path) -> None:
    checkpoint = interrupted(by_key, 1, tmp_path)
    with pytest.raises(ProgramError, match="is not empty: name a new folder"):
        rewrite(str(checkpoint), str(checkpoint.parent))
    with pytest.raises(ProgramError, match="there is no checkpoint"):
        rewrite(str(tmp_path / "missing"), str(tmp_path / "target"))
    file = max(checkpoint.iterdir(), key=lambda path: path.name != "_metadata")
    file.write_bytes(b"")
    with pytest.raises(Exception, match=r"checkpoint .*damaged"):
        rewrite(str(checkpoint), str(tmp_path / "target"))
    assert not (tmp_path / "target").exists()


def test_a_task_writes_the_form_that_the_barrier_names(tmp_path: Path) -> None:
    storage = FileCheckpointStorage(str(tmp_path), JOB)
    task = TaskInfo("job", "map", ExecutionAttemptId(JOB, JobVertexId("map"), 0, 0), 1, 128)
    (counts,), (source,) = keyed_states(["a", "b"], 1), operator_states(1)
    frozen = {COUNTS: replace(counts, operator_name="Count"), SOURCE: source}
    barrier = CheckpointBarrier(7, 0, CheckpointOptions(format_type=CANONICAL))
    snapshot = write_snapshot(storage, barrier, task, frozen, {})
    assert [(table.name, table.rows) for table in snapshot.operators[COUNTS].tables] == [
        ("value", 2),
        ("list", 2),
        ("map", 2),
        ("reducing", 2),
        ("aggregating", 2),
    ]
    assert (tmp_path / JOB / "chk-7" / f"Count-{COUNTS[:8]}.value.0-0.parquet").exists()
    restore = TaskRestore(
        7,
        str(tmp_path / JOB / "chk-7"),
        {id_: OperatorRestore((state,)) for id_, state in snapshot.operators.items()},
    )
    found = read_states(storage, restore, task, {})
    assert found.states == {COUNTS: keyed_states(["a", "b"], 1)[0].write(), SOURCE: source.write()}


def test_a_checkpoint_is_loaded_as_it_was_stored(tmp_path: Path) -> None:
    checkpoint = interrupted(by_key, 1, tmp_path)
    stored = rewrite(str(checkpoint), str(tmp_path / "canonical"))
    assert load_checkpoint(file_store_of(str(tmp_path)), str(tmp_path / "canonical")) == stored
    assert all(
        state.tables
        for operator in stored.operators.values()
        for state in operator.subtasks.values()
    )
