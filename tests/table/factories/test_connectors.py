"""What connectors make of declared tables."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of
from flinkpy.common.logical_types.logical_type import BooleanType, IntType, RowType
from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import JobExecutionError
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.rex.rex_nodes import RexCall, RexInput, RexLiteral
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.statements import ColumnDefinition
from flinkpy.table import EnvironmentSettings, Schema, TableDescriptor, TableEnvironment
from flinkpy.table.factories.found_factories import FoundFactories
from flinkpy.testing.tables import clear_results, register_rows, results, wait_for_rows
from tests.table.factories.scans import PATH, STRING, declared, row_type, scanned, written

COLUMNS = ["id", "name", "price", "day", "at"]
ROWS = [
    (1, "a", Decimal("1.50"), datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5)),
    (2, None, None, None, None),
    (3, 'it, "is"', Decimal("-2.25"), datetime.date(1999, 12, 31), datetime.datetime(2000, 1, 1)),
]


def data() -> pa.Table:
    schema = arrow_schema_of(row_type(COLUMNS))
    return pa.table([list(values) for values in zip(*ROWS)], schema=schema)


@pytest.mark.parametrize("format", ["parquet", "csv", "json", "avro"])
def test_a_table_of_files_gives_back_what_was_written(tmp_path: Path, format: str) -> None:
    if format == "avro":
        pytest.importorskip("fastavro")
    options = {"connector": "filesystem", "path": str(tmp_path / "out"), "format": format}
    table = declared(COLUMNS, options)
    written(data(), table)
    read = scanned(table)
    assert read.schema.equals(arrow_schema_of(row_type(COLUMNS)))
    assert sorted(read.to_pylist(), key=lambda row: row["id"]) == data().to_pylist()
    assert scanned(table, ["day", "id"]).column_names == ["day", "id"]


def test_maps_of_json_are_read_where_a_query_wants_them(tmp_path: Path) -> None:
    lines = ['{"a": 1, "m": {"x": 1, "y": null}}', '{"a": 2, "m": {"x": "no"}}', '{"a": 3}']
    (tmp_path / "in.json").write_text("\n".join(lines))
    files = {"path": str(tmp_path), "format": "json"}
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for name, options in (("strict", {}), ("lenient", {"json.ignore-parse-errors": "true"})):
        builder = TableDescriptor.for_connector("filesystem").schema(
            Schema.new_builder().column("a", "INT").column("m", "MAP<STRING, INT>").build()
        )
        for key, value in {**files, **options}.items():
            builder = builder.option(key, value)
        tables.create_temporary_table(name, builder.build())
    assert tables.sql_query("SELECT a FROM strict").to_arrow()["a"].to_pylist() == [1, 2, 3]
    with pytest.raises(JobExecutionError, match="line 2: column 'm': field 'm': 'no'"):
        tables.sql_query("SELECT m FROM strict").to_arrow()
    found = tables.sql_query("SELECT m FROM lenient").to_arrow()["m"].to_pylist()
    assert found == [[("x", 1), ("y", None)], None, None]


def test_times_of_more_digits_than_declared_are_an_error_that_names_the_type(
    tmp_path: Path,
) -> None:
    times = pa.array([datetime.datetime(2024, 1, 1, 0, 0, 0, 5)], pa.timestamp("us"))
    pq.write_table(pa.table({"at": times}), tmp_path / "in.parquet")
    table = declared(
        ["at"], {"connector": "filesystem", "format": "parquet", "path": str(tmp_path)}
    )
    with pytest.raises(JobExecutionError, match=r"'at': .*such as TIMESTAMP\(6\)"):
        scanned(table)


def test_partitions_are_folders_whose_names_are_columns(tmp_path: Path) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "parquet"}
    table = declared(["id", "n", "name"], options, ("n", "name"))
    rows = pa.table(
        {"id": [1, 2, 3], "n": pa.array([7, 7, 8], pa.int32()), "name": ["a", "b", "a"]}
    )
    written(rows, table)
    assert sorted(path.name for path in tmp_path.rglob("*=*")) == [
        "n=7",
        "n=8",
        "name=a",
        "name=a",
        "name=b",
    ]
    read = scanned(table, ["n", "id", "name"])
    assert read.schema.field("n").type == pa.int32()
    assert sorted(read.to_pylist(), key=lambda row: row["id"]) == [
        {"n": 7, "id": 1, "name": "a"},
        {"n": 7, "id": 2, "name": "b"},
        {"n": 8, "id": 3, "name": "a"},
    ]


def test_a_filter_leaves_out_the_row_groups_that_it_excludes(tmp_path: Path) -> None:
    numbers = pa.table({"id": pa.array(range(100))})
    pq.write_table(numbers, tmp_path / "a.parquet", row_group_size=10)
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "parquet"}
    table = declared(["id"], options)
    above = RexCall(BooleanType(), ">", (RexInput(IntType(), 0), RexLiteral(IntType(), 85)))
    assert scanned(table, filters=(above,)).num_rows == 20
    assert FoundFactories().source_abilities(PATH, table).rows == 100


def test_a_csv_file_with_a_header_is_read_by_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,extra,id\nx,1,2\n")
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}
    table = declared(["id", "name"], {**options, "csv.header": "true"})
    assert scanned(table).to_pylist() == [{"id": 2, "name": "x"}]


def test_an_empty_folder_is_an_empty_table(tmp_path: Path) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "json"}
    assert scanned(declared(["id"], options)).num_rows == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"connector": "filesistem"}, "no connector 'filesistem'; did you mean 'filesystem'"),
        ({}, "no option 'connector'"),
        ({"connector": "filesystem", "pth": "x"}, "no option 'pth'; did you mean 'path'"),
        ({"connector": "filesystem", "path": "x"}, "needs the option 'format'"),
        (
            {"connector": "filesystem", "path": "x", "format": "csv", "csv.field-delimeter": ";"},
            "did you mean 'csv.field-delimiter'",
        ),
        (
            {"connector": "filesystem", "path": "x", "format": "csv", "csv.header": "yes"},
            "cannot be 'yes': it is true or false",
        ),
        ({"connector": "print"}, "cannot be read"),
        ({"connector": "datagen", "fields.idd.min": "1"}, "'idd', which is no column"),
        ({"connector": "values", "data-id": "nothing"}, "register_rows"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_the_nearest(
    options: dict[str, str], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        FoundFactories().source_abilities(PATH, declared(["id"], options))


def test_registered_rows_keep_their_kinds_from_source_to_sink() -> None:
    clear_results()
    rows = [Row(1, "a"), Row(1, "a"), Row(1, "b")]
    for row, kind in zip(rows, [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER]):
        row.set_row_kind(kind)
    options = {"connector": "values", "data-id": register_rows(rows), "changelog-mode": "I,UB,UA"}
    table = declared(["id", "name"], options)
    from flinkpy.sql.physical.physical_nodes import SinkNode, TableScan
    from flinkpy.testing import embedded_environment

    env = embedded_environment()
    schema = row_type(["name", "id"])
    scan = TableScan(schema, PATH, table)
    sink = declared(["name", "id"], {"connector": "values", "sink-insert-only": "false"})
    FoundFactories().sink(FoundFactories().scan(env, scan), SinkNode(schema, scan, PATH, sink))
    env.execute("kinds")
    found = wait_for_rows({"t": 3})["t"]
    assert [(str(row.get_row_kind()), *row) for row in found] == [
        ("+I", "a", 1),
        ("-U", "a", 1),
        ("+U", "b", 1),
    ]
    assert results("t") == found


def test_generated_rows_are_the_same_in_each_run_and_within_their_bounds() -> None:
    options = {
        "connector": "datagen",
        "number-of-rows": "50",
        "fields.n.min": "-2",
        "fields.n.max": "3",
        "fields.id.kind": "sequence",
        "fields.id.start": "5",
        "fields.id.end": "1000",
        "fields.name.length": "4",
        "fields.name.null-rate": "0.5",
        "fields.price.max": "9.99",
    }
    table = declared(["id", "n", "name", "price", "share"], options)
    first, again = scanned(table), scanned(table, ["share", "n", "name", "id", "price"])
    assert first.sort_by("id").to_pylist() == [
        {name: row[name] for name in first.column_names} for row in again.sort_by("id").to_pylist()
    ]
    rows = first.to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(5, 55))
    assert {row["n"] for row in rows} == {-2, -1, 0, 1, 2, 3}
    assert {len(row["name"] or "") for row in rows} == {0, 4}
    assert all(0 <= row["price"] <= Decimal("9.99") and 0 <= row["share"] < 1 for row in rows)


def test_nexmark_gives_one_kind_or_all_events_together() -> None:
    options = {"connector": "nexmark", "events.num": "100"}
    bid = RowType.of(("auction", declared(["id"], {}).columns[0].type), ("channel", STRING))  # type: ignore[union-attr]
    events = CatalogTable(
        (ColumnDefinition("event_type", IntType()), ColumnDefinition("bid", bid)), options
    )
    rows = scanned(events).to_pylist()
    assert sorted(row["event_type"] for row in rows) == [0] * 2 + [1] * 6 + [2] * 92
    auctions = [row["bid"]["auction"] for row in rows if row["event_type"] == 2]
    bids = CatalogTable(
        (ColumnDefinition("auction", bid.fields[0].type), ColumnDefinition("url", STRING)),
        {**options, "kind": "bid"},
    )
    alone: list[dict[str, Any]] = scanned(bids).to_pylist()
    assert sorted(row["auction"] for row in alone) == sorted(auctions)


def test_print_shows_kinds_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    written(
        data().slice(0, 2).select(["id", "name"]), declared(["id", "name"], {"connector": "print"})
    )
    assert capsys.readouterr().out.splitlines() == ["+I[1, a]", "+I[2, null]"]


def test_datagen_makes_values_of_nested_types() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql(
        "CREATE TABLE made (l ARRAY<INT>, m MAP<STRING, BOOLEAN>, r ROW<a INT, b ARRAY<STRING>>) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '20', 'fields.l.length' = '2', "
        "'fields.l.element.min' = '1', 'fields.l.element.max' = '3', 'fields.m.key.length' = '1', "
        "'fields.r.a.kind' = 'sequence', 'fields.r.a.start' = '5', 'fields.r.a.end' = '99', "
        "'fields.r.b.element.length' = '4')"
    )
    rows = tables.execute_sql("SELECT * FROM made").to_arrow().to_pylist()
    assert len(rows) == 20
    assert {n for row in rows for n in row["l"]} == {1, 2, 3}
    assert {len(row["l"]) for row in rows} == {2}
    assert all(len(dict(row["m"])) == len(row["m"]) in (1, 2, 3) for row in rows)
    assert [row["r"]["a"] for row in rows] == list(range(5, 25))
    assert {(len(row["r"]["b"]), len(row["r"]["b"][0])) for row in rows} == {(3, 4)}
    wrong = declared(["id"], {"connector": "datagen", "fields.id.element.min": "1"})
    with pytest.raises(ValidationError, match=r"'fields\.id\.element\.\*' name no part"):
        FoundFactories().source_abilities(PATH, wrong)


def test_the_page_of_connectors_is_that_of_their_options() -> None:
    from tests.table.factories.connector_page import PAGE, page

    assert PAGE.read_text() == page(), "python -m tests.table.factories.connector_page"


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_metadata_columns_tell_the_file_of_each_row(tmp_path: Path, format: str) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql(
        "CREATE TABLE t (path STRING METADATA FROM 'file.path' VIRTUAL, n INT, name STRING METADATA"
        " FROM 'file.name' VIRTUAL, size BIGINT METADATA FROM 'file.size' VIRTUAL, m TIMESTAMP_LTZ(3)"
        " METADATA FROM 'file.modification-time' VIRTUAL, part STRING) PARTITIONED BY (part) WITH"
        f" ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = '{format}')"
    )
    tables.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')").wait()
    files = {file.parent.name: file for file in tmp_path.glob("part=*/*")}
    rows = tables.execute_sql("SELECT path, n, name, size, part FROM t ORDER BY n").to_arrow()
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (str(file), n, file.name, file.stat().st_size, part)
        for n, part in ((1, "a"), (2, "b"))
        for file in [files[f"part={part}"]]
    ]
    [row, _] = tables.execute_sql("SELECT m, name FROM t ORDER BY part").to_arrow().to_pylist()
    modified = files["part=a"].stat().st_mtime
    assert abs(row["m"].timestamp() - modified) < 0.002
    found = tables.execute_sql("SELECT n FROM t WHERE path LIKE '%part=b%' AND size > 0 AND n > 0")
    assert found.to_arrow().to_pydict() == {"n": [2]}
    tables.execute_sql("CREATE TABLE w (other STRING METADATA FROM 'file.nam') LIKE t")
    with pytest.raises(ValidationError, match=r"did you mean .file\.name."):
        tables.explain_sql("SELECT * FROM w")
    tables.execute_sql("CREATE TABLE u (more STRING METADATA FROM 'file.name') LIKE t")
    with pytest.raises(ValidationError, match=r"'more' .* does not write; declare it VIRTUAL"):
        tables.explain_sql("INSERT INTO u (n, part, more) VALUES (1, 'a', 'x')")
