"""The physical plan: what translation turns into transformations. Each node says the type of the
rows that it gives, and how its input must be distributed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath
from flinkpy.sql.rex.relational_terms import Interval, JoinKind, OverGroup, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex, SortKey


@dataclass(frozen=True)
class PhysicalNode:
    """An operator and its inputs. ``id`` is stable: it comes from the place in the plan, and from
    a compiled plan if there is one. ``changes`` are the kinds of rows that the operator gives."""

    schema: RowType
    id: int = field(default=0, kw_only=True)
    changes: ChangelogMode = field(default=INSERT_ONLY, kw_only=True)

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return ()


@dataclass(frozen=True)
class OneInputNode(PhysicalNode):
    """An operator over the rows of another one."""

    input: PhysicalNode

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.input,)


@dataclass(frozen=True)
class TwoInputNode(PhysicalNode):
    """An operator over the rows of two others."""

    left: PhysicalNode
    right: PhysicalNode

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.left, self.right)


# -- where rows come from --------------------------------------------------------------------------


@dataclass(frozen=True)
class TableScan(PhysicalNode):
    """A table's rows. ``schema`` has the physical and metadata columns that are read, under their
    names. ``filters`` are conditions over these columns that the source applies as far as it can;
    the Calc above applies them again."""

    path: ObjectPath
    table: CatalogTable
    metadata: tuple[tuple[str, str], ...] = ()  # column and key
    filters: tuple[Rex, ...] = ()
    partitions: tuple[Mapping[str, str], ...] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class ValuesNode(PhysicalNode):
    """Rows that stand in the statement, as Python values."""

    rows: tuple[tuple[object, ...], ...]


# -- row by row ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calc(OneInputNode):
    """Columns computed from the input's, for rows where ``condition`` is true."""

    projections: tuple[Rex, ...]
    condition: Rex | None = None


@dataclass(frozen=True)
class Expand(OneInputNode):
    """Each row once for each set of ``projections``: grouping sets."""

    projections: tuple[tuple[Rex, ...], ...]


@dataclass(frozen=True)
class UnionAll(PhysicalNode):
    """The rows of all inputs."""

    branches: tuple[PhysicalNode, ...]

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return self.branches


@dataclass(frozen=True)
class Correlate(OneInputNode):
    """Each row, joined with what a table function makes of it: UNNEST or a user's. ``keeps_left``:
    a row for which nothing comes is kept, with nulls. ``condition`` is over both. ``kept`` are the
    columns of the row that come out again; None: all."""

    function: str
    arguments: tuple[Rex, ...]
    result: RowType
    keeps_left: bool = False
    condition: Rex | None = None
    options: tuple[tuple[str, object], ...] = ()
    kept: tuple[int, ...] | None = None


@dataclass(frozen=True)
class LookupJoin(OneInputNode):
    """Each row with the rows that a table has for its ``keys`` when it comes: columns of the table,
    and what they are equal to, a column of the row or a constant. ``columns`` are those that are
    read of the table. ``projections`` and ``filter`` (over these columns) are applied to what is
    found, ``condition`` to both rows side by side. ``options`` are those of a LOOKUP hint."""

    path: ObjectPath
    table: CatalogTable
    columns: RowType
    keys: tuple[tuple[int, Rex], ...]
    keeps_left: bool = False
    projections: tuple[Rex, ...] | None = None
    filter: Rex | None = None
    condition: Rex | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def found(self) -> RowType:
        """The type of what is joined to a row."""
        width = len(self.input.schema.fields)
        return RowType(self.schema.fields[width:], is_nullable=False)


@dataclass(frozen=True)
class WatermarkAssigner(OneInputNode):
    """Watermarks from ``strategy`` over the rows; the column ``rowtime`` is the event time."""

    rowtime: int
    strategy: Rex


@dataclass(frozen=True)
class MiniBatchAssigner(OneInputNode):
    """STREAMING: the rows in fewer and larger batches. They gather for so many milliseconds at
    most, until there are so many rows, and only while more come."""

    latency_ms: int
    most_rows: int


# -- how rows meet ---------------------------------------------------------------------------------


class Phase(Enum):
    """Which part of an aggregate a node computes."""

    WHOLE = "WHOLE"
    LOCAL = "LOCAL"
    GLOBAL = "GLOBAL"


@dataclass(frozen=True)
class Exchange(OneInputNode):
    """Rows go to the subtask of their key; to the only one if ``keys`` is empty; to all of them if
    ``is_broadcast``."""

    keys: tuple[int, ...]
    is_broadcast: bool = False


