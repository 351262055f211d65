"""``flinkpy sql``: statements from the command line, from files, and from a prompt."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from flinkpy.cli.main import commands
from flinkpy.cli.sql_client.shown_results import show_changing_table
from flinkpy.cli.sql_client.sql_completion import completions
from flinkpy.cli.sql_client.sql_prompt import is_complete
from flinkpy.common.types import Row, RowKind
from flinkpy.core.clock import ManualClock
from flinkpy.table import EnvironmentSettings, TableEnvironment, TableResult
from flinkpy.table.results.folded_rows import folded
from flinkpy.table.results.result_rows import ReadyRows
from flinkpy.testing.tables import register_rows
from tests.cli.terminal import CTRL_C, CTRL_D, Terminal

FLINKPY = [sys.executable, "-m", "flinkpy"]
ENDLESS = (
    "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', "
    "'fields.a.min' = '7', 'fields.a.max' = '7');"
)


def run(*arguments: str, code: int = 0) -> tuple[str, str]:
    """What the command prints in this process, and its errors."""
    done = CliRunner().invoke(commands, ["sql", *arguments])
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


def test_statements_of_the_command_line_run_one_after_the_other() -> None:
    output, _ = run("-e", "CREATE DATABASE d; USE d; SHOW CURRENT DATABASE; SELECT 1 + 1 AS two")
    assert output == (
        "OK\nOK\n"
        "+-----------------------+\n"
        "| current database name |\n"
        "+-----------------------+\n"
        "|                     d |\n"
        "+-----------------------+\n"
        "1 row in set\n"
        "+-------------+\n"
        "|         two |\n"
        "+-------------+\n"
        "|           2 |\n"
        "+-------------+\n"
        "1 row in set\n"
    )


def test_a_script_ends_at_its_first_error_which_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "init.sql").write_text("CREATE DATABASE d;")
    script = tmp_path / "report.sql"
    script.write_text("-- a report\nUSE d;\n\nSELECT a\n  FROM nothing;\nUSE nowhere;\n")
    output, errors = run("-i", str(tmp_path / "init.sql"), "-f", str(script), code=1)
    assert output == "OK\nOK\n"
    assert "  5 |   FROM nothing;\n    |        ^^^^^^^" in errors
    assert "nowhere" not in errors
    script.write_text("SELECT 1;\nSELECT CAST('x' AS INT);\nUSE nowhere;\n")
    _, errors = run("-f", str(script), code=1)
    assert f"line 2 of {script}:\njob 'collect' failed" in errors
    assert "nowhere" not in errors


def test_an_insert_is_waited_for_in_batch_so_that_the_next_statement_reads_it(
    tmp_path: Path,
) -> None:
    table = f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/out')"
    output, _ = run(
        "-e", f"CREATE TABLE t (a INT) {table}; INSERT INTO t SELECT 5; SELECT a FROM t;"
    )
    assert "|           5 |" in output
    created = table.replace("/out", "/copy")
    output, _ = run("-e", f"CREATE TABLE c {created} AS SELECT 6 AS a; SELECT a FROM c;")
    assert "|           6 |" in output


def test_the_report_on_the_page_of_the_prompt_runs_beside_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sold = pa.table({"shop": ["a", "b", "a"], "sold": pa.array([1, 2, 3], pa.int32())})
    pq.write_table(sold, "sales.parquet")
    page = Path(__file__).parents[2] / "docs" / "sql" / "prompt.md"
    (tmp_path / "report.sql").write_text(page.read_text().split("```sql\n")[1].split("```")[0])
    output, _ = run("-f", "report.sql")
    assert "|                              a |                    4 |" in output
    written = [path.read_text() for path in (tmp_path / "report").iterdir()]
    assert sorted("".join(written).splitlines()) == ["a,4", "b,2"]


def test_the_result_mode_table_shows_what_is_left_of_a_changelog() -> None:
    before, after = Row("a", 1), Row("a", 2)
    gone = Row("a", 1)
    gone.set_row_kind(RowKind.UPDATE_BEFORE)
    after.set_row_kind(RowKind.UPDATE_AFTER)
    assert folded([before, Row("b", [1]), gone, after]) == [Row("b", [1]), Row("a", 2)]
    output, _ = run("-e", "SET 'sql-client.execution.result-mode' = 'table'; SELECT 3 AS n")
    assert "|           3 |" in output


def test_a_table_that_changes_is_drawn_anew_over_itself() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    rows = [Row("a", 1), Row("b", 5), Row("a", 1), Row("a", 2)]
    for row, kind in zip(rows[2:], (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER)):
        row.set_row_kind(kind)
    table = tables.from_elements([("", 0)], ["s", "n"])
    result = TableResult(table.get_schema(), _Given(rows), has_kinds=True)
    screen = io.StringIO()
    show_changing_table(result, screen, ManualClock())
    first, last = screen.getvalue().split("\x1b[6A\r\x1b[J")
    assert "1 row in set" in first
    assert "|                              b |                    5 |" in last
    assert "|                              a |                    2 |" in last
    assert "2 rows in set" in last


class _Given(ReadyRows):
    """Rows with kinds."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__([])
        self._given = rows

    def rows(self) -> Iterator[Row]:
        return iter(self._given)


