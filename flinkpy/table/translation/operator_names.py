"""How operators are called in the web page, in metrics and in errors: as ``explain`` shows them."""

from __future__ import annotations

from flinkpy.sql.physical.physical_nodes import PhysicalNode
from flinkpy.sql.plans.physical_text import physical_line

LONGEST = 120


def operator_name(node: PhysicalNode) -> str:
    """The line of ``explain``; a long one ends behind a whole part."""
    return shortened(physical_line(node))


def shortened(line: str) -> str:
    """The line, or its parts up to the last comma that leaves it short enough.

    >>> shortened("Calc(select=[a, b])")
    'Calc(select=[a, b])'
    >>> len(shortened(f"Calc(select=[{', '.join(['a'] * 100)}])")) <= LONGEST
    True
    """
    if len(line) <= LONGEST:
        return line
    room = line[: LONGEST - len(", ...)")]
    whole, comma, _ = room.rpartition(", ")
    return f"{whole if comma else room}, ...)"
