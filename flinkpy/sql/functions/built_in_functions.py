"""SQL's own functions by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache

from flinkpy.sql.functions.built_in.absent_functions import ABSENT
from flinkpy.sql.functions.built_in_function import BuiltInFunction

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

    @cached_property
    def _functions(self) -> Mapping[str, BuiltInFunction]:
        from flinkpy.sql.functions.built_in.chapters import CHAPTERS

        entries = (entry for chapter in CHAPTERS.values() for entry in chapter)
        return {each.name.upper(): each for each in entries}

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
