"""What an event time can be: a whole number of milliseconds since 1970, a datetime or a date.

Anything else is an error that shows the record. Numbers end at 2**62: beyond it are the watermarks
of loops and the end of event time, so a window or a timer there would never fire."""

from __future__ import annotations

import datetime
import sys
from array import array
from typing import Any

from flinkpy.core.elements import BEYOND_TIME, MIN_TIMESTAMP, Batch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.users_values import bounded_repr, whole_number
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.user_errors import user_code_error

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_ONLY_INTEGERS = frozenset({int})
_HIGHEST_BYTE = 7 if sys.byteorder == "little" else 0
# the highest byte of the numbers from -2**62 to below 2**62
_OF_TIMES = bytes([*range(0x40), *range(0xC0, 0x100)])


def times_of(
    values: list[Any],
    stamps: list[Any],
    context: OperatorContext,
    given_by: str,
    *,
    none: int | None = None,
) -> list[int]:
    """The stamps of these records as milliseconds; ``none`` stays, as it says that a record has no
    time. An error shows the first record whose stamp is no time, and that ``given_by`` gave it."""
    if are_times(stamps):
        return stamps
    found = []
    for value, stamp in zip(values, stamps):
        try:
            found.append(
                none if none is not None and stamp == none else milliseconds(stamp, given_by)
            )
        except (TypeError, ValueError) as error:
            raise user_code_error(error, context, value) from None
    return found


def checked_times(batch: Batch, context: OperatorContext, given_by: str) -> Batch:
    """The batch of a user's reader, if each of its records has a time; those of rows as
    milliseconds."""
    stamps: Any = batch.timestamps
    if len(stamps) != len(batch):
        raise ProgramError(
            f"source {context.name!r}: {given_by} gave {len(batch)} records and {len(stamps)} "
            "timestamps; each record has one"
        )
    if isinstance(batch, RowBatch):
        return RowBatch(
            batch.values, times_of(batch.values, stamps, context, given_by, none=MIN_TIMESTAMP)
        )
    if str(getattr(stamps, "dtype", "")) != "int64":
        raise ProgramError(
            f"source {context.name!r}: {given_by} gave timestamps of columns that are no numpy "
            f"array of int64, but {bounded_repr(stamps, 60)}"
        )
    return batch


def are_times(stamps: list[Any]) -> bool:
    """Whether all are plain numbers of milliseconds within event time. In C, as it is asked for
    every batch."""
    if not _ONLY_INTEGERS.issuperset(map(type, stamps)):
        return False
    try:
        packed = array("q", stamps)
    except OverflowError:
        return False
    return not packed.tobytes()[_HIGHEST_BYTE::8].translate(None, _OF_TIMES)


def milliseconds(moment: object, given_by: str = "the assigner") -> int:
    """A datetime, date or integer as milliseconds since 1970-01-01 UTC. Raises TypeError for
    anything else, and ValueError for numbers beyond event time.

    >>> (
    ...     milliseconds(datetime.datetime(1970, 1, 1, 0, 0, 1)),
    ...     milliseconds(datetime.date(1970, 1, 2)),
    ... )
    (1000, 86400000)
    """
    # pandas' NaT is a datetime, and not equal to itself
    if isinstance(moment, datetime.datetime) and moment == moment:
        aware = (
            moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.timezone.utc)
        )
        return (aware - _EPOCH) // _MILLISECOND
    if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
        return (moment.toordinal() - _EPOCH.toordinal()) * 86_400_000
    number = whole_number(moment)
    if number is not None:
        if -BEYOND_TIME <= number < BEYOND_TIME:
            return number
        raise ValueError(
            f"{given_by} gave {number} as event time, which is in milliseconds since 1970 and "
            "ends at 2**62"
        )
    raise TypeError(
        f"a timestamp is a whole number of milliseconds or a datetime, {given_by} gave "
        f"{bounded_repr(moment, 60)}"
    )
