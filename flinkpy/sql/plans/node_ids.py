"""Numbers of physical nodes: by their place in the plan, sources first."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.sql.physical.physical_nodes import PhysicalNode, with_inputs


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
