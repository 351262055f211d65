"""Constants: their values, and the types that Flink gives them."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal

from flinkpy.common.logical_types.logical_type import (
    MOST_DIGITS,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    NullType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)
from flinkpy.sql.parsing.sql_tokens import TokenKind
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.parsing.type_grammar import MONTH_UNITS, SECOND_UNITS, interval_units
from flinkpy.sql.syntax.query_tree import CastCall, SqlLiteral

_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)")
_TIME = re.compile(r"(\d\d?):(\d\d?):(\d\d?)(?:\.(\d{1,9}))?")
_MILLISECONDS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000}
_MOST = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}  # behind a greater unit
_BETWEEN = {"YEAR": "-", "DAY": " ", "HOUR": ":", "MINUTE": ":"}  # a unit and the next smaller one
WHOLE_WEEKS_AND_QUARTERS = {
    "WEEK": ("DAY", 7 * 86_400_000),
    "WEEKS": ("DAY", 7 * 86_400_000),
    "QUARTER": ("MONTH", 3),
    "QUARTERS": ("MONTH", 3),
}
_LEADING_DIGITS = 2  # of the first part, if no other number was declared
_MICROSECOND_DIGITS = 6
_LEAST_TOO_LARGE = 2**63  # of the digits of a number, without its point
_LEAST: dict[str, LogicalType] = {
    str(2**31): IntType(is_nullable=False),
    str(2**63): BigIntType(is_nullable=False),
}


def literal(cursor: TokenCursor) -> SqlLiteral:
    """A constant, also a number with a sign."""
    found = optional_literal(cursor)
    if found is not None:
        return found
    least = least_integer(cursor)
    if least is not None:
        return least
    start = cursor.start
    sign = cursor.accept_one("-", "+")
    if sign is None or cursor.next.kind != TokenKind.NUMBER:
        cursor.unexpected("a constant")
    number = _number(cursor)
    value = -number.value if sign == "-" else number.value  # type: ignore[operator]
    return SqlLiteral(value, number.type, span=cursor.span_from(start))


def optional_literal(cursor: TokenCursor) -> SqlLiteral | None:
    """The constant that comes next, if one does."""
    token = cursor.next
    if token.kind == TokenKind.NUMBER:
        return _number(cursor)
    if token.kind == TokenKind.TEXT:
        return _text(cursor)
    if token.kind == TokenKind.BYTES:
        cursor.take()
        value = bytes.fromhex(token.value)
        return SqlLiteral(value, BinaryType(len(value), is_nullable=False), span=token.span)
    if token.key in ("TRUE", "FALSE"):
        cursor.take()
        return SqlLiteral(token.key == "TRUE", BooleanType(is_nullable=False), span=token.span)
    if token.key == "NULL":
        cursor.take()
        return SqlLiteral(None, NullType(), span=token.span)
    if token.key in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead(1).kind == TokenKind.TEXT:
        return _temporal(cursor)
    if token.key == "INTERVAL" and not at_interval_of_value(cursor):
        return _interval(cursor)
    return None


def at_interval_of_value(cursor: TokenCursor) -> bool:
    """Whether an interval comes next whose amount is a number, a name or an expression."""
    if not cursor.at("INTERVAL"):
        return False
    amount, unit = cursor.ahead(1), cursor.ahead(2)
    names = (TokenKind.NUMBER, TokenKind.QUOTED_NAME, TokenKind.WORD)
    return amount.key == "(" or (amount.kind in names and unit.kind != TokenKind.END)


def least_integer(cursor: TokenCursor) -> SqlLiteral | None:
    """``-2147483648`` or ``-9223372036854775808``, if it comes next: an INT and a BIGINT that are
    none without their sign."""
    number = cursor.ahead(1)
    type = _LEAST.get(number.value) if number.kind == TokenKind.NUMBER else None
    if type is None or not cursor.at("-"):
        return None
    start = cursor.start
    cursor.take()
    cursor.take()
    return SqlLiteral(-int(number.value), type, span=cursor.span_from(start))


def _number(cursor: TokenCursor) -> SqlLiteral:
    token = cursor.take()
    if "e" in token.value.lower():
        value = float(token.value)
        if value in (float("inf"), float("-inf")):
            cursor.fail(f"{token.value} is beyond what a DOUBLE holds", token.span)
        return SqlLiteral(value, DoubleType(is_nullable=False), span=token.span)
    whole, _, behind = token.value.partition(".")
    exact = int(whole + behind)
    if exact >= _LEAST_TOO_LARGE:
        _refuse_large(cursor, len(whole + behind), len(behind))
    if not behind:
        type = IntType(is_nullable=False) if exact < 2**31 else BigIntType(is_nullable=False)
        return SqlLiteral(exact, type, span=token.span)
    digits = len(whole) + len(behind)
    if digits > MOST_DIGITS:
        problem = f"a DECIMAL has at most {MOST_DIGITS} digits, this one has {digits}"
        cursor.fail(problem, token.span)
    return SqlLiteral(
        Decimal(token.value), DecimalType(digits, len(behind), is_nullable=False), span=token.span
    )


def _refuse_large(cursor: TokenCursor, digits: int, scale: int) -> None:
    """As Flink does, whose constants have 64 bits."""
    token = cursor.last
    problem = f"Numeric literal '{token.value}' out of range: its digits need more than 64 bits"
    if digits > MOST_DIGITS:
        advice = f", and a DECIMAL has at most {MOST_DIGITS}; with an exponent (1e0) it is a DOUBLE"
    else:
        advice = f"; write CAST('{token.value}' AS DECIMAL({digits}, {scale}))"
    cursor.fail(problem + advice, token.span)


def _text(cursor: TokenCursor) -> SqlLiteral:
    """A text; the SQL standard joins those that stand on lines of their own."""
    start = cursor.start
    value = cursor.take().value
    while cursor.next.kind == TokenKind.TEXT:
        if "\n" not in cursor.text[cursor.last.span.end : cursor.start]:
            cursor.fail("two texts stand side by side; join them with ||")
        value += cursor.take().value
    return SqlLiteral(value, CharType(len(value), is_nullable=False), span=cursor.span_from(start))


# -- dates and times -------------------------------------------------------------------------------


def _temporal(cursor: TokenCursor) -> SqlLiteral:
    start = cursor.start
    kind = cursor.take().key
    written = cursor.take().value
    try:
        value, type = _TEMPORAL[kind](written)
    except ValueError as error:
        cursor.fail(f"{kind} '{written}': {error}", cursor.span_from(start))
    return SqlLiteral(value, type.not_null(), span=cursor.span_from(start))


def optional_zoned_timestamp(cursor: TokenCursor) -> CastCall | None:
    """``TIMESTAMP WITH LOCAL TIME ZONE '...'``, if it comes next: the moment when a clock in the
    session's zone shows that."""
    start = cursor.start
    if not cursor.accept("TIMESTAMP", "WITH", "LOCAL", "TIME", "ZONE"):
        return None
    if cursor.next.kind != TokenKind.TEXT:
        cursor.unexpected("a text such as '2024-12-31 23:59:59'")
    span = cursor.next.span
    try:
        value, type = _timestamp(cursor.take().value)
    except ValueError as error:
        cursor.fail(str(error), span)
    assert isinstance(type, TimestampType)
    shown = SqlLiteral(value, type.not_null(), span=span)
    return CastCall(shown, LocalZonedTimestampType(type.precision), span=cursor.span_from(start))


