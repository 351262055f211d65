"""Functions of regular expressions, which are Java's. What is no pattern gives null, and FALSE for
REGEXP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import strictly
from flinkpy.columns.sql.sql_meanings.texts.java_patterns import java_pattern, java_split


def regexp(text: str, pattern: str) -> bool:
    """Whether the pattern is found; an empty one never is."""
    compiled = java_pattern(pattern)
    return bool(pattern) and compiled is not None and compiled.search(text) is not None


def _with_pattern(function: Callable[..., Any]) -> MeaningOf:
    """Null for null, and for what is no pattern."""

    def of_values(text: str, pattern: str, *more: Any) -> Any:
        compiled = java_pattern(pattern)
        return None if compiled is None else function(text, compiled, *more)

    return strictly(of_values)


def _replace(text: str, pattern: Any, replacement: str) -> str:
    return str(pattern.sub(lambda _: replacement, text))


def _extract(text: str, pattern: Any, group: int = 0) -> str | None:
    found = pattern.search(text)
    return found[group] if found and 0 <= group <= pattern.groups else None


def _extract_all(text: str, pattern: Any, group: int = 1) -> list[str | None] | None:
    if not 0 <= group <= pattern.groups:
        return None
    return [found[group] for found in pattern.finditer(text)]


def _count(text: str, pattern: Any) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _place(text: str, pattern: Any) -> int:
    found = pattern.search(text)
    return found.start() + 1 if found else 0


def str_to_map(text: str, between: str = ",", inside: str = "=") -> dict[str, str | None]:
    """A map of the pairs of a text; both separators are patterns. Raises ValueError for what is
    none."""
    pairs, parts = java_pattern(between), java_pattern(inside)
    if pairs is None or parts is None:
        raise ValueError(f"STR_TO_MAP: {(between, inside)} are not both patterns")
    found: dict[str, str | None] = {}
    for pair in java_split(pairs, text) if text else []:
        key, *value = java_split(parts, pair, 2)
        found[key] = value[0] if value else None
    return found


REGEX_MEANINGS: dict[str, MeaningOf] = {
    "REGEXP": strictly(regexp),
    "REGEXP_REPLACE": _with_pattern(_replace),
    "REGEXP_EXTRACT": _with_pattern(_extract),
    "REGEXP_EXTRACT_ALL": _with_pattern(_extract_all),
    "REGEXP_COUNT": _with_pattern(_count),
    "REGEXP_INSTR": _with_pattern(_place),
    "REGEXP_SUBSTR": _with_pattern(_extract),
    "STR_TO_MAP": strictly(str_to_map),
}
