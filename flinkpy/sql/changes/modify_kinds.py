"""The first pass, from sources to the root: which kinds of rows each node gives, as far as its
inputs decide. A node that keeps rows for ever, or sends them when a watermark says so, takes
inserts only; where its input changes, the plan is refused, or a node that takes changes stands in
its place.

An update counts here as UPDATE_AFTER: whether the row before it is sent too is for the second
pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.sql.changes.refused_changes import Refusals
from flinkpy.sql.changes.upsert_keys import containing, in_order, upsert_keys
from flinkpy.sql.changes.version_keys import by_version_key
from flinkpy.sql.physical.aggregate_phases import local_of
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    ChangelogNormalize,
    ChangingLimit,
    ChangingOver,
    ChangingRank,
    CollectNode,
    Correlate,
    Deduplicate,
    DistinctBuckets,
    DropUpdateBefore,
    Exchange,
    Expand,
    GroupAggregate,
    LastRow,
    Limit,
    LookupJoin,
    MiniBatchAssigner,
    Phase,
    PhysicalNode,
    RankStrategy,
    RegularJoin,
    SinkNode,
    TableScan,
    TemporalJoin,
    UnionAll,
    WatermarkAssigner,
    WindowAggregate,
    WindowTableFunction,
    with_inputs,
)
from flinkpy.sql.rex.relational_terms import JoinKind, WindowKind
from flinkpy.sql.rex.rex_nodes import SortKey

UPSERTS = ChangelogMode.upsert()
_UPDATES = ChangelogMode.of(RowKind.INSERT, RowKind.UPDATE_AFTER)


class ModifyKinds:
    """Sets the kinds of each node of a plan."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals

    def applied(self, node: PhysicalNode) -> PhysicalNode:
        """The plan with the kinds of each node, without UPDATE_BEFORE. Raises ValidationError where
        a node cannot take what its input gives."""
        made = with_inputs(node, tuple(map(self.applied, node.inputs)))
        change = _FITTED.get(type(made))
        if change is not None:
            made = change(made)
        self._check(made)
        return replace(made, changes=_GIVEN.get(type(made), _inserts)(made))

    def _check(self, node: PhysicalNode) -> None:
        takes = takes_of(node)
        for each in node.inputs:
            refused = without_before(each.changes).kinds - takes.kinds
            if refused:
                raise self._refusals.refused(node, each, ChangelogMode(frozenset(refused)))


def takes_of(node: PhysicalNode) -> ChangelogMode:
    """Which kinds of rows a node takes; an update is UPDATE_AFTER."""
    if isinstance(node, SinkNode):
        return node.takes
    if isinstance(node, WindowTableFunction):
        return INSERT_ONLY if node.window.kind is WindowKind.SESSION else UPSERTS
    return UPSERTS if type(node) in _TAKE_CHANGES else INSERT_ONLY


_TAKE_CHANGES = frozenset[type[PhysicalNode]](
    [
        Calc,
        Expand,
        UnionAll,
        Correlate,
        LookupJoin,
        WatermarkAssigner,
        MiniBatchAssigner,
        DistinctBuckets,
        Exchange,
        GroupAggregate,
        WindowAggregate,
        RegularJoin,
        TemporalJoin,
        ChangingRank,
        ChangingLimit,
        ChangingOver,
        ChangelogNormalize,
        DropUpdateBefore,
        CollectNode,
    ]
)


# -- what stands where the input decides -----------------------------------------------------------


def _is_growing(node: PhysicalNode) -> bool:
    """Whether no row of the inputs is updated or deleted."""
    return all(each.changes.is_insert_only for each in node.inputs)


def _fitted_aggregate(node: GroupAggregate) -> PhysicalNode:
    if node.phase is Phase.GLOBAL:  # what it merges is of rows that change if those of LOCAL do
        return replace(node, takes_changes=local_of(node).takes_changes)
    return replace(node, takes_changes=not _is_growing(node))


def _fitted_join(node: RegularJoin) -> PhysicalNode:
    return replace(
        node,
        left_unique_keys=_keys_with(node.left, node.left_keys),
        right_unique_keys=_keys_with(node.right, node.right_keys),
    )


