"""State larger than its worker: 3 GB of state where a worker may have 1 GB, by
``taskmanager.memory.process.size`` and with all else as it is by default.

    python -m benchmarks limited_worker [--quick] [--megabytes 3000] [--payload 200] [--size 1g]
        [--shape "SQL join"] [--seconds 600] [--fails] [--without-hashmap]

The shapes are those of ``larger_than_memory``. Each runs in plain memory without a limit, with
``rocksdb`` and with ``hashmap`` in a limited worker, whose resident size is sampled ten times a
second. With ``rocksdb`` it should stay within 1.05 x its size, with the results of the first run;
with ``hashmap`` its sources rest, and the job ends with a sentence that names the state. Mapped
files are shown apart: the system takes their memory back when it is short. ``--seconds`` has the
records come evenly over so long with ``rocksdb``, with an incremental checkpoint each tenth of it;
with ``--fails`` the job fails behind three quarters of them, and goes on from a checkpoint.

Program and worker are one process here, which is watched as that of a worker on Ray."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.harness import Comparison, quick
from benchmarks.larger_than_memory import (
    SHAPES,
    Sampled,
    in_process,
    number_of,
    payload_size,
    records_of,
    results_of,
    timed_records,
)
from flinkpy.common import Configuration
from flinkpy.core.options.schema import parse_memory
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.runtime.memory.slots_memory import ProcessLimit, WorkerSlots

# how much of the records is kept: of those with one key one; in SQL the texts of one side
KEPT = {"function": 0.43, "sliding": 0.26, "session": 0.43, "interval join": 1.0, "SQL join": 0.5}
RESTS_S = 60.0  # as by default
_WITHOUT_LIMIT_MB = 1_000_000


def limited(
    shape: str,
    backend: str,
    records: int,
    size: str,
    seconds: float,
    folder: str,
    *,
    fails: bool = False,
) -> dict[str, Any]:
    """One run in this process. With ``seconds`` its records come over so long, and its checkpoints
    lie in the folder. ``fails``: once."""
    config = Configuration()
    if seconds:
        config.set_string("execution.checkpointing.interval", f"{seconds / 10} s")
        config.set_string("execution.checkpointing.incremental", "true")
        config.set_string("execution.checkpointing.dir", f"file://{folder}")
    config.set_string("state.backend.type", backend)
    config.set_string("taskmanager.memory.process.size", size)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)
    digest = count = 0
    failure = ""
    began = time.perf_counter()
    watched = partial(WorkerSlots, limit=ProcessLimit(parse_memory(size)), rest_s=RESTS_S)
    with Sampled() as sampled, mock.patch("flinkpy.cluster.embedded.WorkerSlots", watched):
        try:
            failed = Path(folder, "failed") if fails else None
            given = timed_records(env, records, records / seconds if seconds else None, failed)
            with results_of(shape, env, given).execute_and_collect() as found:
                for result in found:
                    count += 1
                    digest = (digest + zlib.crc32(repr(result).encode())) % (1 << 32)
        except Exception as error:
            failure = "".join(f"{each}\n" for each in _chain(error))
    return {
        "seconds": time.perf_counter() - began,
        "peak": max(sampled.resident),
        "without files": max(sampled.sizes),
        "each tenth": sampled.sizes[:: max(1, len(sampled.sizes) // 10)],
        "results": count,
        "digest": digest,
        "failure": failure,
    }


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def limited_in_process(
    shape: str, backend: str, records: int, size: str, seconds: float = 0
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.limited_worker", shape, backend, str(records)]
        command += [size, str(seconds), folder, "--payload", str(payload_size())]
        command += ["--fails"] if seconds and "--fails" in sys.argv else []
        taken: set[str] = set()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            while running.poll() is None:
                taken.update(each.parent.name for each in Path(folder).rglob("_metadata"))
                time.sleep(0.5)
            assert running.stdout is not None
            found: dict[str, Any] = json.loads(running.stdout.read().splitlines()[-1])
    found["checkpoints"] = len(taken)
    return found


def shown(name: str, run: dict[str, Any], size: int) -> str:
    return (
        f"  {name}: {run['seconds']:,.0f} s; {run['without files'] / 1e6:,.0f} MB, "
        f"{run['without files'] / size:.2f} of its size; with mapped files "
        f"{run['peak'] / 1e6:,.0f} MB; over time "
        + " ".join(f"{each / 1e6:,.0f}" for each in run["each tenth"])
        + f"; {run['checkpoints']} checkpoints"
    )


def main() -> list[Comparison]:
    megabytes = number_of("--megabytes", 100 if quick() else 3_000)
    size = sys.argv[sys.argv.index("--size") + 1] if "--size" in sys.argv else "1g"
    wanted = sys.argv[sys.argv.index("--shape") + 1] if "--shape" in sys.argv else None
    allowed = parse_memory(size)
    for shape in SHAPES if wanted is None else [wanted]:
        records = int(records_of(megabytes) / KEPT[shape])
        print(f"{shape}: {records:,} records", flush=True)
        seconds = number_of("--seconds", 0)
        disk = limited_in_process(shape, "rocksdb", records, size, seconds)
        print(shown("rocksdb", disk, allowed), disk["failure"], flush=True)
        free = in_process(shape, "hashmap", records, _WITHOUT_LIMIT_MB, _WITHOUT_LIMIT_MB)
        is_equal = all(free[name] == disk[name] for name in ("results", "digest"))
        print(
            f"  results {'equal' if is_equal else 'DIFFERENT'}: {free['results']:,}; in plain "
            f"memory {free['seconds']:,.0f} s, {free['peak'] / 1e6:,.0f} MB",
            flush=True,
        )
        if "--without-hashmap" in sys.argv:
            continue
        heap = limited_in_process(shape, "hashmap", records, size)
        print(shown("hashmap", heap, allowed), f"\n{heap['failure'] or 'no failure'}", flush=True)
    return []


if __name__ == "__main__":
    shape, backend, count, size, over_s, folder = sys.argv[1:7]
    fails = "--fails" in sys.argv
    print(json.dumps(limited(shape, backend, int(count), size, float(over_s), folder, fails=fails)))
