"""Merging, casts and results of arithmetic follow Flink's rules; names are PyFlink's."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flinkpy.common.logical_types.allowed_casts import (
    cast_can_fail,
    cast_changes_nothing,
    explicit_cast_allowed,
    implicit_cast_allowed,
)
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import LogicalType, TimeAttribute, TimestampType
from flinkpy.common.logical_types.numeric_results import (
    arithmetic_type,
    average_type,
    rounded_type,
    sum_type,
)
from flinkpy.common.logical_types.type_conversion import logical_type_of, type_information_of
from flinkpy.common.logical_types.type_merging import common_argument_type, common_type
from flinkpy.common.typeinfo import Types
from flinkpy.core.errors import ProgramError
from flinkpy.table import col, lit

D = DataTypes
ATOMIC: list[LogicalType] = [
    D.CHAR(3),
    D.VARCHAR(5),
    D.STRING(),
    D.BOOLEAN(),
    D.BINARY(2),
    D.BYTES(),
    D.TINYINT(),
    D.SMALLINT(),
    D.INT(),
    D.BIGINT(),
    D.DECIMAL(10, 2),
    D.DECIMAL(20, 5),
    D.FLOAT(),
    D.DOUBLE(),
    D.DATE(),
    D.TIME(),
    D.TIMESTAMP(3),
    D.TIMESTAMP_LTZ(6),
    D.INTERVAL(D.MONTH()),
    D.INTERVAL(D.SECOND()),
]
TYPES = st.recursive(
    st.sampled_from(ATOMIC).flatmap(lambda each: st.sampled_from([each, each.not_null()])),
    lambda inner: st.one_of(
        inner.map(D.ARRAY),
        st.tuples(inner, inner).map(lambda pair: D.MAP(*pair)),
        st.lists(inner, min_size=1, max_size=3).map(D.ROW),
    ),
    max_leaves=4,
)


@pytest.mark.parametrize(
    ("types", "common"),
    [
        ([D.INT(), D.BIGINT(), D.DECIMAL(2, 2)], D.DECIMAL(21, 2)),
        ([D.CHAR(1), D.CHAR(3)], D.VARCHAR(3)),
        ([D.CHAR(3), D.CHAR(3)], D.CHAR(3)),
        ([D.CHAR(5), D.STRING()], D.STRING()),
        ([D.FLOAT(), D.DECIMAL(10, 2)], D.DOUBLE()),
        ([D.BIGINT(), D.FLOAT()], D.FLOAT()),
        ([D.DECIMAL(38, 0), D.DECIMAL(10, 5)], D.DECIMAL(38, 0)),
        ([D.TIMESTAMP(3), D.TIMESTAMP_LTZ(6)], D.TIMESTAMP_LTZ(6)),
        ([D.DATE(), D.TIMESTAMP(3)], None),
        ([D.FLOAT(), D.DOUBLE()], D.FLOAT()),
        ([D.DOUBLE(), D.FLOAT()], D.DOUBLE()),
        ([D.NULL(), D.INT().not_null()], D.INT()),
        ([D.ARRAY(D.INT()), D.ARRAY(D.BIGINT())], D.ARRAY(D.BIGINT())),
        ([D.INT(), D.STRING()], None),
        ([D.ROW([D.INT()]), D.ROW([D.INT(), D.INT()])], None),
    ],
)
def test_the_common_type_of_forms_is_flinks(
    types: list[LogicalType], common: LogicalType | None
) -> None:
    assert common_type(types) == common


def test_functions_have_a_common_type_of_their_own() -> None:
    assert common_argument_type([D.FLOAT(), D.DOUBLE()]) == D.DOUBLE()
    assert common_argument_type([D.DECIMAL(10, 2), D.FLOAT()]) == D.FLOAT()
    assert common_argument_type([D.TIMESTAMP(3), D.DATE()]) == D.DATE()


@given(st.lists(TYPES, min_size=1, max_size=3))
def test_each_type_can_be_cast_to_the_common_one_and_null_stays_possible(
    types: list[LogicalType],
) -> None:
    for common in (common_type(types), common_argument_type(types)):
        if common is not None:
            assert all(explicit_cast_allowed(each, common) for each in types)
            assert common.is_nullable == any(each.is_nullable for each in types)


@given(TYPES)
def test_a_type_merges_with_itself_and_is_cast_to_itself_without_a_change(
    type: LogicalType,
) -> None:
    assert common_type([type, type]) == type
    assert implicit_cast_allowed(type, type)
    assert cast_changes_nothing(type, type)
    assert pickle.loads(pickle.dumps(type)) == type


@given(TYPES, TYPES)
def test_a_cast_that_changes_nothing_is_an_implicit_one_and_cannot_fail(
    source: LogicalType, target: LogicalType
) -> None:
    if cast_changes_nothing(source, target):
        assert implicit_cast_allowed(source, target)
        assert not cast_can_fail(source, target)
    if implicit_cast_allowed(source, target):
        assert explicit_cast_allowed(source, target)


def test_a_time_attribute_is_lost_where_times_are_merged_and_costs_no_cast() -> None:
    rowtime = TimestampType(3, TimeAttribute.ROWTIME)
    assert common_type([rowtime, rowtime]) == D.TIMESTAMP(3)
    assert cast_changes_nothing(rowtime, D.TIMESTAMP(3))


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        (D.STRING(), D.INT(), True),
        (D.INT(), D.TIMESTAMP(3), False),
        (D.BOOLEAN(), D.INT(), True),
        (D.INT(), D.BOOLEAN(), True),
        (D.DOUBLE(), D.BOOLEAN(), True),
        (D.INTERVAL(D.MONTH()), D.INT(), False),
        (D.INT(), D.INTERVAL(D.MONTH()), True),
        (D.ROW([D.INT()]), D.STRING(), True),
        (D.ARRAY(D.INT()), D.ARRAY(D.STRING()), True),
        (D.DATE(), D.TIME(), False),
    ],
)
def test_cast_is_allowed_where_flink_allows_it(
    source: LogicalType, target: LogicalType, allowed: bool
) -> None:
    assert explicit_cast_allowed(source, target) is allowed


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (D.DECIMAL(38, 10), "+", D.DECIMAL(38, 10), D.DECIMAL(38, 9)),
        (D.DECIMAL(38, 10), "*", D.DECIMAL(38, 10), D.DECIMAL(38, 6)),
        (D.DECIMAL(10, 2), "/", D.DECIMAL(20, 5), D.DECIMAL(36, 23)),
        (D.BIGINT(), "%", D.INT(), D.INT()),
        (D.DOUBLE(), "%", D.INT(), None),
        (D.TINYINT(), "+", D.SMALLINT(), D.SMALLINT()),
        (D.INT().not_null(), "*", D.INT().not_null(), D.INT().not_null()),
        (D.STRING(), "+", D.INT(), None),
    ],
)
def test_arithmetic_has_the_digits_of_flinks_rules(
    left: LogicalType, operator: str, right: LogicalType, result: LogicalType | None
) -> None:
    assert arithmetic_type(operator, left, right) == result


def test_sums_averages_and_rounding_have_flinks_types() -> None:
    assert sum_type(D.TINYINT()) == D.TINYINT()
    assert sum_type(D.DECIMAL(20, 5)) == D.DECIMAL(38, 5)
    assert average_type(D.DECIMAL(10, 2)) == D.DECIMAL(38, 6)
    assert rounded_type(D.DECIMAL(10, 2), 1) == D.DECIMAL(10, 1)
    assert rounded_type(D.DECIMAL(10, 2), -1) == D.DECIMAL(9, 0)


def test_types_have_pyflinks_names() -> None:
    row = D.ROW([D.FIELD("a", D.INT().not_null()), D.FIELD("b", D.ARRAY(D.DECIMAL(10, 2)))])
    assert str(row) == "ROW<`a` INT NOT NULL, `b` ARRAY<DECIMAL(10, 2)>>"
    assert D.INT(nullable=False).nullable() == D.INT()
    assert str(D.INTERVAL(D.DAY(), D.SECOND())) == "INTERVAL DAY TO SECOND(3)"
    with pytest.raises(ValueError, match="from SECOND to DAY"):
        D.INTERVAL(D.SECOND(), D.DAY())
    with pytest.raises(TypeError, match=r"DataTypes\.ARRAY\(\) takes a type such as"):
        D.ARRAY(Types.INT())  # type: ignore[arg-type]


@given(TYPES)
def test_a_type_that_streams_have_comes_back_from_them(type: LogicalType) -> None:
    assume("INTERVAL" not in str(type))
    once = logical_type_of(type_information_of(type))
    assert logical_type_of(type_information_of(once)) == once


def test_expressions_take_both_kinds_of_types() -> None:
    of_table = col("a").cast(D.BIGINT())
    of_stream = col("a").cast(Types.LONG())
    assert of_table.stream_options() == of_stream.stream_options()  # type: ignore[attr-defined]
    assert repr(of_table) == "col('a').cast(BIGINT)"
    assert lit(None, D.DOUBLE()).type_info == D.DOUBLE()  # type: ignore[attr-defined]
    with pytest.raises(ProgramError, match=r"DECIMAL\(38, 18\) or DECIMAL\(38, 0\)"):
        col("a").cast(D.DECIMAL(10, 2)).stream_options()  # type: ignore[attr-defined]
