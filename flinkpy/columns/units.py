"""Units of time: PyFlink's two enums, and the names under which expressions keep them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum

from flinkpy.core.errors import ProgramError


class TimeIntervalUnit(Enum):
    """Units for ``extract``, ``floor`` and ``ceil``. Their names in lower case, such as ``"day"``,
    will do too."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"


class TimePointUnit(Enum):
    """Units for ``timestamp_diff``. Their names in lower case, such as ``"day"``, will do too."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    MILLISECOND = "millisecond"
    MICROSECOND = "microsecond"


# Microseconds of the units that always last equally long
MICROSECONDS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
# Months of the units that do not
MONTHS = {"month": 1, "quarter": 3, "year": 12}
WHOLE_DAYS = ("year", "quarter", "month", "week", "day")  # units that begin at midnight
TRUNCATED_TO = (*WHOLE_DAYS, "hour", "minute", "second")
PARTS_OF_DAYS = ("year", "quarter", "month", "week", "day", "isoyear", "doy", "isodow")
PARTS_OF_TIMES = ("hour", "minute", "second", "millisecond", "microsecond")
BETWEEN = (*MONTHS, *MICROSECONDS)


def unit_name(unit: object, allowed: Iterable[str], where: str) -> str:
    """The unit's name in lower case. Raises ProgramError if it is none of the ``allowed``.

    >>> (
    ...     unit_name(TimeIntervalUnit.DAY, TRUNCATED_TO, "floor()"),
    ...     unit_name("Hour", TRUNCATED_TO, "floor()"),
    ... )
    ('day', 'hour')
    """
    name = unit.value if isinstance(unit, Enum) else unit
    known = list(allowed)
    if isinstance(name, str) and name.lower() in known:
        return name.lower()
    near = difflib.get_close_matches(name.lower(), known, n=1) if isinstance(name, str) else []
    hint = f"did you mean {near[0]!r}?" if near else f"take one of {', '.join(known)}"
    raise ProgramError(f"{where} knows no unit {unit!r:.80}; {hint}")
