"""TIMESTAMP(9) is counted in nanoseconds, which reach from 1677 to 2262."""

from __future__ import annotations

import pytest

from flinkpy.core.errors import FlinkpyError
from flinkpy.table import EnvironmentSettings, TableEnvironment


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


@pytest.mark.parametrize(
    ("statement", "has_row"),
    [
        ("SELECT CAST(CAST('2300-01-01 00:00:00' AS TIMESTAMP(3)) AS TIMESTAMP(9))", False),
        (
            "SELECT CAST(CAST(t AS TIMESTAMP(3)) AS TIMESTAMP(9)) "
            "FROM (VALUES ('2300-01-01 00:00:00')) AS v(t)",
            True,
        ),
    ],
)
def test_a_moment_beyond_them_is_refused_in_the_words_of_sql(
    tables: TableEnvironment, statement: str, has_row: bool
) -> None:
    with pytest.raises(FlinkpyError) as refused:
        list(tables.execute_sql(statement).collect())
    message = str(refused.value)
    assert "2300-01-01 00:00:00 is beyond a TIMESTAMP of more than 6 digits" in message
    assert "CAST" in message
    assert "Casting" not in message  # Arrow's words
    # a statement without FROM has a row that nobody wrote
    assert ("in the row (" in message) == has_row
    assert "no column" not in message
