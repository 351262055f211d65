"""How a CSV file is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flinkpy.connectors.files.csv.csv_records import RecordEnds
from flinkpy.connectors.part_files.csv_lines import check_encoding
from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written.

    - ``header``: whether its first line has the names of the columns; ``column_names``: their names, instead of those;
    - ``skip_rows``: so many lines come before it; ``comment``: lines that begin with this text are no records;
    - ``null_values``: fields without quotes that are null; ``quote_char``: None if quotes have no meaning.
    """

    delimiter: str = ","
    header: bool = True
    column_names: tuple[str, ...] | None = None
    skip_rows: int = 0
    comment: str | None = None
    null_values: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    quote_char: str | None = '"'

    def __post_init__(self) -> None:
        if not isinstance(self.delimiter, str) or len(self.delimiter.encode()) != 1:
            raise ProgramError(f"a CSV file's delimiter is one character, this is {self.delimiter!r:.80}")
        if self.quote_char is not None and (not isinstance(self.quote_char, str) or len(self.quote_char.encode()) != 1):
            raise ProgramError(f"a CSV file's quote_char is one character or None, this is {self.quote_char!r:.80}")
        if self.comment is not None and (not isinstance(self.comment, str) or not self.comment):
            raise ProgramError(f"comment= takes the text that lines of comments begin with, this is {self.comment!r:.80}")
        if isinstance(self.skip_rows, bool) or not isinstance(self.skip_rows, int) or self.skip_rows < 0:
            raise ProgramError(f"skip_rows= takes a number of lines from 0 on, this is {self.skip_rows!r:.80}")
        check_encoding(self.encoding)

    @property
    def ends(self) -> RecordEnds:
        return RecordEnds(self.delimiter.encode(), None if self.quote_char is None else self.quote_char.encode())


def texts(values: Any, what: str) -> tuple[str, ...]:
    """The texts of a list. Raises ProgramError for anything else."""
    if isinstance(values, str) or not all(isinstance(each, str) for each in values):
        raise ProgramError(f"{what} takes a list of texts, this is {values!r:.80}")
    return tuple(values)