def _keys_with(side: PhysicalNode, keys: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The unique keys of a side that say by which other rows a row is met."""
    return tuple(tuple(sorted(key)) for key in in_order(containing(upsert_keys(side), keys)))


def _fitted_limit(node: Limit) -> PhysicalNode:
    if _is_growing(node):
        return node
    below = node.input
    if isinstance(below, Exchange) and isinstance(below.input, ChangingLimit):
        # no sender can know which of its rows will be wanted once others go
        below = replace(below, input=below.input.input)
    return ChangingLimit(node.schema, below, node.offset, node.limit)


def _fitted_last_row(node: LastRow) -> PhysicalNode:
    if _is_growing(node) or not node.is_rowtime:
        return node
    return _as_rank(node, SortKey(node.time, descending=True, nulls_first=False))


def _fitted_first_row(node: Deduplicate) -> PhysicalNode:
    return node if _is_growing(node) or not node.is_rowtime else _as_rank(node, SortKey(node.time))


def _as_rank(node: LastRow | Deduplicate, order: SortKey) -> PhysicalNode:
    """The first row in this order, of rows that come and go. The time at which a row comes is
    another one when it goes, so that is not for them."""
    return ChangingRank(
        node.schema,
        node.input,
        "ROW_NUMBER",
        node.keys,
        (order,),
        1,
        1,
        node.gives_rank,
        state_ttl_ms=node.state_ttl_ms,
    )


def _fitted_rank(node: ChangingRank) -> PhysicalNode:
    return replace(node, strategy=RankStrategy.APPEND) if _is_growing(node) else node


_FITTED: dict[type[PhysicalNode], Callable[[Any], PhysicalNode]] = {
    GroupAggregate: _fitted_aggregate,
    RegularJoin: _fitted_join,
    TemporalJoin: by_version_key,
    Limit: _fitted_limit,
    LastRow: _fitted_last_row,
    Deduplicate: _fitted_first_row,
    ChangingRank: _fitted_rank,
}


# -- what they give --------------------------------------------------------------------------------


def _inserts(node: PhysicalNode) -> ChangelogMode:
    return INSERT_ONLY


def _same(node: PhysicalNode) -> ChangelogMode:
    return reduce(or_, [without_before(each.changes) for each in node.inputs])


def _scanned(node: TableScan) -> ChangelogMode:
    return node.changes  # with UPDATE_BEFORE, if the table has it


def without_before(mode: ChangelogMode) -> ChangelogMode:
    """The mode without rows that say what an update replaces."""
    return ChangelogMode(mode.kinds - {RowKind.UPDATE_BEFORE})


def _aggregated(node: GroupAggregate) -> ChangelogMode:
    if node.phase is Phase.LOCAL:
        return INSERT_ONLY
    return UPSERTS if node.takes_changes else _UPDATES


def _over(node: ChangingOver) -> ChangelogMode:
    return _UPDATES if _is_growing(node) else UPSERTS


def _joined(node: RegularJoin) -> ChangelogMode:
    return _same(node) if node.kind in (JoinKind.INNER, JoinKind.SEMI) else UPSERTS


def _as_left(node: TemporalJoin) -> ChangelogMode:
    """A version that comes later changes nothing that went out."""
    return without_before(node.left.changes)


def _all(node: PhysicalNode) -> ChangelogMode:
    return UPSERTS


_GIVEN: dict[type[PhysicalNode], Callable[[Any], ChangelogMode]] = {
    TableScan: _scanned,
    CollectNode: _same,
    Calc: _same,
    Expand: _same,
    UnionAll: _same,
    Correlate: _same,
    LookupJoin: _same,
    WatermarkAssigner: _same,
    MiniBatchAssigner: _same,
    DistinctBuckets: _same,
    WindowTableFunction: _same,
    Exchange: _same,
    GroupAggregate: _aggregated,
    RegularJoin: _joined,
    TemporalJoin: _as_left,
    ChangingRank: _all,
    ChangingOver: _over,
    LastRow: _all,
    ChangingLimit: _all,
    ChangelogNormalize: _all,
}