@dataclass(frozen=True)
class HashAggregate(OneInputNode):
    """BATCH: one row for each group at the end of the input; without keys one row at all. The
    columns are the keys, then the aggregates."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: Phase = Phase.WHOLE


@dataclass(frozen=True)
class HashJoin(TwoInputNode):
    """BATCH: pairs of rows with equal keys for which ``condition`` (over the columns of both) is
    true. A null key meets nothing, unless ``null_safe`` says so for that key. SEMI and ANTI give
    the left columns only. ``null_aware``: NOT IN, where a null on either side makes the answer
    unknown."""

    kind: JoinKind
    left_keys: tuple[int, ...] = ()
    right_keys: tuple[int, ...] = ()
    null_safe: tuple[bool, ...] = ()
    condition: Rex | None = None
    null_aware: bool = False
    builds_left: bool = False


# -- order -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TemporalSort(OneInputNode):
    """STREAMING: the rows in order of event time, which is the first key, when the watermark has
    reached them."""

    keys: tuple[SortKey, ...]


@dataclass(frozen=True)
class Deduplicate(OneInputNode):
    """STREAMING: the first row of each key by the column ``time``. By event time (``is_rowtime``)
    it goes out when the watermark has reached it; else at once. ``gives_rank`` appends its number,
    1."""

    keys: tuple[int, ...]
    time: int
    is_rowtime: bool
    gives_rank: bool = False
    state_ttl_ms: int = 0


@dataclass(frozen=True)
class Sort(OneInputNode):
    """BATCH: all rows in order; with ``limit`` only those from ``offset`` on."""

    keys: tuple[SortKey, ...]
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class Limit(OneInputNode):
    """Some rows, whichever come first."""

    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class Rank(OneInputNode):
    """The rows of each partition whose rank is between ``first`` and ``last`` (from 1).
    ``function`` is ROW_NUMBER, RANK or DENSE_RANK; ``gives_rank`` appends the number."""

    function: str
    partition: tuple[int, ...]
    keys: tuple[SortKey, ...]
    first: int
    last: int
    gives_rank: bool = False


@dataclass(frozen=True)
class OverAggregate(OneInputNode):
    """The row, then the results of each group of aggregates over the rows around it. In STREAMING
    there is one group; its frames end at the row, and its first sort key is a time: event time
    (``is_rowtime``), or the order in which rows come."""

    groups: tuple[OverGroup, ...]
    is_rowtime: bool = True


# -- windows ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowTableFunction(OneInputNode):
    """The row, then window_start, window_end and window_time, once for each of its windows."""

    window: WindowSpec


@dataclass(frozen=True)
class WindowAggregate(OneInputNode):
    """One row for each key and window, when the window closes: the keys, the aggregates, then the
    ``properties`` that are asked for, of window_start, window_end and window_time."""

    window: WindowSpec
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    properties: tuple[str, ...]


@dataclass(frozen=True)
class WindowJoin(TwoInputNode):
    """STREAMING: pairs of rows of one window with equal keys for which ``condition`` (over the
    columns of both) is true, when the window closes. The windows have ``bounds``; keys of sessions
    have their start among them."""

    kind: JoinKind
    left_window: WindowSpec
    right_window: WindowSpec
    left_keys: tuple[int, ...] = ()
    right_keys: tuple[int, ...] = ()
    null_safe: tuple[bool, ...] = ()
    condition: Rex | None = None


@dataclass(frozen=True)
class WindowRank(OneInputNode):
    """STREAMING: the rows of each partition of a window whose rank is between ``first`` and
    ``last``, when the window closes. ``window`` has ``bounds``, which ``partition`` does not name
    again, but for the start of sessions."""

    window: WindowSpec
    function: str
    partition: tuple[int, ...]
    keys: tuple[SortKey, ...]
    first: int
    last: int
    gives_rank: bool = False


@dataclass(frozen=True)
class IntervalJoin(TwoInputNode):
    """STREAMING: pairs of rows with equal keys whose event times are in the ``interval``, for which
    ``condition`` (over the columns of both) is true. A row is kept as long as one in time can meet
    it."""

    kind: JoinKind
    interval: Interval
    left_keys: tuple[int, ...] = ()
    right_keys: tuple[int, ...] = ()
    null_safe: tuple[bool, ...] = ()
    condition: Rex | None = None


# -- changes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupAggregate(OneInputNode):
    """STREAMING: one row for each group, which changes as rows come. The columns are the keys, then
    the aggregates. ``takes_changes``: rows of the input are also updated or deleted, so groups
    count their rows, and one without rows goes. ``split``: it is the PARTIAL or the FINAL one of
    two that count distinct values in buckets first."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: Phase = Phase.WHOLE
    takes_changes: bool = False
    state_ttl_ms: int = 0
    split: str = ""


@dataclass(frozen=True)
class DistinctBuckets(OneInputNode):
    """STREAMING: each row once for each of the ``sets`` of columns whose values are told apart, of
    which it says the bucket; behind that, for each of the ``choices``, whether the row is of that
    set and that column true (None: of the set)."""

    sets: tuple[tuple[int, ...], ...]
    choices: tuple[tuple[int, int | None], ...]
    buckets: int


