"""Expressions as SQL text again: SHOW CREATE, DESCRIBE and catalogs in files need it. Names are
quoted, and operators stand in parentheses where they are operands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from flinkpy.common.logical_types.logical_type import (
    DayTimeIntervalType,
    LogicalType,
    YearMonthIntervalType,
)
from flinkpy.common.logical_types.sql_quotes import quoted_name, quoted_text
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import (
    WITHOUT_PARENTHESES,
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

_INFIX = frozenset(
    ["+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">=", "AND", "OR"]
    + ["LIKE", "NOT LIKE", "SIMILAR TO", "NOT SIMILAR TO"]
    + ["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
)
_UNITS_OF_MONTHS = {"YEAR": 12, "MONTH": 1}
_UNITS_OF_MILLISECONDS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}


def expression_text(expression: SqlExpression) -> str:
    """The SQL text of an expression. Raises ValidationError for one that holds a query.

    >>> call = FunctionCall("+", (Identifier(("a",)), Identifier(("b",))))
    >>> expression_text(call)
    '`a` + `b`'
    """
    writer = _WRITERS.get(type(expression))
    if writer is None:
        raise ValidationError(
            f"a {type(expression).__name__} cannot stand in the declaration of a table",
            span=expression.span,
        )
    return writer(expression)


def _identifier(name: Identifier) -> str:
    return ".".join(map(quoted_name, name.parts))


def _literal(literal: SqlLiteral) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(literal.type, YearMonthIntervalType) and isinstance(value, int):
        return _interval(value, _UNITS_OF_MONTHS, "MONTH")
    if isinstance(literal.type, DayTimeIntervalType) and isinstance(value, int):
        return _interval(value, _UNITS_OF_MILLISECONDS, "SECOND")
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return quoted_text(value)
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, time):
        return f"TIME '{value.isoformat()}'"
    if isinstance(value, float):
        return f"{value:e}".upper() if "e" not in repr(value) else repr(value).upper()
    if isinstance(value, Decimal):
        return _decimal(value, literal.type)
    return str(value)


def _decimal(value: Decimal, type: LogicalType) -> str:
    """A constant has digits of 64 bits at most, the text of a number has more."""
    written = f"{value:f}"
    if int(written.replace(".", "")) in range(-(2**63) + 1, 2**63):
        return written
    return f"CAST('{written}' AS {type.nullable().text()})"


def _interval(amount: int, units: dict[str, int], smallest: str) -> str:
    """In the largest unit that has no rest."""
    for unit, length in units.items():
        if amount % length == 0:
            return f"INTERVAL '{amount // length}' {unit}"
    return f"INTERVAL '{amount / units[smallest]}' {smallest}"


def _call(call: FunctionCall) -> str:
    name, operands = call.name, call.arguments
    if name in _INFIX and len(operands) == 2:
        text = f" {name} ".join(map(_operand, operands))
        return f"({text}) {dict(call.options)['unit']}" if call.options else text
    if name in ("-", "+", "NOT") and len(operands) == 1:
        return f"{name} {_operand(operands[0])}"
    if name.startswith("IS ") and len(operands) == 1:
        return f"{_operand(operands[0])} {name}"
    if name in ("BETWEEN", "NOT BETWEEN") and len(operands) == 3:
        value, lower, upper = map(_operand, operands)
        return f"{value} {name} {lower} AND {upper}"
    if name in ("IN", "NOT IN"):
        member, *members = operands
        return f"{_operand(member)} {name} ({', '.join(map(expression_text, members))})"
    if call.over is not None or call.filter is not None or call.order_by:
        raise ValidationError(
            f"{name} of many rows cannot stand in the declaration of a table", span=call.span
        )
    return _plain_call(call)


def _plain_call(call: FunctionCall) -> str:
    words = dict(call.options)
    arguments = [expression_text(each) for each in call.arguments]
    if call.name == "EXTRACT" and "unit" in words:
        return f"EXTRACT({words['unit']} FROM {arguments[0]})"
    if call.name in ("TIMESTAMPDIFF", "TIMESTAMPADD") and "unit" in words:
        return f"{call.name}({', '.join([str(words['unit']), *arguments])})"
    if call.name in ("CEIL", "FLOOR") and "unit" in words:
        return f"{call.name}({arguments[0]} TO {words['unit']})"
    if call.names:
        arguments = [
            text if name is None else f"{name} => {text}"
            for name, text in zip(call.names, arguments)
        ]
    without_parentheses = not arguments and call.name in WITHOUT_PARENTHESES
    return call.name if without_parentheses else f"{call.name}({', '.join(arguments)})"


def _operand(expression: SqlExpression) -> str:
    text = expression_text(expression)
    is_operator = isinstance(expression, FunctionCall) and not (
        expression.name.replace("_", "").replace(".", "").isalnum()
        and expression.name not in ("AND", "OR", "NOT", "LIKE", "BETWEEN", "IN")
    )
    return f"({text})" if is_operator else text


def _cast(call: CastCall) -> str:
    name = "TRY_CAST" if call.is_try else "CAST"
    return f"{name}({expression_text(call.value)} AS {call.type})"


def _case(call: CaseCall) -> str:
    parts = ["CASE"]
    if call.operand is not None:
        parts.append(expression_text(call.operand))
    for condition, value in call.branches:
        parts.append(f"WHEN {expression_text(condition)} THEN {expression_text(value)}")
    if call.otherwise is not None:
        parts.append(f"ELSE {expression_text(call.otherwise)}")
    return " ".join([*parts, "END"])


def _listed(expressions: tuple[SqlExpression, ...]) -> str:
    return ", ".join(map(expression_text, expressions))


def _map(made: MapConstructor) -> str:
    return f"MAP[{_listed(tuple(each for entry in made.entries for each in entry))}]"


_WRITERS: dict[type[SqlExpression], Callable[[Any], str]] = {
    Identifier: _identifier,
    SqlLiteral: _literal,
    FunctionCall: _call,
    CastCall: _cast,
    CaseCall: _case,
    FieldAccess: lambda access: f"{_operand(access.value)}.{quoted_name(access.name)}",
    ElementAccess: lambda access: f"{_operand(access.value)}[{expression_text(access.index)}]",
    ArrayConstructor: lambda made: f"ARRAY[{_listed(made.elements)}]",
    MapConstructor: _map,
    RowConstructor: lambda made: f"ROW({_listed(made.values)})",
}
