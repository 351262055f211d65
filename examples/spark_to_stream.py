"""Which hours at New York's airports were more disrupted than the weather explains: Spark prepares,
a stream with event time decides, Spark reports.

    python examples/spark_to_stream.py [--data FOLDER] [--output FOLDER]      # or: make demo-spark

1. Spark reads the raw flights, weather, planes and airports, cleans them and joins the dimensions:
   an aircraft's seats, an airport's name, and for each hour its kind of weather with the usual
   delay in such weather at that airport.
2. The stream reads both DataFrames from Ray's object store. In windows of an hour per airport it
   counts departures, cancellations, delays and passengers' hours, and joins the hour's weather: an
   hour is disrupted if its departures are later than usual by more than a quarter of an hour.
3. The hours go back to Spark, which sums them up by month, and a chart of the days is drawn (if
   matplotlib is installed)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from flinkpy.common import Time
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.spark import spark_session, stop_spark
from flinkpy.table.expressions import col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA = Path(__file__).resolve().parent / "data"
DISRUPTED_MINUTES = 15  # later than the weather explains
ZONE = "America/New_York"  # for months and days; all other times are UTC
SEATS = 150  # of an aircraft that is not in planes.csv


# -- 1: Spark --------------------------------------------------------------------------------------


def read_flights(spark: SparkSession, data: Path) -> DataFrame:
    """origin, airport (its name), planned and hour (UTC), dep_delay (minutes; null: cancelled),
    seats"""
    from pyspark.sql import functions as f

    planes = spark.read.csv(
        str(data / "planes.csv"),
        header=True,
        schema="tailnum string, year int, manufacturer string, model string, seats int",
    )
    airports = spark.read.csv(str(data / "airports.csv"), header=True).select(
        f.col("faa").alias("origin"), f.col("name").alias("airport")
    )
    hour = f.to_timestamp("time_hour").alias("hour")
    flights = (
        spark.read.parquet(str(data / "flights.parquet"))
        .dropDuplicates(["time_hour", "minute", "carrier", "flight", "origin", "dest"])
        .select(
            "origin",
            "tailnum",
            hour,
            "minute",
            f.nanvl("dep_delay", f.lit(None)).cast("int").alias("dep_delay"),
        )
        .withColumn("planned", f.timestamp_seconds(f.unix_timestamp("hour") + 60 * f.col("minute")))
    )
    return (
        flights.join(f.broadcast(airports), "origin", "left")
        .join(planes.select("tailnum", "seats"), "tailnum", "left")
        .select(
            "origin",
            f.coalesce("airport", "origin").alias("airport"),
            "planned",
            "hour",
            "dep_delay",
            f.coalesce("seats", f.lit(SEATS)).alias("seats"),
        )
    )


def read_weather(spark: SparkSession, data: Path, flights: DataFrame) -> DataFrame:
    """origin, hour, weather (its kind), usual_delay (minutes, at that airport in such weather): a
    row for every hour with flights"""
    from pyspark.sql import functions as f

    measured = (
        spark.read.parquet(str(data / "weather.parquet"))
        .select(
            "origin",
            f.to_timestamp("time_hour").alias("hour"),
            *(f.nanvl(name, f.lit(None)).alias(name) for name in ("visib", "precip", "wind_speed")),
        )
        .dropDuplicates(["origin", "hour"])
    )
    kind = (
        f.when(f.col("visib") < 3, "fog")
        .when(f.col("precip") > 0, "rain or snow")
        .when(f.col("wind_speed") >= 20, "wind")
        .when(f.col("visib").isNotNull(), "fair")
        .otherwise("unknown")
    )
    hours = flights.groupBy("origin", "hour").agg(
        f.sum("dep_delay").alias("minutes"), f.count("dep_delay").alias("departures")
    )
    hours = hours.join(measured, ["origin", "hour"], "left").withColumn("weather", kind)
    usual = hours.groupBy("origin", "weather").agg(
        (f.sum("minutes") / f.sum("departures")).alias("usual_delay")
    )
    return hours.join(f.broadcast(usual), ["origin", "weather"]).select(
        "origin", "hour", "weather", "usual_delay"
    )


# -- 2: the stream ---------------------------------------------------------------------------------


def judged_hours(
    env: StreamExecutionEnvironment, flights: DataFrame, weather: DataFrame
) -> DataStream:
    """One row for each airport and hour with departures: origin, airport, hour, weather,
    departures, cancelled, mean_delay, usual_delay, excess (minutes), passenger_hours, is_disrupted
    (1 or 0)"""
    delay, hour = col("dep_delay"), TumblingEventTimeWindows.of(Time.hours(1))
    # Spark's rows have no order, so no window may end before all rows are read (no watermark
    # strategy).
    reports = env.from_spark(flights, timestamp_column="planned").select(
        "origin",
        "airport",
        "dep_delay",
        delay.is_null.then(1, 0).alias("cancelled"),
        (delay > 0).then(delay * col("seats"), 0).alias("lost"),
    )
    hours = (
        reports.key_by("origin", "airport")
        .window(hour)
        .aggregate(
            delay.count.alias("departures"),
            col("cancelled").sum.alias("cancelled"),
            delay.avg.alias("mean_delay"),
            col("lost").sum.alias("lost"),
        )
    )
    conditions = env.from_spark(weather, timestamp_column="hour")
    both = hours.join(conditions).where("origin").equal_to("origin").window(hour)
    excess = col("mean_delay") - col("usual_delay")
    return both.select(
        "origin",
        "airport",
        "hour",
        "weather",
        "departures",
        "cancelled",
        "mean_delay",
        "usual_delay",
        excess.alias("excess"),
        (col("lost") / 60).alias("passenger_hours"),
        (excess > DISRUPTED_MINUTES).then(1, 0).alias("is_disrupted"),
    ).filter(col("departures") > 0)


# -- 3: Spark again --------------------------------------------------------------------------------


def monthly_report(hours: DataFrame) -> DataFrame:
    """For each month and airport: hours, disrupted hours, departures, cancelled, the worst hour's
    excess, passengers' hours lost in disrupted ones"""
    from pyspark.sql import functions as f

    return (
        hours.groupBy(
            f.date_format(f.from_utc_timestamp("hour", ZONE), "yyyy-MM").alias("month"), "airport"
        )
        .agg(
            f.count("*").alias("hours"),
            f.sum("is_disrupted").alias("disrupted"),
            f.sum("departures").alias("departures"),
            f.sum("cancelled").alias("cancelled"),
            f.max("excess").alias("worst_excess"),
            f.sum(f.col("passenger_hours") * f.col("is_disrupted")).alias("lost_hours"),
        )
        .orderBy("month", "airport")
    )


