"""Rows as a table of text, in Flink's form: cells stand to the right, NULL is ``<NULL>``, what is
too wide is cut, and a changelog has a column ``op``."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from flinkpy.common.logical_types.logical_type import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LocalZonedTimestampType,
    LogicalType,
    RowType,
    TimestampType,
    TimeType,
)
from flinkpy.table.results.cell_texts import NULL, text_of

MOST_WIDTH = 30
_OP = "op"
_CUT = "..."


class Tableau:
    """The lines of a table. ``widths`` come from the types, so that rows are printed as they come
    (``of_types``), or from the rows (``of_rows``)."""

    def __init__(self, names: Sequence[str], widths: Sequence[int]) -> None:
        self._names, self._widths = list(names), list(widths)

    @staticmethod
    def of_types(schema: RowType, *, has_kinds: bool, most: int = MOST_WIDTH) -> Tableau:
        """Wide enough for every value of types whose values have a greatest width; ``most`` for
        the others."""
        widths = [max(len(field.name), _width_of(field.type, most)) for field in schema]
        names = [*([_OP] if has_kinds else []), *schema.names]
        return Tableau(names, [*([len(_OP)] if has_kinds else []), *widths])

    @staticmethod
    def of_rows(schema: RowType, rows: Iterable[Sequence[str]]) -> Tableau:
        """As wide as the widest cell."""
        columns = list(zip(*rows)) or [()] * len(schema.fields)
        widths = [
            max([len(name), *map(shown_width, cells)]) for name, cells in zip(schema.names, columns)
        ]
        return Tableau(schema.names, widths)

    def lines(self, rows: Iterable[Sequence[str]]) -> Iterator[str]:
        """The whole table and how many rows it has; or ``Empty set``."""
        count = 0
        for row in rows:
            if not count:
                yield from self.head()
            yield self.line(row)
            count += 1
        if count:
            yield self.border()
        yield f"{count} row{'s' if count > 1 else ''} in set" if count else "Empty set"

    def head(self) -> list[str]:
        """The names between two borders."""
        return [self.border(), self.line(self._names), self.border()]

    def border(self) -> str:
        return "+" + "".join("-" * (width + 2) + "+" for width in self._widths)

    def line(self, texts: Sequence[str]) -> str:
        """One row."""
        cells = [_cell(text, width) for text, width in zip(texts, self._widths)]
        return "|" + "".join(f" {cell} |" for cell in cells)


class CellTexts:
    """The texts of the cells of rows of a type; the kind first, if it is shown."""

    def __init__(
        self, schema: RowType, *, has_kinds: bool = False, zone: str = "UTC", null: str = NULL
    ) -> None:
        self._texts = [text_of(field.type, zone, null) for field in schema]
        self._has_kinds = has_kinds

    def __call__(self, row: Iterable[object]) -> list[str]:
        texts = [text(value) for text, value in zip(self._texts, row)]
        if not self._has_kinds:
            return texts
        kind = getattr(row, "get_row_kind", None)
        return ["+I" if kind is None else str(kind()), *texts]


def _width_of(logical: LogicalType, most: int) -> int:
    if isinstance(logical, IntegerType):
        width = logical.digits + 1
    elif isinstance(logical, DecimalType):
        width = logical.precision + 2
    elif isinstance(logical, BooleanType):
        width = 5
    elif isinstance(logical, DateType):
        width = 10
    elif isinstance(logical, TimeType):
        width = 8 if logical.precision == 0 else logical.precision + 9
    elif isinstance(logical, (TimestampType, LocalZonedTimestampType)):
        shown = -(-logical.precision // 3) * 3
        width = 19 if logical.precision == 0 else 20 + shown
    else:
        width = most
    return max(width, len(NULL))


def _cell(text: str, width: int) -> str:
    shown = shown_width(text)
    if shown <= width:
        return " " * (width - shown) + text
    cut = text
    while shown_width(cut) > width - len(_CUT):
        cut = cut[:-1]
    return " " * (width - shown_width(cut) - len(_CUT)) + cut + _CUT


def shown_width(text: str) -> int:
    """The columns of a terminal that a text takes.

    >>> shown_width("åæ"), shown_width("表")
    (2, 2)
    """
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
