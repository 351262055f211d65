"""Ranks, limits, last rows and sinks that upsert, from SQL to what stands in the end."""

from __future__ import annotations

from typing import Any

import pytest

from flinkpy.common import Row, RowKind
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.testing import tables
from tests.relational.changing_subtasks import folded, folded_by
from tests.relational.test_changelogs_of_flink import CHANGED, changes_of

KINDS = {str(kind): kind for kind in RowKind}
ROWS = [change for change in changes_of(CHANGED) if change[1][2] is not None][:-4]
FALLING = "ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS rn"
QUERIES = {
    f"SELECT k, v, rn FROM (SELECT *, {FALLING} FROM t) WHERE rn <= 2": {
        ("a", 7, 1),
        ("a", 2, 2),
        ("b", 1, 1),
        ("b", 1, 2),
    },
    f"SELECT k, v FROM (SELECT *, {FALLING} FROM t) WHERE rn = 1": {("a", 7), ("b", 1)},
    "SELECT id, v FROM t ORDER BY v DESC LIMIT 1 OFFSET 1": {(1, 2)},
    "SELECT id, v FROM t LIMIT 2": {(4, 7), (6, 1)},
    "SELECT k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p DESC) AS rn FROM "
    "(SELECT *, PROCTIME() AS p FROM added)) WHERE rn = 1": {("a", 3), ("b", 4)},
}


def table(env: TableEnvironment, name: str, changes: Any, options: str) -> None:
    rows = []
    for kind, values in changes:
        rows.append(Row(*values))
        rows[-1].set_row_kind(KINDS[kind])
    data = tables.register_rows(rows)
    env.execute_sql(
        f"CREATE TABLE {name} (k STRING, id INT, v INT) WITH ('connector' = 'values', "
        f"'data-id' = '{data}', 'bounded' = 'true', {options})"
    )


@pytest.fixture(scope="module")
def env() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set("parallelism.default", "1")
    table(made, "t", ROWS, "'changelog-mode' = 'I,UA,UB,D', 'rows-per-batch' = '3'")
    added = [("+I", ("a", 1, 1)), ("+I", ("b", 2, 1)), ("+I", ("a", 3, 1)), ("+I", ("b", 4, 1))]
    table(made, "added", added, "'rows-per-batch' = '3'")
    return made


@pytest.mark.parametrize("text", QUERIES)
def test_the_best_rows_stand_in_the_end(env: TableEnvironment, text: str) -> None:
    with env.execute_sql(text).collect() as results:
        found = [(str(row.get_row_kind()), tuple(row)) for row in results]
    assert set(folded(found)) == QUERIES[text]


def test_a_sink_has_the_last_row_of_each_primary_key(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE last_rows (k STRING, id INT, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH "
        "('connector' = 'values', 'sink-changelog-mode-enforced' = 'I,UA,D')"
    )
    env.execute_sql("INSERT INTO last_rows SELECT k, id, v FROM t").wait()
    rows = [(str(row.get_row_kind()), tuple(row)) for row in tables.results("last_rows")]
    assert folded_by(rows, (0,)) == {("a",): ("a", 1, 2), ("b",): ("b", 5, 1)}
