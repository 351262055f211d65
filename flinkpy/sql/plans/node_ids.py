"""Numbers of physical nodes: by their place in the plan, sources first."""

from __future__ import annotations

from dataclasses import fields, replace

from flinkpy.sql.physical.physical_nodes import PhysicalNode


def numbered(root: PhysicalNode) -> PhysicalNode:
    """The plan with a number at each node, from 1."""
    done: dict[int, PhysicalNode] = {}
    count = 0

    def number(node: PhysicalNode) -> PhysicalNode:
        nonlocal count
        known = done.get(id(node))
        if known is not None:
            return known
        made = with_inputs(node, tuple(map(number, node.inputs)))
        count += 1
        made = replace(made, id=count)
        done[id(node)] = made
        return made

    return number(root)


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
