"""The other examples in SQL: a report against pandas, windows in files against the events, a stream
through a table, a script."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from examples import bids_in_sql, orders_and_payments, stream_and_tables, weather_report
from flinkpy.cli.main import commands
from flinkpy.common import RowKind
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.datastream import StreamExecutionEnvironment

EXAMPLES = Path(weather_report.__file__).parent
FLIGHTS = EXAMPLES / "data" / "flights.parquet"


@pytest.mark.wide
def test_the_report_on_the_weather_is_that_of_pandas() -> None:
    tables = weather_report.tables_of_january()
    found = tables.sql_query(weather_report.REPORT).to_pandas()
    weather = pd.read_parquet(EXAMPLES / "data" / "weather.parquet")
    both = pd.read_parquet(FLIGHTS).merge(weather, on=["origin", "time_hour"], how="left")
    is_snow = (both.precip > 0) & (both.temp < 32)
    snow = both[is_snow].dep_delay
    row = found[(found.origin == "all") & (found.sky == "snow")].iloc[0]
    assert (row.flights, float(row.delay)) == (len(snow), round(snow.mean(), 1))
    assert row.cancelled == snow.isna().sum()
    assert found[found.origin == "all"].flights.sum() <= len(both)
    worst = tables.sql_query(weather_report.WORST_HOURS).to_pandas()
    late = both[both.dep_delay > 60].groupby(["origin", "time_hour"]).size()
    assert dict(zip(worst.origin, worst.late)) == late.groupby("origin").max().to_dict()


def test_bids_are_counted_once_in_the_files_of_their_window(tmp_path: Path) -> None:
    events = 30_000
    bids_in_sql.write_offers(str(tmp_path / "offers"), events)
    generator = NexmarkGenerator(events=events, rate=1000)
    bids = generator.bids(range(generator.count("bid") or 0))
    times = bids["date_time"].cast("int64").to_pylist()
    wanted = Counter(
        (channel, time // 10_000 * 10_000 + 10_000)
        for channel, time in zip(bids["channel"].to_pylist(), times)
        if channel in ("Google", "Apple", "Baidu", "Facebook")
    )
    offers = bids_in_sql.report(str(tmp_path / "offers")).from_path("offers").to_arrow()
    ends = offers["window_end"].cast("int64").to_pylist()
    found = zip(offers["channel"].to_pylist(), ends, offers["bids"].to_pylist())
    assert {(channel, end): bids for channel, end, bids in found} == dict(wanted)
    assert len(wanted) > 8


def test_the_third_failed_login_of_a_client_is_an_alarm() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with stream_and_tables.alarms(env).execute_and_collect() as alarms:
        assert list(alarms) == ["10.0.0.9 tries passwords, now as root"]


def test_what_is_owed_follows_payments_that_are_corrected_and_taken_back() -> None:
    orders, payments = orders_and_payments.ORDERS, orders_and_payments.PAYMENTS
    tables, owed = orders_and_payments.owed(orders, payments)
    left: Counter[tuple[object, ...]] = Counter()
    for change in tables.to_changelog_stream(owed).execute_and_collect():
        adds = change.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        left[tuple(change)] += 1 if adds else -1
    assert +left == Counter([(1, "ann", 0), (2, "bob", 0), (3, "cid", 1300)])


@pytest.mark.wide
def test_the_script_of_days_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    done = CliRunner().invoke(commands, ["sql", "-f", "examples/days_in_sql.sql"])
    assert done.exit_code == 0, done.output
    flights = pd.read_parquet(FLIGHTS)
    late = flights[(flights.dep_delay > 120) & flights.carrier.isin(["AA", "DL", "UA"])]
    assert f"|       <NULL> |       <NULL> | {len(late):>20} |" in done.stdout
    for carrier, count in late.groupby("carrier").size().items():
        assert f"| {carrier:>12} |       <NULL> | {count:>20} |" in done.stdout
