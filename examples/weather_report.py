"""A report in SQL over files that end: which weather keeps flights on the ground. Flights join the
weather of their airport and hour; the report has each airport, all of them, and the worst hours.

    python examples/weather_report.py"""

from __future__ import annotations

from pathlib import Path

from flinkpy.table import EnvironmentSettings, TableEnvironment

DATA = Path(__file__).parent / "data"

DEPARTURES = """
    CREATE TEMPORARY VIEW departures AS
    SELECT f.origin, f.time_hour, f.dep_delay, f.dep_delay IS NULL AS is_cancelled,
      CASE
        WHEN w.time_hour IS NULL THEN 'unknown'
        WHEN w.precip > 0 AND w.temp < 32 THEN 'snow'
        WHEN w.precip > 0 THEN 'rain'
        WHEN w.visib < 2 THEN 'fog'
        WHEN w.wind_speed > 20 THEN 'wind'
        ELSE 'fair'
      END AS sky
    FROM flights AS f
    LEFT JOIN weather AS w ON f.origin = w.origin AND f.time_hour = w.time_hour
"""
REPORT = """
    SELECT
      COALESCE(origin, 'all') AS origin, sky, COUNT(*) AS flights,
      CAST(AVG(dep_delay) AS DECIMAL(5, 1)) AS delay,
      COUNT(*) FILTER (WHERE is_cancelled) AS cancelled
    FROM departures
    GROUP BY GROUPING SETS ((origin, sky), (sky))
    HAVING COUNT(*) > 20
    ORDER BY origin, delay DESC
"""
WORST_HOURS = """
    SELECT origin, time_hour, sky, late
    FROM (
      SELECT origin, time_hour, sky, COUNT(*) AS late FROM departures WHERE dep_delay > 60
      GROUP BY origin, time_hour, sky
    )
    QUALIFY ROW_NUMBER() OVER (PARTITION BY origin ORDER BY late DESC, time_hour) = 1
    ORDER BY origin
"""


def tables_of_january() -> TableEnvironment:
    """An environment with the flights, the weather, and the view of both."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("table.display.max-column-width", "20")
    for name, columns in [
        ("flights", "origin STRING, time_hour STRING, dep_delay DOUBLE"),
        (
            "weather",
            "origin STRING, time_hour STRING, "
            "temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE",
        ),
    ]:
        tables.execute_sql(f"""
            CREATE TABLE {name} ({columns}) WITH (
              'connector' = 'filesystem', 'path' = '{DATA}/{name}.parquet', 'format' = 'parquet')
        """)
    tables.execute_sql(DEPARTURES)
    return tables


def main() -> None:
    tables = tables_of_january()
    tables.execute_sql(REPORT).print()
    print("The hour of each airport in which most flights left an hour late:")
    tables.execute_sql(WORST_HOURS).print()


if __name__ == "__main__":
    main()
