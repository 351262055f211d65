"""The keys of events that a pattern operator takes."""

from __future__ import annotations

from collections.abc import Callable
from operator import length_hint
from typing import Any

from flinkpy.core.keys import canonical_keys
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.user_errors import user_code_error


def keys_of_events(
    select: Callable[[Any], Any], events: list[Any], context: OperatorContext
) -> list[Any]:
    """One key for each event; an error of the selector names the event."""
    upcoming = iter(events)
    try:
        keys = list(map(select, upcoming))
        if len(keys) < len(events):  # a StopIteration of the selector ends a map without a word
            upcoming = iter(events)
            keys = [select(event) for event in upcoming]
        return canonical_keys(keys)
    except BaseException as error:  # the iterator knows how far it got
        at = len(events) - length_hint(upcoming) - 1
        raise user_code_error(error, context, events[at]) from error
