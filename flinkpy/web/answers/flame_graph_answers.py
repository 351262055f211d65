"""Flame graphs: stacks that samples found, put together to a tree of calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from flinkpy.actors.inspector.inspector_gateway import StackSample

KINDS = {"full": (True, False), "on_cpu": (True,), "off_cpu": (False,)}


def graph(
    at_ms: int, kind: str, processes: Iterable[tuple[Collection[int], Iterable[StackSample]]]
) -> dict[str, Any]:
    """``processes`` are the samples of each process, with the subtasks that are wanted of it. A
    sample of a waiting thread counts for each of these: all of them wait."""
    root = _node("root")
    for wanted, samples in processes:
        for sample in samples:
            if sample.on_cpu not in KINDS[kind]:
                continue
            count = sample.count * (
                len(wanted) if sample.subtask_index is None else sample.subtask_index in wanted
            )
            if count:
                _add(root, sample.stack, count)
    return {"endTimestamp": at_ms, "data": _as_json(root)}


def _node(name: str) -> dict[str, Any]:
    return {"name": name, "value": 0, "children": {}}


def _add(root: dict[str, Any], stack: Iterable[str], count: int) -> None:
    root["value"] += count
    node = root
    for call in stack:
        node = node["children"].setdefault(call, _node(call))
        node["value"] += count


def _as_json(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "children": [_as_json(child) for child in node["children"].values()]}
