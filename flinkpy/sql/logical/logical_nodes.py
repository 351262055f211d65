"""The nodes of a logical plan: relations over relations, frozen. Each says the type of its rows;
expressions are over the columns of the input by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import (
    BigIntType,
    LocalZonedTimestampType,
    LogicalType,
    RowField,
    RowType,
    TimeAttribute,
    TimestampType,
)
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath, SourceAbilities
from flinkpy.sql.rex.relational_terms import JoinKind, OverGroup, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex, RexInput, SortKey
from flinkpy.sql.sql_errors import NOWHERE, Span


@dataclass(frozen=True)
class LogicalNode:
    """A relation. ``schema`` is the type of its rows."""

    schema: RowType

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return ()

    def with_inputs(self, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
        """The same relation over other inputs of the same types."""
        return self

    @property
    def expressions(self) -> tuple[Rex, ...]:
        """The expressions that it holds itself."""
        return ()

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        """The same relation with other expressions of the same types."""
        return self

    @property
    def width(self) -> int:
        return len(self.schema.fields)


@dataclass(frozen=True)
class OneInput(LogicalNode):
    """A relation made of another one."""

    input: LogicalNode

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
        return replace(self, input=inputs[0])


# -- where rows come from --------------------------------------------------------------------------


@dataclass(frozen=True)
class LogicalScan(LogicalNode):
    """A table's physical and metadata columns. ``filters`` and ``limit`` are what the source was
    asked to apply as far as it can. ``state_ttl_ms``: when joins and groups over these rows drop
    them, if the query has a hint."""

    path: ObjectPath
    table: CatalogTable
    abilities: SourceAbilities
    metadata: tuple[tuple[str, str], ...] = ()  # column and key
    filters: tuple[Rex, ...] = ()
    limit: int | None = None
    state_ttl_ms: int | None = None


@dataclass(frozen=True)
class LogicalValues(LogicalNode):
    """Rows that stand in the statement, as Python values."""

    rows: tuple[tuple[object, ...], ...]


# -- row by row ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogicalProject(OneInput):
    """Columns computed from the input's."""

    projections: tuple[Rex, ...]

    @property
    def expressions(self) -> tuple[Rex, ...]:
        return self.projections

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        return replace(self, projections=expressions)


@dataclass(frozen=True)
class LogicalFilter(OneInput):
    """The rows for which the condition is true."""

    condition: Rex

    @property
    def expressions(self) -> tuple[Rex, ...]:
        return (self.condition,)

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        return replace(self, condition=expressions[0])


@dataclass(frozen=True)
class LogicalCorrelate(OneInput):
    """Each row joined with what a table function makes of it. ``keeps_left``: a row for which
    nothing comes is kept, with nulls. ``condition`` is over both. ``kept`` are the columns of the
    row that come out again; None: all."""

    function: str
    arguments: tuple[Rex, ...]
    result: RowType
    keeps_left: bool = False
    condition: Rex | None = None
    options: tuple[tuple[str, object], ...] = ()
    kept: tuple[int, ...] | None = None

    @property
    def expressions(self) -> tuple[Rex, ...]:
        return self.arguments + (() if self.condition is None else (self.condition,))

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        count = len(self.arguments)
        condition = None if self.condition is None else expressions[count]
        return replace(self, arguments=expressions[:count], condition=condition)


@dataclass(frozen=True)
class LogicalWatermark(OneInput):
    """The column ``rowtime`` is the event time; ``strategy`` says the watermark after a row."""

    rowtime: int
    strategy: Rex

    @property
    def expressions(self) -> tuple[Rex, ...]:
        return (self.strategy,)

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        return replace(self, strategy=expressions[0])


@dataclass(frozen=True)
class LogicalWindow(OneInput):
    """The row, then window_start, window_end and window_time, once for each of its windows."""

    window: WindowSpec


