"""Regular expressions over texts. One engine, RE2 through Arrow, computes them for columns and for
single rows, because Python's would give other results for some patterns. RE2 has no look-around and
no references back inside a pattern."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

_WANTED, _MARK = "wanted", "|"
# What stands in a pattern as a whole: quoted text, an escaped sign, a class in brackets, the
# beginning of a group
_PIECES = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|\Z))|(?P<escaped>\\.)"
    r"|(?P<brackets>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])"
    r"|(?P<group>\((?:\?P?<\w+>|(?!\?)))",
    re.DOTALL,
)


def matches(texts: pa.Array, pattern: str) -> Any:
    import pyarrow.compute as pc

    return pc.match_substring_regex(texts, pattern)


def count(texts: pa.Array, pattern: str) -> Any:
    """As many as ``replaced`` replaces. Arrow's own count takes the rest behind each match for a
    text of its own, and bytes for letters."""
    import pyarrow as pa
    import pyarrow.compute as pc

    marked, kept = (
        pc.count_substring(replaced(texts, pattern, instead), _MARK) for instead in (_MARK, "")
    )
    return pc.subtract(marked, kept).cast(pa.int64())


def replaced(texts: pa.Array, pattern: str, replacement: str) -> Any:
    import pyarrow.compute as pc

    return pc.replace_substring_regex(texts, pattern, replacement)


def extracted(texts: pa.Array, pattern: str, group: int) -> Any:
    """The part of each text that the group of the first match covers (0: the match); null where
    nothing matches."""
    import pyarrow.compute as pc

    return pc.struct_field(pc.extract_regex(texts, only_group(pattern, group)), [0])


def only_group(pattern: str, group: int) -> str:
    """The pattern with the wanted group as the only one, as Arrow needs it. Raises ProgramError if
    there is no such group.

    >>> only_group("(a)[(](b)", 2), only_group("a", 0)
    ('(?:a)[(](?P<wanted>b)', '(?P<wanted>a)')
    """
    found = 0

    def renamed(piece: re.Match[str]) -> str:
        nonlocal found
        if piece["group"] is None:
            return piece.group()
        found += 1
        return f"(?P<{_WANTED}>" if found == group else "(?:"

    renamed_pattern = _PIECES.sub(renamed, pattern)
    if group > found:
        raise ProgramError(
            f"regexp_extract(): the pattern {pattern!r} has {found} "
            f"group{'s' * (found != 1)}, and this asks for group {group}"
        )
    return f"(?P<{_WANTED}>{renamed_pattern})" if group == 0 else renamed_pattern
