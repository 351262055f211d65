"""Tables and collections in memory: the time from ``execute_and_collect()`` to the first record,
beside the same rows from Parquet. Embedded."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Comparison, compare, quick
from flinkpy.datastream import StreamExecutionEnvironment

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream

FIRST_RECORD_TARGET_MS = 100
COLLECTION_TARGET_MS = 150


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"client.progress": False, "execution.target": "embedded"}
    )
    env.set_parallelism(1)
    return env


def table(rows: int) -> pa.Table:
    """Six columns, some 90 bytes per row."""
    random = np.random.default_rng(7)
    columns: dict[str, object] = {"n": np.arange(rows)} | {
        name: random.random(rows) for name in "abcd"
    }
    texts = pa.array([f"{number:032d}" + "x" * 10 for number in range(1000)])
    return pa.table({**columns, "text": texts.take(pa.array(random.integers(0, 1000, rows)))})


def first_record_ms(stream: Callable[[], DataStream], *, with_building: bool = False) -> float:
    """Milliseconds from the call that runs the stream; with ``with_building``, from the call that
    builds it."""
    began = time.perf_counter()
    made = stream()
    started = began if with_building else time.perf_counter()
    with made.execute_and_collect() as results:
        next(iter(results))
        return (time.perf_counter() - started) * 1000


def main() -> list[Comparison]:
    rows = 100_000 if quick() else 10_000_000
    data = table(rows)
    pairs = [(number, str(number)) for number in range(rows // 10)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(data, path)

        def from_parquet() -> float:
            return first_record_ms(lambda: environment().from_parquet(str(path)))

        return [
            _told(
                compare(
                    f"from_arrow, {rows:,} rows",
                    lambda: first_record_ms(lambda: environment().from_arrow(data)),
                    from_parquet,
                    unit="ms",
                    note="bare = from Parquet",
                ),
                FIRST_RECORD_TARGET_MS,
            ),
            _told(
                compare(
                    f"from_collection, {len(pairs):,} pairs",
                    lambda: first_record_ms(
                        lambda: environment().from_collection(pairs), with_building=True
                    ),
                    from_parquet,
                    unit="ms",
                    note="with from_collection() itself",
                ),
                COLLECTION_TARGET_MS,
            ),
        ]


def _told(result: Comparison, target_ms: float) -> Comparison:
    print(
        (
            f"    target {target_ms:.0f} ms: "
            f"{'reached' if result.ours <= target_ms else 'NOT REACHED'}"
        ),
        flush=True,
    )
    return result


if __name__ == "__main__":
    main()
