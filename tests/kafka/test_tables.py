"""Topics as tables of SQL."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from tests.kafka.broker import Broker


@pytest.fixture
def tables() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def declared(
    tables: TableEnvironment, broker: Broker, topic: str, columns: str, format: str
) -> None:
    tables.execute_sql(
        f"CREATE TABLE {topic} ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}', "
        f"'properties.bootstrap.servers' = '{broker.bootstrap}', 'format' = '{format}', "
        "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset')"
    )


@pytest.mark.parametrize("format", ["json", "csv", "avro"])
def test_rows_that_are_written_to_a_topic_are_read_from_it(
    tables: TableEnvironment, broker: Broker, format: str
) -> None:
    topic = f"table_{format}"
    broker.create_topic(topic)
    declared(tables, broker, topic, "n BIGINT, s STRING, at_day DATE", format)
    tables.execute_sql(
        f"INSERT INTO {topic} SELECT * FROM (VALUES (1, 'a', DATE '2024-01-02'), "
        "(2, 'b', CAST(NULL AS DATE))) AS t(n, s, d)"
    ).wait()
    rows = tables.execute_sql(f"SELECT n, s, at_day FROM {topic} ORDER BY n").collect()
    assert [tuple(row) for row in rows] == [(1, "a", datetime.date(2024, 1, 2)), (2, "b", None)]


def test_metadata_are_columns_beside_those_of_the_message(
    tables: TableEnvironment, broker: Broker
) -> None:
    broker.create_topic("table_raw")
    declared(
        tables,
        broker,
        "table_raw",
        "line STRING, `partition` INT METADATA VIRTUAL, place BIGINT METADATA FROM 'offset' VIRTUAL",
        "raw",
    )
    tables.execute_sql("INSERT INTO table_raw SELECT 'hello'").wait()
    rows: Any = tables.execute_sql("SELECT place, `partition`, line FROM table_raw").collect()
    assert [tuple(row) for row in rows] == [(0, 0, "hello")]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("'format' = 'json'", "either 'topic' or 'topic-pattern'"),
        ("'topic' = 't'", "needs the option 'format'"),
        ("'topic' = 't', 'format' = 'protobuf'", "cannot be 'protobuf': it is json or"),
        ("'topic' = 't', 'format' = 'json', 'scan.start.mode' = 'x'", "did you mean 'scan.startup"),
        (
            "'topic' = 't', 'format' = 'json', 'scan.startup.mode' = 'specific-offsets'",
            "it is earliest-offset or latest-offset",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_without_a_broker(
    tables: TableEnvironment, options: str, problem: str
) -> None:
    tables.execute_sql(
        "CREATE TABLE t (n INT) WITH ('connector' = 'kafka', "
        f"'properties.bootstrap.servers' = 'nowhere:1', {options})"
    )
    with pytest.raises(ValidationError, match=problem):
        tables.execute_sql("SELECT n FROM t")
