"""Features for a model, from a stream to a Ray Dataset: the state of an airport when a flight was
to leave, and whether the flight left late.

    python examples/stream_features.py [--input FILE] [--parallelism N]

Every hour, the stream aggregates each airport's last three hours, over columns, and joins them to
the flights of the following hour. The result is a Ray Dataset, whose blocks the sinks have written
into Ray's object store: a training job reads them there; here one pass compares the late flights
after bad hours with those after good ones."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from flinkpy.common import Time
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.table import DataTypes
from flinkpy.table.expressions import col

DATA = Path(__file__).resolve().parent / "data" / "flights.parquet"
LATE_MINUTES = 15


def features(env: StreamExecutionEnvironment, path: str | Path = DATA) -> DataStream:
    """A row for each flight that left: origin, dest, carrier, distance, month, hour (all known
    before), mean_delay and departures (of the airport in the three hours before the flight's),
    is_late"""
    delay = col("dep_delay")
    planned = col("time_hour").substring(1, 19).cast(DataTypes.TIMESTAMP()).alias("planned")
    flights = (
        env.from_parquet(
            str(path),
            ["origin", "dest", "carrier", "distance", "month", "hour", "dep_delay", "time_hour"],
        )
        .select("origin", "dest", "carrier", "distance", "month", "hour", "dep_delay", planned)
        .filter(delay.is_not_null)
    )
    # Without a watermark strategy no window ends before the file: nothing is late.
    left = flights.assign_timestamps_and_watermarks(by("planned")).select(
        "origin",
        "dest",
        "carrier",
        "distance",
        "month",
        "hour",
        (delay > LATE_MINUTES).then(1, 0).alias("is_late"),
    )
    before = (
        flights.assign_timestamps_and_watermarks(by("planned"))
        .key_by("origin")
        .window(SlidingEventTimeWindows.of(Time.hours(3), Time.hours(1)))
        .aggregate(delay.avg.alias("mean_delay"), delay.count.alias("departures"))
        .select("origin", "mean_delay", "departures", "window_end")
        .assign_timestamps_and_watermarks(by("window_end"))  # the following hour
    )
    hour = TumblingEventTimeWindows.of(Time.hours(1))
    return (
        left.join(before)
        .where("origin")
        .equal_to("origin")
        .window(hour)
        .select(
            "origin",
            "dest",
            "carrier",
            "distance",
            "month",
            "hour",
            "mean_delay",
            "departures",
            "is_late",
        )
    )


def by(column: str) -> Any:
    from flinkpy.common import WatermarkStrategy

    return WatermarkStrategy.no_watermarks().with_timestamp_assigner(col(column))


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Features of flights for a model, as a Ray Dataset."
    )
    parser.add_argument(
        "--input",
        default=str(DATA),
        metavar="FILE",
        help="Parquet file of flights (default: January 2013)",
    )
    parser.add_argument("-p", "--parallelism", type=int, default=1, metavar="N")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(
        arguments.parallelism
    )
    dataset = features(env, str(Path(arguments.input).resolve())).to_ray_dataset("features")
    flights = late = after_bad = late_after_bad = 0
    # as a training loop reads it
    for batch in dataset.iter_batches(batch_size=4096, batch_format="numpy"):
        bad = batch["mean_delay"] > LATE_MINUTES
        flights, late = flights + len(bad), late + int(batch["is_late"].sum())
        after_bad = after_bad + int(bad.sum())
        late_after_bad = late_after_bad + int(batch["is_late"][bad].sum())
    print(f"{flights} flights with features {', '.join(dataset.columns()[:-1])}")
    print(
        f"late: {late_after_bad / after_bad:.1%} after three bad hours, "
        f"{(late - late_after_bad) / (flights - after_bad):.1%} after good ones"
    )


if __name__ == "__main__":
    main()
