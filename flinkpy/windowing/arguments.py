"""Checks the arguments of windows: sizes, counts, offsets, thresholds. Mistakes are refused while
the program is built."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from numbers import Real
from typing import Any, TypeAlias

from flinkpy.common.time import Time, to_milliseconds
from flinkpy.core.program.program_line import refuse

Span: TypeAlias = Time | timedelta


def milliseconds_of(span: object, what: str) -> int:
    """A Time or a timedelta in whole milliseconds; raises ProgramError for anything else."""
    if not isinstance(span, (Time, timedelta)):
        raise refuse(
            f"{what} is a Time or a Duration, such as Time.seconds(10), this is {span!r:.80}"
        )
    return to_milliseconds(span)


def positive(number: object, what: str) -> int:
    """The number, if it is an integer from 1 on; else raises ProgramError."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise refuse(f"{what} is a whole number from 1 on, this is {number!r:.80}")
    return number


def offset_within(offset: object, span: int, what: str, of: str) -> int:
    """An offset, if it shifts windows by less than ``span`` in either direction; else raises
    ProgramError."""
    if isinstance(offset, bool) or not isinstance(offset, int) or abs(offset) >= span:
        raise refuse(
            f"{what}: the offset ({offset!r:.80} ms) must be smaller than the {of} ({span} "
            "ms), in either direction"
        )
    return offset


def threshold_of(threshold: object, what: str) -> float:
    """The threshold of a delta function: a number."""
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise refuse(f"{what}: the threshold is a number, this is {threshold!r:.80}")
    return threshold  # type: ignore[return-value]


def delta_of(function: Any) -> Callable[[Any, Any], float]:
    """The delta function: a callable of an old and a new record, or an object with
    ``get_delta``."""
    found = getattr(function, "get_delta", function)
    if isinstance(function, type) or not callable(found):
        raise refuse(
            f"a delta function takes an old and a new record, {function!r:.80} cannot be called"
        )
    return found  # type: ignore[no-any-return]
