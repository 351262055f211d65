"""Where a text stands in another, and the parts between separators. Places count from 1."""

from __future__ import annotations

import re
from typing import Any

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import strictly

# Java's white space: that of Unicode without what does not break a line
_SPACE = re.compile("[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]")


def position(wanted: str, text: str, start: int = 1) -> int:
    """The first place from ``start`` on; 0 if there is none, 1 for an empty text."""
    return text.find(wanted, max(start - 1, 0)) + 1 if wanted else 1


def instr(text: str, wanted: str, start: int = 1, nth: int = 1) -> int:
    """The first place from ``start`` on, or backwards from the end if it is negative; or the
    ``nth``. Raises ValueError if there can be no such one."""
    if nth < 1:
        raise ValueError(f"INSTR looks for the 1st or a later occurrence, not for number {nth}")
    if start >= 0:
        return _nth_position(wanted, text, start, nth) if start else 0
    found = _nth_position(wanted[::-1], text[::-1], -start, nth)
    return len(text) + 2 - found - len(wanted) if found else 0


def _nth_position(wanted: str, text: str, start: int, nth: int) -> int:
    found = position(wanted, text, start)
    for _ in range(nth - 1 if wanted else 0):
        found = text.find(wanted, found) + 1 if found else 0
    return found


def split(text: str, separator: str) -> list[str]:
    """The parts between separators; the characters, if the separator is empty."""
    if not separator:
        return list(text)
    return text.split(separator) if text else []


def split_index(text: str, separator: str | int, index: int) -> str | None:
    """The part at this place, from 0; null if there is none. The separator may be the number of a
    character; an empty one is white space."""
    if isinstance(separator, int):
        if not 1 <= separator <= 255:
            return None
        separator = chr(separator)
    parts = split(text, separator) if separator or not text else _SPACE.split(text)
    return parts[index] if 0 <= index < len(parts) else None


def elt(index: int | None, *choices: Any) -> Any:
    """The choice at this place."""
    return choices[index - 1] if index is not None and 1 <= index <= len(choices) else None


TEXT_SEARCH_MEANINGS: dict[str, MeaningOf] = {
    "POSITION": strictly(position),
    "LOCATE": strictly(position),
    "INSTR": strictly(instr),
    "STARTSWITH": strictly(lambda text, start: text.startswith(start)),
    "ENDSWITH": strictly(lambda text, end: text.endswith(end)),
    "SPLIT": strictly(split),
    "SPLIT_INDEX": strictly(split_index),
    "ELT": lambda site: elt,
}
