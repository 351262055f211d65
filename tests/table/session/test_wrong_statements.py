"""Statements that ask for what cannot be: each line of ``wrong/*.tsv`` has one, the part of it that
the error marks, and what the error says. Nothing runs, so there can be many."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from flinkpy.sql.parsing.parse import parse_script
from flinkpy.sql.sql_errors import SqlError
from flinkpy.table import EnvironmentSettings, TableEnvironment

WRONG = Path(__file__).parent / "wrong"
SETTINGS = {
    "names": EnvironmentSettings.in_batch_mode(),
    "types": EnvironmentSettings.in_batch_mode(),
    "definitions": EnvironmentSettings.in_batch_mode(),
    "in_streaming": EnvironmentSettings.in_streaming_mode(),
}
_OF_A_QUERY = ("SELECT", "INSERT INTO", "WITH")


@pytest.mark.parametrize("kind", SETTINGS)
def test_an_error_marks_the_users_words_and_says_what_to_change(kind: str) -> None:
    tables = TableEnvironment.create(SETTINGS[kind])
    declared = WRONG / f"{kind}.sql"
    script = declared if declared.exists() else WRONG / "queries.sql"
    for piece in parse_script(script.read_text()):
        tables.execute(piece.statement, piece.text)
    with (WRONG / f"{kind}.tsv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(lines) >= 50
    differences = []
    for line in lines:
        marked, problem = _error(tables, line["statement"])
        problem = problem.replace("`default_catalog`.`default_database`.", "")
        problem = problem.replace("default_catalog.default_database.", "")
        if marked != line["marked"] or line["problem"] not in problem:
            differences.append(f"{line['statement']}\n  {marked}\n  {problem}")
    assert not differences, "\n".join(differences)


def _error(tables: TableEnvironment, statement: str) -> tuple[str, str]:
    """What the error marks, and its first line."""
    is_query = statement.startswith(_OF_A_QUERY)
    run = tables.explain_sql if is_query else tables.execute_sql
    with pytest.raises(SqlError) as raised:
        run(statement)
    code, carets = str(raised.value).splitlines()[-2:]
    start, end = carets.index("^"), carets.rindex("^") + 1
    return code[start:end], str(raised.value).splitlines()[0]


def test_secrets_are_hidden_in_the_statement_that_an_error_shows() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table = "CREATE TABLE x (n INT) WITH ('connector' = 'print', 'sasl.password' = 'wo''lf')"
    tables.execute_sql(table)
    with pytest.raises(SqlError) as raised:
        tables.execute_sql(table)
    assert "'sasl.password' = '******')" in str(raised.value)
    assert "lf" not in str(raised.value)
    assert str(raised.value).endswith(f"\n    | {' ' * 13}^")
    with pytest.raises(SqlError) as raised:
        tables.execute_sql(table.replace("CREATE TABLE x", "CREATE TABLE"))
    assert "lf" not in str(raised.value)
