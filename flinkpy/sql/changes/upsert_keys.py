"""Upsert keys: sets of columns that say which row an update is about. No two rows of a node share
the values of one of its upsert keys, and all changes of a key come in their order. Where rows are
sent by other columns, a row of the key may come from two subtasks, so an exchange keeps only the
keys that contain the columns it sends by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from flinkpy.common.logical_types.logical_type import (
    BigIntType,
    IntType,
    LogicalType,
    SmallIntType,
    TinyIntType,
    VarCharType,
)
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    ChangelogNormalize,
    ChangingLimit,
    ChangingOver,
    ChangingRank,
    Deduplicate,
    DropUpdateBefore,
    Exchange,
    Expand,
    GroupAggregate,
    IntervalJoin,
    LastRow,
    Limit,
    LookupJoin,
    MiniBatchAssigner,
    OverAggregate,
    Phase,
    PhysicalNode,
    RegularJoin,
    TableScan,
    TemporalJoin,
    TemporalSort,
    WatermarkAssigner,
    WindowAggregate,
)
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexInput
from flinkpy.sql.rules.conditions import is_call

Keys: TypeAlias = "frozenset[frozenset[int]]"

_NONE: Keys = frozenset()
_MOST = 64  # keys of a node that are followed: a join of many tables has products of them
_INTEGERS = (TinyIntType, SmallIntType, IntType, BigIntType)  # each one fits into the next


def upsert_keys(node: PhysicalNode) -> Keys:
    """The upsert keys of a node. An empty set among them: there is one row at most."""
    found = _KEYS.get(type(node))
    keys: Keys = _NONE if found is None else found(node)
    if len(keys) <= _MOST:
        return keys
    return frozenset(in_order(keys)[:_MOST])


def in_order(keys: Keys) -> list[frozenset[int]]:
    """The keys, short ones first, always in the same order."""
    return sorted(keys, key=lambda key: (len(key), sorted(key)))


def shortest_key(keys: Keys) -> tuple[int, ...]:
    """The columns of the shortest key; none if there is no key."""
    return tuple(sorted(in_order(keys)[0])) if keys else ()


def containing(keys: Keys, columns: Iterable[int]) -> Keys:
    """The keys that have all of these columns."""
    wanted = frozenset(columns)
    return frozenset(key for key in keys if wanted <= key)


def is_unique(keys: Keys, columns: Iterable[int]) -> bool:
    """Whether no two rows share the values of these columns."""
    given = frozenset(columns)
    return any(key <= given for key in keys)


# -- row by row ------------------------------------------------------------------------------------


def _scan(node: TableScan) -> Keys:
    if node.table.primary_key is None:
        return _NONE
    names = node.schema.names
    columns = node.table.primary_key.columns
    if not set(columns) <= set(names):
        return _NONE
    return _one(names.index(each) for each in columns)


def _calc(node: Calc) -> Keys:
    places: dict[int, list[int]] = {}
    for place, each in enumerate(node.projections):
        source = _column_of(each)
        if source is not None:
            places.setdefault(source, []).append(place)
    return _moved(upsert_keys(node.input), places)


def _column_of(rex: Rex) -> int | None:
    """The column whose values this expression tells apart."""
    if isinstance(rex, RexInput):
        return rex.index
    if not is_call(rex, "CAST"):
        return None
    operand = rex.operands[0]
    if isinstance(operand, RexInput) and _tells_apart(operand.type, rex.type):
        return operand.index
    return None


def _tells_apart(type: LogicalType, wanted: LogicalType) -> bool:
    """Whether a cast gives different values for different ones."""
    if type.nullable() == wanted.nullable():
        return True
    if not isinstance(type, _INTEGERS):
        return False
    if isinstance(wanted, VarCharType):
        return wanted.length >= 20
    if not isinstance(wanted, _INTEGERS):
        return False
    return _width(type) <= _width(wanted)


def _width(type: LogicalType) -> int:
    return next(at for at, each in enumerate(_INTEGERS) if isinstance(type, each))


def _moved(keys: Keys, places: Mapping[int, Sequence[int]]) -> Keys:
    """The keys of which each column is still there, at its places."""
    return frozenset(
        frozenset(moved)
        for key in keys
        if key <= places.keys()
        for moved in product(*(places[column] for column in key))
    )


def _expand(node: Expand) -> Keys:
    """A row goes once with each number, which is the last column."""
    last = len(node.schema.fields) - 1
    kept = {
        place: [place]
        for place, each in enumerate(node.projections[0])
        if isinstance(each, RexInput)
        and each.index == place
        and all(others[place] == each for others in node.projections)
    }
    return frozenset(key | {last} for key in _moved(upsert_keys(node.input), kept))


def _exchange(node: Exchange) -> Keys:
    return containing(upsert_keys(node.input), node.keys)


def _same(node: Any) -> Keys:
    return upsert_keys(node.input)


# -- groups and order ------------------------------------------------------------------------------


def _one(key: Iterable[int]) -> Keys:
    return frozenset([frozenset(key)])


def _aggregate(node: GroupAggregate) -> Keys:
    return _NONE if node.phase is Phase.LOCAL else _one(range(len(node.keys)))


def _window_aggregate(node: WindowAggregate) -> Keys:
    first = len(node.keys) + len(node.calls)
    keys = frozenset(range(len(node.keys)))
    return frozenset(keys | {first + place} for place in range(len(node.properties)))


def _over(node: OverAggregate) -> Keys:
    keys = upsert_keys(node.input)
    for group in node.groups:
        keys = containing(keys, group.partition)
    return keys


def _changing_over(node: ChangingOver) -> Keys:
    return containing(upsert_keys(node.input), node.group.partition)


def _rank(node: ChangingRank) -> Keys:
    if node.function == "ROW_NUMBER" and node.first == node.last:
        return _one(node.partition)
    if node.gives_rank and node.function == "ROW_NUMBER":
        # a row that falls out of the ranks is not deleted: another one takes its number
        return _one([*node.partition, len(node.schema.fields) - 1])
    return containing(upsert_keys(node.input), node.partition)


def _by_partition(node: Deduplicate | LastRow) -> Keys:
    return _one(node.keys)


def _normalize(node: ChangelogNormalize) -> Keys:
    return _one(node.keys)


# -- joins -----------------------------------------------------------------------------------------


def _join(node: RegularJoin | IntervalJoin) -> Keys:
    left = containing(upsert_keys(node.left), node.left_keys)
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    width = len(node.left.schema.fields)
    right_keys = upsert_keys(node.right)
    right = containing(right_keys, node.right_keys)
    moved = frozenset(frozenset(column + width for column in key) for key in right)
    # where a side may be missing its columns may be null, and are no key
    left_stays = node.kind in (JoinKind.INNER, JoinKind.LEFT)
    right_stays = node.kind in (JoinKind.INNER, JoinKind.RIGHT)
    found: set[frozenset[int]] = set()
    if left_stays and right_stays:
        found.update(one | other for one in left for other in moved)
    if left_stays and is_unique(right_keys, node.right_keys):
        found |= left
    if right_stays and is_unique(upsert_keys(node.left), node.left_keys):
        found |= moved
    if node.kind is JoinKind.INNER:
        pairs = [(one, other + width) for one, other in zip(node.left_keys, node.right_keys)]
        found |= set(_with_equals(found, pairs))
    return frozenset(found)


def _temporal_join(node: TemporalJoin) -> Keys:
    """Those of the left, which meets one row at most. A row that replaces another one at another
    time does not go out behind it."""
    keys = upsert_keys(node.left)
    return keys if node.left.changes.is_insert_only else containing(keys, [node.left_time])


def _lookup_join(node: LookupJoin) -> Keys:
    """Those of the row, if it has one partner at most."""
    key = node.table.primary_key
    if key is None:
        return _NONE
    asked = {node.columns.names[column] for column, _ in node.keys}
    return upsert_keys(node.input) if set(key.columns) <= asked else _NONE


def _with_equals(
    keys: Iterable[frozenset[int]], pairs: Sequence[tuple[int, int]]
) -> Iterator[frozenset[int]]:
    """The keys, with columns replaced by those that are equal to them."""
    equals = dict(pairs) | {other: one for one, other in pairs}
    for key in keys:
        choices = [{column, equals.get(column, column)} for column in sorted(key)]
        if len(choices) <= 6:
            yield from map(frozenset, product(*choices))


_KEYS: dict[type[PhysicalNode], Callable[[Any], Keys]] = {
    TableScan: _scan,
    Calc: _calc,
    Expand: _expand,
    WatermarkAssigner: _same,
    MiniBatchAssigner: _same,
    Exchange: _exchange,
    GroupAggregate: _aggregate,
    WindowAggregate: _window_aggregate,
    OverAggregate: _over,
    ChangingOver: _changing_over,
    ChangingRank: _rank,
    Deduplicate: _by_partition,
    LastRow: _by_partition,
    TemporalSort: _same,
    Limit: _same,
    ChangingLimit: _same,
    ChangelogNormalize: _normalize,
    DropUpdateBefore: _same,
    RegularJoin: _join,
    IntervalJoin: _join,
    TemporalJoin: _temporal_join,
    LookupJoin: _lookup_join,
}
