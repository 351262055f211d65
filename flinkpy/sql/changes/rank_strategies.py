"""How a rank may find its rows: where a later row of a key is never worse than the one before, a
rank keeps the first rows only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

from flinkpy.sql.changes.upsert_keys import containing, shortest_key, upsert_keys
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    ChangingRank,
    Exchange,
    GroupAggregate,
    PhysicalNode,
    RankStrategy,
)
from flinkpy.sql.rex.rex_nodes import RexInput, SortKey


def with_strategies(node: ChangingRank) -> Iterator[ChangingRank]:
    """The rank in each of its forms, the best first."""
    if node.input.changes.is_insert_only:
        yield replace(node, strategy=RankStrategy.APPEND)
        return
    keys = containing(upsert_keys(node.input), node.partition)
    if keys and all(_never_worsens(node.input, each) for each in node.keys):
        yield replace(node, strategy=RankStrategy.UPDATE_FAST, upsert_key=shortest_key(keys))
    yield replace(node, strategy=RankStrategy.RETRACT)


class _Course(Enum):
    """What a column of a key does from one update to the next."""

    STAYS = "STAYS"
    GROWS = "GROWS"
    SHRINKS = "SHRINKS"


_COURSES = {"COUNT": _Course.GROWS, "MAX": _Course.GROWS, "MIN": _Course.SHRINKS}


def _never_worsens(input: PhysicalNode, key: SortKey) -> bool:
    """Whether updates move a row only towards the front."""
    found = _course(input, key.index)
    if found is None or found[0] is _Course.STAYS:
        return found is not None
    course, starts_as_null = found
    if starts_as_null and key.nulls_first:
        return False
    return (course is _Course.GROWS) == key.descending


def _course(node: PhysicalNode, column: int) -> tuple[_Course, bool] | None:
    """What updates do with a column, and whether it may be null at first."""
    while isinstance(node, (Calc, Exchange)):
        if isinstance(node, Calc):
            source = node.projections[column]
            if node.condition is not None or not isinstance(source, RexInput):
                return None
            column = source.index
        node = node.input
    # groups of rows that are updated may shrink, and so do those that were forgotten
    if not isinstance(node, GroupAggregate) or node.takes_changes or node.state_ttl_ms:
        return None
    if column < len(node.keys):
        return _Course.STAYS, False
    call = node.calls[column - len(node.keys)]
    course = _COURSES.get(call.function)
    return None if course is None else (course, node.schema.fields[column].type.is_nullable)
