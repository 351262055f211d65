"""Topics as tables of SQL."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from flinkpy.datastream import DataStream
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from tests.kafka.broker import Broker, Record


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


def test_columns_of_the_key_are_beside_those_of_the_value_or_in_both(
    tables: TableEnvironment, broker: Broker
) -> None:
    broker.create_topic("table_keys")
    common = (
        "WITH ('connector' = 'kafka', 'topic' = 'table_keys', 'properties.bootstrap.servers' = "
        f"'{broker.bootstrap}', 'scan.startup.mode' = 'earliest-offset', "
        "'scan.bounded.mode' = 'latest-offset'"
    )
    tables.execute_sql(
        f"CREATE TABLE apart (k_id BIGINT, k_at DATE, s STRING, n INT) {common}, "
        "'key.format' = 'json', 'key.fields' = 'k_id;k_at', 'key.fields-prefix' = 'k_', "
        "'value.format' = 'csv', 'value.csv.field-delimiter' = '|', "
        "'value.fields-include' = 'EXCEPT_KEY')"
    )
    tables.execute_sql(f"CREATE TABLE plain (line STRING) {common}, 'format' = 'raw')")
    tables.execute_sql("INSERT INTO apart VALUES (7, DATE '2024-01-02', 'a', 1)").wait()
    rows = tables.execute_sql("SELECT n, k_at, s, k_id FROM apart").collect()
    assert [tuple(row) for row in rows] == [(1, datetime.date(2024, 1, 2), "a", 7)]
    assert [tuple(row) for row in tables.execute_sql("SELECT s FROM apart").collect()] == [("a",)]
    assert [tuple(row) for row in tables.execute_sql("SELECT * FROM plain").collect()] == [
        ("a|1\n",)
    ]
    broker.create_topic("table_both")
    tables.execute_sql(
        f"CREATE TABLE `both` (id BIGINT, s STRING) {common}, 'key.format' = 'raw', "
        "'key.fields' = 's', 'format' = 'json')".replace("table_keys", "table_both")
    )
    tables.execute_sql("INSERT INTO `both` VALUES (7, 'a')").wait()
    assert [tuple(row) for row in tables.execute_sql("SELECT * FROM `both`").collect()] == [
        (7, "a")
    ]


@pytest.mark.parametrize("guarantee", ["exactly-once", "none"])
def test_rows_are_written_with_the_guarantee_of_the_option(
    tables: TableEnvironment, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(DataStream, "sink_to", lambda stream, sink: written.append(repr(sink)))
    tables.execute_sql(
        "CREATE TABLE t (n INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', "
        "'properties.bootstrap.servers' = 'nowhere:1', 'sink.transactional-id-prefix' = 'mine', "
        f"'sink.delivery-guarantee' = '{guarantee}')"
    )
    with pytest.raises(AttributeError):  # of None, where the sink would be named
        tables.execute_sql("INSERT INTO t SELECT 1")
    assert written == [f"KafkaSink(t, {guarantee.replace('-', '_').upper()})"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("'topic' = 't', 'format' = 'json', 'key.fields' = 'n'", "one is missing"),
        (
            "'topic' = 't', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'm'",
            "'m', which is no column; there is 'n'",
        ),
        (
            "'topic' = 't', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'n', "
            "'key.fields-prefix' = 'n'",
            "needs 'value.fields-include' = 'EXCEPT_KEY'",
        ),
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


SECONDS_AT = "n BIGINT, ts AS TO_TIMESTAMP_LTZ(n, 0), WATERMARK FOR ts AS ts"


def streamed(broker: Broker, topic: str, more: str = "") -> TableEnvironment:
    """The table ``live`` of a topic whose partitions one subtask reads."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.execute_sql(
        f"CREATE TABLE live ({SECONDS_AT}) WITH ('connector' = 'kafka', 'topic' = '{topic}', "
        f"'properties.bootstrap.servers' = '{broker.bootstrap}', {more}"
        "'scan.startup.mode' = 'earliest-offset')"
    )
    return tables


def seconds(first: int, last: int, partition: int, key: bool = False) -> list[Record]:
    """Messages with these seconds, as value or as key."""
    texts = [json.dumps({"n": n}).encode() for n in range(first, last)]
    return [
        Record(b"{}", partition=partition, key=each) if key else Record(each, partition=partition)
        for each in texts
    ]


WINDOWS = (
    "SELECT COUNT(*), MIN(n) FROM TUMBLE(TABLE live, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
    "GROUP BY window_start, window_end"
)


@pytest.mark.wide
@pytest.mark.parametrize("is_key", [False, True])
def test_no_row_of_a_partition_that_lags_is_late(broker: Broker, is_key: bool) -> None:
    topic = broker.new_topic(2)
    broker.produce(topic, seconds(0, 3000, 0, is_key))
    broker.produce(topic, seconds(0, 3000, 1, is_key))
    format = (
        "'key.format' = 'json', 'key.fields' = 'n', 'value.fields-include' = 'EXCEPT_KEY', "
        if is_key
        else ""
    )
    bounded = f"'scan.bounded.mode' = 'latest-offset', 'format' = 'json', {format}"
    tables = streamed(broker, topic, bounded)
    rows = tables.execute_sql(WINDOWS).collect()
    assert sorted(tuple(row) for row in rows) == sorted((20, n) for n in range(0, 3000, 10))


@pytest.mark.wide
def test_an_idle_partition_holds_no_window_back_after_the_timeout(broker: Broker) -> None:
    topic = broker.new_topic(2)
    broker.produce(topic, seconds(0, 101, 0))
    tables = streamed(broker, topic, "'format' = 'json', ")
    tables.get_config().set("table.exec.source.idle-timeout", "200 ms")
    with tables.execute_sql(WINDOWS).collect() as rows:
        assert [tuple(next(rows)) for _ in range(10)] == [(10, n) for n in range(0, 100, 10)]
