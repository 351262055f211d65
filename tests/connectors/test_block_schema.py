"""Blocks are brought to their stream's schema, whatever of them is null."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flinkpy.connectors.memory.block_schema import conformed, nullable, relabelled

INNER = pa.struct([pa.field("a", pa.int32(), False)])


def null_structs(kind: pa.DataType = INNER) -> pa.Array:
    return pa.Array.from_buffers(
        kind, 2, [pa.py_buffer(b"\x01")], children=[pa.array([1, None], kind.field(0).type)]
    )


def test_a_struct_that_is_null_is_cast_though_its_fields_never_are() -> None:
    wide = pa.schema([("s", pa.struct([pa.field("a", pa.int64(), False)]))])
    cast = conformed(pa.table({"s": null_structs()}), wide)
    assert cast.schema.equals(wide)
    assert cast.to_pylist() == [{"s": {"a": 1}}, {"s": None}]


def test_a_column_that_is_lacking_is_null_and_one_too_many_is_left_out() -> None:
    schema = pa.schema([("b", pa.string()), ("a", pa.int64())])
    assert conformed(pa.table({"a": [1, 2], "c": [3, 4]}), schema).to_pylist() == [
        {"b": None, "a": 1},
        {"b": None, "a": 2},
    ]


def test_without_columns_the_rows_stay() -> None:
    rows = pa.Table.from_batches(
        [pa.RecordBatch.from_struct_array(pa.array([{}] * 5, pa.struct([])))]
    )
    assert conformed(rows, pa.schema([])).num_rows == 5
    assert conformed(pa.table({"a": [1, 2]}), pa.schema([])).num_rows == 2


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.field("element", INNER, False)),
        pa.large_list(pa.field("item", INNER, False)),
        pa.list_(pa.field("item", pa.int32(), False), 2),
        pa.map_(pa.string(), pa.field("value", INNER, False)),
        pa.struct([pa.field("s", INNER, False)]),
        pa.int32(),
    ],
)
def test_what_may_be_null_is_put_back(kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("x", kind)])
    loose = pa.table([pa.nulls(2, nullable(kind))], names=["x"])
    assert "not null" not in str(nullable(kind)).replace("map<string not null", "map<string")
    assert relabelled(loose, schema).schema.equals(schema)