def test_the_tab_key_knows_tables_functions_keywords_and_options() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql("CREATE TABLE Selections (n INT) WITH ('connector' = 'print')")
    assert completions(tables, "sele") == ["Selections", "select"]
    assert "REGEXP_REPLACE" in completions(tables, "REGEXP_R")
    assert completions(tables, "default_cat") == ["default_catalog"]
    assert completions(tables, "'table.local") == ["'table.local-time-zone'"]


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT 1; -- and so on", False),
        ("SELECT 1;  ", True),
        ("quit", True),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;", True),
    ],
)
def test_a_statement_ends_with_its_semicolon(text: str, is_whole: bool) -> None:
    assert is_complete(text) is is_whole


def test_what_comes_through_a_pipe_goes_on_after_an_error_and_ends_with_code_1() -> None:
    typed = "SHOW\n  CATALOGS;\nSELEC 1;\nSHOW VIEWS;\nQUIT;\nSHOW TABLES;\n"
    done = CliRunner().invoke(commands, ["sql"], input=typed)
    assert done.exit_code == 1
    assert "default_catalog" in done.stdout
    assert done.stdout.endswith("Empty set\n")
    assert "Did you mean SELECT?" in done.stderr


def test_ctrl_c_ends_the_query_and_not_the_prompt(tmp_path: Path) -> None:
    command = [*FLINKPY, "sql", "-D", "execution.runtime-mode=STREAMING"]
    with Terminal(command, tmp_path, {"HOME": str(tmp_path)}) as terminal:
        terminal.expect("SQL> ")
        terminal.type(ENDLESS)
        terminal.expect("OK")
        terminal.type("SELECT a FROM t;")
        terminal.expect("| +I |           7 |")
        terminal.press(CTRL_C)
        terminal.expect("was cancelled")
        terminal.type("SHOW TABLES;")
        terminal.expect("1 row in set")
        terminal.expect("SQL> ")
        terminal.press(CTRL_D)
        assert terminal.end() == 0
    assert "SHOW TABLES;" in (tmp_path / ".flinkpy_sql_history").read_text()


@pytest.mark.parametrize("mode", ["tableau", "changelog", "table"])
def test_a_result_that_changes_is_shown_as_changes_or_as_what_is_left(mode: str) -> None:
    changes = [
        Row.of_kind(RowKind.INSERT, 1),
        Row.of_kind(RowKind.UPDATE_BEFORE, 1),
        Row.of_kind(RowKind.UPDATE_AFTER, 2),
    ]
    output, _ = run(
        "-e",
        "SET 'execution.runtime-mode' = 'STREAMING'; CREATE TABLE t (a INT) WITH ("
        f"'connector' = 'values', 'data-id' = '{register_rows(changes)}', 'bounded' = 'true', "
        f"'changelog-mode' = 'I,UB,UA'); SET 'sql-client.execution.result-mode' = '{mode}'; "
        "SELECT a FROM t",
    )
    lines = [line for line in output.splitlines() if line.startswith("|")][1:]
    if mode == "table":
        assert lines == ["|           2 |"]
    else:
        assert lines == ["| +I |           1 |", "| -U |           1 |", "| +U |           2 |"]