def _date(written: str) -> tuple[date, LogicalType]:
    found = _DATE.fullmatch(written)
    if found is None:
        raise ValueError("a date is written as '2024-12-31'")
    year, month, day = map(int, found.groups())
    try:
        return date(year, month, day), DateType()
    except ValueError:
        raise ValueError("there is no such day") from None


def _time(written: str) -> tuple[time, LogicalType]:
    found = _TIME.fullmatch(written)
    if found is None:
        raise ValueError("a time is written as '23:59:59' or '23:59:59.123'")
    hour, minute, second = (int(part) for part in found.groups()[:3])
    fraction = found[4] or ""
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("there is no such time of the day")
    if fraction[_MICROSECOND_DIGITS:].strip("0"):
        raise ValueError(
            "a constant has at most 6 digits of a second; CAST('...' AS TIMESTAMP(9)) takes 9"
        )
    micros = int(fraction.ljust(_MICROSECOND_DIGITS, "0")[:_MICROSECOND_DIGITS])
    return time(hour, minute, second, micros), TimeType(len(fraction))


def _timestamp(written: str) -> tuple[datetime, LogicalType]:
    day, _, rest = written.partition(" ")
    try:
        on, _ = _date(day)
        at, type = _time(rest) if rest else (time(), TimeType(0))
    except ValueError as error:
        if "written as" not in str(error):
            raise
        raise ValueError(
            "a timestamp is written as '2024-12-31 23:59:59' or '2024-12-31 23:59:59.123'"
        ) from None
    assert isinstance(type, TimeType)
    return datetime.combine(on, at), TimestampType(type.precision)


_TEMPORAL = {"DATE": _date, "TIME": _time, "TIMESTAMP": _timestamp}


# -- intervals -------------------------------------------------------------------------------------


