"""A line for each node of a logical plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.sql.functions.user_function import shown_name
from flinkpy.sql.logical.logical_nodes import (
    LogicalAggregate,
    LogicalApply,
    LogicalCorrelate,
    LogicalFilter,
    LogicalJoin,
    LogicalNode,
    LogicalOver,
    LogicalProject,
    LogicalRank,
    LogicalScan,
    LogicalSetOperation,
    LogicalSink,
    LogicalSort,
    LogicalTemporalJoin,
    LogicalValues,
    LogicalWatermark,
    LogicalWindow,
)
from flinkpy.sql.plans.plan_text import (
    names_at,
    over_text,
    select_text,
    table_text,
    tree_text,
    window_text,
)
from flinkpy.sql.plans.rex_text import call_text, literal_text, rex_text, sort_text
from flinkpy.sql.rules.estimates import rows_of


def logical_text(root: LogicalNode, *, with_rows: bool = False) -> str:
    """The plan as a tree, also with an estimate of the rows that each relation has."""
    return tree_text(root, _line_with_rows if with_rows else logical_line)


def _line_with_rows(node: LogicalNode) -> str:
    return f"{logical_line(node)}: rowcount = {rows_of(node):.0f}"


def logical_line(node: LogicalNode) -> str:
    """A node without its inputs."""
    line: str = _LINES[type(node)](node)
    return line


def _scan(node: LogicalScan) -> str:
    parts = f"table=[{table_text(node.path)}], fields=[{', '.join(node.schema.names)}]"
    if node.filters:
        conditions = ", ".join(rex_text(each, node.schema.names) for each in node.filters)
        parts += f", filter=[{conditions}]"
    if node.limit is not None:
        parts += f", limit=[{node.limit}]"
    return f"LogicalTableScan({parts})"


def _values(node: LogicalValues) -> str:
    rows = ", ".join(f"{{ {', '.join(map(literal_text, row))} }}" for row in node.rows[:20])
    more = ", ..." if len(node.rows) > 20 else ""
    return f"LogicalValues(tuples=[[{rows}{more}]])"


def _project(node: LogicalProject) -> str:
    inputs = node.input.schema.names
    return f"LogicalProject(select=[{select_text(node.projections, node.schema.names, inputs)}])"


def _filter(node: LogicalFilter) -> str:
    return f"LogicalFilter(condition=[{rex_text(node.condition, node.input.schema.names)}])"


def _aggregate(node: LogicalAggregate) -> str:
    names = node.input.schema.names
    outputs = node.schema.names[len(node.keys) :]
    calls = ", ".join(
        f"{call_text(each, names)} AS {name}" for each, name in zip(node.calls, outputs)
    )
    sets = ""
    if node.grouping_sets is not None:
        keys = node.schema.names
        shown = ", ".join(f"{{{names_at(each, keys)}}}" for each in node.grouping_sets)
        sets = f", groups=[{shown}]"
    return f"LogicalAggregate(group=[{names_at(node.keys, names)}]{sets}, calls=[{calls}])"


def _over(node: LogicalOver) -> str:
    return f"LogicalOver({over_text(node.groups, node.input.schema.names)})"


def _rank(node: LogicalRank) -> str:
    names = node.input.schema.names
    return (
        f"LogicalRank(function=[{node.function}], range=[{node.first}, {node.last}], "
        f"partitionBy=[{names_at(node.partition, names)}], "
        f"orderBy=[{sort_text(node.keys, names)}])"
    )


def _sort(node: LogicalSort) -> str:
    parts = []
    if node.keys:
        parts.append(f"sort=[{sort_text(node.keys, node.input.schema.names)}]")
    if node.offset:
        parts.append(f"offset=[{node.offset}]")
    if node.limit is not None:
        parts.append(f"fetch=[{node.limit}]")
    return f"LogicalSort({', '.join(parts)})"


def _join(node: LogicalJoin) -> str:
    names = (*node.left.schema.names, *node.right.schema.names)
    condition = "true" if node.condition is None else rex_text(node.condition, names)
    aware = ", nullAware=[true]" if node.null_aware else ""
    return f"LogicalJoin(condition=[{condition}], joinType=[{node.kind.value.lower()}]{aware})"


def _temporal_join(node: LogicalTemporalJoin) -> str:
    names = (*node.left.schema.names, *node.right.schema.names)
    condition = "true" if node.condition is None else rex_text(node.condition, names)
    return (
        f"LogicalTemporalJoin(period=[{names[node.time]}], condition=[{condition}], "
        f"joinType=[{node.kind.value.lower()}])"
    )


def _apply(node: LogicalApply) -> str:
    names = node.left.schema.names
    outer = ", ".join(rex_text(each, names) for each in node.outer)
    return f"LogicalCorrelate(outer=[{outer}], joinType=[{node.kind.value.lower()}])"


def _correlate(node: LogicalCorrelate) -> str:
    names = node.input.schema.names
    arguments = ", ".join(rex_text(each, names) for each in node.arguments)
    kind = "left" if node.keeps_left else "inner"
    return (
        f"LogicalTableFunctionScan(invocation=[{shown_name(node.function)}({arguments})], "
        f"select=[{', '.join(node.result.names)}], joinType=[{kind}])"
    )


def _watermark(node: LogicalWatermark) -> str:
    names = node.input.schema.names
    return (
        f"LogicalWatermarkAssigner(rowtime=[{names[node.rowtime]}], "
        f"watermark=[{rex_text(node.strategy, names)}])"
    )


def _window(node: LogicalWindow) -> str:
    return f"LogicalWindow({window_text(node.window, node.input.schema.names)})"


def _set_operation(node: LogicalSetOperation) -> str:
    name = {"UNION": "Union", "INTERSECT": "Intersect", "EXCEPT": "Minus"}[node.kind]
    return f"Logical{name}(all=[{str(node.keeps_all).lower()}])"


def _sink(node: LogicalSink) -> str:
    return f"LogicalSink(table=[{table_text(node.path)}], fields=[{', '.join(node.schema.names)}])"


_LINES: dict[type[LogicalNode], Callable[[Any], str]] = {
    LogicalScan: _scan,
    LogicalValues: _values,
    LogicalProject: _project,
    LogicalFilter: _filter,
    LogicalAggregate: _aggregate,
    LogicalOver: _over,
    LogicalRank: _rank,
    LogicalSort: _sort,
    LogicalJoin: _join,
    LogicalTemporalJoin: _temporal_join,
    LogicalApply: _apply,
    LogicalCorrelate: _correlate,
    LogicalWatermark: _watermark,
    LogicalWindow: _window,
    LogicalSetOperation: _set_operation,
    LogicalSink: _sink,
}
