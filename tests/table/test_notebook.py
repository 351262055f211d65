"""Tables in the cells of a notebook."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from flinkpy.core.errors import ProgramError
from flinkpy.table import EnvironmentSettings, Table, TableEnvironment, TableResult, col


def batch() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def test_a_table_shows_its_first_rows_names_and_types_with_every_text_escaped() -> None:
    shown = batch().from_elements([(1, "<b>&"), (2, None)], ["n", "a<b"])._repr_html_()
    assert "<th>n</th><th>a&lt;b</th>" in shown
    assert ">BIGINT</code>" in shown
    assert "&lt;b&gt;&amp;" in shown
    assert ">NULL</span>" in shown
    assert "<b>" not in shown


def test_rows_that_were_shown_can_be_read_again() -> None:
    tables = batch()
    result = tables.from_elements([(n,) for n in range(50)], ["n"]).order_by(col("n")).execute()
    first = result._repr_html_()
    assert "the first 20 rows" in first
    assert result._repr_html_() == first
    assert result.to_arrow().to_pydict() == {"n": list(range(50))}
    assert "default_catalog" in tables.execute_sql("SHOW CATALOGS")._repr_html_()
    assert tables.execute_sql("CREATE DATABASE d")._repr_html_() == "OK"
    plan = tables.execute_sql("EXPLAIN SELECT 1 AS `a<b`")._repr_html_()
    assert plan.startswith("<pre>== Abstract")
    assert "a&lt;b" in plan


def test_a_table_of_streaming_shows_its_types_and_runs_nothing() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql("CREATE TEMPORARY TABLE t (n INT) WITH ('connector' = 'datagen')")
    assert "execute() runs it" in tables.from_path("t")._repr_html_()


@pytest.fixture(scope="module")
def shell() -> Any:
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "flinkpy.table.notebook")
    yield shell
    InteractiveShell.clear_instance()
    for name in ("ps1", "ps2", "ps3"):  # where they are, the process is a prompt
        vars(sys).pop(name, None)


def test_a_cell_of_sql_runs_its_statements_and_gives_the_last_result(shell: Any) -> None:
    result = shell.run_cell_magic("sql", "", "CREATE DATABASE d;\nUSE d;\nSELECT 1 AS uno;")
    assert isinstance(result, TableResult)
    assert "<th>uno</th>" in result._repr_html_()
    assert shell.user_ns["table_env"].get_current_database() == "d"
    shell.run_cell("found = %sql SHOW CURRENT DATABASE")
    assert next(iter(shell.user_ns["found"].collect()))[0] == "d"


def test_into_gives_the_rows_a_name_in_python_and_in_sql(shell: Any) -> None:
    done = shell.run_cell("%%sql --into few\nSELECT x FROM (VALUES (1), (2), (3)) AS v(x)")
    assert done.success
    assert isinstance(shell.user_ns["few"], Table)
    result = shell.run_cell_magic("sql", "", "SELECT SUM(x) AS s FROM few")
    assert result.to_arrow().to_pydict() == {"s": [6]}
    shell.run_cell_magic("sql", "--into few", "SELECT 'again' AS x")  # in the place of the first
    assert shell.user_ns["few"].to_arrow().to_pydict() == {"x": ["again"]}


def test_a_cell_says_what_is_wrong_with_it(shell: Any) -> None:
    for line, problem in (
        ("--in few", "ambiguous|unrecognized|--into"),
        ("--env nothing", "is no TableEnvironment"),
        ("--into a-b", "takes a name of Python"),
    ):
        with pytest.raises(ProgramError, match=problem):
            shell.run_cell_magic("sql", line, "SELECT 1")
    shell.user_ns["other"] = batch()
    with pytest.raises(ProgramError, match=r"several TableEnvironments .*name one, --env"):
        shell.run_line_magic("sql", "SELECT 1")
    assert shell.run_cell_magic("sql", "--env other", "SELECT 1") is not None
