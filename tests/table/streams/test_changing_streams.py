"""Changelogs become tables and tables become changelogs; what is shown of one that ends is its last
state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import ChangelogMode, Row, RowKind, Schema, StreamTableEnvironment
from flinkpy.testing.tables import register_rows, results

INSERT, BEFORE, AFTER, DELETE = RowKind
TYPE = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
CHANGES = [
    Row.of_kind(INSERT, 1, "a"),
    Row.of_kind(INSERT, 2, "b"),
    Row.of_kind(BEFORE, 1, "a"),
    Row.of_kind(AFTER, 1, "c"),
    Row.of_kind(DELETE, 2, "b"),
]
SHOWN = ["+I[1, a]", "+I[2, b]", "-U[1, a]", "+U[1, c]", "-D[2, b]"]
UPSERTS = [Row.of_kind(INSERT, 1, "a"), Row.of_kind(AFTER, 1, "b"), Row.of_kind(DELETE, 1, "b")]


def shown(rows: Iterable[Any]) -> list[str]:
    return [f"{row.get_row_kind()}[{', '.join(map(str, row))}]" for row in rows]


@pytest.fixture(scope="module")
def env() -> StreamExecutionEnvironment:
    made = StreamExecutionEnvironment.get_execution_environment()
    made.set_parallelism(1)
    return made


@pytest.fixture(scope="module")
def tables(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    made = StreamTableEnvironment.create(env)
    data_id = register_rows(CHANGES)
    made.execute_sql(
        "CREATE TABLE people (id INT, name STRING) WITH ('connector' = 'values', "
        f"'data-id' = '{data_id}', 'changelog-mode' = 'I,UB,UA,D', 'bounded' = 'true')"
    )
    return made


def stream(env: StreamExecutionEnvironment, rows: list[Row]) -> DataStream:
    return env.from_collection(rows, TYPE)


def keyed() -> Schema:
    builder = Schema.new_builder().column("id", "INT NOT NULL").column("name", "STRING")
    return builder.primary_key("id").build()


def test_changes_are_collected_and_printed_with_their_kinds(
    tables: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    with tables.execute_sql("SELECT * FROM people").collect() as rows:
        assert shown(rows) == SHOWN
    tables.execute_sql("SELECT * FROM people WHERE id = 1").print()
    assert capsys.readouterr().out == (
        "+----+-------------+--------------------------------+\n"
        "| op |          id |                           name |\n"
        "+----+-------------+--------------------------------+\n"
        "| +I |           1 |                              a |\n"
        "| -U |           1 |                              a |\n"
        "| +U |           1 |                              c |\n"
        "+----+-------------+--------------------------------+\n"
        "3 rows in set\n"
    )


def test_frames_and_a_notebook_show_the_last_state_of_a_query_that_ends(
    tables: StreamTableEnvironment,
) -> None:
    result = tables.execute_sql("SELECT * FROM people")
    html = result._repr_html_()
    assert "<th>op</th>" not in html
    assert html.count("<tr>") == 3  # names, types and one row
    assert result.to_arrow().to_pylist() == [{"id": 1, "name": "c"}]
    assert tables.from_path("people").to_pandas().to_dict("list") == {"id": [1], "name": ["c"]}


def test_changes_go_into_tables_that_take_them_and_not_into_others(
    tables: StreamTableEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, options in {
        "printed": "'connector' = 'print', 'print-identifier' = 'p'",
        "kept": "'connector' = 'values', 'sink-insert-only' = 'false'",
        "files": "'connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json'",
        "nothing": "'connector' = 'blackhole'",
    }.items():
        tables.execute_sql(f"CREATE TABLE {name} (id INT, name STRING) WITH ({options})")
    inserts = tables.create_statement_set()
    for name in ("printed", "kept", "nothing"):
        inserts.add_insert_sql(f"INSERT INTO {name} SELECT * FROM people")
    inserts.execute().wait()
    assert [line for line in capfd.readouterr().out.splitlines() if line.startswith("p>")] == [
        f"p> {line}" for line in SHOWN
    ]
    assert shown(results("kept")) == SHOWN
    with pytest.raises(ValidationError, match=r"files.* doesn't support consuming update"):
        tables.execute_sql("INSERT INTO files SELECT * FROM people")


def test_a_table_is_a_stream_of_changes_in_the_columns_that_are_wanted(
    tables: StreamTableEnvironment,
) -> None:
    people = tables.from_path("people")
    assert shown(tables.to_changelog_stream(people).execute_and_collect()) == SHOWN
    wanted = Schema.new_builder().column("id", "BIGINT").column("name", "STRING").build()
    made = tables.to_changelog_stream(people, wanted)
    assert shown(made.execute_and_collect()) == SHOWN
    flagged = tables.to_retract_stream(people).execute_and_collect()
    assert [(flag, row.id) for flag, row in flagged] == [
        (True, 1),
        (True, 2),
        (False, 1),
        (True, 1),
        (False, 2),
    ]
    with pytest.raises(ValidationError, match="doesn't support consuming update"):
        tables.to_changelog_stream(people, None, ChangelogMode.insert_only())
    only_after = tables.to_changelog_stream(people, keyed(), ChangelogMode.upsert())
    names: dict[int, str | None] = {}
    for row in only_after.execute_and_collect():
        assert row.get_row_kind() is not BEFORE
        names[row.id] = None if row.get_row_kind() is DELETE else row.name
    assert (names[1], names.get(2)) == ("c", None)
    with pytest.raises(
        ValidationError, match=r"update and delete .* node TableSourceScan.*to_changelog_stream"
    ):
        tables.to_data_stream(people)
    with pytest.raises(ProgramError, match=r"the mode \[I,UA,D\] .* needs a primary_key"):
        tables.to_changelog_stream(people, wanted, ChangelogMode.upsert())


def test_a_stream_of_changes_is_a_table(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    table = tables.from_changelog_stream(stream(env, CHANGES))
    assert shown(table.execute().collect()) == SHOWN
    assert table.to_arrow().to_pylist() == [{"id": 1, "name": "c"}]
    for count, left in ((2, [{"id": 1, "name": "b"}]), (3, [])):
        upserts = stream(env, UPSERTS[:count])
        upserted = tables.from_changelog_stream(upserts, keyed(), ChangelogMode.upsert())
        assert upserted.to_arrow().to_pylist() == left
    with pytest.raises(ProgramError, match=r"the mode \[I,UA,D\] .* needs a primary_key"):
        tables.from_changelog_stream(stream(env, UPSERTS), None, ChangelogMode.upsert())


def test_a_row_of_a_kind_that_the_mode_does_not_have_fails_the_job(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    table = tables.from_changelog_stream(stream(env, CHANGES), None, ChangelogMode.insert_only())
    with pytest.raises(JobExecutionError, match=r"the kinds \[I\], and got one of kind -U"):
        list(table.execute().collect())


def test_a_table_that_changes_is_not_read_in_batch(tables: StreamTableEnvironment) -> None:
    tables.get_config().set("execution.runtime-mode", "BATCH")
    try:
        with pytest.raises(ValidationError, match="only possible for INSERT-only table sources"):
            tables.execute_sql("SELECT * FROM people")
    finally:
        tables.get_config().set("execution.runtime-mode", "STREAMING")


def test_rows_that_are_deleted_and_not_updated_need_no_key(tables: StreamTableEnvironment) -> None:
    data_id = register_rows([Row.of_kind(INSERT, 1), Row.of_kind(DELETE, 1)])
    tables.execute_sql(
        "CREATE TABLE deleted (id INT) WITH ('connector' = 'values', 'bounded' = 'true', "
        f"'data-id' = '{data_id}', 'changelog-mode' = 'I,D')"
    )
    assert shown(tables.execute_sql("SELECT * FROM deleted").collect()) == ["+I[1]", "-D[1]"]
