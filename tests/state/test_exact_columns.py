"""Whatever a program keeps under whichever declared type, a column gives it back exactly, also
through a Parquet file."""

from __future__ import annotations

import datetime
import io
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.time import Instant
from flinkpy.common.type_texts import type_of_text
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.common.types import Row, RowKind, named_row
from flinkpy.state.canonical.exact_column import ExactColumn
from tests.values import ATOMS, shown

LEAVES: st.SearchStrategy[TypeInformation] = st.sampled_from(
    [
        Types.STRING(),
        Types.BOOLEAN(),
        Types.BYTE(),
        Types.SHORT(),
        Types.INT(),
        Types.LONG(),
        Types.FLOAT(),
        Types.DOUBLE(),
        Types.CHAR(),
        Types.BIG_INT(),
        Types.BIG_DEC(),
        Types.INSTANT(),
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.SQL_TIMESTAMP(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ]
)
TYPES = st.recursive(
    LEAVES,
    lambda inner: (
        inner.map(Types.LIST)
        | inner.map(Types.OBJECT_ARRAY)
        | st.builds(Types.MAP, inner, inner)
        | st.lists(inner, max_size=3).map(Types.TUPLE)
        | st.lists(inner, max_size=3).map(Types.ROW)
        | st.lists(inner, max_size=3).map(
            lambda types: Types.ROW_NAMED(list("abc")[: len(types)], types)
        )
    ),
    max_leaves=4,
)
MOMENTS = st.datetimes() | st.just(datetime.datetime(2024, 10, 27, 2, 30, fold=1))
USUAL: dict[str, st.SearchStrategy[Any]] = {
    "STRING": st.text(),
    "CHAR": st.text(),
    "BOOLEAN": st.booleans(),
    "BYTE": st.integers(-128, 127),
    "SHORT": st.integers(-9, 9),
    "INT": st.integers(-(1 << 31), (1 << 31) - 1),
    "LONG": st.integers(-(1 << 63), (1 << 63) - 1),
    "FLOAT": st.floats(width=32) | st.floats(),
    "DOUBLE": st.floats() | st.sampled_from([0.0, -0.0]),
    "BIG_INT": st.integers() | st.sampled_from([10**38, 10**38 - 1, -(10**38)]),
    "BIG_DEC": st.decimals(allow_nan=True) | st.decimals(places=18, min_value=-99, max_value=99),
    "INSTANT": st.builds(Instant, st.integers(-(1 << 44), 1 << 44), st.integers(0, 10**9 - 1))
    | MOMENTS,
    "SQL_DATE": st.dates(),
    "SQL_TIME": st.times(),
    "SQL_TIMESTAMP": MOMENTS,
}


def usual(kind: Any) -> st.SearchStrategy[Any]:
    """Values as the type says, and None."""
    name = getattr(kind, "name", "")
    if name in USUAL:
        return st.none() | USUAL[name]
    if kind == Types.PRIMITIVE_ARRAY(Types.BYTE()):
        return st.none() | st.binary()
    if hasattr(kind, "element_type"):
        return st.none() | st.lists(usual(kind.element_type), max_size=3)
    if hasattr(kind, "key_type"):
        keys = usual(kind.key_type).filter(is_hashable)
        return st.none() | st.dictionaries(keys, usual(kind.value_type), max_size=3)
    if hasattr(kind, "field_names"):
        names = tuple(kind.field_names)
        return st.none() | st.tuples(*map(usual, kind.field_types)).map(
            lambda values: named_row(names, values)
        )
    if hasattr(kind, "field_types"):
        return st.none() | st.tuples(*map(usual, kind.field_types))
    return ATOMS


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True


def told(value: Any) -> Any:
    """As ``shown``, also rows."""
    if isinstance(value, Row):
        return "Row", value._fields, value.get_row_kind(), told(list(value))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [told(each) for each in value]
    if isinstance(value, dict):
        return "dict", [(told(key), told(each)) for key, each in value.items()]
    return shown(value)


def through_a_file(column: ExactColumn, values: list[Any]) -> list[Any]:
    table = pa.table(column.arrays(values), schema=pa.schema(column.fields))
    file = io.BytesIO()
    pq.write_table(table, file)
    (batch,) = pq.read_table(file).to_batches() or [table.to_batches()[0]]
    return column.values(batch.columns)


@settings(max_examples=300)
@given(st.data())
def test_what_is_kept_under_a_type_comes_back_exactly(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    values = data.draw(st.lists(usual(kind) | ATOMS, min_size=1, max_size=6))
    assert told(through_a_file(ExactColumn("value", kind, "the state"), values)) == told(values)


@given(st.data())
def test_values_of_the_declared_type_are_not_pickled(data: st.DataObject) -> None:
    kind = data.draw(
        st.sampled_from(
            [
                Types.LONG(),
                Types.DOUBLE(),
                Types.STRING(),
                Types.BOOLEAN(),
                Types.LIST(Types.LONG()),
                Types.MAP(Types.STRING(), Types.DOUBLE()),
                Types.TUPLE([Types.LONG(), Types.STRING()]),
                Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.SQL_DATE()]),
            ]
        )
    )
    keys_are_plain = data.draw(
        st.lists(usual(kind), min_size=1, max_size=4).filter(
            lambda values: not any(isinstance(value, dict) and None in value for value in values)
        )
    )
    typed, pickles = ExactColumn("value", kind, "the state").arrays(keys_are_plain)
    assert pickles.null_count == len(pickles) == len(typed)


