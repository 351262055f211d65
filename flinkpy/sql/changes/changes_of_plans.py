"""Both passes over a plan of STREAMING: afterwards each node says the kinds of rows that it gives,
and each node takes what its inputs give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flinkpy.sql.changes.modify_kinds import ModifyKinds
from flinkpy.sql.changes.refused_changes import Refusals
from flinkpy.sql.changes.sink_kinds import with_sink_kinds
from flinkpy.sql.changes.update_kinds import with_update_kinds
from flinkpy.sql.physical.physical_nodes import PhysicalNode, SinkNode
from flinkpy.sql.sql_errors import ValidationError


@dataclass(frozen=True)
class ChangeOptions:
    """What a session says about changes. ``materialize`` is that of
    ``table.exec.sink.upsert-materialize``."""

    materialize: str = "auto"


def with_changes(
    root: PhysicalNode, options: ChangeOptions, line: Callable[[PhysicalNode], str]
) -> PhysicalNode:
    """The plan with the kinds of each node. Raises ValidationError where a node cannot take the
    changes of another one. ``line`` is a node as ``explain`` shows it."""
    kinds = ModifyKinds(Refusals(line)).applied(root)
    if isinstance(kinds, SinkNode):
        made = with_sink_kinds(kinds, options.materialize)
    else:
        made = with_update_kinds(kinds, wants_before=True)
    if made is None:
        raise ValidationError(
            f"Can't generate a valid execution plan for the given query: {line(root)} needs the "
            "row before each update, and a table below gives it without; declare a PRIMARY KEY"
        )
    return made
