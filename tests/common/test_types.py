"""Row and the types behave as PyFlink's do."""

from __future__ import annotations

import copy
import datetime
import decimal
import pickle
from decimal import Decimal
from typing import Any

import pytest

from flinkpy.common import Row, RowKind, Types
from flinkpy.common.printing import formatter
from flinkpy.common.time import Instant
from flinkpy.common.types import named_row, rows_of_columns
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import stable_hash

PERSON = Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.INT()])


def test_a_row_gives_its_fields_by_position_and_by_name() -> None:
    row = Row(name="Ada", born=1815)
    assert (row[0], row["born"], row.name, row[-1], list(row), len(row), "Ada" in row) == (
        "Ada",
        1815,
        "Ada",
        1815,
        ["Ada", 1815],
        2,
        True,
    )
    assert row.get_fields_by_names(["born", "name"]) == [1815, "Ada"]
    with pytest.raises(AttributeError, match="no field 'age' \\(name, born\\)"):
        _ = row.age
    with pytest.raises(KeyError, match="no field names"):
        Row(1)["a"]


@pytest.mark.parametrize(
    "row",
    [
        Row(a=1, b="x"),
        rows_of_columns(("a", "b"), [[1], ["x"]], 1)[0],
        named_row(("a", "b"), (1, "x")),
    ],
)
def test_rows_are_equal_travel_and_copy_however_they_were_made(row: Row) -> None:
    assert row == Row(a=1, b="x")
    assert pickle.loads(pickle.dumps(row)) == row
    assert (hash(row), stable_hash(row), repr(row)) == (
        hash((1, "x")),
        stable_hash((1, "x")),
        "Row(a=1, b='x')",
    )
    other = copy.copy(row)
    other.a, other["b"] = 2, "y"
    assert (row.as_dict(), other.as_dict()) == ({"a": 1, "b": "x"}, {"a": 2, "b": "y"})
    other.set_field_names(["c", "d"])
    assert (other.c, row.a) == (2, 1)


def test_a_row_has_a_kind() -> None:
    row = Row.of_kind(RowKind.UPDATE_AFTER, 1, 2)
    assert (row.get_row_kind(), str(row.get_row_kind()), Row(1).get_row_kind()) == (
        RowKind.UPDATE_AFTER,
        "+U",
        RowKind.INSERT,
    )
    assert pickle.loads(pickle.dumps(row)).get_row_kind() is RowKind.UPDATE_AFTER
    assert row != Row(1, 2)


def test_a_row_becomes_a_dict_all_the_way_down() -> None:
    assert Row(a=Row(b=1), c=[Row(d=2)], e={"f": Row(g=3)}).as_dict(True) == {
        "a": {"b": 1},
        "c": [{"d": 2}],
        "e": {"f": {"g": 3}},
    }
    with pytest.raises(ProgramError, match="no field names"):
        Row(1).as_dict()
    with pytest.raises(ProgramError, match="by position or by name"):
        Row(1, a=2)


def test_fields_may_have_any_name() -> None:
    row = rows_of_columns(("class", "dep delay", "as_dict"), [[1], [2], [3]], 1)[0]
    assert (row["class"], row["dep delay"], row["as_dict"]) == (1, 2, 3)


@pytest.mark.parametrize(
    ("type_info", "value", "message"),
    [
        (Types.INT(), "x", "'x' is not a value of Types.INT\\(\\)"),
        (Types.INT(), 2**31, "outside -2147483648"),
        (Types.INT(), True, "it is a bool"),
        (Types.STRING(), 1, "it is a int"),
        (Types.TUPLE([Types.INT()]), (1, 2), "2 fields instead of 1"),
        (PERSON, ("Ada", "x"), "field 1"),
        (PERSON, {"name": "Ada"}, "no 'born'"),
        (Types.LIST(Types.INT()), "ab", "is not a value"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": "b"}, "'b'"),
        (Types.SQL_DATE(), "2020-01-01", "SQL_DATE"),
        (PERSON, 3, "is not a value"),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_reason(
    type_info: Any, value: Any, message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        type_info.check(value)


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (Types.INT(), None),
        (Types.DOUBLE(), 1),
        (PERSON, ("Ada", 1815)),
        (PERSON, Row("Ada", 1)),
        (PERSON, {"born": 1, "name": "x"}),
        (Types.BIG_INT(), 2**99),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab"),
        (Types.OBJECT_ARRAY(PERSON), [("a", 1)]),
        (Types.PICKLED_BYTE_ARRAY(), object()),
        (Types.BIG_DEC(), Decimal("1.5")),
        (Types.INSTANT(), Instant.of_epoch_milli(5)),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 1)),
    ],
)
def test_values_of_the_type_pass(type_info: Any, value: Any) -> None:
    type_info.check(value)


