"""DataFrames into a stream and back through Ray's object store, beside the same through Parquet
files on local disk, and beside reading by Ray Data.

    python -m benchmarks spark_bridge            # needs flinkpy[spark]

One Spark core, one slot, a private Ray cluster. Each figure is rows per second, from a DataFrame
that is cheap to compute until the stream, or Spark (its ``noop`` sink), has read the last row with
all its columns."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, compare, quick
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.table.expressions import col

TARGET = 1.5
COLUMNS = (
    "id",
    "cast(id % 1000 as int) as key",
    "id * 0.01 as price",
    "timestamp_millis(1356998400000 + id * 10) as at",
    "concat('customer ', id % 5000) as name",
)


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        {"client.progress": False}
    ).set_parallelism(1)


def timed(rows: int, work: Callable[[], Any]) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        work()
        return rows / (time.perf_counter() - started)

    return run


def consumed(stream: DataStream) -> None:
    """Reads all columns and emits nothing."""
    assert stream.filter(col("id") < 0).to_arrow().num_rows == 0


def read_by_spark(frame: Any) -> None:
    """Reads all columns of all rows and drops them."""
    frame.write.format("noop").mode("overwrite").save()


def through_files(frame: Any, folder: Path) -> DataStream:
    shutil.rmtree(folder, ignore_errors=True)
    frame.write.parquet(str(folder))
    return environment().from_parquet(str(folder))


def to_files(stream: DataStream, spark: Any, folder: Path) -> Any:
    from flinkpy.connectors.files.writing.file_sink import FileSink

    shutil.rmtree(folder, ignore_errors=True)
    stream.sink_to(FileSink(str(folder), "parquet"))
    stream.get_execution_environment().execute()
    return spark.read.parquet(str(folder))


def main() -> list[Comparison]:
    if find_spec("raydp") is None:
        print("left out: needs flinkpy[spark]")
        return []
    import ray

    from flinkpy.spark import spark_session, stop_spark
    from flinkpy.spark.java import use_java

    rows = 100_000 if quick() else 4_000_000
    use_java()
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        logging_level="error",
        log_to_driver=False,
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            readable = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
            return measured(
                spark_session("benchmark", executors=1, cores=1, stream_cpus=1, configs=readable),
                rows,
                Path(folder),
            )
    finally:
        stop_spark()
        ray.shutdown()


def measured(spark: Any, rows: int, folder: Path) -> list[Comparison]:
    from ray.data import from_spark

    frame = spark.range(0, rows, 1, 8).selectExpr(*COLUMNS)

    def both(
        into: Callable[[Any], DataStream], back: Callable[[DataStream], Any]
    ) -> Callable[[], float]:
        return timed(rows, lambda: read_by_spark(back(into(frame))))

    def by_blocks(given: Any) -> DataStream:
        return environment().from_spark(given)

    first, second = folder / "in", folder / "out"
    rounds = 1 if quick() else 3
    stream = by_blocks(frame)
    return [
        compare(
            "Spark to a stream / Parquet",
            timed(rows, lambda: consumed(by_blocks(frame))),
            timed(rows, lambda: consumed(through_files(frame, first))),
            target=TARGET,
            rounds=rounds,
        ),
        compare(
            "a stream to Spark / Parquet",
            timed(rows, lambda: read_by_spark(stream.to_spark(spark))),
            timed(rows, lambda: read_by_spark(to_files(stream, spark, second))),
            target=TARGET,
            rounds=rounds,
            note="blocks there already",
        ),
        compare(
            "there and back / Parquet",
            both(by_blocks, lambda stream: stream.to_spark(spark)),
            both(
                lambda given: through_files(given, first),
                lambda stream: to_files(stream, spark, second),
            ),
            target=TARGET,
            rounds=rounds,
        ),
        compare(
            "Spark to a stream / Ray Data",
            timed(rows, lambda: consumed(by_blocks(frame))),
            timed(rows, lambda: from_spark(frame).filter(expr="id < 0").count()),
            rounds=rounds,
        ),
    ]


if __name__ == "__main__":
    main()
