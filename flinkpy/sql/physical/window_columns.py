"""Which columns of a relation say the window that a row is in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalProject,
    LogicalRank,
    LogicalSetOperation,
    LogicalWindow,
    filtered,
    project,
)
from flinkpy.sql.rex.relational_terms import JoinKind, WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, inputs_of
from flinkpy.sql.rules.conditions import moved_inputs


@dataclass(frozen=True)
class WindowColumns:
    """The window, and the columns that hold its start, its end and its time; None: not there."""

    window: WindowSpec
    start: int | None
    end: int | None
    time: int | None = None

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The columns of start and end, if both are there."""
        if self.start is None or self.end is None:
            return None
        return self.start, self.end

    def moved(self, places: dict[int, int]) -> WindowColumns:
        def place(column: int | None) -> int | None:
            return None if column is None else places.get(column)

        return replace(self, start=place(self.start), end=place(self.end), time=place(self.time))


def window_columns_of(node: LogicalNode) -> WindowColumns | None:
    """The window of each row, if all rows are in windows of one kind."""
    if isinstance(node, LogicalWindow):
        first = node.input.width
        return WindowColumns(node.window, first, first + 1, first + 2)
    if isinstance(node, (LogicalFilter, LogicalRank)):
        return window_columns_of(node.input)
    if isinstance(node, LogicalProject):
        below = window_columns_of(node.input)
        if below is None:
            return None
        places: dict[int, int] = {}
        for place, each in enumerate(node.projections):
            if isinstance(each, RexInput):
                places.setdefault(each.index, place)
        return below.moved(places)
    if isinstance(node, LogicalAggregate):
        below = window_columns_of(node.input)
        if below is None:
            return None
        return below.moved({key: place for place, key in enumerate(node.keys)})
    if isinstance(node, LogicalJoin):
        return _of_join(node)
    if isinstance(node, LogicalSetOperation):
        found = [window_columns_of(each) for each in node.branches]
        alike = all(each == found[0] for each in found)
        return found[0] if alike and node.kind == "UNION" else None
    return None


def _of_join(node: LogicalJoin) -> WindowColumns | None:
    if node.kind in (JoinKind.RIGHT, JoinKind.FULL):
        return None
    return window_columns_of(node.left) if window_columns_of(node.right) is not None else None


@dataclass(frozen=True)
class Unwindowed:
    """What stands above a window function, moved below it: ``plan`` has the columns of the relation
    (those of the window are missing) and then the time column. ``partition`` are the columns of the
    relation that a session is of; None: not all of them are there."""

    plan: LogicalNode
    places: dict[int, int]
    time: int
    window: WindowSpec
    partition: tuple[int, ...] | None


def below_window(node: LogicalNode) -> Unwindowed | None:
    """The relation as one over the rows before they got their windows; None if something above the
    window function reads the window."""
    if isinstance(node, LogicalWindow):
        width = node.input.width
        places = {index: index for index in range(width)}
        window = node.window
        return Unwindowed(node.input, places, window.time, window, window.partition)
    if isinstance(node, LogicalFilter):
        below = below_window(node.input)
        if below is None or not inputs_of(node.condition) <= below.places.keys():
            return None
        if below.window.kind is WindowKind.SESSION:
            return None  # a row that goes holds a session together before
        condition = moved_inputs(node.condition, below.places)
        return replace(below, plan=filtered(below.plan, condition))
    if not isinstance(node, LogicalProject):
        return None
    below = below_window(node.input)
    if below is None:
        return None
    columns: list[Rex] = []
    names: list[str] = []
    places = {}
    kept: dict[int, int] = {}
    for place, each in enumerate(node.projections):
        if isinstance(each, RexInput):
            kept.setdefault(each.index, place)
        if inputs_of(each) <= below.places.keys():
            places[place] = len(columns)
            columns.append(moved_inputs(each, below.places))
            names.append(node.schema.names[place])
        elif not isinstance(each, RexInput):
            return None  # it computes with the window
    time = below.plan.schema.fields[below.time]
    columns.append(RexInput(time.type, index=below.time))
    names.append(time.name)
    plan = project(below.plan, columns, names)
    partition = below.partition
    if partition is not None:
        is_there = {*partition} <= kept.keys()
        partition = tuple(kept[each] for each in partition) if is_there else None
    return Unwindowed(plan, places, len(columns) - 1, below.window, partition)