def _interval(cursor: TokenCursor) -> SqlLiteral:
    start = cursor.start
    cursor.expect("INTERVAL")
    sign = -1 if cursor.accept_one("-", "+") == "-" else 1
    if cursor.next.kind != TokenKind.TEXT:
        cursor.unexpected("the amount of the interval, as in INTERVAL '1' DAY")
    written = cursor.take().value
    if cursor.next.key in WHOLE_WEEKS_AND_QUARTERS:
        return _of_many(cursor, start, sign, written)
    units, text = interval_units(cursor)
    if units[0] in MONTH_UNITS:
        type: LogicalType = YearMonthIntervalType(text, is_nullable=False)
    else:
        type = DayTimeIntervalType(text, is_nullable=False)
    try:
        value = sign * _amount(written, units, text)
    except ValueError as error:
        cursor.fail(f"INTERVAL '{written}' {text}: {error}", cursor.span_from(start))
    return SqlLiteral(value, type, span=cursor.span_from(start))


def _of_many(cursor: TokenCursor, start: int, sign: int, written: str) -> SqlLiteral:
    """``INTERVAL '2' WEEK`` and ``INTERVAL '2' QUARTER``: days and months."""
    unit, factor = WHOLE_WEEKS_AND_QUARTERS[cursor.take().key]
    span = cursor.span_from(start)
    if re.fullmatch(r"[+-]?\d{1,2}", written.strip()) is None:
        cursor.fail(f"INTERVAL '{written}' {cursor.last.key}: it is written as '1'", span)
    value = sign * int(written) * factor
    if unit == "MONTH":
        return SqlLiteral(value, YearMonthIntervalType(unit, is_nullable=False), span=span)
    return SqlLiteral(value, DayTimeIntervalType(unit, is_nullable=False), span=span)


def one_of_unit(cursor: TokenCursor) -> SqlLiteral:
    """The unit behind the amount of an interval, as one of it."""
    start = cursor.start
    if cursor.next.key in WHOLE_WEEKS_AND_QUARTERS:
        return _of_many(cursor, start, 1, "1")
    units, text = interval_units(cursor)
    span = cursor.span_from(start)
    if len(units) > 1:
        cursor.fail("an amount that is no text has one unit", span)
    if units[0] in MONTH_UNITS:
        months = {"YEAR": 12, "MONTH": 1}[units[0]]
        return SqlLiteral(months, YearMonthIntervalType(text, is_nullable=False), span=span)
    value = _MILLISECONDS[units[0]]
    return SqlLiteral(value, DayTimeIntervalType(text, is_nullable=False), span=span)


def _amount(written: str, units: tuple[str, ...], text: str) -> int:
    """Months or milliseconds."""
    parts = _parts(units)
    pattern = r"\s*([+-]?)" + "".join(
        rf"(\d+){re.escape(_BETWEEN[unit]) if unit != parts[-1] else ''}" for unit in parts
    )
    if parts[-1] == "SECOND":
        pattern += r"(?:\.(\d{1,9}))?"
    found = re.fullmatch(pattern + r"\s*", written)
    if found is None:
        raise ValueError(f"it is written as {_example(parts)}")
    numbers = [int(each) for each in found.groups()[1 : len(parts) + 1]]
    _check_parts(parts, numbers, text)
    if parts[0] in MONTH_UNITS:
        factors = {"YEAR": 12, "MONTH": 1}
    else:
        factors = _MILLISECONDS
    amount = sum(number * factors[unit] for unit, number in zip(parts, numbers))
    if parts[-1] == "SECOND":
        amount += int((found[len(parts) + 2] or "").ljust(3, "0")[:3])
    return -amount if found[1] == "-" else amount


def _parts(units: tuple[str, ...]) -> tuple[str, ...]:
    """The units from the greatest to the least."""
    family = MONTH_UNITS if units[0] in MONTH_UNITS else SECOND_UNITS
    return family[family.index(units[0]) : family.index(units[-1]) + 1]


def _check_parts(parts: tuple[str, ...], numbers: list[int], text: str) -> None:
    declared = re.match(r"\w+\((\d+)", text)
    digits = int(declared[1]) if declared is not None else _LEADING_DIGITS
    if numbers[0] >= 10**digits:
        more = len(str(numbers[0]))
        problem = f"{numbers[0]} has {more} digits, {digits} are allowed"
        raise ValueError(f"{problem}; write {parts[0]}({more}) for more")
    for unit, number in zip(parts[1:], numbers[1:]):
        if number > _MOST[unit]:
            raise ValueError(f"{unit} is at most {_MOST[unit]} here, not {number}")


def _example(parts: tuple[str, ...]) -> str:
    numbers = {"YEAR": "1", "MONTH": "2", "DAY": "1", "HOUR": "10", "MINUTE": "30", "SECOND": "5"}
    shown = "".join(numbers[unit] + (_BETWEEN[unit] if unit != parts[-1] else "") for unit in parts)
    return f"'{shown}'"
