"""A job under back-pressure, its buffers full behind a slow function: how long a checkpoint takes
and how large it is, aligned against unaligned."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.state.checkpoints.checkpoint_storage import MemoryCheckpointStorage

INTERVAL_MS, COST_S = 500, 0.0002
WAYS: dict[str, dict[str, Any]] = {
    "aligned": {},
    "unaligned": {"execution.checkpointing.unaligned.enabled": True},
    "unaligned after 1 s": {
        "execution.checkpointing.unaligned.enabled": True,
        "execution.checkpointing.aligned-checkpoint-timeout": "1 s",
    },
}


def slow(pair: tuple[int, int]) -> tuple[int, int]:
    """A function that computes for 0.2 ms."""
    until = time.perf_counter() + COST_S
    while time.perf_counter() < until:
        pass
    return pair


def checkpoints(folder: Path, seen: set[str]) -> Iterator[tuple[float, int]]:
    """Seconds from the beginning to the manifest, and bytes, of each checkpoint that is new in the
    folder."""
    for manifest in folder.glob("*/chk-*/_metadata"):
        with suppress(OSError, CheckpointDamagedError):  # it may be deleted now
            if str(manifest) not in seen:
                seen.add(str(manifest))
                checkpoint = MemoryCheckpointStorage().load(str(manifest))
                yield manifest.stat().st_mtime - checkpoint.timestamp_ms / 1000, checkpoint.size


def measure(options: dict[str, Any], records: int) -> list[tuple[float, int]]:
    """Runs the job; returns the time and size of its checkpoints."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(INTERVAL_MS)
    found: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
        env.program.values.update({"execution.checkpointing.num-retained": 20, **options})
        sums = (
            env.from_sequence(1, records)
            .map(lambda n: (n % 1000, n))
            .key_by(lambda pair: pair[0])
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
        )
        sums.key_by(lambda pair: pair[1]).map(slow).filter(lambda pair: pair[1] < 0).print()
        client, seen = env.execute_async(), set[str]()
        done = client.get_job_execution_result()
        while not done.done():
            found += checkpoints(Path(folder), seen)
            time.sleep(0.05)
        done.result()
    return found


def main() -> list[Comparison]:
    records = 5_000 if quick() else 60_000
    for name, options in WAYS.items():
        found = measure(options, records)
        times = sorted(seconds for seconds, _ in found)
        if not times:
            print(f"{name}: no checkpoint was complete while the job ran")
            continue
        size = statistics.median(size for _, size in found)
        print(
            f"{name}: {len(times)} checkpoints, median {statistics.median(times):.2f} s, "
            f"longest {times[-1]:.2f} s, {size / 1000:,.0f} kB"
        )
    return []


if __name__ == "__main__":
    main()
