"""How a CSV file is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.connectors.files.encodings import check_encoding
from flinkpy.connectors.files.reading.record_ends import RecordEnds
from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written.

    - ``header``: whether its first line has the names of the columns; ``column_names``: their
      names, instead of those;
    - ``skip_rows``: so many lines come before it; ``comment``: lines that begin with this text are
      no records;
    - ``null_values``: fields without quotes that are null; ``quote_char``: None if quotes have no
      meaning;
    - ``newlines_in_values``: whether quoted fields may contain line ends;
    - ``escape``: the character behind it is taken as it is, as ``\\"`` is; ``decimal_point``: ","
      in most of Europe."""

    delimiter: str = ","
    header: bool = True
    column_names: tuple[str, ...] | None = None
    skip_rows: int = 0
    comment: str | None = None
    null_values: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    quote_char: str | None = '"'
    newlines_in_values: bool = True
    escape: str | None = None
    decimal_point: str = "."

    def __post_init__(self) -> None:
        if not isinstance(self.delimiter, str) or len(self.delimiter.encode()) != 1:
            raise ProgramError(
                f"a CSV file's delimiter is one character, this is {self.delimiter!r:.80}"
            )
        if self.quote_char is not None and (
            not isinstance(self.quote_char, str) or len(self.quote_char.encode()) != 1
        ):
            raise ProgramError(
                f"a CSV file's quote_char is one character or None, this is {self.quote_char!r:.80}"
            )
        if self.escape is not None and (
            not isinstance(self.escape, str)
            or len(self.escape.encode()) != 1
            or self.escape == self.quote_char
        ):
            raise ProgramError(
                "a CSV file's escape is one character that is not its quote_char, or None; "
                f"this is {self.escape!r:.80}"
            )
        if self.decimal_point not in (".", ",") or self.decimal_point == self.delimiter:
            raise ProgramError(
                'a CSV file\'s decimal_point is "." or ",", and not its delimiter; this is '
                f"{self.decimal_point!r:.80}"
            )
        if self.comment is not None and (not isinstance(self.comment, str) or not self.comment):
            raise ProgramError(
                "comment= takes the text that lines of comments begin with, this is "
                f"{self.comment!r:.80}"
            )
        for name in ("header", "newlines_in_values"):
            if not isinstance(getattr(self, name), bool):
                raise ProgramError(f"{name}= is True or False, this is {getattr(self, name)!r:.80}")
        if (
            isinstance(self.skip_rows, bool)
            or not isinstance(self.skip_rows, int)
            or self.skip_rows < 0
        ):
            raise ProgramError(
                f"skip_rows= takes a number of lines from 0 on, this is {self.skip_rows!r:.80}"
            )
        check_encoding(self.encoding)

    @property
    def quotes(self) -> RecordEnds:
        """Where records end, if quoted fields may contain line ends."""
        quote, escape = (
            None if mark is None else mark.encode() for mark in (self.quote_char, self.escape)
        )
        return RecordEnds(self.delimiter.encode(), quote, escape)

    @property
    def ends(self) -> RecordEnds:
        """Where records end."""
        return self.quotes if self.newlines_in_values else replace(self.quotes, quote=None)

    def is_comment(self, record: bytes) -> bool:
        """Whether the record is none, but a line of a comment."""
        return self.comment is not None and record.startswith(self.comment.encode())


def texts(values: Any, what: str) -> tuple[str, ...]:
    """The texts of a list. Raises ProgramError for anything else."""
    found = (
        tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (None,)
    )
    if not all(isinstance(each, str) for each in found):
        raise ProgramError(f"{what} takes a list of texts, this is {values!r:.80}")
    return found
