"""What is wrong with a statement: the error shows the statement with a caret below the place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from flinkpy.core.errors import ProgramError
from flinkpy.core.secrets.hidden_secrets import is_sensitive


@dataclass(frozen=True)
class Span:
    """Characters ``start`` to before ``end`` of a statement's text."""

    start: int
    end: int

    def hull(self, other: Span) -> Span:
        """From the beginning of the first to the end of the last."""
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)
_QUOTED = re.compile(r"'([^']+)'|`([^`]+)`")
_OPTION = re.compile(r"('([^'\n]*)'\s*=\s*')((?:[^'\n]|'')*)'")
_FEW = 12


def _clause(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_CLAUSES = {  # what a statement says where a plan has an operator
    "node GroupAggregate(": _clause(
        r"\bGROUP\s+BY\b|\bSELECT\s+DISTINCT\b|\bINTERSECT\b|\bUNION\b(?!\s+ALL)"
    ),
    "node Join(": _clause(
        r"\b(?:LEFT|RIGHT|FULL)(?:\s+OUTER)?\s+JOIN\b|\bEXCEPT\b|\bNOT\s+(?:IN|EXISTS)\b"
    ),
    "node SortLimit(": _clause(r"\bORDER\s+BY\b.*\bLIMIT\b"),
    "node Rank(": _clause(r"\bROW_NUMBER\b"),
    "node Deduplicate(": _clause(r"\bROW_NUMBER\b"),
    "RANK() on ": _clause(r"\b(?:DENSE_)?RANK\b"),
    "FETCH is ": _clause(r"\bORDER\s+BY\b"),
    "Sort on ": _clause(r"\bORDER\s+BY\b"),
    "The window can only ": _clause(r"\bOVER\b"),
    "Non-time attribute sort ": _clause(r"\bOVER\b"),
    "rows that are not there yet": _clause(r"\bOVER\b"),
}


class SqlError(ProgramError):
    """A statement that cannot be run. ``position`` is the line and the column of the place, both
    from 1; None if the error has no place in a text."""

    def __init__(self, problem: str, text: str | None = None, span: Span = NOWHERE) -> None:
        self.problem = problem
        self.statement = text
        self.span = span
        self.position = None if text is None or span == NOWHERE else position(text, span.start)
        super().__init__(problem if self.position is None else marked(problem, text or "", span))

    def __reduce__(self) -> tuple[type[SqlError], tuple[str, str | None, Span]]:
        return type(self), (self.problem, self.statement, self.span)

    def within(self, text: str) -> SqlError:
        """The same error, with the statement whose place it names. One that names no place has that
        of the word that it quotes, or else all of the statement."""
        if self.statement is not None or not text.strip():
            return self
        span = place_of(self.problem, text) if self.span == NOWHERE else self.span
        return type(self)(self.problem, text, span)


class SqlParserError(SqlError):
    """The text is no SQL."""


class ValidationError(SqlError):
    """The statement asks for something that is not there, or of which the types do not fit."""


class CatalogError(ValidationError):
    """A catalog, database, table, view or function is there already, or is not there."""


def place_of(problem: str, text: str) -> Span:
    """Where a statement has the clause of the operator that the problem names, or the first word
    that it quotes; else all of the statement.

    >>> place_of("the table has no column 'prize'", "ALTER TABLE t DROP prize")
    Span(start=19, end=24)
    """
    for operator, clause in _CLAUSES.items():
        places = list(clause.finditer(text)) if operator in problem else []
        if len(places) == 1:  # of several it could be any
            return Span(places[0].start(), places[0].end())
    for quoted in _QUOTED.finditer(problem):
        word = re.escape(quoted[1] or quoted[2])
        found = re.search(rf"(?<!\w){word}(?!\w)", text)
        if found is not None:
            return Span(found.start(), found.end())
    start = len(text) - len(text.lstrip())
    return Span(start, len(text.rstrip().rstrip(";")))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What an error about an unknown name ends with: the nearest one that is known, or nothing.

    >>> did_you_mean("bid", ["bids", "auctions"])
    "; did you mean 'bids'?"
    """
    by_small = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_small, n=1)
    return f"; did you mean {by_small[near[0]]!r}?" if near else ""


def proposed(name: str, known: Iterable[str]) -> str:
    """The same; if none is near, those that there are, as long as they are few.

    >>> proposed("x", ["bids", "asks"])
    "; there are 'asks', 'bids'"
    """
    names = sorted(known)
    near = did_you_mean(name, names)
    if near or not 0 < len(names) <= _FEW:
        return near
    return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}"


def position(text: str, at: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def marked(problem: str, text: str, span: Span) -> str:
    """The problem, then the line of the place with a caret under each of its characters. Secrets
    among its options are hidden."""
    line, column = position(text, span.start)
    shown = _without_secrets(text).splitlines()[line - 1] if text else ""
    width = max(1, min(span.end - span.start, len(shown) - column + 1))
    number = str(line)
    return (
        f"{problem}\n"
        f"  {number} | {shown}\n"
        f"  {' ' * len(number)} | {' ' * (column - 1)}{'^' * width}"
    )


def _without_secrets(text: str) -> str:
    """The text, as long as before, so that carets stay below their characters."""
    return _OPTION.sub(
        lambda option: (
            f"{option[1]}{'*' * len(option[3])}'" if is_sensitive(option[2]) else option[0]
        ),
        text,
    )
