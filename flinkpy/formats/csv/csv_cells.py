"""One line of CSV as fields and back. None and empty text differ: what is in quotes is never null.

A quote is special at the beginning of a field. Inside, a doubled quote is a quote; behind the
closing one the field goes on as it is, as in Arrow and in Python's ``csv``. The escape character,
if there is one, makes the next character an ordinary one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkpy.core.program.program_line import refuse


@dataclass(frozen=True)
class Dialect:
    """How lines are written."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null: str = ""
    array_delimiter: str = ";"
    line_end: str = "\n"

    def check(self, where: str) -> None:
        """Raises ProgramError if the characters cannot be told apart."""
        for name in ("delimiter", "quote", "escape"):
            letter = getattr(self, name)
            if letter is not None and (
                not isinstance(letter, str) or len(letter) != 1 or letter in "\r\n"
            ):
                raise refuse(
                    f"{where}: the {name} is one character, and no end of a line, this is "
                    f"{letter!r:.80}"
                )
        special = [
            letter for letter in (self.delimiter, self.quote, self.escape) if letter is not None
        ]
        if len(set(special)) < len(special):
            raise refuse(
                f"{where}: delimiter, quote and escape character must differ, these are "
                f"{', '.join(map(repr, special))}"
            )
        if (
            not isinstance(self.array_delimiter, str)
            or not self.array_delimiter
            or self.array_delimiter == self.delimiter
        ):
            raise refuse(
                f"{where}: the delimiter of lists is text, and not that of fields, this is "
                f"{self.array_delimiter!r:.80}"
            )
        if not isinstance(self.null, str) or any(
            letter in self.null for letter in [*special, "\r", "\n"]
        ):
            raise refuse(
                f"{where}: the null literal is text without delimiters, quotes and line ends, "
                f"this is {self.null!r:.80}"
            )
        if self.line_end not in ("", "\n", "\r", "\r\n"):
            raise refuse(
                f"{where}: a line ends with '\\n', '\\r', '\\r\\n' or nothing, this is "
                f"{self.line_end!r:.80}"
            )


def without_line_end(text: str) -> str:
    """The line without the end that it may have."""
    if text.endswith("\r\n"):
        return text[:-2]
    return text[:-1] if text.endswith(("\n", "\r")) else text


def cells_of(line: str, dialect: Dialect) -> list[str | None]:
    """The texts of a line's fields; None for one that is the null literal without quotes. Raises
    ValueError for a line that ends within quotes, and for a second line."""
    line = without_line_end(line)
    quote, escape, null = dialect.quote, dialect.escape, dialect.null
    if (quote is None or quote not in line) and (escape is None or escape not in line):
        _check_one_line(line)
        return [None if text == null else text for text in line.split(dialect.delimiter)]
    cells: list[str | None] = []
    place = 0
    while True:
        text, quoted, place = _cell(line, place, dialect)
        cells.append(None if text == null and not quoted else text)
        if place >= len(line):
            return cells
        place += 1
        if place == len(line):
            return [*cells, None if null == "" else ""]


def _check_one_line(text: str) -> None:
    if "\n" in text or "\r" in text:
        raise ValueError("it has more than one line")


def _cell(line: str, place: int, dialect: Dialect) -> tuple[str, bool, int]:
    """The text of the field that begins at this place, whether it began with a quote, and where the
    field ends: at a delimiter, or at the line's end."""
    text: list[str] = []
    quoted = within = dialect.quote is not None and line.startswith(dialect.quote, place)
    place += quoted
    while place < len(line):
        letter = line[place]
        if letter == dialect.escape:
            if place + 1 == len(line):
                raise ValueError("it ends with an escape character")
            text.append(line[place + 1])
            place += 2
            continue
        if within and letter == dialect.quote:
            within = line.startswith(letter * 2, place)
            if within:
                text.append(letter)
                place += 1
        elif letter == dialect.delimiter and not within:
            break
        else:
            if not within:
                _check_one_line(letter)
            text.append(letter)
        place += 1
    if within:
        raise ValueError("it ends within quotes")
    return "".join(text), quoted, place


def line_of(texts: Sequence[str | None], dialect: Dialect) -> str:
    """The line of these fields. Raises ValueError for a text that needs quotes where there are
    none."""
    return (
        dialect.delimiter.join(
            [dialect.null if text is None else cell_of(text, dialect) for text in texts]
        )
        + dialect.line_end
    )


def needs_quotes(text: str, dialect: Dialect) -> bool:
    """Whether the text would be read as something else without quotes (``#`` begins a comment)."""
    return (
        text in ("", dialect.null)
        or text.startswith("#")
        or dialect.delimiter in text
        or "\n" in text
        or "\r" in text
        or (dialect.quote is not None and dialect.quote in text)
        or (dialect.escape is not None and dialect.escape in text)
    )


def cell_of(text: str, dialect: Dialect) -> str:
    """The text as a field."""
    if not needs_quotes(text, dialect):
        return text
    if dialect.quote is None:
        if (text == "" and dialect.null) or (
            text.startswith("#")
            and not needs_quotes(text[1:] or "-", dialect)
            and text != dialect.null
        ):
            return text
        raise ValueError(f"{text!r:.80} needs quotes, and the schema has no quote character")
    if dialect.escape is not None:
        text = text.replace(dialect.escape, dialect.escape * 2)
    return f"{dialect.quote}{text.replace(dialect.quote, dialect.quote * 2)}{dialect.quote}"
