"""Checkpoints with files in common, and savepoints of Parquet files, whose files were altered: what
a task starts from is what was saved, or the error names what is damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.ids import ExecutionAttemptId, JobVertexId, OperatorId
from flinkpy.core.keys import key_group, key_group_range
from flinkpy.graph.checkpoints import (
    CompletedCheckpoint,
    KeyedPieces,
    OperatorCheckpoint,
    OperatorRestore,
    OperatorSubtaskState,
    TaskRestore,
)
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.state_io import read_states
from flinkpy.state.canonical.rewriting import rewrite
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.inspection.checkpoint_contents import contents_of
from flinkpy.state.snapshots.saved_state import FrozenInPieces
from flinkpy.state.table_backend import TableBackend
from flinkpy.state_processor import OperatorIdentifier, SavepointReader
from tests.checkpoints.made import COUNTS, JOB, keyed_states, operator_states, stored
from tests.state.checkpoints.test_damaged_checkpoints import alter
from tests.state.helpers import _IN_MEMORY, MAX_PARALLELISM, states

Restored: TypeAlias = Mapping[tuple[int, OperatorId], object]
COPIES = 50  # altered ones of each kind
KEYS = [f"key {number}" for number in range(60)]
SUBTASKS = 2


def hashmap(groups: range) -> TableBackend:
    return HeapKeyedStateBackend(MAX_PARALLELISM, groups, ManualClock(), incremental=True)


def rocksdb(groups: range) -> TableBackend:
    pytest.importorskip("rocksdict")
    from flinkpy.state.rocksdb.database import RocksDBConfig
    from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend

    return RocksDBKeyedStateBackend(
        MAX_PARALLELISM, groups, ManualClock(), RocksDBConfig(_IN_MEMORY, incremental=True)
    )


def increments(folder: Path, make: Callable[[range], TableBackend]) -> None:
    """Three checkpoints of a job, each of which builds on the one before; of the first there is
    nothing but what the others use."""
    storage = FileCheckpointStorage(str(folder), JOB, threshold=100)
    backends = [
        make(key_group_range(subtask, MAX_PARALLELISM, SUBTASKS)) for subtask in range(SUBTASKS)
    ]
    base: dict[int, KeyedPieces] = {}
    found: list[CompletedCheckpoint] = []
    for number in range(1, 4):
        saved = {}
        for subtask, backend in enumerate(backends):
            made, groups = states(backend), key_group_range(subtask, MAX_PARALLELISM, SUBTASKS)
            for key in KEYS[:: 20 if number > 1 else 1]:
                if key_group(key, MAX_PARALLELISM) in groups:
                    backend.current.key = key
                    made["value"].update(number)
                    made["list"].add(number)
            frozen = backend.freeze(in_pieces=True)
            assert isinstance(frozen, FrozenInPieces)
            with storage.state_writer(number, f"{COUNTS}-{subtask}", 0) as writer:
                rest, base[subtask] = frozen.write_pieces(base.get(subtask), writer)
                saved[subtask] = OperatorSubtaskState(
                    None if rest is None else writer.write(rest), pieces=base[subtask]
                )
        found.append(
            storage.store(
                CompletedCheckpoint(
                    number,
                    0,
                    {COUNTS: OperatorCheckpoint("counts", SUBTASKS, MAX_PARALLELISM, saved)},
                )
            )
        )
    for backend in backends:
        backend.close()
    assert found[1].shared_files() & found[2].shared_files()
    storage.discard(found[0])


def savepoint(folder: Path) -> None:
    """A savepoint in the canonical form, with the folder of the checkpoint that it was made of."""
    operators = {
        COUNTS: ("counts", keyed_states(KEYS, SUBTASKS)),
        OperatorId("50" * 16): ("source", operator_states(SUBTASKS)),
    }
    checkpoint = stored(folder / "of", operators)
    rewrite(str(checkpoint.location), str(folder / "savepoint"))
    shutil.rmtree(folder / "of")


INTO = {"state.backend.type": "hashmap", "state.backend.rocksdb.localdir": _IN_MEMORY}
KINDS: dict[str, Callable[[Path], None]] = {
    "key groups": lambda folder: increments(folder, hashmap),
    "RocksDB": lambda folder: increments(folder, rocksdb),
    "Parquet": savepoint,
}


def restored(folder: Path, location: str) -> Restored:
    """What the tasks of a job start from: the bytes of all their states."""
    storage = FileCheckpointStorage(str(folder), JOB)
    checkpoint, found = storage.load(location), dict[tuple[int, OperatorId], object]()
    for subtask in range(SUBTASKS):
        task = TaskInfo(
            "job",
            "map",
            ExecutionAttemptId(JOB, JobVertexId("map"), subtask, 0),
            SUBTASKS,
            MAX_PARALLELISM,
        )
        operators = {
            id_: OperatorRestore(tuple(each.subtasks[at] for at in range(SUBTASKS)))
            for id_, each in checkpoint.operators.items()
        }
        read = read_states(
            storage,
            TaskRestore(checkpoint.checkpoint_id, checkpoint.location, operators),
            task,
            INTO,
        )
        found |= {(subtask, id_): state for id_, state in read.states.items()}
    return found


def locations(folder: Path) -> list[str]:
    return sorted(str(path.parent) for path in folder.rglob("_metadata"))


def attempt(damaged: list[str], action: Callable[..., Any], *arguments: Any) -> Any:
    """What the action gives; None if it says that something is damaged."""
    try:
        return action(*arguments)
    except CheckpointDamagedError as error:
        damaged.append(str(error))
        return None


@pytest.fixture(scope="module", params=list(KINDS))
def intact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact")
    KINDS[request.param](folder)
    return folder


@pytest.mark.wide(but=("key groups-0",))
@pytest.mark.parametrize("part", range(2))
def test_what_a_task_starts_from_is_what_was_saved_or_an_error_that_names_the_file(
    intact: Path, part: int, tmp_path: Path
) -> None:
    wanted = [restored(intact, location) for location in locations(intact)]
    shown = [contents_of(location, 3).operators for location in locations(intact)]
    damaged, noticed = list[str](), 0
    for seed in range(COPIES * part, COPIES * part + COPIES):
        folder = shutil.copytree(intact, tmp_path / str(seed))
        done = alter(sorted(path for path in folder.rglob("*") if path.is_file()), Random(seed))
        before = len(damaged)
        for location, expected, operators in zip(locations(folder), wanted, shown):
            found = attempt(damaged, restored, folder, location)
            assert found is None or found == expected, done
            seen = attempt(damaged, contents_of, location, 3)
            assert seen is None or seen.damaged or seen.operators == operators, done
            assert (found is None) == (seen is None or bool(seen.damaged)), done
        noticed += len(damaged) > before
    assert noticed > COPIES * 0.6
    assert all(str(tmp_path) in error for error in damaged), damaged


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["key groups", "RocksDB"])
def test_a_job_starts_from_the_newest_checkpoint_whose_files_are_there(
    kind: str, tmp_path: Path
) -> None:
    intact = tmp_path / "intact"
    KINDS[kind](intact)
    wanted = {
        location.rpartition("-")[2]: restored(intact, location) for location in locations(intact)
    }
    chosen = set()
    for seed in range(COPIES):
        folder = shutil.copytree(intact, tmp_path / str(seed))
        done = alter(sorted(path for path in folder.rglob("*") if path.is_file()), Random(seed))
        newest = FileCheckpointStorage(str(folder), JOB).latest()
        chosen.add(None if newest is None else newest.checkpoint_id)
        if newest is not None:
            found = attempt([], restored, folder, str(newest.location))
            assert found is None or found == wanted[str(newest.checkpoint_id)], done
    assert {2, 3} <= chosen


def test_who_reads_a_damaged_savepoint_in_python_gets_what_was_saved_or_an_error(
    tmp_path: Path,
) -> None:
    intact = tmp_path / "intact"
    savepoint(intact)

    def read(folder: Path) -> list[Any]:
        reader = SavepointReader.read(str(folder / "savepoint"))
        return [
            list(reader.read_keyed_state(OperatorIdentifier.for_uid_hash(COUNTS), name))
            for name in ("value", "map", "aggregating")
        ]

    wanted, damaged = read(intact), list[str]()
    for seed in range(COPIES):
        folder = shutil.copytree(intact, tmp_path / str(seed))
        done = alter(sorted(path for path in folder.rglob("*") if path.is_file()), Random(seed))
        found = attempt(damaged, read, folder)
        assert found is None or found == wanted, done
    assert damaged
