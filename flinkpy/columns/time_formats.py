"""Formats of dates and times: Java's pattern letters, as in Flink (``yyyy-MM-dd HH:mm``), and
Python's directives (``%Y-%m-%d %H:%M``).

A format becomes a list of pieces. The row form and the kernels both work on these, so they agree on
every format."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from flinkpy.core.errors import ProgramError

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALVES = ("AM", "PM")


@dataclass(frozen=True)
class Field:
    """A number of ``least`` to ``most`` digits, written with zeros up to ``width``; or a name out
    of ``names``, which are in the order of the numbers from ``lowest``; or the last two digits of a
    year of the hundred from ``century``."""

    part: str
    width: int = 2
    least: int = 2
    most: int = 2
    names: tuple[str, ...] = ()
    lowest: int = 1
    century: int | None = None


Piece: TypeAlias = "str | Field"


def _short(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:3] for name in names)


_NAMES = {
    "MMM": Field("month", names=_short(MONTHS)),
    "MMMM": Field("month", names=MONTHS),
    "EEE": Field("weekday", names=_short(WEEKDAYS)),
    "EEEE": Field("weekday", names=WEEKDAYS),
    "a": Field("half", names=HALVES, lowest=0),
}
_TWO_DIGITS = {"M": "month", "d": "day", "H": "hour", "h": "hour12", "m": "minute", "s": "second"}
_JAVA = {
    "yyyy": Field("year", 4, 4, 4),
    "yy": Field("year", century=2000),
    **{2 * letter: Field(part) for letter, part in _TWO_DIGITS.items()},
    **{letter: Field(part, 1, 1) for letter, part in _TWO_DIGITS.items()},
    **{"S" * digits: Field("fraction", digits, digits, digits) for digits in range(1, 10)},
    **_NAMES,
}
_PYTHON = {
    "Y": Field("year", 4, 4, 4),
    "y": Field("year", century=1969),
    **{
        letter: Field(part, 2, 1)
        for letter, part in {
            "m": "month",
            "d": "day",
            "H": "hour",
            "I": "hour12",
            "M": "minute",
            "S": "second",
        }.items()
    },
    "f": Field("fraction", 6, 1, 6),
    "p": _NAMES["a"],
    "b": _NAMES["MMM"],
    "B": _NAMES["MMMM"],
    "a": _NAMES["EEE"],
    "A": _NAMES["EEEE"],
}


@functools.lru_cache(maxsize=256)
def pieces_of(pattern: str) -> tuple[Piece, ...]:
    """The pieces of a format. Raises ProgramError for a letter that has no meaning here.

    >>> pieces_of("HH:mm")[1], pieces_of("'at' HH")[0]
    (':', 'at')
    """
    read, known = (_of_python, _PYTHON) if "%" in pattern else (_of_java, _JAVA)
    try:
        return tuple(read(pattern))
    except KeyError as error:
        wrong = error.args[0]
        meant = next(
            (f"did you mean {letters!r}?" for letters in known if letters.lower() == wrong.lower()),
            f"there are {', '.join(known)}",
        )
        raise ProgramError(
            f"the format {pattern!r} has {wrong!r}, which is not there; {meant}"
        ) from None


def _of_python(pattern: str) -> Iterator[Piece]:
    for letter, literal in re.findall(r"%(.|$)|([^%]+)", pattern, re.DOTALL):
        yield literal or ("%" if letter == "%" else _PYTHON[letter])


def _of_java(pattern: str) -> Iterator[Piece]:
    for quoted, run, _, literal in re.findall(
        r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+|')", pattern
    ):
        yield _JAVA[run] if run else literal or quoted.replace("''", "'") or "'"


def check_readable(pattern: str, where: str) -> None:
    """Raises ProgramError for a format that does not say which day it is, or says something
    twice."""
    parts = [piece.part for piece in pieces_of(pattern) if isinstance(piece, Field)]
    doubled = sorted({part for part in parts if parts.count(part) > 1})
    missing = [part for part in ("year", "month", "day") if part not in parts]
    if doubled or missing:
        raise ProgramError(
            f"{where}: the format {pattern!r} "
            + (f"has the {doubled[0]} twice" if doubled else f"has no {missing[0]}")
        )
    if ("hour12" in parts) != ("half" in parts) or {"hour", "hour12"} <= set(parts):
        raise ProgramError(
            f"{where}: the format {pattern!r} needs an hour from 0 to 23, or one from 1 to 12 "
            "with AM or PM"
        )


@functools.lru_cache(maxsize=256)
def reading(pattern: str) -> str:
    """A regular expression for the whole text, with a named group for each field; Python and RE2
    read it alike.

    >>> reading("d.M.yyyy")
    '(?P<day>[0-9]{1,2})\\\\.(?P<month>[0-9]{1,2})\\\\.(?P<year>[0-9]{4,4})'
    """
    return "".join(
        _escaped(piece) if isinstance(piece, str) else f"(?P<{piece.part}>{_readable(piece)})"
        for piece in pieces_of(pattern)
    )


def _escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in string.punctuation else sign for sign in text)


def _readable(field: Field) -> str:
    if not field.names:
        return f"[0-9]{{{field.least},{field.most}}}"
    return "|".join(
        "".join(f"[{sign.upper()}{sign.lower()}]" for sign in name) for name in field.names
    )


def number_of(field: Field) -> Callable[[str], int]:
    """Makes a number of a field's text."""
    if field.names:
        return {
            name.lower(): number for number, name in enumerate(field.names, field.lowest)
        }.__getitem__
    if (century := field.century) is not None:
        return lambda text: century + (int(text) - century) % 100
    return (lambda text: int(text.ljust(6, "0")[:6])) if field.part == "fraction" else int


def fields_of(pattern: str) -> tuple[Field, ...]:
    """The fields of a format, in their order."""
    return tuple(piece for piece in pieces_of(pattern) if isinstance(piece, Field))