def draw_days(hours: DataFrame, path: Path) -> bool:
    """Draws each day's disrupted hours as a PNG. Returns False if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from pyspark.sql import functions as f

    by_day = hours.groupBy(f.to_date(f.from_utc_timestamp("hour", ZONE)).alias("day"))
    days = (
        by_day.pivot("airport")
        .agg(f.sum("is_disrupted"))
        .orderBy("day")
        .toPandas()
        .set_index("day")
    )
    figure, axes = pyplot.subplots(figsize=(10, 4))
    below = 0
    for airport in days.columns:
        axes.bar(days.index, days[airport].fillna(0), bottom=below, label=airport)
        below = below + days[airport].fillna(0)
    axes.set_ylabel("hours")
    axes.set_title(
        f"Hours with departures more than {DISRUPTED_MINUTES} minutes later than the weather "
        "explains"
    )
    axes.legend()
    figure.autofmt_xdate()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(
            "Hours at New York's airports that were disrupted beyond what the weather explains."
        )
    )
    parser.add_argument(
        "--data",
        default=DATA,
        type=Path,
        metavar="FOLDER",
        help="flights, weather, planes, airports (default: January 2013)",
    )
    parser.add_argument(
        "--output",
        default=Path(),
        type=Path,
        metavar="FOLDER",
        help="where report and chart go (default: here)",
    )
    parser.add_argument("-p", "--parallelism", type=int, default=1, metavar="N")
    arguments = parser.parse_args()

    data, output = arguments.data.resolve(), arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    spark = spark_session(
        "disruption",
        stream_cpus=arguments.parallelism,
        configs={"spark.sql.shuffle.partitions": "8"},
    )
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(
        arguments.parallelism
    )
    flights = read_flights(spark, data).cache()
    hours = (
        judged_hours(env, flights, read_weather(spark, data, flights))
        .to_spark(spark, "disruption")
        .cache()
    )

    report = monthly_report(hours).toPandas()
    report.to_csv(output / "disruption.csv", index=False)
    hours.orderBy("hour", "origin").toPandas().to_csv(output / "disrupted_hours.csv", index=False)
    print(report.to_string(index=False, float_format="{:.1f}".format))
    if draw_days(hours, output / "disruption.png"):
        print(f"the days' chart: {output / 'disruption.png'}")
    else:
        print("no chart: `pip install matplotlib` draws one")
    stop_spark()


if __name__ == "__main__":
    main()
