"""A join of SQL in BATCH with 64 MB of managed memory: 10^7 rows with as many, from Parquet,
against the same without a limit, and against DuckDB's answer. With the limit, results between
operators wait on disk, of which 64 MB would be in memory. Each run is a process of its own: what
it holds before the statement, and at most while it runs.

    python -m benchmarks spilled_join [--quick]"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Comparison, quick
from benchmarks.spilling import LIMIT, numbers, peak
from benchmarks.tpch import answered, asked, duckdb_over, session_over

_BATCHES_OF_GROUP = 16
_MANAGED = "taskmanager.memory.managed.size"
_BETWEEN = "taskmanager.memory.framework.off-heap.batch-shuffle.size"
QUERY = """
SELECT COUNT(*), SUM(l.v), SUM(r.r_v), SUM(CAST(MOD(l.v * r.r_v, 1009) AS BIGINT))
FROM l JOIN r ON l.k = r.r_k
"""


def generate(folder: Path, count: int) -> None:
    for name, prefix in (("l", ""), ("r", "r_")):
        batches = numbers(count, prefix)
        first = next(batches)
        with pq.ParquetWriter(folder / f"{name}.parquet", first.schema) as writer:
            writer.write_batch(first)
            while some := list(islice(batches, _BATCHES_OF_GROUP)):
                writer.write_table(pa.Table.from_batches(some))


def measure(folder: Path, limit: int | None) -> dict[str, Any]:
    """The join in this process."""
    session = session_over(folder)
    if limit is not None:
        session.get_config().set(_MANAGED, f"{limit} b")
        session.get_config().set(_BETWEEN, "1 mb")
    answered(session, f"{QUERY} WHERE l.v < 10000")  # imports what it needs
    before, began = peak(), time.process_time()
    [row] = answered(session, QUERY)
    return {
        "answer": [int(each) for each in row],
        "seconds": time.process_time() - began,
        "before": before,
        "peak": peak(),
        "arrow": pa.default_memory_pool().max_memory(),
    }


def in_own_process(folder: Path, limit: int | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.spilled_join", str(folder), json.dumps(limit)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=Path.cwd())
    answer: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return answer


def main() -> list[Comparison]:
    count = 1_000_000 if quick() else 10_000_000
    limit = LIMIT // 10 if quick() else LIMIT
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, count)
        [answer] = asked(duckdb_over(folder), QUERY)
        wanted = [int(each) for each in answer]
        bounded, free = (in_own_process(folder, each) for each in (limit, None))
    for told, run in (("with the limit", bounded), ("without", free)):
        print(
            f"join of {count:,} x {count:,} rows in SQL, {told}: {run['seconds']:.1f} s, "
            f"{(run['peak'] - run['before']) >> 20} MB beyond {run['before'] >> 20} MB, "
            f"answer {'equal' if run['answer'] == wanted else 'DIFFERENT'}",
            flush=True,
        )
    return []


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), json.loads(sys.argv[2]))))
