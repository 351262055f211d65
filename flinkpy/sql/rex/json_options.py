"""What a call of a function of JSON says besides its values: the value of DEFAULT ... ON EMPTY, and
which arguments are JSON already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.columns.sql.call_site import CallSite
from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexLiteral
from flinkpy.sql.sql_errors import ValidationError

_OCCASIONS = ("on_empty", "on_error")
_TAKE_JSON = frozenset({"JSON_OBJECT", "JSON_ARRAY"})
_JOIN_JSON = frozenset({"JSON_ARRAYAGG", "JSON_OBJECTAGG"})
_GIVE_JSON = frozenset({"JSON_OBJECT", "JSON_ARRAY", "JSON"})

Options = tuple[tuple[str, object], ...]


def with_json_arguments(name: str, arguments: Sequence[Rex], options: Options) -> Options:
    """JSON_OBJECT and JSON_ARRAY take what these and JSON(text) give as it is, and write other
    texts in quotes."""
    if name not in _TAKE_JSON:
        return options
    ready = tuple(
        at
        for at, each in enumerate(arguments)
        if isinstance(each, RexCall) and each.function in _GIVE_JSON
    )
    return (*options, ("json_arguments", ready)) if ready else options


def aggregated_as_json(name: str, arguments: tuple[Rex, ...]) -> tuple[Rex, ...]:
    """JSON_ARRAYAGG and JSON_OBJECTAGG join texts: their values are written as JSON before."""
    if name not in _JOIN_JSON:
        return arguments
    value = arguments[-1]
    if isinstance(value, RexCall) and value.function in _GIVE_JSON:
        return arguments
    type = DataTypes.STRING(value.type.is_nullable)
    written = RexCall(type, function="JSON_STRING", arguments=(value,), span=value.span)
    return (*arguments[:-1], written)


def with_defaults(options: Options, result: LogicalType, bind: Callable[[Any], Rex]) -> Options:
    """The expression behind DEFAULT becomes ``("DEFAULT", value)``, of the result's type."""
    return tuple(
        (name, value)
        if name not in _OCCASIONS or isinstance(value, str)
        else (name, ("DEFAULT", _constant(bind(value), result)))
        for name, value in options
    )


def _constant(default: Rex, result: LogicalType) -> object:
    from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS

    while isinstance(default, RexCall) and default.function in ("- (unary)", "CAST"):
        inner = default.arguments[0]
        if not isinstance(inner, RexLiteral):
            break
        site = CallSite((inner.type,), default.type, (inner.value,))
        default = RexLiteral(default.type, value=SQL_MEANINGS[default.function](site)(inner.value))
    if isinstance(default, RexLiteral) and default.value is None:
        return None
    if isinstance(default, RexLiteral) and explicit_cast_allowed(default.type, result):
        site = CallSite((default.type,), result, (default.value,))
        try:
            return SQL_MEANINGS["CAST"](site)(default.value)
        except ValueError:
            pass
    raise ValidationError(
        f"the value of DEFAULT must be a constant of {result.nullable().text()}", span=default.span
    )
