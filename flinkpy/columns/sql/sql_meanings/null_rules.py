"""What functions do with null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf


def strict(function: Callable[..., Any]) -> Meaning:
    """Null if an argument is null, else what ``function`` gives."""

    def of_values(*values: Any) -> Any:
        for value in values:
            if value is None:
                return None
        return function(*values)

    return of_values


def strictly(function: Callable[..., Any]) -> MeaningOf:
    """A function that gives null for null, and does the same wherever it is called."""
    meaning = strict(function)
    return lambda site: meaning


def always(function: Callable[..., Any]) -> MeaningOf:
    """A function that takes null as it is, and does the same wherever it is called."""
    return lambda site: function


def negated(meaning_of: MeaningOf) -> MeaningOf:
    """NOT of a function: null where that is null."""

    def choose(site: CallSite) -> Meaning:
        meaning = meaning_of(site)

        def opposite(*values: Any) -> Any:
            found = meaning(*values)
            return None if found is None else not found

        return opposite

    return choose
