"""Expressions as ``explain`` and the names of operators show them: over names of columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal

from flinkpy.sql.functions.user_function import shown_name
from flinkpy.sql.logical.logical_rex import RexAggregate, RexOver, RexSubquery
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex, RexCall, RexInput, RexLiteral, SortKey

_INFIX = frozenset(
    ["+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">=", "AND", "OR"]
    + ["LIKE", "SIMILAR TO", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
)
_POSTFIX = frozenset(
    ["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"]
    + ["IS UNKNOWN", "IS NOT UNKNOWN"]
)
_LONGEST = 4_000


def rex_text(rex: Rex, names: Sequence[str]) -> str:
    """The expression over columns of these names."""
    text = _text(rex, names)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(root: Rex, names: Sequence[str]) -> str:
    """Operands first, without recursion."""
    done: list[str] = []
    pending = [(root, False)]
    while pending:
        rex, has_operands = pending.pop()
        count = len(rex.operands)
        if count and not has_operands:
            pending.append((rex, True))
            pending.extend((each, False) for each in reversed(rex.operands))
            continue
        operands = done[len(done) - count :]
        del done[len(done) - count :]
        done.append(_node_text(rex, operands, names))
    return done[0]


def _node_text(rex: Rex, operands: Sequence[str], names: Sequence[str]) -> str:
    if isinstance(rex, RexInput):
        return names[rex.index] if rex.index < len(names) else f"${rex.index}"
    if isinstance(rex, RexLiteral):
        return literal_text(rex.value)
    if isinstance(rex, RexCall):
        return _call_text(rex, operands)
    if isinstance(rex, RexSubquery):
        tested = "".join(f"{each}, " for each in operands[: len(rex.tested)])
        return f"{rex.kind}({tested}query)"
    if isinstance(rex, RexAggregate):
        return _aggregate_text(rex, operands)
    if isinstance(rex, RexOver):
        return f"{_aggregate_text(rex.call, operands)} OVER"
    return str(rex)


def _aggregate_text(call: RexAggregate, operands: Sequence[str]) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    arguments = ", ".join(operands[: len(call.arguments)])
    return f"{shown_name(call.function)}({distinct}{arguments or '*'})"


def _call_text(call: RexCall, arguments: Sequence[str]) -> str:
    name = call.function
    if name in _INFIX and len(arguments) > 1:
        return f"({f' {name} '.join(arguments)})"
    if name in _POSTFIX:
        return f"{arguments[0]} {name}"
    if name in ("CAST", "TRY_CAST"):
        return f"{name}({arguments[0]} AS {call.type.nullable()})"
    if name == "FIELD":
        return f"{arguments[0]}.{dict(call.options).get('index')}"
    if name == "IN":
        return f"{arguments[0]} IN ({', '.join(arguments[1:])})"
    words = "".join(f", {key} {value}" for key, value in call.options)
    return f"{shown_name(name)}({', '.join(arguments)}{words})"


def literal_text(value: object) -> str:
    """A constant as SQL writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (Decimal, int, float)):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    return repr(value)


def call_text(call: AggregateCall, names: Sequence[str]) -> str:
    """An aggregate: ``SUM(DISTINCT a) FILTER b``."""
    distinct = "DISTINCT " if call.distinct else ""
    arguments = ", ".join(names[each] for each in call.arguments) or "*"
    chosen = "" if call.filter is None else f" FILTER {names[call.filter]}"
    order = f" ORDER BY {sort_text(call.order_by, names)}" if call.order_by else ""
    return f"{shown_name(call.function)}({distinct}{arguments}{order}){chosen}"


def sort_text(keys: Sequence[SortKey], names: Sequence[str]) -> str:
    """``a ASC, b DESC``; where nulls go is said if it is not as usual."""
    return ", ".join(_key_text(key, names) for key in keys)


def _key_text(key: SortKey, names: Sequence[str]) -> str:
    direction = "DESC" if key.descending else "ASC"
    usual = not key.descending
    nulls = "" if key.nulls_first == usual else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return f"{names[key.index]} {direction}{nulls}"