def test_what_is_pickled_stands_in_the_typed_column_as_far_as_it_has_an_equal_value() -> None:
    row = Row(a=1)
    row.set_row_kind(RowKind.DELETE)
    for kind, value, equal in (
        (Types.DOUBLE(), 1, 1.0),
        (Types.LONG(), 2.5, None),
        (Types.LONG(), True, None),
        (Types.LONG(), 1 << 64, None),
        (Types.BIG_DEC(), Decimal("0.1"), Decimal("0.1")),
        (Types.LIST(Types.LONG()), (1, 2), [1, 2]),
        (Types.TUPLE([Types.LONG()]), [7], {"f0": 7}),
        (Types.ROW_NAMED(["a"], [Types.LONG()]), row, {"a": 1}),
        (Types.ROW_NAMED(["a"], [Types.LONG()]), {"a": 3}, {"a": 3}),
        (Types.STRING(), "\ud800", None),
        (Types.SQL_DATE(), datetime.datetime(2024, 1, 1), None),
    ):
        column = ExactColumn("value", kind, "the state")
        arrays = column.arrays([value])
        assert arrays[0].to_pylist() == [equal]
        assert told(column.values(arrays)) == told([value])
        assert arrays[1].null_count == 0


UTC = datetime.timezone.utc
# of the type but for something that a column does not keep
NEARLY: list[tuple[TypeInformation, Any]] = [
    (Types.FLOAT(), 0.1),
    (Types.FLOAT(), 1e300),
    (Types.DOUBLE(), np.float64(1.5)),
    (Types.DOUBLE(), 2),
    (Types.BOOLEAN(), 1),
    (Types.LONG(), True),
    (Types.LONG(), np.int64(1)),
    (Types.INT(), 1 << 31),
    (Types.BIG_INT(), 10**38),
    (Types.BIG_DEC(), Decimal("-0E-18")),
    (Types.BIG_DEC(), Decimal("1.5")),
    (Types.BIG_DEC(), Decimal("NaN")),
    (Types.STRING(), np.str_("a")),
    (Types.SQL_TIME(), datetime.time(1, fold=1)),
    (Types.SQL_TIME(), datetime.time(1, tzinfo=UTC)),
    (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 10, 27, 2, 30, fold=1)),
    (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 1, 1, tzinfo=UTC)),
    (Types.INSTANT(), datetime.datetime(2024, 1, 1, tzinfo=UTC)),
    (Types.INSTANT(), Instant(1, 1)),
    (Types.INSTANT(), Instant(1 << 62, 0)),
    (Types.INSTANT(), Instant(1, -1000)),
    (Types.LIST(Types.LONG()), (1,)),
    (Types.SQL_DATE(), datetime.datetime(2024, 1, 1)),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"a")),
    (Types.TUPLE([Types.LONG()]), [1]),
    (Types.ROW([Types.LONG()]), Row(1)),
    (Types.ROW_NAMED(["a"], [Types.LONG()]), Row(b=1)),
    (Types.ROW_NAMED(["a"], [Types.LONG()]), {"a": 1}),
    (Types.MAP(Types.STRING(), Types.LONG()), OrderedDict(a=1)),
    (Types.MAP(Types.STRING(), Types.LONG()), {None: 1}),
]


@pytest.mark.parametrize(("kind", "value"), NEARLY, ids=repr)
def test_what_is_nearly_of_the_type_is_pickled(kind: TypeInformation, value: Any) -> None:
    column = ExactColumn("value", kind, "the state")
    assert column.arrays([value])[-1].null_count == 0
    (found,) = through_a_file(column, [value])
    assert (type(found).__name__, told(found), getattr(found, "fold", 0)) == (
        type(value).__name__,
        told(value),
        getattr(value, "fold", 0),
    )


@given(TYPES)
def test_a_type_is_read_back_from_its_text(kind: TypeInformation) -> None:
    assert type_of_text(repr(kind)) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "Types",
        "Types.LONG",
        "Types.__class__()",
        "Types.LIST()",
        "os.system('ls')",
        "Types.LONG(",
        "Types.NO()",
        "Types.LIST(element_type_info=Types.INT())",
        "open('x')",
        "[Types.LONG()]",
    ],
)
def test_other_texts_are_no_types(text: str) -> None:
    assert type_of_text(text) is None
