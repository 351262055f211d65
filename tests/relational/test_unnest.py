"""UNNEST of arrays, of rows, of maps and of multisets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram, ProgramBuilder
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BigIntType,
    IntType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    VarCharType,
)
from flinkpy.relational.relational_operator import ROWS_AT_ONCE
from flinkpy.relational.row_by_row.unnest_rows import UnnestOperator
from tests.relational.operator_runs import run

TEXT = VarCharType(length=9)


def second_column(kind: LogicalType) -> CalcProgram:
    builder = ProgramBuilder()
    return builder.program([builder.input(1, kind)])


def unnested(kind: LogicalType, column: pa.Array, *added: pa.Field, **options: Any) -> list[object]:
    table = pa.table([pa.array(range(len(column))), column], names=["n", "c"])
    schema = pa.schema([*table.schema, *added])
    operator = UnnestOperator(second_column(kind), schema, **options)
    found = run(operator, table, size=3 if len(column) < 9 else len(column)).drop_columns(["c"])
    return list(zip(*(each.to_pylist() for each in found.columns)))


def test_each_element_of_an_array_comes_with_its_row() -> None:
    lists = pa.array([["a", None], [], None, ["b"]])
    kind, field = ArrayType(element=TEXT), pa.field("e", pa.string())
    assert unnested(kind, lists, field) == [(0, "a"), (0, None), (3, "b")]
    place = pa.field("o", pa.int32())
    assert unnested(kind, lists, field, place, keeps_left=True, gives_ordinality=True) == [
        (0, "a", 1),
        (0, None, 2),
        (1, None, None),
        (2, None, None),
        (3, "b", 1),
    ]


def test_rows_and_entries_of_maps_are_several_columns() -> None:
    rows = pa.array([[{"x": 1, "y": "a"}], [{"x": 2, "y": None}]])
    kind = ArrayType(element=RowType.of(("x", BigIntType()), ("y", TEXT)))
    fields = pa.field("x", pa.int64()), pa.field("y", pa.string())
    assert unnested(kind, rows, *fields) == [(0, 1, "a"), (1, 2, None)]
    entries = pa.array([[(1, "a"), (2, "b")], None], pa.map_(pa.int64(), pa.string()))
    assert unnested(MapType(BigIntType(), TEXT), entries, *fields) == [(0, 1, "a"), (0, 2, "b")]


def test_what_a_multiset_has_twice_comes_twice() -> None:
    counts = pa.array([[("a", 2), ("b", 1)], []], pa.map_(pa.string(), pa.int32()))
    field, kind = pa.field("e", pa.string()), MultisetType(element=TEXT)
    found = unnested(kind, counts, field, is_multiset=True)
    assert found == [(0, "a"), (0, "a"), (0, "b")]


def test_elements_go_out_in_pieces_of_bounded_size() -> None:
    """The run asserts it of each batch."""
    lists = pa.array([[1, 2, 3]] * ROWS_AT_ONCE, pa.list_(pa.int32()))
    kind = ArrayType(element=IntType())
    assert len(unnested(kind, lists, pa.field("e", pa.int32()))) == 3 * ROWS_AT_ONCE
