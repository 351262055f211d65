"""A line for each node of a physical plan: what ``explain`` shows, and the names of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.sql.functions.user_function import shown_name
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    CollectNode,
    Correlate,
    Deduplicate,
    Exchange,
    Expand,
    HashAggregate,
    HashJoin,
    IntervalJoin,
    Limit,
    LookupJoin,
    OverAggregate,
    Phase,
    PhysicalNode,
    Rank,
    SinkNode,
    Sort,
    TableScan,
    TemporalSort,
    UnionAll,
    ValuesNode,
    WatermarkAssigner,
    WindowAggregate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from flinkpy.sql.plans.changing_text import CHANGING_LINES
from flinkpy.sql.plans.plan_text import (
    Line,
    aggregates_text,
    limit_parts,
    names_at,
    names_of,
    over_text,
    select_text,
    table_text,
    tree_text,
    where_text,
    window_text,
)
from flinkpy.sql.plans.rex_text import literal_text, rex_text, sort_text


def physical_text(root: PhysicalNode, *, with_kinds: bool = False) -> str:
    """The plan as a tree, also with the kinds of rows that each operator gives."""
    return tree_text(root, _line_with_kinds if with_kinds else physical_line)


def _line_with_kinds(node: PhysicalNode) -> str:
    kinds = "[NONE]" if isinstance(node, (SinkNode, CollectNode)) else str(node.changes)
    line = physical_line(node)
    if not line.endswith(")"):
        return f"{line}(changelogMode={kinds})"
    return f"{line.removesuffix(')')}, changelogMode={kinds})"


def execution_text(root: PhysicalNode) -> str:
    """The operators of the job, each with its number. What several read is shown where the first of
    them reads it."""
    numbers = _numbers_of_reused(root)
    shown: set[int] = set()

    def lined(node: PhysicalNode) -> Line:
        reused = numbers.get(id(node))
        if reused is not None and reused in shown:
            return Line(f"Reused(reference_id=[{reused}])")
        mark = "" if reused is None else f"(reuse_id=[{reused}])"
        if reused is not None:
            shown.add(reused)
        text = f"{physical_line(node)}{mark} [{node.id}]"
        return Line(text, tuple(map(lined, node.inputs)))

    return tree_text(lined(root), lambda line: str(line.text))


def _numbers_of_reused(root: PhysicalNode) -> dict[int, int]:
    """By ``id()`` of the nodes that are read more than once: numbers, in the order in which a
    second reader is met."""
    met: set[int] = set()
    numbers: dict[int, int] = {}

    def visit(node: PhysicalNode) -> None:
        if id(node) in met:
            numbers.setdefault(id(node), len(numbers) + 1)
            return
        met.add(id(node))
        for each in node.inputs:
            visit(each)

    visit(root)
    return numbers


def physical_line(node: PhysicalNode) -> str:
    """A node without its inputs; also the name of its operator."""
    line: str = _LINES[type(node)](node)
    return line


def _scan(node: TableScan) -> str:
    parts = f"table=[{table_text(node.path)}], fields=[{names_of(node)}]"
    if node.filters:
        conditions = ", ".join(rex_text(each, node.schema.names) for each in node.filters)
        parts += f", filter=[{conditions}]"
    if node.limit is not None:
        parts += f", limit=[{node.limit}]"
    return f"TableSourceScan({parts})"


def _values(node: ValuesNode) -> str:
    rows = ", ".join(f"{{ {', '.join(map(literal_text, row))} }}" for row in node.rows[:20])
    more = ", ..." if len(node.rows) > 20 else ""
    return f"Values(tuples=[[{rows}{more}]])"


def _calc(node: Calc) -> str:
    names = node.input.schema.names
    select = select_text(node.projections, node.schema.names, names)
    where = "" if node.condition is None else f", where=[{rex_text(node.condition, names)}]"
    return f"Calc(select=[{select}]{where})"


def _expand(node: Expand) -> str:
    return f"Expand(projects=[{len(node.projections)}], fields=[{names_of(node)}])"


def _union(node: UnionAll) -> str:
    return f"Union(all=[true], union=[{names_of(node)}])"


def _correlate(node: Correlate) -> str:
    names = node.input.schema.names
    arguments = ", ".join(rex_text(each, names) for each in node.arguments)
    kind = "LEFT" if node.keeps_left else "INNER"
    return (
        f"Correlate(invocation=[{shown_name(node.function)}({arguments})], "
        f"select=[{names_of(node)}], joinType=[{kind}])"
    )


def _lookup_join(node: LookupJoin) -> str:
    left, columns = node.input.schema.names, node.columns.names
    keys = ", ".join(f"{columns[column]}={rex_text(value, left)}" for column, value in node.keys)
    kind = "LeftOuterJoin" if node.keeps_left else "InnerJoin"
    parts = [f"table=[{node.path.catalog}.{node.path.database}.{node.path.name}]"]
    parts += [f"joinType=[{kind}]", f"lookup=[{keys}]"]
    if node.filter is not None:
        parts.append(f"where=[{rex_text(node.filter, columns)}]")
    if node.condition is not None:
        names = (*left, *node.found.names)
        parts.append(f"joinCondition=[{rex_text(node.condition, names)}]")
    found = ", ".join(node.found.names)
    if node.projections is not None:
        found = select_text(node.projections, node.found.names, columns)
    return f"LookupJoin({', '.join(parts)}, select=[{', '.join([*left, found])}])"


def _watermark(node: WatermarkAssigner) -> str:
    names = node.input.schema.names
    return (
        f"WatermarkAssigner(rowtime=[{names[node.rowtime]}], "
        f"watermark=[{rex_text(node.strategy, names)}])"
    )


def _exchange(node: Exchange) -> str:
    if node.is_broadcast:
        return "Exchange(distribution=[broadcast])"
    if not node.keys:
        return "Exchange(distribution=[single])"
    return f"Exchange(distribution=[hash[{names_at(node.keys, node.input.schema.names)}]])"


def _aggregate(node: HashAggregate) -> str:
    names = node.input.schema.names
    group = f"groupBy=[{names_at(node.keys, names)}], " if node.keys else ""
    if node.phase is Phase.GLOBAL:  # its input is what the first phase gave
        aggregates = node.schema.names[len(node.keys) :]
        calls = ", ".join(
            f"Final_{call.function} AS {name}" for call, name in zip(node.calls, aggregates)
        )
        keys = node.schema.names[: len(node.keys)]
        select = ", ".join([*keys, *([calls] if calls else [])])
        return f"HashAggregate(isMerge=[true], {group}select=[{select}])"
    if node.phase is Phase.LOCAL:
        select = aggregates_text(node.keys, node.calls, names, node.schema.names, "Partial_")
        return f"LocalHashAggregate({group}select=[{select}])"
    select = aggregates_text(node.keys, node.calls, names, node.schema.names)
    return f"HashAggregate({group}select=[{select}])"


def _join(node: HashJoin) -> str:
    where = where_text(node)
    aware = ", nullAware=[true]" if node.null_aware else ""
    build = "left" if node.builds_left else "right"
    name = "HashJoin" if node.left_keys else "NestedLoopJoin"
    return (
        f"{name}(joinType=[{node.kind.value}], where=[{where}], select=[{names_of(node)}], "
        f"build=[{build}]{aware})"
    )


def _sort(node: Sort) -> str:
    order = f"orderBy=[{sort_text(node.keys, node.input.schema.names)}]"
    name = "Sort" if node.limit is None else "SortLimit"
    return f"{name}({', '.join([order, *limit_parts(node.offset, node.limit)])})"


def _temporal_sort(node: TemporalSort) -> str:
    return f"TemporalSort(orderBy=[{sort_text(node.keys, node.input.schema.names)}])"


def _deduplicate(node: Deduplicate) -> str:
    order = "ROWTIME" if node.is_rowtime else "PROCTIME"
    keys = names_at(node.keys, node.input.schema.names)
    return f"Deduplicate(keep=[FirstRow], key=[{keys}], order=[{order}])"


def _limit(node: Limit) -> str:
    return f"Limit({', '.join(limit_parts(node.offset, node.limit))})"


def _rank(node: Rank) -> str:
    names = node.input.schema.names
    return (
        f"Rank(rankType=[{node.function}], rankRange=[rankStart={node.first}, "
        f"rankEnd={node.last}], partitionBy=[{names_at(node.partition, names)}], "
        f"orderBy=[{sort_text(node.keys, names)}], select=[{names_of(node)}])"
    )


def _over(node: OverAggregate) -> str:
    return f"OverAggregate(select=[*, {over_text(node.groups, node.input.schema.names)}])"


def _window(node: WindowTableFunction) -> str:
    return f"WindowTableFunction(window=[{window_text(node.window, node.input.schema.names)}])"


def _window_aggregate(node: WindowAggregate) -> str:
    names = node.input.schema.names
    group = f"groupBy=[{names_at(node.keys, names)}], " if node.keys else ""
    select = aggregates_text(node.keys, node.calls, names, node.schema.names)
    properties = ", ".join(node.properties)
    return (
        f"WindowAggregate({group}window=[{window_text(node.window, names)}], "
        f"select=[{', '.join(each for each in (select, properties) if each)}])"
    )


def _window_join(node: WindowJoin) -> str:
    left = window_text(node.left_window, node.left.schema.names)
    right = window_text(node.right_window, node.right.schema.names)
    return (
        f"WindowJoin(leftWindow=[{left}], rightWindow=[{right}], joinType=[{node.kind.value}], "
        f"where=[{where_text(node)}], select=[{names_of(node)}])"
    )


def _interval_join(node: IntervalJoin) -> str:
    interval = node.interval
    bounds = (
        f"leftLowerBound={-interval.upper}, leftUpperBound={-interval.lower}, "
        f"leftTimeIndex={interval.left_time}, rightTimeIndex={interval.right_time}"
    )
    return (
        f"IntervalJoin(joinType=[{node.kind.value}], windowBounds=[isRowTime=true, {bounds}], "
        f"where=[{where_text(node)}], select=[{names_of(node)}])"
    )


def _window_rank(node: WindowRank) -> str:
    names = node.input.schema.names
    return (
        f"WindowRank(window=[{window_text(node.window, names)}], rankType=[{node.function}], "
        f"rankRange=[rankStart={node.first}, rankEnd={node.last}], "
        f"partitionBy=[{names_at(node.partition, names)}], "
        f"orderBy=[{sort_text(node.keys, names)}], select=[{names_of(node)}])"
    )


def _sink(node: SinkNode) -> str:
    order = ", upsertMaterialize=[true]" if node.materialises else ""
    return f"Sink(table=[{table_text(node.path)}], fields=[{names_of(node)}]{order})"


def _collect(node: CollectNode) -> str:
    return f"Sink(name=[collect], fields=[{names_of(node)}])"


_LINES: dict[type[PhysicalNode], Callable[[Any], str]] = {
    TableScan: _scan,
    ValuesNode: _values,
    Calc: _calc,
    Expand: _expand,
    UnionAll: _union,
    Correlate: _correlate,
    LookupJoin: _lookup_join,
    WatermarkAssigner: _watermark,
    Exchange: _exchange,
    HashAggregate: _aggregate,
    HashJoin: _join,
    Sort: _sort,
    Limit: _limit,
    Rank: _rank,
    OverAggregate: _over,
    WindowTableFunction: _window,
    WindowAggregate: _window_aggregate,
    WindowJoin: _window_join,
    WindowRank: _window_rank,
    IntervalJoin: _interval_join,
    TemporalSort: _temporal_sort,
    Deduplicate: _deduplicate,
    SinkNode: _sink,
    CollectNode: _collect,
    **CHANGING_LINES,
}
