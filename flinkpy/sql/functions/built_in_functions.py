"""SQL's own functions by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from flinkpy.sql.functions.built_in.absent_functions import ABSENT
from flinkpy.sql.functions.built_in.aggregate_entries import AGGREGATES, RANKS
from flinkpy.sql.functions.built_in.arithmetic_entries import ARITHMETIC
from flinkpy.sql.functions.built_in.bitmap_entries import BITMAPS
from flinkpy.sql.functions.built_in.collection_entries import COLLECTIONS, CONSTRUCTORS
from flinkpy.sql.functions.built_in.comparison_entries import COMPARISONS, LOGIC
from flinkpy.sql.functions.built_in.conditional_entries import CONDITIONALS, CONVERSIONS
from flinkpy.sql.functions.built_in.json_entries import JSON
from flinkpy.sql.functions.built_in.temporal_entries import GROUP_WINDOWS, TEMPORALS
from flinkpy.sql.functions.built_in.text_entries import HASHES, TEXTS
from flinkpy.sql.functions.built_in_function import BuiltInFunction

# Chapters, in the order of the reference.
CHAPTERS: Mapping[str, Sequence[BuiltInFunction]] = {
    "comparison": COMPARISONS,
    "logic": LOGIC,
    "arithmetic": ARITHMETIC,
    "text": TEXTS,
    "time": TEMPORALS,
    "choice": CONDITIONALS,
    "conversion": CONVERSIONS,
    "collections": COLLECTIONS,
    "json": JSON,
    "construction and access": CONSTRUCTORS,
    "hashes": HASHES,
    "bitmaps": BITMAPS,
    "aggregates": AGGREGATES,
    "ranks": RANKS,
    "windows of GROUP BY": GROUP_WINDOWS,
}

# Other names of the same functions. Plans keep the name on the right.
ALIASES: Mapping[str, str] = {
    "!=": "<>",
    "MOD": "%",
    "CEILING": "CEIL",
    "CHARACTER_LENGTH": "CHAR_LENGTH",
    "VARIANCE": "VAR_SAMP",
    "STDDEV": "STDDEV_SAMP",
}


class BuiltInFunctions:
    """The registry of SQL's own functions. It never changes."""

    def __init__(self) -> None:
        entries = (entry for chapter in CHAPTERS.values() for entry in chapter)
        self._functions = {each.name.upper(): each for each in entries}

    def find(self, name: str) -> BuiltInFunction | None:
        """The function of that name, in any case."""
        key = name.upper()
        return self._functions.get(ALIASES.get(key, key))

    def absence(self, name: str) -> str | None:
        """Why a function of Flink is not there; None for names that Flink does not have either."""
        return ABSENT.get(name.upper())

    def names(self) -> Sequence[str]:
        """All names, in order."""
        return sorted([*(each.name for each in self._functions.values()), *ALIASES])


@lru_cache(maxsize=1)
def built_in_functions() -> BuiltInFunctions:
    """The registry of SQL's own functions."""
    return BuiltInFunctions()
