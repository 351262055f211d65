"""The second pass, from the root to the sources: which nodes send the row before with an update.
Each node asks its inputs for what it needs; where an input cannot do without such rows, another
form of the node is tried, and what a source sends needlessly is dropped behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.sql.changes.rank_strategies import with_strategies
from flinkpy.sql.changes.upsert_keys import containing, upsert_keys
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    ChangelogNormalize,
    ChangingLimit,
    ChangingOver,
    ChangingRank,
    DropUpdateBefore,
    Exchange,
    GroupAggregate,
    LastRow,
    PhysicalNode,
    RankStrategy,
    RegularJoin,
    TableScan,
    TemporalJoin,
    UnionAll,
    WatermarkAssigner,
    WindowAggregate,
    with_inputs,
)


def with_update_kinds(node: PhysicalNode, wants_before: bool) -> PhysicalNode | None:
    """The plan whose root gives updates with the row before or without it, as wanted; None if it
    cannot. A root that gives no updates has nothing to choose."""
    form = _FORMS.get(type(node), _passed)
    made: PhysicalNode | None = form(node, wants_before=wants_before and _has_updates(node))
    return made


def _has_updates(node: PhysicalNode) -> bool:
    return node.changes.contains(RowKind.UPDATE_AFTER)


def _giving(node: PhysicalNode, wants_before: bool) -> ChangelogMode:
    """The kinds of a node that sends the row before only where it is wanted."""
    if not wants_before or not _has_updates(node):
        return node.changes
    return node.changes | ChangelogMode.of(RowKind.UPDATE_BEFORE)


def _over(node: PhysicalNode, *wants: bool, gives: bool) -> PhysicalNode | None:
    """The node over inputs that give what it wants of each; None if one of them cannot."""
    inputs: list[PhysicalNode] = []
    for each, wanted in zip(node.inputs, wants):
        made = with_update_kinds(each, wanted)
        if made is None:
            return None
        inputs.append(made)
    return replace(with_inputs(node, tuple(inputs)), changes=_giving(node, gives))


def _passed(node: PhysicalNode, *, wants_before: bool) -> PhysicalNode | None:
    """What goes row by row gives what its inputs give."""
    return _over(node, *[wants_before] * len(node.inputs), gives=wants_before)


def _calc(node: Calc, *, wants_before: bool) -> PhysicalNode | None:
    if node.condition is not None and _has_updates(node) and not wants_before:
        return None  # an update that no longer passes must take back the row that did
    return _passed(node, wants_before=wants_before)


def _scan(node: TableScan, *, wants_before: bool) -> PhysicalNode | None:
    """``node.changes`` is what the table gives."""
    has_before = node.changes.contains(RowKind.UPDATE_BEFORE)
    if not _has_updates(node) or has_before == wants_before:
        return node
    return None if wants_before else without_rows_before(node)


def without_rows_before(node: PhysicalNode) -> PhysicalNode:
    """The node, of which nobody sees the rows that updates replace."""
    if not node.changes.contains(RowKind.UPDATE_BEFORE):
        return node
    mode = ChangelogMode(node.changes.kinds - {RowKind.UPDATE_BEFORE})
    return DropUpdateBefore(node.schema, node, changes=mode)


def _keeping(
    node: GroupAggregate | ChangingLimit | ChangingOver | LastRow | WindowAggregate,
    *,
    wants_before: bool,
) -> PhysicalNode | None:
    """What takes rows back needs them; what it gives, it knows itself."""
    return _over(node, True, gives=wants_before)


def _normalize(node: ChangelogNormalize, *, wants_before: bool) -> PhysicalNode | None:
    return _over(node, False, gives=wants_before)


def _join(node: RegularJoin, *, wants_before: bool) -> PhysicalNode | None:
    """A row replaces another one by its key only if both meet the same rows of the other side."""
    if not wants_before:
        sides = ((node.left, node.left_unique_keys), (node.right, node.right_unique_keys))
        if any(_has_updates(side) and not keys for side, keys in sides):
            return None
        parts_pairs = node.condition is not None and _has_updates(node)
        if parts_pairs and not node.changes.contains(RowKind.DELETE):
            return None  # an update that meets less than before takes pairs back
    return _over(node, wants_before, wants_before, gives=wants_before)


def _temporal_join(node: TemporalJoin, *, wants_before: bool) -> PhysicalNode | None:
    """Rows of the left go out in their own time, so a row that replaces another one at another
    time may go out before it. Of the right the row before an update says nothing."""
    keys = containing(upsert_keys(node.left), [node.left_time])
    if _has_updates(node.left) and not wants_before and not keys:
        return None
    for each in (False, True):
        made = _over(node, wants_before, each, gives=wants_before)
        if made is not None:
            left, right = made.inputs
            return with_inputs(made, (left, with_every_change(right)))
    return None


def with_every_change(node: PhysicalNode) -> PhysicalNode:
    """The plan of a table whose versions are kept by time: also one that the next row of a batch
    replaces was there."""
    if isinstance(node, (ChangelogNormalize, ChangingRank, LastRow)):
        node = replace(node, every_change=True)
    elif not isinstance(node, _PASS_VERSIONS):
        return node
    return with_inputs(node, tuple(map(with_every_change, node.inputs)))


def _rank(node: ChangingRank, *, wants_before: bool) -> PhysicalNode | None:
    for each in with_strategies(node):
        made = _over(each, each.strategy is RankStrategy.RETRACT, gives=wants_before)
        if made is not None:
            return made
    return None


_PASS_VERSIONS = (Calc, DropUpdateBefore, Exchange, UnionAll, WatermarkAssigner)
_FORMS: dict[type[PhysicalNode], Callable[..., Any]] = {
    Calc: _calc,
    TableScan: _scan,
    GroupAggregate: _keeping,
    WindowAggregate: _keeping,
    ChangingLimit: _keeping,
    ChangingOver: _keeping,
    LastRow: _keeping,
    ChangelogNormalize: _normalize,
    RegularJoin: _join,
    TemporalJoin: _temporal_join,
    ChangingRank: _rank,
}