# -- groups and order ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogicalAggregate(OneInput):
    """The keys, then the aggregates: one row for each group, without keys one row at all.
    ``grouping_sets`` are sets of places in ``keys``, and the last column, ``$e``, is then the
    number of the set: bit ``len(keys) - 1 - i`` is 1 if the key ``i`` is not in it."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class LogicalOver(OneInput):
    """The row, then the results of each group of aggregates over the rows around it."""

    groups: tuple[OverGroup, ...]


@dataclass(frozen=True)
class LogicalRank(OneInput):
    """The rows of each partition whose rank is between ``first`` and ``last``, from 1.
    ``gives_rank`` appends the number."""

    function: str
    partition: tuple[int, ...]
    keys: tuple[SortKey, ...]
    first: int
    last: int
    gives_rank: bool = False


@dataclass(frozen=True)
class LogicalSort(OneInput):
    """The rows in order, from ``offset`` on, at most ``limit``. Without keys: some rows."""

    keys: tuple[SortKey, ...]
    offset: int = 0
    limit: int | None = None


# -- how rows meet ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogicalJoin(LogicalNode):
    """Pairs of rows for which the condition is true; SEMI and ANTI give the left columns only.
    ``null_aware``: NOT IN, where a null on either side makes the answer unknown."""

    left: LogicalNode
    right: LogicalNode
    kind: JoinKind
    condition: Rex | None = None
    null_aware: bool = False

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
        return replace(self, left=inputs[0], right=inputs[1])

    @property
    def expressions(self) -> tuple[Rex, ...]:
        return () if self.condition is None else (self.condition,)

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        return replace(self, condition=expressions[0]) if expressions else self


@dataclass(frozen=True)
class LogicalTemporalJoin(LogicalNode):
    """Each row of ``left`` with the rows that ``right`` has at the time that its column ``time``
    says, for which the condition is true. ``kind`` is INNER or LEFT. ``options`` are those of a
    LOOKUP hint. ``since`` is the column of ``right`` that says from when on a row stands; None if
    ``right`` has no event time. ``span`` is where the time is written."""

    left: LogicalNode
    right: LogicalNode
    kind: JoinKind
    time: int
    condition: Rex | None = None
    options: tuple[tuple[str, str], ...] = ()
    since: int | None = None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
        return replace(self, left=inputs[0], right=inputs[1])

    @property
    def expressions(self) -> tuple[Rex, ...]:
        return () if self.condition is None else (self.condition,)

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        return replace(self, condition=expressions[0]) if expressions else self


@dataclass(frozen=True)
class LogicalApply(LogicalNode):
    """Each row of ``left``, joined with the rows that ``right`` has for it: ``outer`` are the
    values of the slots in ``right``, over the columns of ``left``. ``kind`` is INNER or LEFT;
    ``condition`` is over both."""

    left: LogicalNode
    right: LogicalNode
    outer: tuple[Rex, ...]
    kind: JoinKind = JoinKind.INNER
    condition: Rex | None = None

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
        return replace(self, left=inputs[0], right=inputs[1])

    @property
    def expressions(self) -> tuple[Rex, ...]:
        return self.outer + (() if self.condition is None else (self.condition,))

    def with_expressions(self, expressions: tuple[Rex, ...]) -> LogicalNode:
        count = len(self.outer)
        condition = None if self.condition is None else expressions[count]
        return replace(self, outer=expressions[:count], condition=condition)


@dataclass(frozen=True)
class LogicalSetOperation(LogicalNode):
    """``kind`` is UNION, INTERSECT or EXCEPT; all branches have the types of ``schema``."""

    kind: str
    keeps_all: bool
    branches: tuple[LogicalNode, ...]

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.branches

    def with_inputs(self, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
        return replace(self, branches=inputs)


# -- where rows go ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogicalSink(OneInput):
    """The rows go into a table, which takes rows of the kinds ``changes``."""

    path: ObjectPath
    table: CatalogTable
    changes: ChangelogMode = INSERT_ONLY
    overwrite: bool = False
    static_partition: tuple[tuple[str, object], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()


# -- how they are made -----------------------------------------------------------------------------


def project(input: LogicalNode, projections: Sequence[Rex], names: Sequence[str]) -> LogicalProject:
    """These columns, under these names."""
    fields = tuple(RowField(name, rex.type) for name, rex in zip(names, projections))
    return LogicalProject(row_of(fields), input, tuple(projections))


def filtered(input: LogicalNode, condition: Rex | None) -> LogicalNode:
    """The rows for which the condition, if there is one, is true."""
    return input if condition is None else LogicalFilter(input.schema, input, condition)


def aggregate(
    input: LogicalNode,
    keys: Sequence[int],
    calls: Sequence[AggregateCall],
    names: Sequence[str],
    grouping_sets: tuple[tuple[int, ...], ...] | None = None,
) -> LogicalAggregate:
    """Groups by these columns; ``names`` are those of the aggregates."""
    fields = [input.schema.fields[key] for key in keys]
    if grouping_sets is not None:
        everywhere = set(range(len(keys))).intersection(*map(set, grouping_sets))
        fields = [
            each if place in everywhere else replace(each, type=each.type.with_nullable(True))
            for place, each in enumerate(fields)
        ]
    fields += [RowField(name, call.type) for name, call in zip(names, calls)]
    if grouping_sets is not None:
        fields.append(RowField("$e", BigIntType(is_nullable=False)))
    return LogicalAggregate(row_of(fields), input, tuple(keys), tuple(calls), grouping_sets)


def join(
    left: LogicalNode,
    right: LogicalNode,
    kind: JoinKind,
    condition: Rex | None = None,
    null_aware: bool = False,
) -> LogicalJoin:
    """Both sides by this condition."""
    return LogicalJoin(
        joined_schema(left.schema, right.schema, kind), left, right, kind, condition, null_aware
    )


def joined_schema(left: RowType, right: RowType, kind: JoinKind) -> RowType:
    """The columns that a join gives; those of a side that may be missing may be null."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    first = _nullable(left) if kind in (JoinKind.RIGHT, JoinKind.FULL) else left.fields
    second = _nullable(right) if kind in (JoinKind.LEFT, JoinKind.FULL) else right.fields
    return row_of(first + second)