def test_types_are_values() -> None:
    assert Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.INT()]) == PERSON
    assert Types.ROW([Types.STRING(), Types.INT()]) != PERSON
    assert (
        len(
            {
                Types.INT(),
                Types.INT(),
                Types.LONG(),
                Types.LIST(Types.INT()),
                Types.BASIC_ARRAY(Types.INT()),
            }
        )
        == 4
    )
    assert repr(PERSON) == "Types.ROW_NAMED(['name', 'born'], [Types.STRING(), Types.INT()])"
    assert pickle.loads(pickle.dumps(PERSON)) == PERSON


def test_rows_are_tuples_on_the_way_and_rows_at_its_end() -> None:
    nested = Types.ROW_NAMED(["who", "tags"], [PERSON, Types.LIST(PERSON)])
    there = nested.to_internal_type(Row(Row("Ada", 1815), [("Bob", 1)]))
    assert there == (("Ada", 1815), [("Bob", 1)])
    back = nested.from_internal_type(there)
    assert (
        back.who.name,
        back.tags[0].born,
        nested.need_conversion(),
        Types.INT().need_conversion(),
    ) == ("Ada", 1, True, False)


def test_mistakes_in_declarations_are_refused() -> None:
    with pytest.raises(ProgramError, match=r"call it: Types.INT\(\)"):
        Types.LIST(Types.INT)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="1 names for 2 types"):
        Types.ROW_NAMED(["a"], [Types.INT(), Types.INT()])
    with pytest.raises(ProgramError, match="'a' stands there twice"):
        Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()])


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("hi", 4), "(hi,4)"),
        (PERSON, Row("a", 1), "+I[a,1]"),
        (PERSON, Row.of_kind(RowKind.DELETE, "a", None), "-D[a,None]"),
        (Types.TUPLE([PERSON]), (Row("a", None),), "(+I[a, null])"),
        (Types.BOOLEAN(), True, "true"),
        (Types.DOUBLE(), 12345678.9, "1.23456789E7"),
        (Types.DOUBLE(), 2, "2.0"),
        (Types.LIST(Types.INT()), [1, 2], "[1, 2]"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}, "{a=1}"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05.0"),
        (Types.SQL_DATE(), datetime.date(2020, 1, 2), "2020-01-02"),
        (Types.INSTANT(), Instant(0, 5_000_000), "1970-01-01T00:00:00.005Z"),
        (Types.INSTANT(), Instant(1, 500_000_000), "1970-01-01T00:00:01.500Z"),
        (Types.FLOAT(), 110.1, "110.1"),
        (Types.FLOAT(), 0.1 + 0.2, "0.3"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x01\xff", "[1, -1]"),
        (Types.BIG_DEC(), decimal.Decimal("1.50"), "1.50"),
        (
            Types.TUPLE([Types.TUPLE([Types.BOOLEAN()]), Types.LIST(Types.STRING())]),
            ((False,), ["a", None]),
            "((false),[a, null])",
        ),
        (Types.SQL_TIME(), datetime.time(3, 4, 5), "03:04:05"),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": None}, "{a=null}"),
        (None, ("hi", 4), "('hi', 4)"),
        (None, Row(a=1), "Row(a=1)"),
        (Types.INT(), None, "null"),
    ],
)
def test_values_are_printed_as_flink_prints_them(type_info: Any, value: Any, text: str) -> None:
    assert pickle.loads(pickle.dumps(formatter(type_info)))(value) == text
