"""Table functions of users, and UNNEST: each row with the rows that are made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.common.types import Row
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from flinkpy.table.expressions import col
from flinkpy.table.udf import TableFunction, udf, udtf


@udtf(result_types=["STRING", "INT"])
def words(text: str | None) -> Iterator[tuple[str, int]]:
    for word in (text or "").split():
        yield word, len(word)


@udtf(result_types="INT")
def up_to(number: int) -> Any:
    return range(number)


class Twins(TableFunction):
    def eval(self, number: int) -> list[Row] | None:
        return None if number == 2 else [Row(number, "x"), Row(-number, "y")]


@udtf(result_types=["BIGINT", "STRING"])
def swapped(row: Any) -> tuple[int, str]:
    return row.n * 10, row["s"]


@udf(result_type="ROW<m BIGINT, t STRING>")
def grown(row: Any) -> tuple[int, str]:
    return row.n + 1, f"<{row.s}>"


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    made.create_temporary_view("d", rows(made))
    made.create_temporary_system_function("words", words)
    made.create_temporary_system_function("up_to", up_to)
    made.create_temporary_function("twins", udtf(Twins, "BIGINT", "ROW<a BIGINT, b STRING>"))
    return made


def rows(tables: TableEnvironment) -> Table:
    return tables.from_elements(
        [(1, "ab c"), (2, None), (3, "d")],
        RowType.of(("n", DataTypes.BIGINT()), ("s", DataTypes.STRING())),
    )


def listed(table: Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_arrow().to_pylist()]


ARRAYS = "(VALUES (1, ARRAY['a','b']), (2, ARRAY['c'])) AS t (id, xs)"
MAPS = "(VALUES (1, MAP['a', 1, 'b', 2])) AS t (id, m)"
PAIRS = "(VALUES (1, ARRAY[ROW(1, 'x'), ROW(2, 'y')])) AS t (id, rs)"

QUERIES: dict[str, list[tuple[object, ...]]] = {
    "SELECT n, w, l FROM d, LATERAL TABLE(words(s)) AS t (w, l)": [
        (1, "ab", 2),
        (1, "c", 1),
        (3, "d", 1),
    ],
    "SELECT w FROM d LEFT JOIN LATERAL TABLE(words(s)) AS t (w, l) ON TRUE": [
        ("ab",),
        ("c",),
        (None,),
        ("d",),
    ],
    "SELECT n, x FROM d CROSS JOIN LATERAL TABLE(up_to(n - 1)) AS t (x) WHERE x < 1": [
        (2, 0),
        (3, 0),
    ],
    "SELECT * FROM d JOIN LATERAL TABLE(twins(CAST(n AS INT))) AS t ON n + a = 0": [
        (1, "ab c", -1, "y"),
        (3, "d", -3, "y"),
    ],
    "SELECT * FROM LATERAL TABLE(up_to(2)) AS t (x)": [(0,), (1,)],
    f"SELECT * FROM {ARRAYS} CROSS JOIN UNNEST(xs) WITH ORDINALITY AS u (x, o)": [
        (1, ["a", "b"], "a", 1),
        (1, ["a", "b"], "b", 2),
        (2, ["c"], "c", 1),
    ],
    f"SELECT id, x FROM {ARRAYS}, UNNEST(t.xs) AS x": [(1, "a"), (1, "b"), (2, "c")],
    f"SELECT id, k, v, o FROM {MAPS} CROSS JOIN UNNEST(m) WITH ORDINALITY AS u (k, v, o)": [
        (1, "a", 1, 1),
        (1, "b", 2, 2),
    ],
    f"SELECT id, u.* FROM {PAIRS} LEFT JOIN UNNEST(rs) AS u (a, b) ON TRUE": [
        (1, 1, "x"),
        (1, 2, "y"),
    ],
    "SELECT * FROM UNNEST(ARRAY[1, 2]) WITH ORDINALITY AS u (x, o)": [(1, 1), (2, 2)],
    f"SELECT x FROM {ARRAYS}, UNNEST(xs) AS u (x) WHERE x <> 'b'": [("a",), ("c",)],
}


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_rows_of_table_functions_and_of_collections(tables: TableEnvironment, query: str) -> None:
    assert listed(tables.sql_query(query)) == QUERIES[query]


def test_a_collection_that_is_not_read_again_is_not_repeated(tables: TableEnvironment) -> None:
    plan = tables.explain_sql(f"SELECT id, x FROM {ARRAYS}, UNNEST(xs) AS u (x)")
    assert "Correlate(invocation=[UNNEST(xs)], select=[id, x]" in plan


def test_verbs_with_table_functions(tables: TableEnvironment) -> None:
    d = rows(tables)
    joined = d.join_lateral(words(col("s")).alias("w", "l")).select(col("n"), col("w"))
    assert listed(joined) == [(1, "ab"), (1, "c"), (3, "d")]
    kept = d.left_outer_join_lateral(words(col("s")).alias("w", "l")).select(col("n"), col("l"))
    assert listed(kept) == [(1, 2), (1, 1), (2, None), (3, 1)]
    assert listed(d.flat_map(swapped)) == [(10, "ab c"), (20, None), (30, "d")]
    assert d.flat_map(words(col("s")).alias("w", "l")).get_schema().names == ("w", "l")
    mapped = d.map(grown).alias("a", "b")
    assert listed(mapped) == [(2, "<ab c>"), (3, "<None>"), (4, "<d>")]
    assert mapped.get_schema().names == ("a", "b")


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        ([(1, 2, 3)], r"f\(\.\.\.\): it gave \(1, 2, 3\), and its rows have 2 columns, in the row"),
        ([("x", "y")], r"it gave 'x' \(str\), and its type is INT, in the row \(.*n=1"),
    ],
)
def test_a_wrong_row_is_named(tables: TableEnvironment, gives: Any, said: str) -> None:
    def f(number: int) -> Any:
        return gives

    made = rows(tables).flat_map(udtf(f, result_types=["INT", "STRING"])(col("n")))
    with pytest.raises(JobExecutionError, match=said):
        made.to_arrow()


def test_an_error_in_a_generator_names_row_and_line(tables: TableEnvironment) -> None:
    def f(number: int) -> Iterator[int]:
        yield 1
        yield 1 // (number - 2)

    with pytest.raises(JobExecutionError) as failure:
        rows(tables).flat_map(udtf(f, result_types="INT")(col("n"))).to_arrow()
    assert "division or modulo by zero, in the row (n=2)" in str(failure.value)
    assert "yield 1 // (number - 2)" in str(failure.value)


def test_functions_of_another_kind_are_refused(tables: TableEnvironment) -> None:
    with pytest.raises(ProgramError, match=r"join_lateral\(\) takes the call of a table function"):
        rows(tables).join_lateral(grown(col("n")))
    with pytest.raises(ValidationError, match="is a table function: it stands in FROM"):
        rows(tables).select(words(col("s")))
