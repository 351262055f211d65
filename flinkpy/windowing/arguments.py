"""What the program says a window's size is, as milliseconds or a count; mistakes are refused while it is built."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

from flinkpy.common.time import Time, to_milliseconds
from flinkpy.core.program.program_line import refuse

Span: TypeAlias = Time | timedelta


def milliseconds_of(span: Any, what: str) -> int:
    """A Time or Duration in whole milliseconds."""
    if not isinstance(span, (Time, timedelta)):
        raise refuse(f"{what} is a Time or a Duration, such as Time.seconds(10), this is {span!r:.80}")
    return to_milliseconds(span)


def positive(number: Any, what: str) -> int:
    """A whole number from 1 on."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise refuse(f"{what} is a whole number from 1 on, this is {number!r:.80}")
    return number


def offset_within(offset: Any, span: int, what: str, of: str) -> int:
    """An offset that shifts windows by less than ``span``, in either direction."""
    if isinstance(offset, bool) or not isinstance(offset, int) or abs(offset) >= span:
        raise refuse(f"{what}: the offset ({offset!r:.80} ms) must be smaller than the {of} ({span} ms), in either direction")
    return offset
