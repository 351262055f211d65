"""Departure delays in New York, in SQL: files are tables, a view is a query with a name, and a
result is printed, or becomes a frame or files.

    python examples/flights_in_sql.py [--output FOLDER]

``flights_in_sql.sql`` beside it is a script of the same data, for ``flinkpy sql -f``."""

from __future__ import annotations

import argparse
from pathlib import Path

from flinkpy.table import EnvironmentSettings, TableEnvironment

DATA = Path(__file__).parent / "data"


def tables_of_flights() -> TableEnvironment:
    """An environment with the tables ``flights`` and ``airports`` and the view ``departures``."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql(f"""
        CREATE TABLE flights (carrier STRING, origin STRING, dest STRING, dep_delay DOUBLE)
        WITH ('connector' = 'filesystem', 'path' = '{DATA}/flights.parquet', 'format' = 'parquet')
    """)
    tables.execute_sql(f"""
        CREATE TABLE airports (faa STRING, name STRING) WITH (
          'connector' = 'filesystem', 'path' = '{DATA}/airports.csv',
          'format' = 'csv', 'csv.header' = 'true'
        )
    """)
    # a flight without a delay was cancelled
    tables.execute_sql("""
        CREATE TEMPORARY VIEW departures AS
        SELECT carrier, origin, dest, dep_delay, dep_delay > 60 AS is_late
        FROM flights WHERE dep_delay IS NOT NULL
    """)
    return tables


LATEST = """
    SELECT carrier, COUNT(*) AS departed, COUNT(*) FILTER (WHERE is_late) AS late,
      CAST(AVG(dep_delay) AS DECIMAL(6, 2)) AS mean_delay
    FROM departures
    GROUP BY carrier
    HAVING COUNT(*) > 500
    ORDER BY mean_delay DESC
    LIMIT 5
"""
DESTINATIONS = """
    SELECT d.origin, a.name, COUNT(*) AS flights
    FROM departures AS d JOIN airports AS a ON d.dest = a.faa
    GROUP BY d.origin, a.name
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Departure delays in New York, in SQL.")
    parser.add_argument("--output", help="a folder for the destinations of each airport")
    output = parser.parse_args().output
    tables = tables_of_flights()
    tables.execute_sql(LATEST).print()
    if output is not None:
        tables.execute_sql(f"""
            CREATE TABLE destinations (origin STRING, name STRING, flights BIGINT)
            PARTITIONED BY (origin)
            WITH ('connector' = 'filesystem', 'path' = '{output}', 'format' = 'parquet')
        """)
        tables.execute_sql(f"INSERT INTO destinations {DESTINATIONS}").wait()


if __name__ == "__main__":
    main()
