"""The example in SQL, against pandas."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds

from examples import flights_in_sql
from flinkpy.sql.parsing.parse import parse_script

EXAMPLES = Path(flights_in_sql.__file__).parent


def departures() -> pd.DataFrame:
    flights = pd.read_parquet(EXAMPLES / "data" / "flights.parquet")
    return flights[flights["dep_delay"].notna()]


def test_the_latest_airlines_are_those_of_pandas() -> None:
    found = flights_in_sql.tables_of_flights().sql_query(flights_in_sql.LATEST).to_pandas()
    delays = departures().groupby("carrier")["dep_delay"]
    means = delays.mean()[delays.count() > 500].nlargest(5)
    assert found["carrier"].tolist() == means.index.tolist()
    assert found["departed"].tolist() == delays.count()[means.index].tolist()
    late = delays.apply(lambda each: int((each > 60).sum()))
    assert found["late"].tolist() == late[means.index].tolist()
    wanted = [Decimal(mean).quantize(Decimal("0.01")) for mean in means]
    assert found["mean_delay"].tolist() == wanted


def test_the_destinations_are_a_folder_an_airport(tmp_path: Path) -> None:
    tables = flights_in_sql.tables_of_flights()
    tables.execute_sql(
        "CREATE TABLE d (origin STRING, name STRING, flights BIGINT) PARTITIONED BY (origin) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/d', 'format' = 'parquet')"
    )
    tables.execute_sql(f"INSERT INTO d {flights_in_sql.DESTINATIONS}").wait()
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == [
        "origin=EWR",
        "origin=JFK",
        "origin=LGA",
    ]
    airports = set(pd.read_csv(EXAMPLES / "data" / "airports.csv")["faa"])
    counted = ds.dataset(tmp_path / "d", partitioning="hive").to_table().to_pandas()
    assert counted["flights"].sum() == departures()["dest"].isin(airports).sum()


def test_the_script_is_read_as_a_whole() -> None:
    assert len(parse_script((EXAMPLES / "flights_in_sql.sql").read_text())) == 6
