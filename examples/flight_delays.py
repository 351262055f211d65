"""Departure delays in New York, computed twice: as running figures over columns, and in event-time
windows, with the weather.

    python examples/flight_delays.py [--input FILE] [--weather FILE] [--parallelism N]
    flinkpy run -t ray -p 2 examples/flight_delays.py

``flight_delays`` computes running figures of each airline and airport: it reads Parquet, uses
expressions over column batches, and returns each key's last result.

``flight_windows`` treats the same flights as reports: a flight is reported when it leaves (or is
cancelled), and counts at the time when it should have left. So the stream is as much out of order
as the flights are late, and the watermark, two hours behind, says when an hour is complete. One
dataflow has four results:

- each airport's hours (tumbling windows), emitted again for a report up to an hour late; later
  reports go to a side output;
- each airport's last 24 hours, every hour (sliding windows);
- each aircraft's days, as sessions: departures less than twelve hours apart;
- each departure with the weather of its hour (an interval join).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from flinkpy.common import (
    Duration,
    OutputTag,
    Row,
    Time,
    Types,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkpy.datastream import (
    DataStream,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.table.expressions import col

DATA = Path(__file__).parent / "data" / "flights.parquet"
WEATHER = Path(__file__).parent / "data" / "weather.parquet"

HOUR_MS = 3_600_000
BEHIND_MS = 2 * HOUR_MS  # how far the watermark is behind
TOO_LATE = OutputTag("too late", Types.PICKLED_BYTE_ARRAY())
NOT_IN_TIME = OutputTag("behind the watermark", Types.PICKLED_BYTE_ARRAY())


# -- running figures, over columns -----------------------------------------------------------------


def flight_delays(env: StreamExecutionEnvironment, path: str | Path) -> list[Row]:
    """Returns Rows of carrier, origin, flights, mean_delay and worst_delay (minutes), and cancelled
    (a share), sorted by carrier and origin."""
    flights = env.from_parquet(str(path), columns=["carrier", "origin", "dep_time", "dep_delay"])
    figures = (
        flights.select(
            col("carrier"),
            col("origin"),
            col("dep_delay"),
            col("dep_time").is_null.then(1, 0).alias("cancelled"),
        )
        .key_by("carrier", "origin")
        .aggregate(
            col("cancelled").count.alias("flights"),
            col("dep_delay").avg.alias("mean_delay"),
            col("dep_delay").max.alias("worst_delay"),
            col("cancelled").avg.alias("cancelled"),
        )
    )
    last: dict[tuple[str, str], Row] = {}
    with figures.execute_and_collect("flight delays") as results:
        for row in results:
            last[row.carrier, row.origin] = row
    return [last[key] for key in sorted(last)]


# -- windows, over reports -------------------------------------------------------------------------


class Report(NamedTuple):
    """A departure, or a cancelled one (``delay`` is None); ``time`` is when it should have been, in
    milliseconds."""

    time: int
    origin: str
    tail: str | None
    delay: float | None


class Figures(NamedTuple):
    """The figures of one key in one window; ``minutes`` is the sum of the delays."""

    key: str
    departures: int
    cancelled: int
    minutes: float


def milliseconds(moment: str) -> int:
    """``2013-01-01T10:00:00Z`` as milliseconds since 1970."""
    return (
        int(
            datetime.fromisoformat(moment.replace("Z", "+00:00"))
            .astimezone(timezone.utc)
            .timestamp()
        )
        * 1000
    )


class EveryReport(WatermarkGenerator):
    """Emits a watermark after every report: so only the data decides what is late, not the moment
    when a timer fires."""

    def __init__(self) -> None:
        self._latest = -(1 << 62)

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp > self._latest:
            self._latest = event_timestamp
            output.emit_watermark(event_timestamp - BEHIND_MS - 1)


def read_reports(env: StreamExecutionEnvironment, path: str | Path) -> DataStream:
    """The reports in the order of the file, which needs a single reader."""
    flights = env.from_parquet(
        str(path), columns=["time_hour", "minute", "origin", "tailnum", "dep_delay"]
    ).set_parallelism(1)
    reports = flights.map(
        lambda row: Report(
            milliseconds(row.time_hour) + row.minute * 60_000,
            row.origin,
            row.tailnum,
            row.dep_delay,
        )
    ).set_parallelism(1)
    by_time = WatermarkStrategy.for_generator(EveryReport).with_timestamp_assigner(
        lambda report, _: report.time
    )
    return reports.assign_timestamps_and_watermarks(by_time).set_parallelism(1)


def read_weather(env: StreamExecutionEnvironment, path: str | Path) -> DataStream:
    """(origin, time, miles of visibility), hourly."""
    hours = env.from_parquet(str(path), columns=["origin", "time_hour", "visib"]).set_parallelism(1)
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_hours(1)
    ).with_timestamp_assigner(lambda hour, _: hour[1])
    return hours.map(
        lambda row: (row.origin, milliseconds(row.time_hour), row.visib)
    ).assign_timestamps_and_watermarks(by_time)


def figures_of(key: str, report: Report) -> Figures:
    return Figures(
        key, int(report.delay is not None), int(report.delay is None), report.delay or 0.0
    )


def together(a: Figures, b: Figures) -> Figures:
    return Figures(
        a.key, a.departures + b.departures, a.cancelled + b.cancelled, a.minutes + b.minutes
    )


class InWindow(ProcessWindowFunction):
    """(kind, key, begin of the window, its end, figures)"""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        for figures in elements:
            yield self._kind, key, context.window().start, context.window().end, figures


class InTime(ProcessFunction):
    """Sends records behind the watermark to a side output: a join keeps the other side's records
    only until the watermark."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield (
            value if value.time >= ctx.timer_service().current_watermark() else (NOT_IN_TIME, value)
        )


