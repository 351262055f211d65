"""The cost of 10^7 keys of state: bytes per key, the process's memory, and time per record, with
the hash map and with RocksDB.

    python -m benchmarks state_memory [--quick]

Each measurement has a process of its own, because a process does not return freed memory. The bare
side is a plain dict with the same work."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend

GROUPS = 128
LIMIT_BYTES = 2.5e9
BATCH = 4096
SIDES = ("dict", "hashmap", "rocksdb")


def resident() -> int:
    """Bytes that this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def backend_of(side: str) -> KeyedStateBackend:
    if side == "hashmap":
        return HeapKeyedStateBackend(GROUPS, range(GROUPS), SYSTEM_CLOCK)
    from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend

    return RocksDBKeyedStateBackend(GROUPS, range(GROUPS), SYSTEM_CLOCK)


def count_in_dict(batches: list[list[int]], counts: dict[int, int]) -> None:
    for batch in batches:
        for key in batch:
            counts[key] = counts.get(key, key) + 1


def count_in_state(batches: list[list[int]], backend: KeyedStateBackend, state: Any) -> None:
    current, value, update = backend.current, state.value, state.update
    for batch in batches:
        for key in batch:
            current.key = key
            update((value() or key) + 1)


def measure(side: str, keys: int, records: int) -> dict[str, float]:
    """Counts every key once, then ``records`` random ones: returns bytes per key, peak bytes, and
    nanoseconds per random record."""
    before = resident()
    counts: dict[int, int] = {}
    backend = backend_of(side) if side != "dict" else None
    state = backend.state(ValueStateDescriptor("count")) if backend is not None else None

    def run(batches: list[list[int]]) -> None:
        if backend is None:
            count_in_dict(batches, counts)
        else:
            count_in_state(batches, backend, state)

    started = time.perf_counter()
    for start in range(0, keys, BATCH):
        run([[(number * 7919) % keys for number in range(start, min(keys, start + BATCH))]])
    filled = time.perf_counter() - started
    held = resident() - before
    rng = random.Random(keys)
    batches = [[rng.randrange(keys) for _ in range(BATCH)] for _ in range(records // BATCH)]
    started = time.perf_counter()
    run(batches)
    cost = (time.perf_counter() - started) * 1e9 / (len(batches) * BATCH)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if backend is not None:
        backend.close()
    return {"bytes": held / keys, "peak": peak, "cost": cost, "fill": filled * 1e9 / keys}


def in_a_process(side: str, keys: int, records: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.state_memory",
        "--measure",
        side,
        str(keys),
        str(records),
    ]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def main() -> list[Comparison]:
    keys, records = (20_000, 40_960) if quick() else (10_000_000, 1_024_000)
    found = {side: in_a_process(side, keys, records) for side in SIDES}
    few = {side: in_a_process(side, 1_000, records) for side in SIDES}
    results = []
    for side in SIDES[1:]:
        ours, bare = found[side], found["dict"]
        note = (
            f"peak {ours['peak'] / 1e9:.2f} GB (at most {LIMIT_BYTES / 1e9:g}), filling "
            f"{ours['fill']:,.0f} ns a key"
        )
        ratio = ours["bytes"] / bare["bytes"]
        results.append(
            Comparison(
                f"{side}, {keys:,} keys int to int",
                "bytes/key",
                ours["bytes"],
                bare["bytes"],
                ratio,
                None,
                note,
            )
        )
        growth, bare_growth = ours["cost"] / few[side]["cost"], bare["cost"] / few["dict"]["cost"]
        note = (
            f"a record costs {growth:.2f} times what it costs with 1,000 keys; in a plain "
            f"dict {bare_growth:.2f} times"
        )
        ratio = ours["cost"] / bare["cost"]
        results.append(
            Comparison(
                f"{side}, read and write at random",
                "ns/record",
                ours["cost"],
                bare["cost"],
                ratio,
                None,
                note,
            )
        )
    for result in results:
        print(result, flush=True)
    return results


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()
