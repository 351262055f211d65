"""What is wrong with a statement: the error shows the statement with a caret below the place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class Span:
    """Characters ``start`` to before ``end`` of a statement's text."""

    start: int
    end: int

    def hull(self, other: Span) -> Span:
        """From the beginning of the first to the end of the last."""
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)


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
        """The same error, with the statement whose place it names."""
        return self if self.statement is not None else type(self)(self.problem, text, self.span)


class SqlParserError(SqlError):
    """The text is no SQL."""


class ValidationError(SqlError):
    """The statement asks for something that is not there, or of which the types do not fit."""


class CatalogError(ValidationError):
    """A catalog, database, table, view or function is there already, or is not there."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What an error about an unknown name ends with: the nearest one that is known, or nothing.

    >>> did_you_mean("bid", ["bids", "auctions"])
    "; did you mean 'bids'?"
    """
    by_small = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_small, n=1)
    return f"; did you mean {by_small[near[0]]!r}?" if near else ""


def position(text: str, at: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def marked(problem: str, text: str, span: Span) -> str:
    """The problem, then the line of the place with a caret under each of its characters."""
    line, column = position(text, span.start)
    shown = text.splitlines()[line - 1] if text else ""
    width = max(1, min(span.end - span.start, len(shown) - column + 1))
    number = str(line)
    return (
        f"{problem}\n"
        f"  {number} | {shown}\n"
        f"  {' ' * len(number)} | {' ' * (column - 1)}{'^' * width}"
    )