class WithWeather(ProcessJoinFunction):
    """("weather", origin, time, miles of visibility, delay)"""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield "weather", left.origin, left.time, right[2], left.delay


def flight_windows(
    env: StreamExecutionEnvironment, path: str | Path, weather: str | Path
) -> dict[str, list[Any]]:
    """Returns results by kind: "hour", "day", "aircraft": (kind, key, begin, end, Figures),
    "weather": see WithWeather, "late": Reports. An hour that was emitted several times is there
    several times."""
    reports = read_reports(env, path)
    airports = (
        reports.map(lambda report: figures_of(report.origin, report))
        .set_parallelism(1)
        .key_by(lambda each: each.key)
    )
    hours = (
        airports.window(TumblingEventTimeWindows.of(Time.hours(1)))
        .allowed_lateness(HOUR_MS)
        .side_output_late_data(TOO_LATE)
        .reduce(together, InWindow("hour"))
    )
    days = airports.window(SlidingEventTimeWindows.of(Time.hours(24), Time.hours(1))).reduce(
        together, InWindow("day")
    )
    flown = reports.filter(lambda report: report.tail is not None).set_parallelism(1)
    aircraft = (
        flown.map(lambda report: figures_of(report.tail, report))
        .set_parallelism(1)
        .key_by(lambda each: each.key)
        .window(EventTimeSessionWindows.with_gap(Time.hours(12)))
        .reduce(together, InWindow("aircraft"))
    )
    in_time = reports.process(InTime()).set_parallelism(1)
    joined = (
        in_time.key_by(lambda report: report.origin)
        .interval_join(read_weather(env, weather).key_by(lambda hour: hour[0]))
        .between(Time.hours(-1), Time.milliseconds(0))
        .lower_bound_exclusive()
        .process(WithWeather())
    )
    late = hours.get_side_output(TOO_LATE).map(lambda each: ("late", each))
    found: dict[str, list[Any]] = defaultdict(list)
    with hours.union(days, aircraft, joined, late).execute_and_collect("flight windows") as results:
        for result in results:
            found[result[0]].append(result)
    return found


# -- for people ------------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    """The rows as text, one per line, under a heading."""
    lines = [
        "airline  airport  flights  mean delay  worst delay  cancelled",
        "-------  -------  -------  ----------  -----------  ---------",
    ]
    for row in rows:
        mean = "-" if row.mean_delay is None else f"{row.mean_delay:.1f} min"
        worst = "-" if row.worst_delay is None else f"{row.worst_delay:.0f} min"
        lines.append(
            f"{row.carrier:<7}  {row.origin:<7}  {row.flights:>7}  {mean:>10}  {worst:>11}  "
            f"{row.cancelled:>9.1%}"
        )
    return "\n".join(lines)


def summary(found: dict[str, list[Any]]) -> str:
    """A few lines about the windows' results."""
    lines = []
    # an hour's last result counts
    final = {(key, begin): figures for _, key, begin, _, figures in found["hour"]}
    for name, told in (
        ("worst hour", list(final.items())),
        ("worst 24 hours", [((each[1], each[2]), each[4]) for each in found["day"]]),
    ):
        for airport in sorted({key for (key, _), _ in told}):
            begin, figures = max(
                ((begin, figures) for (key, begin), figures in told if key == airport),
                key=lambda each: each[1].minutes,
            )
            since = datetime.fromtimestamp(begin / 1000, timezone.utc)
            lines.append(
                f"{name} of {airport}: from {since:%Y-%m-%d %H:%M} UTC, {figures.departures} "
                "departures, "
                f"{figures.minutes / max(1, figures.departures):.0f} min late on "
                f"average, {figures.cancelled} cancelled"
            )
    tail, figures = max(
        ((r[1], r[4]) for r in found["aircraft"]),
        key=lambda each: (each[1].departures, each[0]),
        default=("none", None),
    )
    if figures is not None:
        lines.append(
            f"busiest aircraft: {tail}, {figures.departures} departures without a pause of 12 hours"
        )
    for low, high, name in ((0, 2, "below 2"), (2, 10, "2 to 10"), (10, 100, "10 and more")):
        delays = [
            each[4]
            for each in found["weather"]
            if each[3] is not None and low <= each[3] < high and each[4] is not None
        ]
        if delays:
            lines.append(
                f"visibility {name} miles: {len(delays)} departures, "
                f"{sum(delays) / len(delays):.1f} min late on average"
            )
    lines.append(f"reports that came too late for their hour: {len(found['late'])}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Departure delays per airline and airport, and in windows of time."
    )
    parser.add_argument(
        "--input",
        default=str(DATA),
        metavar="FILE",
        help="Parquet file of flights (default: January 2013)",
    )
    parser.add_argument(
        "--weather",
        default=str(WEATHER),
        metavar="FILE",
        help="Parquet file of the weather (default: January 2013)",
    )
    parser.add_argument("-p", "--parallelism", type=int, default=2, metavar="N")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(arguments.parallelism)
    print(table(flight_delays(env, arguments.input)))
    print()
    print(summary(flight_windows(env, arguments.input, arguments.weather)))


if __name__ == "__main__":
    main()
