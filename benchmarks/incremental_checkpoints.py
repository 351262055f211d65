"""Checkpoints of RocksDB by files: what one writes after 1 % of the keys were touched, the pause of
the loop, and how fast a state is back. And what one of state in memory writes by key groups."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.harness import Comparison, compare, quick
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.ids import JobId
from flinkpy.core.keys import key_group
from flinkpy.graph.checkpoints import KeyedPieces
from flinkpy.state.api import ValueState
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.state_reader import location_of
from flinkpy.state.checkpoints.stored_checkpoints import checkpoint_folder
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.rocksdb.database import RocksDBConfig
from flinkpy.state.rocksdb.prepared_database import prepare_database
from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend
from flinkpy.state.snapshots.saved_state import FrozenInPieces

GROUPS = range(128)
INCREMENTS = 24


class Taken(NamedTuple):
    """A checkpoint: its pieces, the bytes written for it, and the seconds of its freeze (also of
    the processor, in all threads) and writing."""

    pieces: KeyedPieces
    written: int
    freeze_s: float
    freeze_cpu_s: float
    write_s: float


class Subject:
    """A backend with one value for each key, and the folder of its checkpoints."""

    def __init__(self, folder: str) -> None:
        self.config = RocksDBConfig(f"{folder}/local", incremental=True)
        self.backend = RocksDBKeyedStateBackend(128, GROUPS, SYSTEM_CLOCK, self.config)
        self.storage = FileCheckpointStorage(f"{folder}/checkpoints", JobId("job"))
        self.state: Any = self.backend.state(
            ValueStateDescriptor("value", Types.PICKLED_BYTE_ARRAY())
        )
        self.number = 0

    def put(self, keys: Sequence[int], value: Callable[[int], Any]) -> None:
        current, update = self.backend.current, self.state.update
        for key in keys:
            current.key = key
            update(value(key))

    def checkpoint(self, base: KeyedPieces | None = None) -> Taken:
        self.number += 1
        began, cpu = time.perf_counter(), time.process_time()
        frozen = self.backend.freeze(in_pieces=True)
        frozen_at, cpu = time.perf_counter(), time.process_time() - cpu
        assert isinstance(frozen, FrozenInPieces)
        with self.storage.state_writer(self.number, "0a-0", 0) as writer:
            _, pieces = frozen.write_pieces(base, writer)
        known = set(base.pieces.values()) if base is not None else set()
        written = sum(handle.length for handle in pieces.pieces.values() if handle not in known)
        return Taken(pieces, written, frozen_at - began, cpu, time.perf_counter() - frozen_at)


def increments(keys: int) -> Comparison:
    """Bytes of a checkpoint after another hundredth of the keys was touched each time, in their
    median, against all bytes."""
    with tempfile.TemporaryDirectory() as folder:
        subject, draw = Subject(folder), Random(7)
        subject.put(range(keys), lambda key: key)
        full = last = subject.checkpoint()
        taken = []
        for _ in range(INCREMENTS):
            subject.put(draw.sample(range(keys), keys // 100), lambda key: -key)
            last = subject.checkpoint(last.pieces)
            taken.append(last)
        subject.backend.close()
    shares = [each.written / full.written for each in taken]
    pauses = sorted(each.freeze_s * 1000 for each in taken)
    print(
        f"{keys:,} keys, of which 1 % were touched before each of {INCREMENTS} checkpoints: "
        f"{', '.join(f'{share:.1%}' for share in shares)} of {full.written:,} bytes; "
        f"mean {sum(shares) / len(shares):.1%}"
    )
    cpu_ms = sorted(each.freeze_cpu_s * 1000 for each in taken)[len(taken) // 2]
    print(
        f"the loop stands still for {pauses[len(pauses) // 2]:.1f} ms in the median "
        f"({cpu_ms:.1f} ms of the processor), "
        f"{pauses[-1]:.1f} ms at most; for {full.freeze_s * 1000:.0f} ms at the first "
        "one, with all keys new"
    )
    median = sorted(each.written for each in taken)[INCREMENTS // 2]
    return Comparison(
        "full v increment after 1 %",
        "bytes",
        full.written,
        median,
        full.written / median,
        target=1 / 0.03,
    )


def by_key_groups(keys: int) -> list[Comparison]:
    """Bytes of a checkpoint of state in memory after some keys were touched, against all bytes."""
    backend = HeapKeyedStateBackend(128, GROUPS, SYSTEM_CLOCK, incremental=True)
    state = backend.state(ValueStateDescriptor("value", Types.PICKLED_BYTE_ARRAY()))
    current = backend.current
    found = list[Comparison]()
    assert isinstance(state, ValueState)
    for current.key in range(keys):
        state.update(current.key)
    hot = [key for key in range(keys) if key_group(key, 128) < 8]
    with tempfile.TemporaryDirectory() as folder:
        storage = FileCheckpointStorage(f"{folder}/checkpoints", JobId("job"))
        base: KeyedPieces | None = None
        touched = [
            ("all", range(keys)),
            ("none", []),
            ("100 keys", Random(7).sample(range(keys), 100)),
            ("1 % of the keys", Random(8).sample(range(keys), keys // 100)),
            ("the keys of 8 groups", hot),
        ]
        for number, (what, those) in enumerate(touched, 1):
            for current.key in those:
                state.update(-number)
            frozen = backend.freeze(in_pieces=True)
            assert isinstance(frozen, FrozenInPieces)
            began = time.perf_counter()
            with storage.state_writer(number, "0a-0", 0) as writer:
                pieces = frozen.write_pieces(base, writer)[1]
            took_s = time.perf_counter() - began
            known = set(base.pieces.values()) if base is not None else set()
            full = sum(handle.length for handle in pieces.pieces.values())
            written = sum(handle.length for handle in pieces.pieces.values() if handle not in known)
            print(
                f"{keys:,} keys in memory, touched {what}: {written:,} of {full:,} bytes "
                f"({written / full:.1%}) in {took_s:.2f} s"
            )
            found.append(
                Comparison(
                    f"in memory, touched {what}: all v written",
                    "bytes",
                    full,
                    written,
                    full / max(written, 1),
                )
            )
            base = pieces
    return found


def restores(keys: int, value_size: int) -> Comparison:
    """Bytes a second from the files of a checkpoint to an open database, against reading the files.
    Each time they come from the disk. Ten gigabytes: ``restores(1_000_000, 10_000)``; the disk
    needs room for three times as much."""
    with tempfile.TemporaryDirectory() as folder:
        subject, draw = Subject(folder), Random(7)
        subject.put(range(keys), lambda key: draw.randbytes(value_size))
        taken = subject.checkpoint()
        subject.backend.close()
        checkpoint = checkpoint_folder(subject.storage.job_dir, 1)
        reader = subject.storage.reader(checkpoint)
        files = {
            location_of(checkpoint, each)
            for each in taken.pieces.pieces.values()
            if each.path is not None
        }

        def restore() -> float:
            forget(files)
            began = time.perf_counter()
            prepared = prepare_database(reader, [taken.pieces], 128, GROUPS, subject.config)
            rate = taken.written / (time.perf_counter() - began)
            prepared.store.close()
            return rate / 1e6

        def read() -> float:
            forget(files)
            began = time.perf_counter()
            for file in files:
                with Path(file).open("rb", buffering=0) as opened:
                    while opened.read(1 << 20):
                        pass
            return taken.written / (time.perf_counter() - began) / 1e6

        print(f"a state of {taken.written:,} bytes was written in {taken.write_s:.1f} s")
        return compare(
            "restore v reading the files",
            restore,
            read,
            unit="MB/s",
            target=1.0,
            rounds=1 if quick() else 3,
        )


def forget(files: Iterable[str]) -> None:
    """Takes the files out of the page cache."""
    for file in files:
        with Path(file).open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> list[Comparison]:
    if quick():
        return [increments(20_000), *by_key_groups(20_000), restores(2_000, 500)]
    return [increments(1_000_000), *by_key_groups(1_000_000), restores(1_500_000, 1000)]


if __name__ == "__main__":
    main()
