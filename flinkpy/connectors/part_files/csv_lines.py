"""Records as lines of CSV, in which None and empty text differ: what is None stands without quotes."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from typing import Any

from flinkpy.connectors.part_files.text_values import cell_text
from flinkpy.core.errors import ProgramError

_WRITTEN_WELL = {str, int, float, bool, type(None)}  # by Python's csv module, which writes everything else by its str


class CsvLines:
    """Most lines are made by Python's csv module; it writes None and empty text alike, so rows that have one are made here."""

    def __init__(self, delimiter: str, null_value: str, quote_all: bool) -> None:
        self._delimiter, self._null, self._quote_all = delimiter, null_value, quote_all
        self._special = {"", null_value}
        self._needs_quotes = (delimiter, '"', "\n", "\r")

    def header(self, names: Sequence[Any]) -> str:
        """The line of the columns' names."""
        return self._line(list(map(str, names)))

    def of(self, rows: Sequence[Sequence[Any]]) -> str:
        """The lines of these records."""
        if not _WRITTEN_WELL.issuperset({type(value) for row in rows for value in row}):
            rows = [[value if type(value) in _WRITTEN_WELL else _cell(value) for value in row] for row in rows]
        if self._quote_all or self._null:  # which a number's text may be too
            return "".join(map(self._line, rows))
        out = io.StringIO()
        writer = csv.writer(out, delimiter=self._delimiter, lineterminator="\n")
        special = self._special
        for row in rows:
            if len(row) > 1 and special.isdisjoint(row):
                try:
                    writer.writerow(row)
                except csv.Error:  # before Python 3.11 the csv module refuses null characters
                    out.write(self._line(row))
            else:
                out.write(self._line(row))
        text = out.getvalue()
        return "".join(map(self._line, rows)) if "\r" in text else text  # the csv module leaves it without quotes

    def _line(self, row: Sequence[Any]) -> str:
        if len(row) == 1 and row[0] is None and not self._null:
            raise ProgramError("a record whose only field is None would be an empty line in a CSV file; name a text for it with "
                               "CsvFormat(null_value=...)")
        return self._delimiter.join([self._null if value is None else self._quoted(str(value)) for value in row]) + "\n"

    def _quoted(self, text: str) -> str:
        if self._quote_all or text in self._special or any(letter in text for letter in self._needs_quotes):
            return '"' + text.replace('"', '""') + '"'
        return text


def _cell(value: Any) -> str | None:
    try:
        return cell_text(value)
    except TypeError as error:
        raise ProgramError(f"a CSV file cannot hold this value: {error}") from error


def check_encoding(encoding: str) -> None:
    """Refuses what Python knows no encoding by."""
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise ProgramError(f"{encoding!r} is no character set Python knows") from None
