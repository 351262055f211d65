"""How long a subtask takes to restore its state, where the time goes, and how long until a first
record has been processed with it.

    python -m benchmarks restore [--quick]

State of many keys is written to a checkpoint in files, and restored as a task restores it: from the
checkpoint's own files in a store that has to copy each, as object stores have (far); from the
copies of local recovery; and from files on the same disk (linked). Parts, in seconds of the
processor:

    read       until the bytes are here and checked, and RocksDB's database is open
    decode     until the backend has them
    record     the first look at a value
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.harness import Comparison, quick
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.graph.checkpoints import OperatorRestore, TaskRestore
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.state_io import read_states, write_snapshot
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.local_backup import BackupFolder, LocalBackup
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.heap.running_values import RUNNING_RESULT
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState

GROUPS = 128
JOB, OPERATOR = JobId("5f3a0c9e" * 4), OperatorId("0c" * 16)
INFO = TaskInfo("job", "task", ExecutionAttemptId(JOB, JobVertexId("0a" * 16), 0, 0), 1, GROUPS)
KINDS = ("numbers", "values", "rocksdb")  # a table of numbers, a dict, a database


class FarStore(LocalFileStore):
    """Files that can only be copied."""

    def link(self, location: str, path: str) -> bool:
        return False


def backend_of(kind: str, folder: str) -> KeyedStateBackend:
    if kind != "rocksdb":
        return HeapKeyedStateBackend(GROUPS, range(GROUPS), SYSTEM_CLOCK)
    from flinkpy.state.rocksdb.database import RocksDBConfig
    from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend

    return RocksDBKeyedStateBackend(
        GROUPS, range(GROUPS), SYSTEM_CLOCK, RocksDBConfig(folder, incremental=True)
    )


def state_of(kind: str, backend: KeyedStateBackend) -> Any:
    return (
        backend.engine_values(RUNNING_RESULT)
        if kind == "numbers"
        else backend.state(ValueStateDescriptor("value", Types.LONG()))
    )


def filled(kind: str, keys: int, folder: str) -> KeyedStateBackend:
    backend = backend_of(kind, folder)
    state = state_of(kind, backend)
    if kind == "numbers":
        state.update((key, (key, key * 3)) for key in range(keys))
        state.plain()
        return backend
    current, update = backend.current, state.update
    for key in range(keys):
        current.key = key
        update(key * 3)
        if kind == "rocksdb" and key % 4096 == 0:
            backend.after_records(4096)
    return backend


def measure(kind: str, source: str, keys: int) -> Mapping[str, float]:
    """The seconds of each part."""
    with tempfile.TemporaryDirectory() as folder:
        values = {
            "state.backend.type": "rocksdb" if kind == "rocksdb" else "hashmap",
            "state.backend.rocksdb.localdir": f"{folder}/db",
            "execution.checkpointing.incremental": kind == "rocksdb",
        }
        backup = LocalBackup(
            lambda: BackupFolder.on_disk(
                {"execution.checkpointing.local-backup.dirs": f"{folder}/local"}
            )
        )
        store = LocalFileStore() if source == "linked" else FarStore()
        storage = FileCheckpointStorage(
            f"{folder}/checkpoints",
            JOB,
            stores=lambda _: store,
            backup=backup if source == "copies" else None,
        )
        backend = filled(kind, keys, f"{folder}/db")
        frozen = {OPERATOR: FrozenState(backend.freeze(in_pieces=kind == "rocksdb"))}
        snapshot = write_snapshot(storage, CheckpointBarrier(1, 0), INFO, frozen, {})
        storage.was_saved(1, snapshot.handles())
        backend.close()
        del backend, frozen
        size = sum(handle.length for handle in snapshot.handles())
        restore = TaskRestore(
            1,
            f"{storage.job_dir}/chk-1",
            {OPERATOR: OperatorRestore((snapshot.operators[OPERATOR],))},
        )

        times = [time.process_time()]
        states: dict[OperatorId, SavedState] = dict(
            read_states(storage, restore, INFO, values).states
        )
        times.append(time.process_time())
        restored, state = backend_of(kind, f"{folder}/db"), states.pop(OPERATOR)
        if state.pieces is not None:
            restored.restore_pieces(state.pieces)
        if state.keyed is not None:
            restored.restore(state.keyed)
        made = state_of(kind, restored)
        times.append(time.process_time())
        restored.current.key = keys // 2
        found = made[keys // 2][1] if kind == "numbers" else made.value()
        times.append(time.process_time())
        assert found == keys // 2 * 3
        assert (backup.statistics.taken > 0) == (source == "copies")
        restored.close()
        backup.close()
        return {
            "mb": size / 1e6,
            **{
                part: end - begin
                for part, begin, end in zip(("read", "decode", "record"), times, times[1:])
            },
        }


def in_a_process(kind: str, source: str, keys: int) -> dict[str, float]:
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.restore", kind, source, str(keys)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    return {name: float(value) for name, value in (part.split("=") for part in made.stdout.split())}


def main(keys: int | None = None) -> list[Comparison]:
    keys = keys or (100_000 if quick() else 1_000_000)
    found = []
    for kind in KINDS:
        for source in ("far", "copies", "linked"):
            parts = in_a_process(kind, source, keys)
            print(
                f"{keys:,} keys, {kind}, {source}: {parts.pop('mb'):.0f} MB  "
                + "  ".join(f"{name} {took:.3f}" for name, took in parts.items()),
                flush=True,
            )
            found.append(
                Comparison(
                    f"restore {kind} from {source}",
                    "s",
                    sum(parts.values()),
                    sum(parts.values()),
                    1.0,
                )
            )
    return found


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(
            " ".join(
                f"{name}={value}"
                for name, value in measure(sys.argv[1], sys.argv[2], int(sys.argv[3])).items()
            )
        )
    else:
        main(*map(int, sys.argv[1:2]))
