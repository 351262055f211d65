"""Calls of constants become their value, by what the function means for one row. Kernels are held
to the same meaning, so a folded query gives what it would have given."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import CallSite
from flinkpy.common.logical_types.logical_type import LogicalType, TypeFamily
from flinkpy.sql.rex.rex_nodes import RexCall, RexLiteral
from flinkpy.sql.rules.rule_phases import RuleContext


def folded(call: RexCall, context: RuleContext) -> RexLiteral | None:
    """The value of a call whose arguments are constants; None if it is not known before rows
    come: it differs each time, it fails, or its value is no constant of a plan."""
    constants = [each for each in call.arguments if isinstance(each, RexLiteral)]
    if not constants or len(constants) < len(call.arguments):
        return None
    from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS

    meaning_of = SQL_MEANINGS.get(call.function)
    if meaning_of is None or not context.is_deterministic(call.function):
        return None
    if any(not type.is_a(TypeFamily.PREDEFINED) for type in (call.type, *_types(constants))):
        return None
    values = tuple(each.value for each in constants)
    site = CallSite(_types(constants), call.type, values, dict(call.options), context.zone)
    try:
        value = meaning_of(site)(*values)
    except Exception:  # whatever it is, the row at which it happens will say it
        return None
    return RexLiteral(call.type, value=value, span=call.span)


def _types(constants: list[RexLiteral]) -> tuple[LogicalType, ...]:
    return tuple(each.type for each in constants)
