"""Expressions of Python as trees of statements: ``col("a") + 1`` on a table means what ``a + 1``
means in SQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from flinkpy.columns.expression import Aggregate, Alias, Call, Column, Expression, Literal, SqlCall
from flinkpy.common.logical_types import logical_type as types
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import (
    ArrayConstructor,
    CaseCall,
    CastCall,
    ElementAccess,
    FieldAccess,
    FunctionCall,
    Identifier,
    MapConstructor,
    RowConstructor,
    SqlExpression,
    SqlLiteral,
)
from flinkpy.table.expression_trees.user_calls import UserCall, WholeRow

_SAME_ARGUMENTS: Mapping[str, str] = {
    **{name: name for name in ("+", "-", "*", "/", "%", "<", "<=", ">", ">=")},
    "==": "=",
    "!=": "<>",
    "&": "AND",
    "|": "OR",
    "not": "NOT",
    "negate": "-",
    "**": "POWER",
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "init_cap": "INITCAP",
    "array_contains": "ARRAY_CONTAINS",
    **{
        name: name.upper()
        for name in ("abs", "sign", "sqrt", "exp", "ln", "floor", "ceil", "upper", "lower")
    },
    **{name: name.upper() for name in ("char_length", "reverse", "cardinality", "coalesce")},
    **{name: name.upper() for name in ("concat", "greatest", "least")},
}
_WITH_OPTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "round": ("ROUND", ("places",)),
    "right": ("RIGHT", ("length",)),
    "lpad": ("LPAD", ("length", "pad")),
    "rpad": ("RPAD", ("length", "pad")),
    "repeat": ("REPEAT", ("times",)),
    "like": ("LIKE", ("pattern",)),
    "startswith": ("STARTSWITH", ("pattern",)),
    "endswith": ("ENDSWITH", ("pattern",)),
    "split": ("SPLIT", ("delimiter",)),
    "regexp": ("REGEXP", ("pattern",)),
    "date_format": ("DATE_FORMAT", ("format",)),
    "substring": ("SUBSTRING", ("begin", "length")),
}
_AGGREGATES = {"stddev_pop": "STDDEV_POP", "stddev_samp": "STDDEV_SAMP", "var_pop": "VAR_POP"}
_MILLISECONDS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
}


class Tree(Expression):
    """A tree of SQL where an expression stands; ``text`` shows it."""

    __slots__ = ("text", "tree")

    def __init__(self, tree: SqlExpression, text: str) -> None:
        self.tree, self.text = tree, text

    def __repr__(self) -> str:
        return self.text


def tree_of(expression: Expression) -> SqlExpression:
    """The tree of an expression, without its alias. Raises ValidationError for one that has no
    meaning for tables."""
    if isinstance(expression, Alias):
        return tree_of(expression.expression)
    if isinstance(expression, Column):
        return Identifier((expression.column,))
    if isinstance(expression, Literal):
        return _literal(expression)
    if isinstance(expression, Aggregate):
        return _aggregate(expression)
    if isinstance(expression, UserCall):
        arguments = tuple(map(tree_of, expression.arguments))
        return FunctionCall(expression.function, arguments, function=expression.of)
    if isinstance(expression, Tree):
        return expression.tree
    if isinstance(expression, SqlCall):
        return _sql_call(expression)
    if isinstance(expression, WholeRow):
        columns = expression.columns
        values = tuple(Identifier((name,)) for name in columns.names)
        return CastCall(RowConstructor(values), columns.with_nullable(False))
    if isinstance(expression, Call):
        return _call(expression)
    raise ValidationError(f"{expression!r:.80} cannot stand in an expression of a table")


def _sql_call(call: SqlCall) -> SqlExpression:
    name = call.function
    if name.startswith("$") and name != "$SUM0":
        word = name.strip("$").lower()
        raise ValidationError(f"{call!r:.80}: {word} cannot stand here")
    arguments = tuple(map(tree_of, call.arguments))
    if name in _CONSTRUCTORS:
        return _CONSTRUCTORS[name](arguments)
    return FunctionCall(name, arguments, distinct=call.is_distinct)


def _map_of(arguments: tuple[SqlExpression, ...]) -> SqlExpression:
    return MapConstructor(tuple(zip(arguments[::2], arguments[1::2])))


_CONSTRUCTORS: Mapping[str, Callable[[tuple[SqlExpression, ...]], SqlExpression]] = {
    "ARRAY": ArrayConstructor,
    "ROW": RowConstructor,
    "MAP": _map_of,
}


def _call(call: Call) -> SqlExpression:
    name, options = call.function, dict(call.options)
    own = _OWN.get(name)
    if own is not None:
        return own(call, options)
    arguments = tuple(map(tree_of, call.arguments))
    if name in _SAME_ARGUMENTS:
        return FunctionCall(_SAME_ARGUMENTS[name], arguments)
    if name in _WITH_OPTIONS:
        function, keys = _WITH_OPTIONS[name]
        given = [options[key] for key in keys if options.get(key) is not None]
        return FunctionCall(function, (*arguments, *map(constant, given)))
    raise ValidationError(
        f"{call!r:.80} has no meaning for tables yet: write it in SQL, with sql_query()"
    )


def _aggregate(aggregate: Aggregate) -> SqlExpression:
    value = tree_of(aggregate.expression)
    if aggregate.options:
        raise ValidationError(f"{aggregate!r:.80} has no meaning for tables yet: write it in SQL")
    distinct = aggregate.kind == "count_distinct"
    name = "COUNT" if distinct else _AGGREGATES.get(aggregate.kind, aggregate.kind.upper())
    return FunctionCall(name, (value,), distinct=distinct)


def _cast(call: Call, options: dict[str, Any]) -> SqlExpression:
    target = options["to"]
    if not isinstance(target, LogicalType):
        from flinkpy.common.logical_types.type_conversion import logical_type_of

        target = logical_type_of(target)
    return CastCall(tree_of(call.arguments[0]), target, call.function == "try_cast")


def _in(call: Call, options: dict[str, Any]) -> SqlExpression:
    members = tuple(map(constant, options["values"]))
    return FunctionCall("IN", (tree_of(call.arguments[0]), *members))


def _then(call: Call, options: dict[str, Any]) -> SqlExpression:
    condition, value, otherwise = map(tree_of, call.arguments)
    return CaseCall(None, ((condition, value),), otherwise)


def _interval(call: Call, options: dict[str, Any]) -> SqlExpression:
    amount = call.arguments[0]
    if not isinstance(amount, Literal) or not isinstance(amount.value, (int, float)):
        raise ValidationError(f"{call!r:.80}: an interval of tables has a constant length")
    length = int(amount.value * _MILLISECONDS[options["unit"]])
    return SqlLiteral(length, types.DayTimeIntervalType(is_nullable=False))


def _add_months(call: Call, options: dict[str, Any]) -> SqlExpression:
    amount = call.arguments[1]
    if not isinstance(amount, Literal) or not isinstance(amount.value, int):
        raise ValidationError(f"{call!r:.80}: an interval of tables has a constant length")
    months = SqlLiteral(
        amount.value * options["months"], types.YearMonthIntervalType(is_nullable=False)
    )
    return FunctionCall("+", (tree_of(call.arguments[0]), months))


def _field(call: Call, options: dict[str, Any]) -> SqlExpression:
    return FieldAccess(tree_of(call.arguments[0]), str(options["field"]))


def _at(call: Call, options: dict[str, Any]) -> SqlExpression:
    value, index = map(tree_of, call.arguments)
    return ElementAccess(value, index)


_OWN: Mapping[str, Callable[[Call, dict[str, Any]], SqlExpression]] = {
    "cast": _cast,
    "try_cast": _cast,
    "in_": _in,
    "then": _then,
    "interval": _interval,
    "add_months": _add_months,
    "get": _field,
    "at": _at,
}


# -- constants -------------------------------------------------------------------------------------


def _literal(literal: Literal) -> SqlExpression:
    made = constant(literal.value)
    if literal.type_info is None:
        return made
    return _cast(Call("cast", (Literal(literal.value),)), {"to": literal.type_info})


def constant(value: object) -> SqlLiteral:
    """A Python value as a constant of SQL."""
    return SqlLiteral(value, _type_of(value))


def _type_of(value: object) -> LogicalType:
    if value is None:
        return types.NullType()
    if isinstance(value, bool):
        return types.BooleanType(is_nullable=False)
    if isinstance(value, int):
        is_int = -(2**31) <= value < 2**31
        return (types.IntType if is_int else types.BigIntType)(is_nullable=False)
    if isinstance(value, float):
        return types.DoubleType(is_nullable=False)
    if isinstance(value, str):
        return types.CharType(length=max(1, len(value)), is_nullable=False)
    if isinstance(value, bytes):
        return types.BinaryType(length=max(1, len(value)), is_nullable=False)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime.datetime):
        return types.TimestampType(precision=6, is_nullable=False)
    if isinstance(value, datetime.date):
        return types.DateType(is_nullable=False)
    if isinstance(value, datetime.time):
        return types.TimeType(is_nullable=False)
    raise ValidationError(f"{value!r:.80} cannot stand in an expression of a table")


def _decimal(value: Decimal) -> LogicalType:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValidationError(f"{value} is no DECIMAL")
    scale = max(0, -exponent)
    return types.DecimalType(max(len(digits) + max(exponent, 0), scale), scale, is_nullable=False)
