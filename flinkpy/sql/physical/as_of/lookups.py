"""Lookup joins: a table is asked for the rows of a key when a row comes. What is asked for are
columns of the table; what else the query says of it is applied to the rows that it gives."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import (
    BigIntType,
    IntType,
    LogicalType,
    SmallIntType,
    TinyIntType,
)
from flinkpy.sql.logical.logical_nodes import (
    LogicalFilter,
    LogicalNode,
    LogicalProject,
    LogicalScan,
    LogicalTemporalJoin,
    LogicalWatermark,
)
from flinkpy.sql.physical.calcs import inputs, is_identity
from flinkpy.sql.physical.physical_nodes import LookupJoin, PhysicalNode
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral
from flinkpy.sql.rules.conditions import conjunction, conjuncts, is_call, replaced_inputs
from flinkpy.sql.sql_errors import ValidationError

_INTEGERS = (TinyIntType, SmallIntType, IntType, BigIntType)


@dataclass(frozen=True)
class _Table:
    """A relation as columns of a scan, for rows for which the condition is true."""

    scan: LogicalScan
    projections: tuple[Rex, ...]
    condition: Rex | None = None


def lookup_join(node: LogicalTemporalJoin, input: PhysicalNode) -> LookupJoin:
    """The join behind the rows of its left. Raises ValidationError, in Flink's words, for a table
    that cannot be asked for keys, and where the condition has no key."""
    table = _table_of(node.right)
    if table is None:
        raise ValidationError(
            "Processing-time temporal join is not supported yet for a query: name a table, or a "
            "view that chooses columns and rows of one"
        )
    scan = table.scan
    if not scan.abilities.takes_lookups:
        raise ValidationError(
            f"Processing-time temporal join is not supported yet: table '{scan.path}' cannot be "
            "looked up; join it without FOR SYSTEM_TIME AS OF, or use a connector that can be asked"
            " for keys ('filesystem', 'python')"
        )
    if scan.metadata:
        names = ", ".join(name for name, _ in scan.metadata)
        raise ValidationError(
            f"Table '{scan.path}' is looked up, which gives no metadata: leave out {names}"
        )
    keys, rest = _keys_of(node, table)
    if not keys:
        raise ValidationError(
            "Temporal table join requires an equality condition on fields of table "
            f"[{scan.path.catalog}.{scan.path.database}.{scan.path.name}]"
        )
    is_whole = is_identity(table.projections, scan.schema, node.right.schema)
    return LookupJoin(
        node.schema,
        input,
        scan.path,
        scan.table,
        scan.schema,
        tuple(keys.items()),
        node.kind is JoinKind.LEFT,
        None if is_whole else table.projections,
        table.condition,
        rest,
        node.options,
    )


def _table_of(node: LogicalNode) -> _Table | None:
    if isinstance(node, LogicalScan):
        return _Table(node, tuple(inputs(node.schema)), conjunction(node.filters))
    if isinstance(node, LogicalWatermark):
        return _table_of(node.input)
    if not isinstance(node, (LogicalProject, LogicalFilter)):
        return None
    below = _table_of(node.input)
    if below is None:
        return None
    if isinstance(node, LogicalFilter):
        condition = replaced_inputs(node.condition, below.projections)
        both = [*conjuncts(below.condition), *conjuncts(condition)]
        return _Table(below.scan, below.projections, conjunction(dict.fromkeys(both)))
    columns = tuple(replaced_inputs(each, below.projections) for each in node.projections)
    return _Table(below.scan, columns, below.condition)


def _keys_of(node: LogicalTemporalJoin, table: _Table) -> tuple[dict[int, Rex], Rex | None]:
    """By column of the scan what it must be equal to, and the condition that remains."""
    keys: dict[int, Rex] = {}
    rest: list[Rex] = []
    for each in conjuncts(node.condition):
        key = _key(each, node.left.width, table)
        if key is None or key[0] in keys:
            rest.append(each)
            continue
        column, value, is_exact = key
        keys[column] = value
        if not is_exact:
            rest.append(each)
    return keys, conjunction(rest)


def _key(condition: Rex, width: int, table: _Table) -> tuple[int, Rex, bool] | None:
    """A column of the scan, what it must be equal to, and whether that is all of the condition."""
    if not is_call(condition, "="):
        return None
    for value, column in (condition.operands, tuple(reversed(condition.operands))):
        if not isinstance(column, RexInput) or column.index < width:
            continue
        if not isinstance(value, RexLiteral) and not _is_of_left(value, width):
            continue
        found = table.projections[column.index - width]
        if isinstance(found, RexInput):
            return found.index, value, True
        if is_call(found, "CAST") and _is_narrower(found.operands[0].type, found.type):
            [stored] = found.operands
            if isinstance(stored, RexInput):
                type = stored.type.with_nullable(True)
                narrow = RexCall(type, function="TRY_CAST", arguments=(value,))
                return stored.index, narrow, False
    return None


def _is_of_left(value: Rex, width: int) -> bool:
    return isinstance(value, RexInput) and value.index < width


def _is_narrower(type: LogicalType, wanted: LogicalType) -> bool:
    """Whether a cast keeps each value: then another value has no equal in the column."""
    return _place(type) is not None and (_place(type) or 0) <= (_place(wanted) or -1)


def _place(type: LogicalType) -> int | None:
    return next((at for at, each in enumerate(_INTEGERS) if isinstance(type, each)), None)
