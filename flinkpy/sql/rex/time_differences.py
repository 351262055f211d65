"""``(a - b) DAY``: the interval between two times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flinkpy.common.logical_types.logical_type import (
    DateType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    TimestampType,
    YearMonthIntervalType,
)
from flinkpy.sql.rex.coercion import bare, cast, in_common
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexLiteral
from flinkpy.sql.sql_errors import Span, ValidationError

Options = tuple[tuple[str, object], ...]
_POINTS_IN_TIME = (DateType, TimestampType, LocalZonedTimestampType)
_ONE_MONTH = RexLiteral(YearMonthIntervalType(is_nullable=False), value=1)


def time_between(
    arguments: Sequence[Rex], unit: Options, called: Callable[..., Rex], span: Span
) -> Rex:
    """As many months, or milliseconds, as lie between two times. ``called`` makes the call of a
    function. Raises ValidationError for what are no times."""
    if any(not isinstance(each.type, _POINTS_IN_TIME) for each in arguments):
        kinds = " - ".join(str(bare(each.type)) for each in arguments)
        raise ValidationError(
            f"An interval is between two dates or timestamps, and this is {kinds}", span=span
        )
    common, (until, since) = in_common(arguments, "The two times")
    if dict(unit)["unit"] == "MONTH":
        return called(
            "*", (called("TIMESTAMPDIFF", (since, until), unit, span), _ONE_MONTH), (), span
        )
    is_local = isinstance(common, LocalZonedTimestampType)
    millis = LocalZonedTimestampType(3) if is_local else TimestampType(3)
    return RexCall(
        DayTimeIntervalType(is_nullable=common.is_nullable),
        function="-",
        arguments=(cast(until, millis), cast(since, millis)),
        span=span,
    )
