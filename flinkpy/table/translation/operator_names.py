"""How operators are called in the web page, in metrics and in errors: as ``explain`` shows them."""

from __future__ import annotations

from flinkpy.sql.physical.physical_nodes import PhysicalNode
from flinkpy.sql.plans.physical_text import physical_line

LONGEST = 120
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def operator_name(node: PhysicalNode) -> str:
    """The line of ``explain``; a long one ends behind a whole part."""
    return shortened(physical_line(node))


def shortened(line: str) -> str:
    """The line, or its parts up to the last comma that leaves it short enough; what it has opened
    is closed.

    >>> shortened("Calc(select=[a, b])")
    'Calc(select=[a, b])'
    >>> shortened(f"Calc(select=[{', '.join(['price'] * 100)}])")[-19:]
    'price, price, ...])'
    """
    if len(line) <= LONGEST:
        return line
    room = line[: LONGEST - len(", ...])")]
    whole, comma, _ = room.rpartition(", ")
    kept = whole if comma else room
    return f"{kept}, ...{_closing(kept)}"


def _closing(text: str) -> str:
    opened: list[str] = []
    for letter in text:
        if letter in _PAIRS:
            opened.append(_PAIRS[letter])
        elif opened and letter == opened[-1]:
            opened.pop()
    return "".join(reversed(opened))
