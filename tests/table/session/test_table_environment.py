"""Programs with tables: statements in, rows out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.core.errors import ConfigurationError, JobExecutionError, ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.sql.sql_errors import SqlParserError, ValidationError
from flinkpy.table import (
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    FormatDescriptor,
    ResultKind,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from flinkpy.testing.tables import clear_results, register_rows, results


@pytest.fixture
def tables() -> TableEnvironment:
    clear_results()
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def values_table(tables: TableEnvironment, name: str, columns: str, rows: list[object]) -> None:
    tables.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'values', "
        f"'data-id' = '{register_rows(rows)}', 'bounded' = 'true')"
    )


def test_a_query_over_parquet_prints_what_flink_prints(
    tables: TableEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pa.table({"a": ["x", "y"], "b": pa.array([1, None], pa.int32()), "c": [1.0, 2.5]})
    pq.write_table(data, tmp_path / "a.parquet")
    tables.execute_sql(
        "CREATE TABLE t (a STRING, b INT, c DOUBLE) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}', 'format' = 'parquet')"
    )
    tables.execute_sql("SELECT a, b + 1 AS n FROM t WHERE c > 2").print()
    assert capsys.readouterr().out == (
        "+--------------------------------+-------------+\n"
        "|                              a |           n |\n"
        "+--------------------------------+-------------+\n"
        "|                              y |      <NULL> |\n"
        "+--------------------------------+-------------+\n"
        "1 row in set\n"
    )


def test_ddl_prints_ok_or_its_rows(
    tables: TableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    values_table(tables, "t", "a INT PRIMARY KEY NOT ENFORCED", [(1,)])
    created = tables.execute_sql("CREATE DATABASE d")
    assert created.get_result_kind() is ResultKind.SUCCESS
    created.print()
    tables.execute_sql("DESCRIBE t").print()
    assert capsys.readouterr().out == (
        "OK\n"
        "+------+------+-------+--------+--------+-----------+\n"
        "| name | type |  null |    key | extras | watermark |\n"
        "+------+------+-------+--------+--------+-----------+\n"
        "|    a |  INT | FALSE | PRI(a) |        |           |\n"
        "+------+------+-------+--------+--------+-----------+\n"
        "1 row in set\n"
    )


def test_rows_go_into_a_table_and_the_job_is_waited_for(tables: TableEnvironment) -> None:
    values_table(tables, "t", "a INT, b STRING", [(1, "x"), (2, "y")])
    tables.execute_sql("CREATE TABLE s (b STRING, a INT) WITH ('connector' = 'values')")
    inserted = tables.execute_sql("INSERT INTO s SELECT b, a FROM t WHERE a > 1")
    inserted.wait()
    assert inserted.get_job_client() is not None
    assert [tuple(row) for row in results("s")] == [("y", 2)]


def test_the_inserts_of_a_statement_set_are_one_job(tables: TableEnvironment) -> None:
    values_table(tables, "t", "a INT", [(1,), (2,), (3,)])
    for name in ("low", "high"):
        tables.execute_sql(f"CREATE TABLE {name} (a INT) WITH ('connector' = 'values')")
    statements = tables.create_statement_set()
    statements.add_insert_sql("INSERT INTO low SELECT a FROM t WHERE a < 2")
    statements.add_insert("high", tables.sql_query("SELECT a FROM t WHERE a > 1"))
    statements.execute().wait()
    assert [tuple(row) for row in results("low")] == [(1,)]
    assert sorted(tuple(row) for row in results("high")) == [(2,), (3,)]
    with pytest.raises(ProgramError, match="empty"):
        statements.execute()


def test_ctas_makes_a_table_with_the_columns_of_its_query(tables: TableEnvironment) -> None:
    values_table(tables, "t", "a INT, b STRING", [(1, "x")])
    tables.execute_sql(
        "CREATE TABLE c WITH ('connector' = 'values') AS SELECT b, a + 1 AS n FROM t"
    ).wait()
    assert [tuple(row) for row in results("c")] == [("x", 2)]
    columns = tables.execute_sql("DESCRIBE c").to_arrow()
    assert columns.column("type").to_pylist() == ["STRING", "INT"]


def test_ctas_declares_types_further_columns_and_an_order_as_in_flink(
    tables: TableEnvironment,
) -> None:
    values_table(tables, "t", "a INT, b INT, n DOUBLE", [(1, 2, 0.5)])
    made = "WITH ('connector' = 'values') AS SELECT a, n, b FROM t"
    for name, declared, columns, rows in [
        (
            "d1",
            "(m STRING, b DOUBLE, c AS n * b)",
            {"m": "STRING", "c": "DOUBLE"},
            (None, 1, 0.5, 2.0),
        ),
        ("d2", "(b, a, n)", {"b": "INT"}, (2, 1, 0.5)),
        ("d3", "(n DOUBLE, PRIMARY KEY (a) NOT ENFORCED)", {"a": "INT"}, (1, 0.5, 2)),
    ]:
        tables.execute_sql(f"CREATE TABLE {name} {declared} {made}").wait()
        assert [tuple(row) for row in results(name)] == [rows]
        described = tables.execute_sql(f"DESCRIBE {name}").to_arrow().to_pydict()
        assert columns.items() <= dict(zip(described["name"], described["type"])).items()
    for declared, words in [
        ("(b, x, n)", "the list of columns names 'x', which is no column of the table"),
        ("(a, b)", "the list of columns has each of the query once: a, n, b"),
        ("(m INT NOT NULL)", "'m' of .* has no default value and does not allow NULLs"),
    ]:
        with pytest.raises(ValidationError, match=words):
            tables.execute_sql(f"CREATE TABLE e{len(words)} {declared} {made}")


def test_ctas_that_cannot_be_planned_leaves_what_was_there_and_one_that_fails_later_its_table(
    tables: TableEnvironment,
) -> None:
    tables.execute_sql("CREATE TABLE kept WITH ('connector' = 'blackhole') AS SELECT 1 AS a").wait()
    for table, connector in (
        ("TABLE c", "'connector' = 'datagen'"),  # is not written
        ("TEMPORARY TABLE c", "'connector' = 'datagen'"),
        ("TABLE c", "'connector' = 'filesystem', 'path' = 'c', 'format' = 'none'"),
        ("OR REPLACE TABLE kept", "'connector' = 'datagen'"),
    ):
        with pytest.raises(ValidationError):
            tables.execute_sql(f"CREATE {table} WITH ({connector}) AS SELECT 'x' AS b")
    assert tables.list_tables() == ["kept"]
    assert tables.execute_sql("DESCRIBE kept").to_arrow().column("name").to_pylist() == ["a"]
    failing = "SELECT CAST(s AS INT) AS i FROM (VALUES 'x', 'y') AS t(s)"
    with pytest.raises(JobExecutionError):
        tables.execute_sql(f"CREATE TABLE c WITH ('connector' = 'blackhole') AS {failing}").wait()
    assert tables.list_tables() == ["c", "kept"]


def test_frames_elements_and_views_are_tables(tables: TableEnvironment) -> None:
    elements = tables.from_elements([(1, "a"), (2, None)], ["n", "s"])
    typed = tables.from_elements(
        [(1, "a")],
        DataTypes.ROW(
            [DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("s", DataTypes.STRING())]
        ),
    )
    assert [str(field.type) for field in typed.get_schema()] == ["INT", "STRING"]
    tables.create_temporary_view("v", elements)
    assert (tables.list_tables(), tables.list_views()) == (["v"], ["v"])
    assert tables.from_path("v").to_arrow().to_pylist() == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]
    named_by_text = tables.sql_query(f"SELECT n FROM {elements} WHERE s IS NULL")
    assert named_by_text.to_pandas()["n"].tolist() == [2]
    assert tables.from_arrow(pa.table({"x": [1.5]})).to_arrow().column("x").to_pylist() == [1.5]
    tables.execute_sql("CREATE TEMPORARY VIEW w AS SELECT n + 1 AS m FROM v")
    assert [tuple(row) for row in tables.execute_sql("SELECT m FROM w").collect()] == [(2,), (3,)]
    assert tables.drop_temporary_view("v")
    assert tables.list_tables() == ["w"]


def test_a_descriptor_declares_what_ddl_would(tables: TableEnvironment) -> None:
    descriptor = (
        TableDescriptor.for_connector("filesystem")
        .schema(
            Schema.new_builder()
            .column("id", DataTypes.BIGINT())
            .column("name", "STRING")
            .column_by_expression("twice", "id * 2")
            .primary_key("id")
            .build()
        )
        .option("path", "/nowhere")
        .format(FormatDescriptor.for_format("csv").option("field-delimiter", ";").build())
        .comment("ids")
        .build()
    )
    tables.create_temporary_table("t", descriptor)
    assert tables.execute_sql("SHOW CREATE TABLE t").to_arrow().to_pylist()[0]["result"] == (
        "CREATE TEMPORARY TABLE `default_catalog`.`default_database`.`t` (\n"
        "  `id` BIGINT NOT NULL,\n"
        "  `name` STRING,\n"
        "  `twice` AS `id` * 2,\n"
        "  PRIMARY KEY (`id`) NOT ENFORCED\n"
        ")\n"
        "COMMENT 'ids'\n"
        "WITH (\n"
        "  'connector' = 'filesystem',\n"
        "  'path' = '/nowhere',\n"
        "  'format' = 'csv',\n"
        "  'csv.field-delimiter' = ';'\n"
        ")\n"
    )


def test_streams_become_tables_and_tables_streams() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    kinds = Types.ROW_NAMED(["n", "s"], [Types.INT(), Types.STRING()])
    stream = env.from_collection([(1, "a"), (2, "b")], kinds)
    tables.create_temporary_view("v", stream)
    bigger = tables.to_data_stream(tables.sql_query("SELECT n + 1 AS n, s FROM v"))
    assert bigger.to_arrow().to_pylist() == [{"n": 2, "s": "a"}, {"n": 3, "s": "b"}]


def test_a_query_leaves_what_the_program_has_recorded_for_execute() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    tables = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    from flinkpy.testing import CollectingSink

    sink = CollectingSink()
    env.from_collection([1, 2]).sink_to(sink)
    assert [tuple(row) for row in tables.execute_sql("SELECT 5").collect()] == [(5,)]
    assert sink.values == []
    env.execute()
    assert sink.values == [1, 2]


def test_windows_of_a_stream_print_their_kinds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = ["2024-01-01 00:00:01", "2024-01-01 00:00:09.5", "2024-01-01 00:00:12"]
    (tmp_path / "e.csv").write_text("".join(f"{n},{at}\n" for n, at in enumerate(times)))
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql(
        "CREATE TABLE e (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
    )
    tables.execute_sql(
        "SELECT window_start, SUM(n) AS s FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    ).print()
    assert capsys.readouterr().out == (
        "+----+-------------------------+-------------+\n"
        "| op |            window_start |           s |\n"
        "+----+-------------------------+-------------+\n"
        "| +I | 2024-01-01 00:00:00.000 |           1 |\n"
        "| +I | 2024-01-01 00:00:10.000 |           2 |\n"
        "+----+-------------------------+-------------+\n"
        "2 rows in set\n"
    )


def test_errors_show_the_place_and_the_nearest_name(tables: TableEnvironment) -> None:
    values_table(tables, "bids", "price INT", [])
    with pytest.raises(ValidationError, match=r"(?s)did you mean 'price'.*\^\^\^\^\^"):
        tables.execute_sql("SELECT prise FROM bids")
    with pytest.raises(ValidationError, match="bids"):
        tables.sql_query("SELECT price FROM bid")
    with pytest.raises(SqlParserError) as raised:
        tables.execute_sql("SELECT\n  FROM bids WHERE")
    assert raised.value.position is not None
    with pytest.raises(ProgramError, match="is no path"):
        tables.from_path("a..b")


@pytest.mark.parametrize("statement", ["INSERT INTO t SELECT 1", "SHOW TABLES", "DROP TABLE t"])
def test_a_table_is_made_of_a_query_and_of_no_other_statement(
    tables: TableEnvironment, statement: str
) -> None:
    with pytest.raises(ValidationError, match=r"this is no query.*execute_sql\(\) runs statements"):
        tables.sql_query(statement)


def test_columns_of_polars_are_those_of_sql_and_come_back(tables: TableEnvironment) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "text": ["a", None],
            "parts": [["x", None], None],
            "row": [{"n": 1, "s": "y"}, {"n": None, "s": None}],
        }
    ).with_columns(
        kind=polars.col("text").cast(polars.Categorical),
        chosen=polars.col("text").cast(polars.Enum(["a", "b"])),
        kinds=polars.col("parts").cast(polars.List(polars.Categorical)),
    )
    table = tables.from_polars(frame)
    assert table.to_polars().rows() == frame.rows()
    types = [str(field.type) for field in table.get_schema()]
    assert types[3:] == ["STRING", "STRING", "ARRAY<STRING>"]


def test_options_are_set_by_sql_and_by_config(tables: TableEnvironment) -> None:
    tables.execute_sql("SET 'table.local-time-zone' = 'Europe/Oslo'")
    assert tables.get_config().get_local_timezone() == "Europe/Oslo"
    tables.get_config().set("parallelism.default", "2")
    shown = tables.execute_sql("SET").to_arrow().to_pylist()
    assert {"key": "table.local-time-zone", "value": "Europe/Oslo"} in shown
    assert {"key": "parallelism.default", "value": "2"} in shown
    tables.execute_sql("RESET 'table.local-time-zone'")
    assert "table.local-time-zone" not in tables.get_config().to_map()
    tables.execute_sql("SET 'execution.runtime-mode' = 'STREAMING'")
    tables.execute_sql("RESET")
    assert tables.get_config().to_map() == {"execution.runtime-mode": "BATCH"}
    with pytest.raises(ValidationError, match=r"did you mean 'table\.local-time-zone'"):
        tables.execute_sql("SET 'table.local-timezone' = 'UTC'")
    with pytest.raises(ConfigurationError, match="name of a zone"):
        tables.get_config().set("table.local-time-zone", "Oslo")


def test_a_plan_is_explained_in_three_sections(tables: TableEnvironment) -> None:
    values_table(tables, "t", "a INT, b INT", [])
    text = tables.explain_sql("SELECT a FROM t WHERE b > 1")
    assert text == tables.sql_query("SELECT a FROM t WHERE b > 1").explain()
    assert [line for line in text.splitlines() if line.startswith("==")] == [
        "== Abstract Syntax Tree ==",
        "== Optimized Physical Plan ==",
        "== Optimized Execution Plan ==",
    ]


def test_details_of_an_explanation_are_shown_when_they_are_asked_for(
    tables: TableEnvironment,
) -> None:
    values_table(tables, "t", "a INT, b INT", [(1, 2)])
    query = "SELECT t.a FROM t JOIN t AS u ON t.b < u.b"
    text = tables.explain_sql(query, *ExplainDetail)
    assert "TableSourceScan(table=[[default_catalog, default_database, t]], fields=[" in text
    assert "changelogMode=[I])" in text
    assert "rowcount = 1" in text
    assert "== Optimized Physical Plan With Advice ==" in text
    assert "each row of one side meets each row of the other" in text
    job = json.loads(text.partition("== Physical Execution Plan ==\n")[2])
    assert any(node["type"].startswith("Calc(select=[") for node in job["nodes"])
    by_sql = tables.execute_sql(f"EXPLAIN ESTIMATED_COST, PLAN_ADVICE {query}").to_arrow()
    shown = by_sql[0][0].as_py()
    assert "rowcount" in shown
    assert "changelogMode" not in shown
    assert "No available advice" in tables.explain_sql("SELECT 1", ExplainDetail.PLAN_ADVICE)


def test_importing_the_tables_imports_neither_arrow_nor_the_streams() -> None:
    heavy = ["numpy", "pyarrow", "ray", "pandas", "flinkpy.datastream"]
    asked = f"import sys, flinkpy.table; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


_NESTED = "(VALUES (1, CAST(ROW(7, 8) AS ROW<a INT, b INT>))) AS x(a, x)"


@pytest.mark.parametrize(
    ("query", "row"),  # as a live Flink gives them
    [
        (f"SELECT x.a FROM {_NESTED}", (1,)),
        (f"SELECT x.b FROM {_NESTED}", (8,)),
        (f"SELECT x.b, y.a FROM {_NESTED} JOIN (VALUES (1, 3)) AS y(a, x) ON x.a = y.a", (8, 1)),
    ],
)
def test_a_name_is_the_column_of_a_relation_before_it_is_a_part_of_a_column(
    tables: TableEnvironment, query: str, row: tuple[int, ...]
) -> None:
    assert [tuple(each) for each in tables.execute_sql(query).collect()] == [row]


def test_a_null_for_a_column_that_is_not_null_fails_or_is_dropped(tables: TableEnvironment) -> None:
    values_table(tables, "t", "a INT, s STRING", [(1, "x"), (2, None), (3, "y")])
    tables.execute_sql("CREATE TABLE kept (a INT, s STRING NOT NULL) WITH ('connector' = 'values')")
    insert = "INSERT INTO kept SELECT a, s FROM t"
    wanted = r"'s' of the table: it is NOT NULL.* in the row \(a=2, s=None\)"
    with pytest.raises(JobExecutionError, match=wanted):
        tables.execute_sql(insert).wait()
    tables.execute_sql("SET 'table.exec.sink.not-null-enforcer' = 'drop'")
    tables.execute_sql(insert).wait()
    assert [tuple(row) for row in results("kept")] == [(1, "x"), (3, "y")]


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ("a INT, b AS nothing + 1", "computed column 'b': Column 'nothing' not found"),
        ("s STRING, WATERMARK FOR s AS s", "'s' is STRING, and must be TIMESTAMP"),
        ("t TIMESTAMP(3), WATERMARK FOR u AS t", "WATERMARK names 'u'"),
    ],
)
def test_columns_are_checked_when_the_table_is_created(
    tables: TableEnvironment, columns: str, wrong: str
) -> None:
    with pytest.raises(ValidationError, match=wrong):
        tables.execute_sql(f"CREATE TABLE t ({columns}) WITH ('connector' = 'blackhole')")


def test_a_table_that_is_only_written_is_described(tables: TableEnvironment) -> None:
    tables.execute_sql(
        "CREATE TABLE t (a STRING, b AS CAST(a AS TIMESTAMP(3)), WATERMARK FOR b AS b) "
        "WITH ('connector' = 'blackhole')"
    )
    described = tables.execute_sql("DESCRIBE t").to_arrow().column("type").to_pylist()
    assert described == ["STRING", "TIMESTAMP(3)"]  # in BATCH an event time is a time as any other


def test_the_rows_of_a_result_are_read_once(tables: TableEnvironment) -> None:
    query = "SELECT * FROM (VALUES (1), (2)) AS t (a)"
    result = tables.execute_sql(query)
    assert tuple(next(result.collect())) == (1,)
    assert [tuple(row) for row in result.collect()] == [(2,)]  # what is left
    for again in (result.collect, result.print, result.to_arrow):
        with pytest.raises(ProgramError, match="were read before"):
            again()
    closed = tables.execute_sql(query)
    with closed.collect():
        pass
    with pytest.raises(ProgramError, match="were read before"):
        closed.to_arrow()
