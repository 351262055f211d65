"""LIKE and SIMILAR TO."""

from __future__ import annotations

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import negated, strictly
from flinkpy.columns.sql.sql_meanings.sql_patterns import like_pattern, similar_pattern


def is_like(text: str, pattern: str, escape: str | None = None) -> bool:
    """``text LIKE pattern [ESCAPE escape]``."""
    return like_pattern(pattern, escape).fullmatch(text) is not None


def is_similar(text: str, pattern: str, escape: str | None = None) -> bool:
    """``text SIMILAR TO pattern [ESCAPE escape]``."""
    return similar_pattern(pattern, escape).fullmatch(text) is not None


PATTERN_MEANINGS: dict[str, MeaningOf] = {
    "LIKE": strictly(is_like),
    "NOT LIKE": negated(strictly(is_like)),
    "SIMILAR TO": strictly(is_similar),
    "NOT SIMILAR TO": negated(strictly(is_similar)),
}
