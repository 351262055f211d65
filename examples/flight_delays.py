"""Departure delays in New York, per airline and airport: a keyed dataflow over columns.

    python examples/flight_delays.py [--input FILE] [--parallelism N]
    flinkpy run -t ray examples/flight_delays.py

The Parquet file is read by row groups, two readers side by side. Expressions work on whole column batches; each batch is split by the key's
hash, so that all flights of one airline and airport meet in one subtask. The running figures come back to this program as they change; of
each key the last one is kept, and printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from flinkpy.common import Row
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table.expressions import col

DATA = Path(__file__).parent / "data" / "flights.parquet"


def flight_delays(env: StreamExecutionEnvironment, path: str | Path) -> list[Row]:
    """Rows of carrier, origin, flights, mean_delay and worst_delay (minutes), and cancelled (a share), sorted by carrier and origin."""
    flights = env.from_parquet(str(path), columns=["carrier", "origin", "dep_time", "dep_delay"])
    figures = (
        flights.select(col("carrier"), col("origin"), col("dep_delay"), col("dep_time").is_null.then(1, 0).alias("cancelled"))
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


def table(rows: list[Row]) -> str:
    """The rows as text, a line each, under a heading."""
    lines = ["airline  airport  flights  mean delay  worst delay  cancelled", "-------  -------  -------  ----------  -----------  ---------"]
    for row in rows:
        mean = "-" if row.mean_delay is None else f"{row.mean_delay:.1f} min"
        worst = "-" if row.worst_delay is None else f"{row.worst_delay:.0f} min"
        lines.append(f"{row.carrier:<7}  {row.origin:<7}  {row.flights:>7}  {mean:>10}  {worst:>11}  {row.cancelled:>9.1%}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Departure delays per airline and airport.")
    parser.add_argument("--input", default=str(DATA), metavar="FILE", help="Parquet file of flights (default: January 2013)")
    parser.add_argument("-p", "--parallelism", type=int, default=2, metavar="N")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(arguments.parallelism)
    print(table(flight_delays(env, arguments.input)))


if __name__ == "__main__":
    main()
