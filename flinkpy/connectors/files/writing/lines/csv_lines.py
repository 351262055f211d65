"""Records as lines of CSV in which None and empty text differ: None is written without quotes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ProgramError
from flinkpy.formats.text_values import cell_text

if TYPE_CHECKING:
    import pyarrow as pa

_BYTE_ORDER_MARK = "\ufeff"  # without quotes, readers drop it at the beginning of a file
# Python's csv module writes these well, and all else by its str
_WRITTEN_WELL = {str, int, float, bool, type(None)}


class CsvLines:
    """Makes lines of CSV. Python's csv module makes most of them. It writes None and empty text
    alike, so rows with either are made here."""

    def __init__(
        self, delimiter: str, null_value: str, quote_all: bool, escape: str | None = None
    ) -> None:
        self._delimiter = delimiter
        self._null = null_value
        self._quote_all = quote_all
        self._escape = escape
        self._special = {"", null_value}
        self._in_quotes = ('"',) if escape is None else ('"', escape)  # they are changed there
        self._needs_quotes = (delimiter, *self._in_quotes, "\n", "\r", _BYTE_ORDER_MARK)

    def header(self, names: Sequence[Any]) -> str:
        """The header line with the names of the columns."""
        return self._line(list(map(str, names)))

    def of(self, rows: Sequence[Sequence[Any]]) -> str:
        """The lines of these records."""
        if not _WRITTEN_WELL.issuperset({type(value) for row in rows for value in row}):
            rows = [
                [value if type(value) in _WRITTEN_WELL else _cell(value) for value in row]
                for row in rows
            ]
        # a number's text may equal the null value
        if self._quote_all or self._null or self._escape is not None:
            return "".join([self._line(row) for row in rows])
        out = io.StringIO()
        writer = csv.writer(out, delimiter=self._delimiter, lineterminator="\n")
        special = self._special
        for row in rows:
            if len(row) > 1 and special.isdisjoint(row):
                try:
                    writer.writerow(row)
                except csv.Error:  # before Python 3.11 the csv module rejects null characters
                    out.write(self._line(row))
            else:
                out.write(self._line(row))
        text = out.getvalue()
        unquoted = "\r" in text or _BYTE_ORDER_MARK in text  # the csv module does not quote these
        return "".join([self._line(row) for row in rows]) if unquoted else text

    def of_columns(self, columns: Sequence[Any]) -> str:
        """The lines of the rows of these columns of Arrow."""
        from flinkpy.connectors.files.writing.lines.column_lines import joined

        if len(columns) == 1 and columns[0].null_count and not self._null:
            self._line([None])  # raises the error
        pieces: list[Any] = []
        for column in columns:
            pieces += [self._cells(column), self._delimiter]
        return joined([*pieces[:-1], "\n"])

    def _cells(self, column: pa.Array) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        from flinkpy.connectors.files.writing.lines.column_lines import (
            bytes_of,
            changed,
            enclosed,
            texts_of,
        )

        texts = texts_of(column, _cell)
        data = bytes_of(texts)
        if self._quote_all and not any(letter.encode() in data for letter in self._in_quotes):
            texts = enclosed(texts, '"')
        elif (
            self._quote_all
            or any(letter.encode() in data for letter in self._needs_quotes)
            or pc.any(pc.is_in(texts, pa.array(list(self._special), texts.type))).as_py()
        ):
            texts = changed(texts, self._quoted)
        return texts.fill_null(self._null)

    def _line(self, row: Sequence[Any]) -> str:
        if len(row) == 1 and row[0] is None and not self._null:
            raise ProgramError(
                "a record whose only field is None would be an empty line in a CSV file; name "
                "a text for it with "
                "CsvFormat(null_value=...)"
            )
        return (
            self._delimiter.join(
                [self._null if value is None else self._quoted(str(value)) for value in row]
            )
            + "\n"
        )

    def _quoted(self, text: str) -> str:
        if (
            self._quote_all
            or text in self._special
            or any(letter in text for letter in self._needs_quotes)
        ):
            return f'"{self._escaped(text)}"'
        return text

    def _escaped(self, text: str) -> str:
        escape = self._escape
        if escape is None:
            return text.replace('"', '""')
        return text.replace(escape, 2 * escape).replace('"', f'{escape}"')


def _cell(value: object) -> str | None:
    try:
        return cell_text(value)
    except TypeError as error:
        raise ProgramError(f"a CSV file cannot hold this value: {error}") from error