def temporal_schema(left: RowType, right: RowType, kind: JoinKind) -> RowType:
    """The columns that a join with the rows of another time gives. The time of the right is a value
    then: rows go out in the time of the left."""
    fields = joined_schema(left, right, kind).fields
    width = len(left.fields)
    values = [replace(each, type=_unmarked(each.type)) for each in fields[width:]]
    return row_of([*fields[:width], *values])


def _unmarked(type: LogicalType) -> LogicalType:
    if isinstance(type, (TimestampType, LocalZonedTimestampType)):
        return replace(type, time_attribute=None)
    return type


def row_of(fields: Sequence[RowField]) -> RowType:
    """A row of these columns. Names that are there already get a number, as in Flink."""
    names: dict[str, None] = {}
    for each in fields:
        name, number = each.name, 0
        while name in names:
            name, number = f"{each.name}{number}", number + 1
        names[name] = None
    return RowType(
        tuple(
            each if each.name == name else replace(each, name=name)
            for each, name in zip(fields, names)
        ),
        is_nullable=False,
    )


def _nullable(row: RowType) -> tuple[RowField, ...]:
    return tuple(replace(each, type=each.type.with_nullable(True)) for each in row.fields)


def inputs_for(fields: Sequence[RowField], first: int = 0) -> tuple[RexInput, ...]:
    """References to columns of these types, which stand from ``first`` on."""
    return tuple(RexInput(each.type, index=index) for index, each in enumerate(fields, start=first))


def input_of(node: LogicalNode, index: int) -> RexInput:
    """A reference to a column of a relation."""
    return RexInput(type_of(node, index), index=index)


def type_of(node: LogicalNode, index: int) -> LogicalType:
    """The type of a column."""
    return node.schema.fields[index].type


def walk_plan(node: LogicalNode) -> Iterator[LogicalNode]:
    """The node and all below it, each before its inputs."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(reversed(each.inputs))


def timed(window: WindowSpec, plan: LogicalNode) -> WindowSpec:
    """The window over these rows, which knows what kind of time its column has."""
    type = plan.schema.fields[window.time].type
    assert isinstance(type, (TimestampType, LocalZonedTimestampType))
    return replace(
        window,
        is_local=isinstance(type, LocalZonedTimestampType),
        is_processing=type.time_attribute is TimeAttribute.PROCTIME,
    )


def window_fields(plan: LogicalNode, time: int) -> list[RowField]:
    """window_start, window_end and window_time, of windows over this column."""
    type = plan.schema.fields[time].type
    bound = TimestampType(3, is_nullable=False)
    if isinstance(type, LocalZonedTimestampType):
        zoned = LocalZonedTimestampType(3, is_nullable=False, time_attribute=type.time_attribute)
        return [
            RowField("window_start", bound),
            RowField("window_end", bound),
            RowField("window_time", zoned),
        ]
    assert isinstance(type, TimestampType)
    marked = TimestampType(3, is_nullable=False, time_attribute=type.time_attribute)
    return [
        RowField("window_start", bound),
        RowField("window_end", bound),
        RowField("window_time", marked),
    ]