@dataclass(frozen=True)
class RegularJoin(TwoInputNode):
    """STREAMING: pairs of rows with equal keys for which ``condition`` (over the columns of both)
    is true, as rows come and go on both sides. The unique keys of an input are sets of its columns
    that no two of its rows share; an update may replace a row by them. ``unknown_keys``: the two
    columns of a NOT IN, whose ``condition`` is also true where one of them is null."""

    kind: JoinKind
    left_keys: tuple[int, ...] = ()
    right_keys: tuple[int, ...] = ()
    null_safe: tuple[bool, ...] = ()
    condition: Rex | None = None
    left_unique_keys: tuple[tuple[int, ...], ...] = ()
    right_unique_keys: tuple[tuple[int, ...], ...] = ()
    left_ttl_ms: int = 0
    right_ttl_ms: int = 0
    unknown_keys: tuple[int, int] | None = None


@dataclass(frozen=True)
class TemporalJoin(TwoInputNode):
    """STREAMING: each row of the left with the row that the right had for its key at the time
    ``left_time`` of the row, if ``condition`` (over the columns of both) is true. ``right_time`` is
    the time from which on a row of the right stands. ``kind`` is INNER or LEFT. ``version_key``:
    by which columns the rows of the right replace each other; None: by an upsert key."""

    kind: JoinKind
    left_time: int
    right_time: int
    left_keys: tuple[int, ...] = ()
    right_keys: tuple[int, ...] = ()
    null_safe: tuple[bool, ...] = ()
    condition: Rex | None = None
    version_key: tuple[int, ...] | None = None
    state_ttl_ms: int = 0


class RankStrategy(Enum):
    """How a rank finds the rows that come and go. APPEND: rows are only added. UPDATE_FAST: a row
    replaces the one with its upsert key, and never for the worse. RETRACT: any change."""

    APPEND = "APPEND"
    UPDATE_FAST = "UPDATE_FAST"
    RETRACT = "RETRACT"


@dataclass(frozen=True)
class ChangingRank(OneInputNode):
    """STREAMING: the rows of each partition whose rank is between ``first`` and ``last`` (from 1),
    as it changes. ``upsert_key`` is that of the input, for UPDATE_FAST. Without a partition and
    without the number it is ORDER BY with LIMIT."""

    function: str
    partition: tuple[int, ...]
    keys: tuple[SortKey, ...]
    first: int
    last: int
    gives_rank: bool = False
    strategy: RankStrategy = RankStrategy.RETRACT
    upsert_key: tuple[int, ...] = ()
    state_ttl_ms: int = 0
    every_change: bool = False


@dataclass(frozen=True)
class LastRow(OneInputNode):
    """STREAMING: the last row of each key by the column ``time``, of an input that only grows. A
    later one, and one of the same time, replaces it."""

    keys: tuple[int, ...]
    time: int
    is_rowtime: bool
    gives_rank: bool = False
    state_ttl_ms: int = 0
    every_change: bool = False


@dataclass(frozen=True)
class ChangingOver(OneInputNode):
    """STREAMING: as OverAggregate with one group, ordered by a column that is no time: a row that
    comes or goes changes the results of those behind it."""

    group: OverGroup
    state_ttl_ms: int = 0


@dataclass(frozen=True)
class ChangelogNormalize(OneInputNode):
    """STREAMING: upserts by ``keys`` become inserts, updates with the row before, and deletes of
    the whole row. ``every_change``: also those that a later row of the same batch replaces, for
    who behind keeps them by time."""

    keys: tuple[int, ...]
    state_ttl_ms: int = 0
    every_change: bool = False


@dataclass(frozen=True)
class DropUpdateBefore(OneInputNode):
    """STREAMING: all rows but those that say what an update replaces."""


@dataclass(frozen=True)
class ChangingLimit(OneInputNode):
    """STREAMING: some rows of an input that changes. Where one of them goes, another one comes."""

    offset: int = 0
    limit: int | None = None


# -- where rows go ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SinkNode(OneInputNode):
    """The rows go into a table; ``schema`` is that of its columns. ``takes`` are the kinds of rows
    that the table takes: one without UPDATE_BEFORE takes each such row as a delete of its key.
    ``primary_key`` are the columns by which a row replaces another one. ``materialises``: rows of
    one key may come in an order of their own, so all that are there are kept, and the last of them
    stands."""

    path: ObjectPath
    table: CatalogTable
    overwrite: bool = False
    static_partition: tuple[tuple[str, object], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    takes: ChangelogMode = INSERT_ONLY
    primary_key: tuple[int, ...] = ()
    materialises: bool = False


@dataclass(frozen=True)
class CollectNode(OneInputNode):
    """The rows go to whoever asked."""


def with_inputs(node: PhysicalNode, inputs: tuple[PhysicalNode, ...]) -> PhysicalNode:
    """The same operator over other inputs."""
    if not inputs:
        return node
    names = {each.name for each in fields(node)}
    if "branches" in names:
        return replace(node, branches=inputs)  # type: ignore[call-arg]
    if "left" in names:
        return replace(node, left=inputs[0], right=inputs[1])  # type: ignore[call-arg]
    return replace(node, input=inputs[0])  # type: ignore[call-arg]
