"""Hints of a SELECT about its tables: how long joins and groups keep their rows (STATE_TTL), how
they are looked up (LOOKUP)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from flinkpy.core.options.schema import parse_duration
from flinkpy.sql.logical.logical_nodes import (
    LogicalFilter,
    LogicalNode,
    LogicalProject,
    LogicalScan,
    LogicalWatermark,
)
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import FromItem, Hint, JoinItem, TableReference

STATE_TTL = "STATE_TTL"
LOOKUP = "LOOKUP"


def with_table_hints(source: FromItem | None, hints: Sequence[Hint]) -> FromItem | None:
    """FROM, in which each table has what the hints of its SELECT say of it. Raises ValidationError
    for a name that is not there."""
    for hint in hints:
        for name, of_table in _by_table(hint):
            made = None if source is None else _with_hint(source, name, of_table)
            if made is None or made == source:
                raise ValidationError(
                    f"The options of hint {hint.name.upper()} cannot match the name of input "
                    f"tables or views: '{name}'; name a table of FROM by its alias",
                    span=hint.span,
                )
            source = made
    return source


def _by_table(hint: Hint) -> Iterator[tuple[str, Hint]]:
    """Names of tables, and what the hint says of each."""
    if hint.name.upper() == STATE_TTL:
        for name, ttl in hint.options:
            yield name, replace(hint, options=(("ttl", ttl),))
    elif hint.name.upper() == LOOKUP:
        options = dict(hint.options)
        if "table" not in options:
            raise ValidationError(
                "Invalid LOOKUP hint, the option 'table' is missing: it names the table that is "
                "looked up, as in LOOKUP('table'='c', 'async'='true')",
                span=hint.span,
            )
        yield options.pop("table"), replace(hint, options=tuple(options.items()))


def _with_hint(item: FromItem, name: str, hint: Hint) -> FromItem:
    if isinstance(item, JoinItem):
        left, right = _with_hint(item.left, name, hint), _with_hint(item.right, name, hint)
        return replace(item, left=left, right=right)
    if isinstance(item, TableReference) and name == (item.alias or item.name.parts[-1]):
        return replace(item, hints=(*item.hints, hint))
    return item


def with_state_ttl(plan: LogicalNode, hints: Sequence[Hint]) -> LogicalNode:
    """The relation of a table or view with the time of its hint, if there is one."""
    for hint in hints:
        if hint.name.upper() == STATE_TTL:
            plan = _kept_for(plan, _milliseconds(hint), hint)
    return plan


def _milliseconds(hint: Hint) -> int:
    [(_, ttl)] = hint.options
    try:
        return parse_duration(ttl) // timedelta(milliseconds=1)
    except ValueError as error:
        raise ValidationError(f"Invalid hint STATE_TTL: {error}", span=hint.span) from None


def _kept_for(plan: LogicalNode, ttl_ms: int, hint: Hint) -> LogicalNode:
    if isinstance(plan, LogicalScan):
        return replace(plan, state_ttl_ms=ttl_ms)
    if isinstance(plan, (LogicalProject, LogicalFilter, LogicalWatermark)):
        return replace(plan, input=_kept_for(plan.input, ttl_ms, hint))
    raise ValidationError(
        "STATE_TTL of a view that joins or groups is not supported; write the hint into its query",
        span=hint.span,
    )
