"""Plans as text, in the form of Flink's ``explain``: one line a node, inputs indented below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.catalog.catalog_port import ObjectPath
from flinkpy.sql.plans.rex_text import call_text, literal_text, rex_text, sort_text
from flinkpy.sql.rex.relational_terms import Frame, OverGroup, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex


class Node(Protocol):
    """A node of either plan."""

    @property
    def schema(self) -> RowType: ...

    @property
    def inputs(self) -> Sequence[Any]: ...


class JoinNode(Protocol):
    """A join of a physical plan."""

    @property
    def left(self) -> Node: ...

    @property
    def right(self) -> Node: ...

    @property
    def left_keys(self) -> Sequence[int]: ...

    @property
    def right_keys(self) -> Sequence[int]: ...

    @property
    def null_safe(self) -> Sequence[bool]: ...

    @property
    def condition(self) -> Rex | None: ...


class Tree(Protocol):
    """What has a line, and inputs below it."""

    @property
    def inputs(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Line:
    """A line of a tree, and those below it."""

    text: str
    inputs: tuple[Line, ...] = ()


def tree_text(root: Tree, line: Callable[[Any], str]) -> str:
    """The plan as a tree."""
    lines: list[str] = []
    _add(root, line, lines, "", "")
    return "\n".join(lines)


def _add(node: Tree, line: Callable[[Any], str], lines: list[str], first: str, rest: str) -> None:
    lines.append(first + line(node))
    inputs = list(node.inputs)
    for place, each in enumerate(inputs):
        is_last = place == len(inputs) - 1
        _add(
            each,
            line,
            lines,
            rest + ("+- " if is_last else ":- "),
            rest + ("   " if is_last else ":  "),
        )


def table_text(path: ObjectPath) -> str:
    """A table as Flink's plans name it."""
    return f"[{path.catalog}, {path.database}, {path.name}]"


def select_text(projections: Sequence[Rex], names: Sequence[str], inputs: Sequence[str]) -> str:
    """``a, (b + 1) AS c``."""
    parts = []
    for rex, name in zip(projections, names):
        text = rex_text(rex, inputs)
        parts.append(text if text == name else f"{text} AS {name}")
    return ", ".join(parts)


def aggregates_text(
    keys: Sequence[int],
    calls: Sequence[AggregateCall],
    inputs: Sequence[str],
    outputs: Sequence[str],
    prefix: str = "",
) -> str:
    """``a, SUM(b) AS s``."""
    parts = [inputs[key] for key in keys]
    for call, name in zip(calls, outputs[len(keys) :]):
        parts.append(f"{prefix}{call_text(call, inputs)} AS {name}")
    return ", ".join(parts)


def names_at(places: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(names[place] for place in places)


def names_of(node: Node) -> str:
    """The columns of a node."""
    return ", ".join(node.schema.names)


def where_text(node: JoinNode) -> str:
    """The condition of a join."""
    left, right = node.left.schema.names, node.right.schema.names
    signs = node.null_safe or (False,) * len(node.left_keys)
    conditions = [
        f"({left[one]} {'IS NOT DISTINCT FROM' if safe else '='} {right[other]})"
        for one, other, safe in zip(node.left_keys, node.right_keys, signs)
    ]
    if node.condition is not None:
        conditions.append(rex_text(node.condition, (*left, *right)))
    return " AND ".join(conditions) or "true"


def limit_parts(offset: int, limit: int | None) -> list[str]:
    """Which of the rows are wanted."""
    parts = [f"offset=[{offset}]"] if offset else []
    return parts + ([] if limit is None else [f"fetch=[{limit}]"])


def window_text(window: WindowSpec, names: Sequence[str]) -> str:
    """``TUMBLE(time_col=[ts], size=[10 min])``."""
    if window.bounds is None:
        parts = [f"time_col=[{names[window.time]}]"]
    else:
        start, end = window.bounds
        parts = [f"win_start=[{names[start]}]", f"win_end=[{names[end]}]"]
    word = {"SESSION": "gap", "CUMULATE": "max_size"}.get(window.kind.value, "size")
    parts.append(f"{word}=[{duration_text(window.size)}]")
    if window.step is not None:
        word = "slide" if window.kind.value == "HOP" else "step"
        parts.append(f"{word}=[{duration_text(window.step)}]")
    if window.offset:
        parts.append(f"offset=[{duration_text(window.offset)}]")
    if window.partition:
        parts.append(f"partition keys=[{names_at(window.partition, names)}]")
    return f"{window.kind.value}({', '.join(parts)})"


def duration_text(milliseconds: int) -> str:
    """A length of time in its largest whole unit."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if milliseconds % length == 0:
            return f"{milliseconds // length} {unit}"
    return f"{milliseconds} ms"


def over_text(groups: Sequence[OverGroup], names: Sequence[str]) -> str:
    """The windows of OVER with their aggregates."""
    parts = []
    for group in groups:
        calls = ", ".join(call_text(each, names) for each in group.calls)
        partition = f"PARTITION BY {names_at(group.partition, names)} " if group.partition else ""
        order = f"ORDER BY {sort_text(group.keys, names)} " if group.keys else ""
        parts.append(f"{calls} OVER ({partition}{order}{frame_text(group.frame)})")
    return ", ".join(parts)


def frame_text(frame: Frame) -> str:
    """``ROWS BETWEEN 2 PRECEDING AND CURRENT ROW``."""
    lower = _bound_text(frame.lower, "PRECEDING")
    upper = _bound_text(frame.upper, "FOLLOWING")
    return f"{frame.unit} BETWEEN {lower} AND {upper}"


def _bound_text(offset: object, side: str) -> str:
    if offset is None:
        return f"UNBOUNDED {side}"
    if offset == 0:
        return "CURRENT ROW"
    if isinstance(offset, (int, float)):
        return f"{literal_text(abs(offset))} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"
    return literal_text(offset)
