"""Files, embedded, parallelism 1, with one thread of Arrow: Parquet → group by → Parquet beside a
bare Arrow loop, Polars' streaming and DuckDB; CSV and JSON lines beside pyarrow's own readers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, compare, in_turn, medians, quick
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.table.expressions import col, lit

GROUPS = 10_000


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env


def make_files(folder: Path, rows: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    names = pa.array([f"name {number}" for number in range(1000)])
    table = pa.table(
        {
            "key": rng.integers(0, GROUPS, rows),
            "price": rng.random(rows),
            "count": rng.integers(0, 100, rows),
            "name": names.take(pa.array(rng.integers(0, 1000, rows))),
        }
    )
    pq.write_table(table, folder / "in.parquet", row_group_size=128 << 10)
    part = table.slice(0, rows // 5)
    pyarrow.csv.write_csv(part, folder / "in.csv")
    with (folder / "in.jsonl").open("w") as file:
        file.writelines(
            f'{{"key": {key}, "price": {price}, "count": {count}, "name": "{name}"}}\n'
            for key, price, count, name in zip(*(column.to_pylist() for column in part.columns))
        )


def timed(run: Callable[[], Any], rows: int) -> Callable[[], float]:
    def measured() -> float:
        started = time.perf_counter()
        run()
        return rows / (time.perf_counter() - started)

    return measured


def ours_grouped(folder: Path) -> None:
    env = environment()
    sums = (
        env.from_parquet(folder / "in.parquet", ["key", "price", "count"], batch_rows=64 << 10)
        .key_by("key")
        .aggregate(
            lit(1).count.alias("n"),
            col("price").sum.alias("sum"),
            col("count").max.alias("largest"),
        )
    )
    shutil.rmtree(folder / "ours", ignore_errors=True)
    sums.sink_to(FileSink(folder / "ours", "parquet"))
    env.execute("group by")


def bare_grouped(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(folder / "in.parquet") as file:
        table = pa.Table.from_batches(file.iter_batches(columns=["key", "price", "count"]))
    sums = table.group_by("key", use_threads=False).aggregate(
        [([], "count_all"), ("price", "sum"), ("count", "max")]
    )
    pq.write_table(sums, folder / "bare.parquet", compression="zstd")


# Polars takes its number of threads from the environment of the process, and so has a process of
# its own; it tells the times.
POLARS = """
import os, sys, time
os.environ["POLARS_MAX_THREADS"] = "1"
import polars as pl
folder = sys.argv[1]
for line in sys.stdin:
    started = time.perf_counter()
    (pl.scan_parquet(folder + "/in.parquet").group_by("key")
     .agg(pl.len().alias("n"), pl.col("price").sum(), pl.col("count").max())
     .sink_parquet(folder + "/polars.parquet"))
    print(time.perf_counter() - started, flush=True)
"""


class PolarsProcess:
    """Polars with one thread."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", POLARS, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def duckdb_grouped(folder: Path) -> None:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            f"copy (select key, count(*) n, sum(price), max(count) from '{folder}/in.parquet' "
            "group by key) "
            f"to '{folder}/duckdb.parquet' (compression zstd)"
        )


def grouped(folder: Path, rows: int) -> list[Comparison]:
    polars = PolarsProcess(folder)
    try:
        figures = in_turn(
            (
                timed(lambda: ours_grouped(folder), rows),
                timed(lambda: bare_grouped(folder), rows),
                lambda: rows / polars.seconds(),
                timed(lambda: duckdb_grouped(folder), rows),
            ),
            5,
        )
    finally:
        polars.close()
    best = [(ours, max(polars, duckdb)) for ours, _, polars, duckdb in figures]
    plain = [(ours, bare) for ours, bare, _, _ in figures]
    return [
        medians(
            "Parquet -> group by -> Parquet",
            plain,
            "records/s",
            1 / 1.3,
            "beside a bare Arrow loop",
        ),
        medians(
            "the same", best, "records/s", 1 / 3, "beside the best of Polars (streaming) and DuckDB"
        ),
    ]


def read(stream_of: Callable[[StreamExecutionEnvironment], Any]) -> Callable[[], None]:
    def run() -> None:
        env = environment()
        stream_of(env).sink_to(DiscardingSink())
        env.execute("read")

    return run


def main() -> list[Comparison]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.json

    rows = 200_000 if quick() else 10_000_000
    threads = pa.cpu_count()
    folder = Path(tempfile.mkdtemp(prefix="flinkpy-files-"))
    try:
        make_files(folder, rows)
        pa.set_cpu_count(1)
        few = rows // 5
        whole = pyarrow.csv.ReadOptions(use_threads=False)
        return [
            *grouped(folder, rows),
            compare(
                "CSV",
                timed(read(lambda env: env.from_csv(folder / "in.csv")), few),
                timed(lambda: pyarrow.csv.read_csv(folder / "in.csv", read_options=whole), few),
                target=1 / 1.2,
                note="beside pyarrow.csv",
            ),
            compare(
                "JSON lines",
                timed(read(lambda env: env.from_json_lines(folder / "in.jsonl")), few),
                timed(
                    lambda: pyarrow.json.read_json(
                        folder / "in.jsonl", pyarrow.json.ReadOptions(use_threads=False)
                    ),
                    few,
                ),
                target=1 / 1.2,
                note="beside pyarrow.json",
            ),
        ]
    finally:
        pa.set_cpu_count(threads)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
