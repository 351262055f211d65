"""What is said where a node cannot take the changes of its input: who changes rows, who would have
to take that, in Flink's words, and the way out."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    Correlate,
    Deduplicate,
    DistinctBuckets,
    Exchange,
    Expand,
    GroupAggregate,
    IntervalJoin,
    LastRow,
    LookupJoin,
    MiniBatchAssigner,
    OverAggregate,
    PhysicalNode,
    SinkNode,
    TableScan,
    TemporalSort,
    UnionAll,
    WatermarkAssigner,
    WindowAggregate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from flinkpy.sql.sql_errors import ValidationError

BATCH = "set 'execution.runtime-mode' to BATCH if all inputs end"
_WORDS = {RowKind.UPDATE_BEFORE: "update", RowKind.UPDATE_AFTER: "update", RowKind.DELETE: "delete"}
_PASS = (
    *(Calc, Correlate, Exchange, Expand, LookupJoin, MiniBatchAssigner, UnionAll),
    *(DistinctBuckets, WatermarkAssigner, WindowTableFunction),
)
_GROUP_WINDOW = (
    "group by window_start and window_end of TUMBLE, HOP, CUMULATE or SESSION, so that each row "
    "goes out once"
)
_WINDOWS = "aggregate in TUMBLE, HOP or CUMULATE, or use windows before other nodes change the rows"
_ORDER = "order by a column that a row keeps, not by the time at which it comes"
_WAYS_OUT: dict[type[PhysicalNode], str] = {
    OverAggregate: "compute OVER before the rows change",
    TemporalSort: "sort where rows are shown; ORDER BY with LIMIT takes changes",
    IntervalJoin: "join before the rows change, or join without the condition between times",
    WindowJoin: "join windows before the rows change, or without window_start and window_end",
    WindowAggregate: _WINDOWS,
    WindowRank: _WINDOWS,
    WindowTableFunction: _WINDOWS,
    Deduplicate: _ORDER,
    LastRow: _ORDER,
}


class Refusals:
    """Makes the errors. ``line`` is a node as ``explain`` shows it."""

    def __init__(self, line: Callable[[PhysicalNode], str]) -> None:
        self._line = line

    def refused(
        self, consumer: PhysicalNode, input: PhysicalNode, kinds: ChangelogMode
    ) -> ValidationError:
        """A node that does not take rows of these kinds from its input."""
        producer = maker_of_changes(input, kinds)
        return ValidationError(
            f"{_name(consumer)} doesn't support consuming {kinds_text(kinds)} changes which is "
            f"produced by node {self._line(producer)}; {_way_out(consumer, producer)}"
        )


def kinds_text(kinds: ChangelogMode) -> str:
    """``update and delete``."""
    return " and ".join(dict.fromkeys(word for kind, word in _WORDS.items() if kind in kinds.kinds))


def maker_of_changes(node: PhysicalNode, kinds: ChangelogMode) -> PhysicalNode:
    """Who makes the changes that arrive here."""
    while isinstance(node, _PASS):
        node = next(each for each in node.inputs if each.changes.kinds & kinds.kinds)
    return node


def _name(node: PhysicalNode) -> str:
    if isinstance(node, SinkNode):
        path = node.path
        return f"Table sink '{path.catalog}.{path.database}.{path.name}'"
    return type(node).__name__


def _way_out(consumer: PhysicalNode, producer: PhysicalNode) -> str:
    if isinstance(consumer, SinkNode):
        window = f"{_GROUP_WINDOW}, " if isinstance(producer, GroupAggregate) else ""
        return f"{window}write into a table that takes changes, or {BATCH}"
    found = _WAYS_OUT.get(type(consumer), "do it before the rows change")
    return found if isinstance(producer, TableScan) else f"{found}, or {BATCH}"
