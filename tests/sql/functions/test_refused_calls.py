"""A call whose arguments do not fit is refused with what the function takes, and with the cast
that helps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import LogicalType, NullType
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.functions.function_port import FunctionKind
from flinkpy.sql.functions.user_function import UserFunction
from flinkpy.sql.sql_errors import ValidationError
from tests.common.logical_types.test_logical_types import ATOMIC
from tests.sql.functions.reference_calls import type_of_call, varying


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "SUBSTRING(INT, 2)",
            "SUBSTRING is called as SUBSTRING(<CHARACTER_STRING>, <INT>), not as SUBSTRING(INT, "
            "INT); write CAST(... AS STRING) for argument 1",
        ),
        (
            "LOG(INT, INT, INT)",
            "LOG does not take 3 arguments: it is called as LOG(<NUMERIC>) or LOG(<NUMERIC>, "
            "<NUMERIC>), not as LOG(INT, INT, INT)",
        ),
        (
            "INT = STRING",
            "= is called as <ANY> = <ANY>, not as INT = STRING; the arguments have no type in "
            "common: write CAST(... AS INT) for argument 2",
        ),
        (
            "IF(BOOLEAN, INT, STRING)",
            "IF is called as IF(<BOOLEAN>, <ANY>, <ANY>), not as IF(BOOLEAN, INT, STRING); the "
            "arguments have no type in common: CAST them to one",
        ),
        (
            "DOUBLE % INT",
            "% is called as <EXACT_NUMERIC> % <EXACT_NUMERIC>, not as DOUBLE % INT; write CAST(... "
            "AS BIGINT) for argument 1",
        ),
        (
            "STRING IS TRUE",
            "IS TRUE is called as <BOOLEAN> IS TRUE, not as STRING IS TRUE; write CAST(... AS "
            "BOOLEAN) for argument 1",
        ),
        (
            "JSON_VALUE(STRING, STRING)",
            "JSON_VALUE is called as JSON_VALUE(<CHARACTER_STRING>, a constant <CHARACTER_STRING>)"
            ", not as JSON_VALUE(STRING, STRING); argument 2 must be a literal",
        ),
        ("FLOOR(TIMESTAMP(3))", "the unit of time is missing: write FLOOR(time TO HOUR)"),
        (
            "CAST(BIGINT AS TIMESTAMP(3))",
            "BIGINT cannot be cast to TIMESTAMP(3); TO_TIMESTAMP_LTZ(number, 3) makes a moment of "
            "milliseconds",
        ),
    ],
)
def test_the_error_says_what_the_function_takes_and_which_cast_helps(call: str, error: str) -> None:
    with pytest.raises(ValidationError) as raised:
        type_of_call(call)
    assert raised.value.problem == error


FUNCTIONS = [
    found
    for name in built_in_functions().names()
    if (found := built_in_functions().find(name)) is not None
]


@given(
    st.sampled_from(FUNCTIONS),
    st.lists(st.sampled_from([*ATOMIC, NullType(), DataTypes.ARRAY(DataTypes.INT())]), max_size=4),
    st.booleans(),
)
def test_arguments_are_cast_only_where_cast_is_allowed_and_bind_again_to_the_same(
    function: object, types: list[LogicalType], is_nullable: bool
) -> None:
    arguments = varying(*(each.with_nullable(is_nullable) for each in types))
    options = {"unit": "DAY", "type": DataTypes.STRING(), "index": 0}
    try:
        signature = function.bind(arguments, options)  # type: ignore[attr-defined]
    except ValidationError:
        return
    assert len(signature.arguments) == len(arguments)
    for given_argument, wanted in zip(arguments, signature.arguments):
        assert explicit_cast_allowed(given_argument.type, wanted)
    again = function.bind(varying(*signature.arguments), options)  # type: ignore[attr-defined]
    assert again.arguments == signature.arguments


def test_a_function_of_a_user_casts_to_its_declared_types() -> None:
    function = UserFunction("f", len, DataTypes.BIGINT(), (DataTypes.BIGINT(), DataTypes.STRING()))
    signature = function.bind(varying(DataTypes.INT(), NullType()), {})
    assert signature.arguments == (DataTypes.BIGINT(), DataTypes.STRING())
    assert signature.result == DataTypes.BIGINT()
    with pytest.raises(ValidationError, match=r"f is called as f\(<BIGINT>, <STRING>\), not as"):
        function.bind(varying(DataTypes.DOUBLE(), DataTypes.STRING()), {})


def test_a_function_of_a_user_without_declared_types_takes_what_it_is_given() -> None:
    function = UserFunction("f", len, DataTypes.INT())
    given_types = (DataTypes.DATE(), DataTypes.CHAR(3).not_null())
    assert function.bind(varying(*given_types), {}).arguments == given_types
    with pytest.raises(ValidationError, match="argument 1 of f has no type"):
        function.bind(varying(NullType()), {})


def test_a_table_function_gives_rows() -> None:
    with pytest.raises(ValueError, match="the rows of f have the type of a ROW, not INT"):
        UserFunction("f", len, DataTypes.INT(), kind=FunctionKind.TABLE)
