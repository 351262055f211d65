"""How the value of an option is written."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum


def text_of(value: object) -> str:
    """A value as it may be written in a file or after ``-D``.

    >>> from datetime import timedelta
    >>> text_of(timedelta(seconds=3)), text_of(timedelta(milliseconds=1500)), text_of(True)
    ('3 s', '1500 ms', 'true')
    """
    if isinstance(value, timedelta):
        if value % timedelta(seconds=1):
            return f"{value / timedelta(milliseconds=1):.12g} ms"
        return f"{value // timedelta(seconds=1)} s"
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value)
