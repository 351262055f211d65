"""Tables whose rows change, from the factories alone: files of messages, and what their options
refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.types import Row, RowKind
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.physical.physical_nodes import SinkNode, TableScan, ValuesNode
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.statements import PrimaryKey
from flinkpy.table.factories.found_factories import FoundFactories
from flinkpy.testing import embedded_environment
from flinkpy.testing.tables import register_rows
from tests.table.factories.scans import PATH, declared, row_type

COLUMNS = ["id", "name", "price"]
INSERT, BEFORE, AFTER, DELETE = RowKind


def changed(*changes: tuple[RowKind, int, str]) -> str:
    rows = []
    for kind, id, name in changes:
        row = Row(id, name, None)
        row.set_row_kind(kind)
        rows.append(row)
    return register_rows(rows)


def scan(env: Any, table: CatalogTable) -> Any:
    return FoundFactories().scan(env, TableScan(row_type(COLUMNS), PATH, table))


CHANGES = [(INSERT, 1, "a"), (INSERT, 2, "b"), (BEFORE, 1, "a"), (AFTER, 1, "c"), (DELETE, 2, "b")]
# as Flink writes them: an update is a delete and an insert
READ = ["+I[1, a]", "+I[2, b]", "-D[1, a]", "+I[1, c]", "-D[2, b]"]


@pytest.mark.parametrize(
    ("format", "last"),
    [
        ("debezium-json", '{"before":{"id":2,"name":"b","price":null},"after":null,"op":"d"}'),
        ("canal-json", '{"data":[{"id":2,"name":"b","price":null}],"type":"DELETE"}'),
    ],
)
def test_changes_are_written_into_files_and_read_from_them(
    format: str, last: str, tmp_path: Path
) -> None:
    env = embedded_environment()
    source = declared(COLUMNS, {"connector": "values", "data-id": changed(*CHANGES)})
    files = declared(
        COLUMNS, {"connector": "filesystem", "path": str(tmp_path / "t"), "format": format}
    )
    node = SinkNode(row_type(COLUMNS), ValuesNode(row_type(COLUMNS), ()), PATH, files)
    FoundFactories().sink(scan(env, source), node)
    env.execute()
    [file] = [each for each in (tmp_path / "t").rglob("*") if each.is_file()]
    assert file.read_text().splitlines()[-1] == last
    with scan(env, files).execute_and_collect() as rows:
        shown = [f"{row.get_row_kind()}[{row[0]}, {row[1]}]" for row in rows]
    assert shown == READ


UPSERTS = {
    "connector": "upsert-kafka",
    "topic": "t",
    "properties.bootstrap.servers": "nowhere:1",
    "key.format": "json",
    "value.format": "json",
}
TOPIC = {key: value for key, value in UPSERTS.items() if key != "key.format"} | {
    "connector": "kafka"
}
FILES = {"connector": "filesystem", "path": "/nowhere"}


def of(options: dict[str, str], key: tuple[str, ...] = ()) -> CatalogTable:
    table = declared(COLUMNS, options)
    return CatalogTable(table.columns, options, primary_key=PrimaryKey(key) if key else None)


@pytest.mark.parametrize(
    ("table", "read", "written"),
    [
        (of(TOPIC), INSERT_ONLY, INSERT_ONLY),
        (of(TOPIC | {"value.format": "debezium-json"}, ("id",)), ALL_CHANGES, ALL_CHANGES),
        (of(TOPIC | {"value.format": "canal-json"}), ALL_CHANGES, ALL_CHANGES),
        (of(UPSERTS, ("id",)), ChangelogMode.of(AFTER, DELETE), ChangelogMode.upsert()),
        (of(FILES | {"format": "json"}), INSERT_ONLY, INSERT_ONLY),
        (of(FILES | {"format": "canal-json"}), ALL_CHANGES, ALL_CHANGES),
        (of({"connector": "print"}), None, ALL_CHANGES),
        (of({"connector": "blackhole"}), None, ALL_CHANGES),
    ],
)
def test_a_table_says_which_kinds_of_rows_it_gives_and_takes(
    table: CatalogTable, read: ChangelogMode | None, written: ChangelogMode
) -> None:
    factories = FoundFactories()
    if read is not None:
        assert factories.source_abilities(PATH, table).changes == read
    assert factories.sink_abilities(PATH, table).changes == written


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (of(UPSERTS), r"'upsert-kafka' needs a PRIMARY KEY \(...\) NOT ENFORCED"),
        (of(TOPIC, ("id",)), "the format 'json' has no PRIMARY KEY.*'upsert-kafka'"),
        (of(UPSERTS | {"value.format": "debezium-json"}, ("id",)), "cannot be 'debezium-json'"),
        (of(UPSERTS | {"sink.buffer-flush.max-rows": "5"}, ("id",)), "stand together: one of them"),
        (of(UPSERTS | {"scan.startup.mode": "latest-offset"}, ("id",)), "has no option 'scan.st"),
        (of(UPSERTS | {"key.fields-prefix": "k_"}, ("id",)), "is 'k_', and 'id' does not begin so"),
        (of(UPSERTS | {"sink.delivery-guarantee": "exactly-once"}, ("id",)), "needs the option"),
    ],
)
def test_what_a_changing_table_cannot_be_is_refused(table: CatalogTable, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        FoundFactories().sink_abilities(PATH, table)
