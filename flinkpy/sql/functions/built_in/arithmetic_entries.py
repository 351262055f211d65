"""Arithmetic and the functions of numbers. Most of these compute in DOUBLE whatever the number."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import DecimalType, LogicalType, NullType
from flinkpy.common.logical_types.numeric_results import arithmetic_type
from flinkpy.sql.functions.argument_kinds import (
    BIGINT,
    DATETIME,
    DOUBLE,
    EXACT,
    INT,
    INTEGER_NUMERIC,
    INTERVAL,
    INTERVAL_DAY_TIME,
    INTERVAL_YEAR_MONTH,
    NUMERIC,
    TEXT,
    Kind,
    cast_to,
)
from flinkpy.sql.functions.built_in_function import PLAIN, BuiltInFunction, Shape, Traits, function
from flinkpy.sql.functions.common_arguments import calculated, in_common
from flinkpy.sql.functions.result_rules import FittedCall, Nulls, argument, rounded, with_unit

_NUMBER = replace(NUMERIC, keeps_null=True)
_EXACT = replace(EXACT, keeps_null=True)
_NUMBERS = Shape((_NUMBER, _NUMBER), together=calculated)
_DAY_TIMES = Shape((INTERVAL_DAY_TIME, INTERVAL_DAY_TIME), together=in_common())
_YEAR_MONTHS = Shape((INTERVAL_YEAR_MONTH, INTERVAL_YEAR_MONTH), together=in_common())
_BY_ZERO = Traits(can_fail=True)
_GROWING = Traits(monotonic=True)
_RANDOM = Traits(deterministic=False)
_SEED = cast_to(NUMERIC, DataTypes.INT())


def _calculated(operator: str, call: FittedCall) -> LogicalType | None:
    """By the types before the casts, as the type of a remainder is that of its divisor."""
    pairs = zip(call.given, call.arguments)
    left, right = (fitted if isinstance(given, NullType) else given for given, fitted in pairs)
    return arithmetic_type(operator, left, right)


def _arithmetic(operator: str, *others: Shape, traits: Traits = PLAIN) -> BuiltInFunction:
    return function(
        operator,
        operator,
        [_NUMBERS, *others],
        lambda call: _calculated(operator, call),
        traits=traits,
    )


def _same(*kinds: Kind, at: int = 0) -> Shape:
    return Shape(kinds, result=argument(at))


def _whole(call: FittedCall) -> LogicalType:
    """A decimal without the digits behind the point; others as they are."""
    type = call.arguments[0]
    return replace(type, scale=0) if isinstance(type, DecimalType) else type


def _of_double(name: str, python_name: str) -> BuiltInFunction:
    return function(name, python_name, [(DOUBLE,)], DataTypes.DOUBLE())


_TO_UNIT = Shape((DATETIME,), result=with_unit(argument(0), "FLOOR(time TO HOUR)"))
_FLOORED = [Shape((NUMERIC,)), _TO_UNIT]
_SIGNED = [_same(NUMERIC), _same(INTERVAL)]

ARITHMETIC = (
    function("+ (unary)", "__pos__", _SIGNED, argument(0)),
    function("- (unary)", "__neg__", _SIGNED, argument(0)),
    _arithmetic(
        "+",
        replace(_DAY_TIMES, result=argument(0)),
        replace(_YEAR_MONTHS, result=argument(0)),
        _same(DATETIME, INTERVAL_DAY_TIME),
        _same(DATETIME, INTERVAL_YEAR_MONTH),
        _same(INTERVAL_DAY_TIME, DATETIME, at=1),
        _same(INTERVAL_YEAR_MONTH, DATETIME, at=1),
    ),
    _arithmetic(
        "-",
        replace(_DAY_TIMES, result=argument(0)),
        replace(_YEAR_MONTHS, result=argument(0)),
        _same(DATETIME, INTERVAL_DAY_TIME),
        _same(DATETIME, INTERVAL_YEAR_MONTH),
    ),
    _arithmetic("*", _same(INTERVAL, NUMERIC), _same(NUMERIC, INTERVAL, at=1)),
    _arithmetic("/", _same(INTERVAL, NUMERIC), traits=_BY_ZERO),
    function(
        "%",
        "%",
        [Shape((_EXACT, _EXACT), together=calculated)],
        lambda call: _calculated("%", call),
        traits=_BY_ZERO,
    ),
    function("POWER", "**", [(DOUBLE, DOUBLE)], DataTypes.DOUBLE()),
    function("ABS", "abs", [(NUMERIC,), (INTERVAL,)], argument(0)),
    _of_double("SQRT", "sqrt"),
    _of_double("LN", "ln"),
    _of_double("LOG10", "log10"),
    _of_double("LOG2", "log2"),
    function("LOG", "log", [(DOUBLE,), (DOUBLE, DOUBLE)], DataTypes.DOUBLE()),
    _of_double("EXP", "exp"),
    function("CEIL", "ceil", _FLOORED, _whole, traits=_GROWING),
    function("FLOOR", "floor", _FLOORED, _whole, traits=_GROWING),
    _of_double("SIN", "sin"),
    _of_double("SINH", "sinh"),
    _of_double("COS", "cos"),
    _of_double("TAN", "tan"),
    _of_double("TANH", "tanh"),
    _of_double("COT", "cot"),
    _of_double("ASIN", "asin"),
    _of_double("ACOS", "acos"),
    _of_double("ATAN", "atan"),
    function("ATAN2", "atan2", [(DOUBLE, DOUBLE)], DataTypes.DOUBLE()),
    _of_double("COSH", "cosh"),
    _of_double("DEGREES", "degrees"),
    _of_double("RADIANS", "radians"),
    function("SIGN", "sign", [(NUMERIC,)], argument(0)),
    function("ROUND", "round", [(NUMERIC,), (NUMERIC, INT)], rounded),
    function("TRUNCATE", "truncate", [(NUMERIC,), (NUMERIC, INT)], rounded),
    function("PI", "pi", [()], DataTypes.DOUBLE(), Nulls.NEVER),
    function("E", "e", [()], DataTypes.DOUBLE(), Nulls.NEVER),
    function("RAND", "rand", [(), (_SEED,)], DataTypes.DOUBLE(), traits=_RANDOM),
    function(
        "RAND_INTEGER", "rand_integer", [(_SEED,), (_SEED, _SEED)], DataTypes.INT(), traits=_RANDOM
    ),
    function("UUID", "uuid", [()], DataTypes.CHAR(36), Nulls.NEVER, traits=_RANDOM),
    function("BIN", "bin", [(BIGINT,)], DataTypes.STRING()),
    function("HEX", "hex", [(INTEGER_NUMERIC,), (TEXT,)], DataTypes.STRING()),
    function("UNHEX", "unhex", [(TEXT,)], DataTypes.BYTES(), Nulls.ALWAYS),
)
