"""The queries of TPC-H from their text to their rows, against DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table.translation.tpch_tables import (
    QUERIES,
    duckdb_over,
    generate,
    is_same,
    session_over,
)

pytest.importorskip("duckdb", reason="duckdb is not installed")

IN_EVERY_RUN = ("q03", "q13", "q18")  # joins and a limit; an outer join; a sub-query with IN


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder, "0.01")
    return folder


def check(file: Path, tables: Path, parallelism: int) -> None:
    text = file.read_text()
    found = [tuple(row) for row in session_over(tables, parallelism).execute_sql(text).collect()]
    wanted = duckdb_over(tables).sql(text).fetchall()
    if "ORDER BY" not in text.upper():
        found, wanted = sorted(found), sorted(wanted)
    assert len(found) == len(wanted)
    assert [pair for pair in zip(found, wanted) if not is_same(*pair)] == []


@pytest.mark.parametrize("name", IN_EVERY_RUN)
def test_a_query_gives_what_duckdb_says(name: str, tables: Path) -> None:
    [file] = [each for each in QUERIES if each.stem == name]
    check(file, tables, 2)


@pytest.mark.wide
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_each_query_gives_what_duckdb_says(file: Path, tables: Path, parallelism: int) -> None:
    check(file, tables, parallelism)
