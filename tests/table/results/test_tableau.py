"""Rows as Flink prints them."""

from __future__ import annotations

import datetime

import pytest

from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BigIntType,
    BooleanType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    RowType,
    TimestampType,
    TimeType,
    VarCharType,
)
from flinkpy.common.types import Row, RowKind
from flinkpy.table.results.cell_texts import text_of
from flinkpy.table.results.tableau import CellTexts, Tableau

STRING = VarCharType(2**31 - 1)
SCHEMA = RowType.of(("name", STRING), ("n", IntType()))


def drawn(rows: list[Row], *, has_kinds: bool) -> str:
    texts = CellTexts(SCHEMA, has_kinds=has_kinds)
    return "\n".join(Tableau.of_types(SCHEMA, has_kinds=has_kinds).lines(map(texts, rows)))


def test_a_changelog_is_as_wide_as_its_types() -> None:
    update = Row("a much longer text than fits into it", None)
    update.set_row_kind(RowKind.UPDATE_AFTER)
    assert drawn([Row("a", 1), update], has_kinds=True) == (
        "+----+--------------------------------+-------------+\n"
        "| op |                           name |           n |\n"
        "+----+--------------------------------+-------------+\n"
        "| +I |                              a |           1 |\n"
        "| +U | a much longer text than fit... |      <NULL> |\n"
        "+----+--------------------------------+-------------+\n"
        "2 rows in set"
    )


def test_an_empty_result_says_so_and_one_row_is_no_rows() -> None:
    assert drawn([], has_kinds=False) == "Empty set"
    assert drawn([Row("a", 1)], has_kinds=False).endswith("\n1 row in set")


def test_the_rows_of_ddl_are_as_wide_as_their_cells() -> None:
    schema = RowType.of(("table name", STRING))
    texts = [["t"], ["表とても長い名前"]]
    assert list(Tableau.of_rows(schema, texts).lines(texts)) == [
        "+------------------+",
        "|       table name |",
        "+------------------+",
        "|                t |",
        "| 表とても長い名前 |",
        "+------------------+",
        "2 rows in set",
    ]


MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, 60_000)


@pytest.mark.parametrize(
    ("logical", "value", "text"),
    [
        (BooleanType(), True, "TRUE"),
        (FloatType(), 0.10000000149011612, "0.1"),
        (TimestampType(3), MOMENT, "2024-01-02 03:04:05.060"),
        (TimestampType(0), MOMENT, "2024-01-02 03:04:05"),
        (TimestampType(9), MOMENT, "2024-01-02 03:04:05.060000000"),
        (LocalZonedTimestampType(3), MOMENT, "2024-01-02 04:04:05.060"),
        (TimeType(0), datetime.time(3, 4, 5), "03:04:05"),
        (ArrayType(IntType()), [1, None], "[1, NULL]"),
        (MapType(STRING, IntType()), {"a": 1}, "{a=1}"),
        (RowType.of(("a", BigIntType()), ("b", STRING)), Row(1, "x"), "(1, x)"),
        (BigIntType(), None, "<NULL>"),
    ],
)
def test_a_value_has_the_text_of_its_type(logical: LogicalType, value: object, text: str) -> None:
    assert text_of(logical, "Europe/Oslo")(value) == text
