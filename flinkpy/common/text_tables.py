"""Records as a table of text.

>>> print(table([("to", 2), ("be", 10)]))
+----+----+
| f0 | f1 |
+----+----+
| to |  2 |
| be | 10 |
+----+----+
"""

from __future__ import annotations

import datetime
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from numbers import Number
from typing import Any

from flinkpy.common.types import Row


def table(
    records: Sequence[Any], names: Sequence[str] | None = None, width: int | None = 20
) -> str:
    """The records as a table. ``names`` are the columns, if they are known; else the first record
    shows them. Records of different shapes are put into one column, ``value``.

    Cells wider than ``width`` are cut, and floats rounded to six places (None: never); moments are
    whole. Numbers are aligned to the right."""
    names = list(names) if names is not None else _names(records)
    rows = [_fields(record, names) for record in records]
    if any(row is None for row in rows):
        names, rows = ["value"], [(record,) for record in records]
    texts = [[_cell(value, width) for value in row or ()] for row in rows]
    is_right = [
        _is_numeric([row[at] for row in rows if row is not None]) for at in range(len(names))
    ]
    widths = [
        max([_wide(name), *(_wide(text[at]) for text in texts)]) for at, name in enumerate(names)
    ]
    line = "+" + "".join("-" * (wide + 2) + "+" for wide in widths)
    drawn = [_line(text, widths, is_right) for text in texts]
    return "\n".join(
        [line, _line(list(names), widths, is_right), line, *drawn, *([line] if drawn else [])]
    )


def _names(records: Sequence[Any]) -> list[str]:
    """The columns of the first record."""
    first = records[0] if records else None
    if isinstance(first, Row):
        return list(getattr(first, "_fields", None) or _numbered(len(first)))
    if isinstance(first, tuple):
        return list(getattr(first, "_fields", _numbered(len(first))))
    if is_dataclass(first) and not isinstance(first, type):
        return [field.name for field in fields(first)]
    if isinstance(first, dict) and all(isinstance(key, str) for key in first):
        return list(first)
    return ["value"]


def _numbered(count: int) -> list[str]:
    return [f"f{at}" for at in range(count)]


def _fields(record: object, names: Sequence[str]) -> tuple[Any, ...] | None:
    """The record's values for these columns; None if it has another shape."""
    if isinstance(record, (tuple, Row)):
        own = getattr(record, "_fields", None)
        return (
            tuple(record)
            if len(record) == len(names)
            and (not own or list(own) == list(names) or _is_numbered(names))
            else None
        )
    if isinstance(record, dict):
        return tuple(record.values()) if list(record) == list(names) else None
    if is_dataclass(record) and not isinstance(record, type):
        return (
            tuple(getattr(record, name) for name in names)
            if [field.name for field in fields(record)] == list(names)
            else None
        )
    return (record,) if list(names) == ["value"] else None


def _is_numbered(names: Sequence[str]) -> bool:
    return list(names) == _numbered(len(names))


def _cell(value: object, width: int | None) -> str:
    try:
        text = (
            "null"
            if value is None
            else _short(value)
            if width is not None and isinstance(value, float)
            else str(value)
        )
    except Exception as error:
        text = f"<{type(value).__name__}, whose str raises {type(error).__name__}>"
    text = text.translate(_CONTROLS)
    if width is None or _wide(text) <= width or isinstance(value, (datetime.date, datetime.time)):
        return text  # a moment is told with its zone
    text = text[:width]
    while _wide(text) > width - 1:
        text = text[:-1]
    return text + "…"


def _short(value: float) -> str:
    """With at most six places after the point, if it has many digits.

    >>> _short(0.1 + 0.2), _short(12.5), _short(1234567.891234567), _short(1.23456789012e-9)
    ('0.3', '12.5', '1234567.891235', '1.234568e-09')
    """
    text = str(value)
    if len(text) <= 12 or not math.isfinite(value):
        return text
    if 1e-3 <= abs(value) < 1e15:
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return f"{value:.6e}"


_CONTROLS = {code: repr(chr(code))[1:-1] for code in range(32)}


def _wide(text: str) -> int:
    """The width of a text in terminal columns: some characters take two, combining marks none."""
    return (
        len(text)
        if text.isascii()
        else sum(
            0
            if unicodedata.combining(letter)
            else 2
            if unicodedata.east_asian_width(letter) in "WF"
            else 1
            for letter in text
        )
    )


def _is_numeric(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, Number) and not isinstance(value, bool) for value in present
    )


def _line(texts: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    cells = [
        " " * (wide - _wide(text)) + text if right else text + " " * (wide - _wide(text))
        for text, wide, right in zip(texts, widths, is_right)
    ]
    return "|" + "".join(f" {cell} |" for cell in cells)
