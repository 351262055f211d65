"""Windows over columns: hourly departures of each airport, computed by Arrow kernels, from Parquet
to an Arrow table.

    python examples/columnar_windows.py [--input FILE]

Column batches stay column batches: the timestamp is an expression, keys are names of columns, and
``aggregate`` takes any number of aggregates. The result has the key columns, the aggregates, and
the window's bounds as ``window_start`` and ``window_end``."""

from __future__ import annotations

import argparse
from pathlib import Path

from flinkpy.common import Duration, Time, WatermarkStrategy
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table import DataTypes
from flinkpy.table.expressions import col

DATA = Path(__file__).parent / "data" / "flights.parquet"


def hours(env: StreamExecutionEnvironment, path: str | Path = DATA) -> DataStream:
    """origin, flights, mean_delay, worst_delay, window_start, window_end"""
    # 2013-01-01T10:00:00
    delay = col("dep_delay")
    planned = col("time_hour").substring(1, 19).cast(DataTypes.TIMESTAMP()).alias("planned")
    flights = env.from_parquet(str(path), ["origin", "dep_delay", "time_hour"]).select(
        "origin", "dep_delay", planned
    )
    # The file is ordered by day: a flight comes at most two days after a later one.
    by_plan = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_days(2)
    ).with_timestamp_assigner("planned")
    return (
        flights.assign_timestamps_and_watermarks(by_plan)
        .filter(delay.is_not_null)
        .key_by("origin")
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .aggregate(
            delay.count.alias("flights"),
            delay.avg.alias("mean_delay"),
            delay.max.alias("worst_delay"),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Hourly departures of each airport.")
    parser.add_argument("--input", default=str(DATA), metavar="FILE")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    found = (
        hours(env, arguments.input)
        .to_arrow("hourly departures")
        .sort_by([("mean_delay", "descending")])
    )
    print(f"{found.num_rows} hours with departures; the worst:")
    for row in found.slice(0, 5).to_pylist():
        print(
            f"{row['window_start']:%d %b %H:%M} UTC  {row['origin']}  {row['flights']:>3} "
            f"flights, {row['mean_delay']:.0f} min late on average"
        )


if __name__ == "__main__":
    main()
