"""Topics as tables whose rows change: upserts, and messages of Debezium."""

from __future__ import annotations

import json
from typing import Any

from flinkpy.table import EnvironmentSettings, Row, RowKind, TableEnvironment
from flinkpy.testing.tables import register_rows
from tests.kafka.broker import Broker

INSERT, BEFORE, AFTER, DELETE = RowKind
CHANGES = [
    Row.of_kind(INSERT, 1, "a", 5),
    Row.of_kind(INSERT, 2, "b", None),
    Row.of_kind(BEFORE, 1, "a", 5),
    Row.of_kind(AFTER, 1, "c", 6),
    Row.of_kind(DELETE, 2, "b", None),
    Row.of_kind(INSERT, 3, "d", 7),
]


def streaming(broker: Broker, **topics: str) -> TableEnvironment:
    """A table ``people`` of changes, and a table for each topic, with further options."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    columns = "id INT NOT NULL, name STRING, n INT, PRIMARY KEY (id) NOT ENFORCED"
    tables.execute_sql(
        f"CREATE TABLE people ({columns}) WITH ('connector' = 'values', 'bounded' = 'true', "
        f"'data-id' = '{register_rows(CHANGES)}', 'changelog-mode' = 'I,UB,UA,D', "
        "'rows-per-batch' = '1')"
    )
    for topic, options in topics.items():
        broker.create_topic(topic)
        tables.execute_sql(
            f"CREATE TABLE {topic} ({columns}) WITH ('topic' = '{topic}', {options}, "
            f"'properties.bootstrap.servers' = '{broker.bootstrap}', "
            "'scan.bounded.mode' = 'latest-offset')"
        )
    return tables


def rows_of(tables: TableEnvironment, query: str) -> list[Any]:
    return sorted(
        map(tuple, (row.values() for row in tables.sql_query(query).to_arrow().to_pylist()))
    )


UPSERT = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"


def test_upserts_have_the_key_and_a_deleted_row_has_no_value(broker: Broker) -> None:
    tables = streaming(
        broker,
        upserts=f"{UPSERT}, 'value.fields-include' = 'EXCEPT_KEY'",
        last=f"{UPSERT}, 'sink.parallelism' = '2', 'sink.buffer-flush.max-rows' = '100', "
        "'sink.buffer-flush.interval' = '1 h'",
    )
    inserts = tables.create_statement_set()
    for topic in ("upserts", "last"):
        inserts.add_insert_sql(f"INSERT INTO {topic} SELECT * FROM people")
    inserts.execute().wait()
    written = [(each.key, each.value and json.loads(each.value)) for each in broker.read("upserts")]
    assert written == [
        (b'{"id":1}', {"name": "a", "n": 5}),
        (b'{"id":2}', {"name": "b", "n": None}),
        (b'{"id":1}', {"name": "c", "n": 6}),
        (b'{"id":2}', None),
        (b'{"id":3}', {"name": "d", "n": 7}),
    ]
    assert {each.key: each.value for each in broker.read("last")} == {
        b'{"id":1}': b'{"id":1,"name":"c","n":6}',
        b'{"id":2}': None,
        b'{"id":3}': b'{"id":3,"name":"d","n":7}',
    }
    assert len(broker.read("last")) == 3
    wanted = [(1, "c", 6), (3, "d", 7)]
    assert rows_of(tables, "SELECT * FROM upserts") == wanted
    assert rows_of(tables, "SELECT name FROM last WHERE n = 6") == [("c",)]


def test_messages_of_debezium_are_changes_beside_which_their_offsets_are(broker: Broker) -> None:
    broker.create_topic("shop")
    row = {"id": 1, "name": "a", "n": 1}
    told = [
        {"before": None, "after": row, "op": "c"},
        {"before": row, "after": {**row, "n": 2}, "op": "u"},
    ]
    broker.produce("shop", [*(json.dumps(each).encode() for each in told)])
    tables = streaming(
        broker,
        debezium="'connector' = 'kafka', 'format' = 'debezium-json', "
        "'scan.startup.mode' = 'earliest-offset'",
    )
    tables.execute_sql(
        "CREATE TABLE shop (place BIGINT METADATA FROM 'offset') WITH ('topic' = 'shop') "
        "LIKE debezium (OVERWRITING OPTIONS)"
    )
    with tables.execute_sql("SELECT id, n, place FROM shop").collect() as rows:
        assert [(str(each.get_row_kind()), *each) for each in rows] == [
            ("+I", 1, 1, 0),
            ("-U", 1, 1, 1),
            ("+U", 1, 2, 1),
        ]
    tables.execute_sql("INSERT INTO debezium SELECT * FROM people").wait()
    assert rows_of(tables, "SELECT * FROM debezium") == [(1, "c", 6), (3, "d", 7)]
