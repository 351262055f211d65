"""Columns as the lines of text that their rows give, made column by column.

Arrow writes whole numbers as Python does, and text is text already. Every other value is written by
the function that writes it in a row. So lines of columns cannot differ from lines of rows; a
property test holds them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.values.conversion import python_values

_TEXT = pa.large_string()  # the lines of a batch may have more than 2 GB


def texts_of(column: pa.Array, text_of: Callable[[Any], str | None]) -> Any:
    """The values as text; None is null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return texts_of(column.cast(kind.value_type), text_of)
    if pa.types.is_integer(kind) or is_text(kind):
        return column.cast(_TEXT)
    if pa.types.is_float64(kind) and not column.null_count and pc.all(pc.is_finite(column)).as_py():
        return pa.array(list(map(repr, python_values(column))), _TEXT)
    return pa.array([text_of(value) for value in python_values(column)], _TEXT)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of the type are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def changed(texts: pa.Array, change: Callable[[str], str]) -> Any:
    """The texts with a function applied to each; nulls stay."""
    return pa.array([None if text is None else change(text) for text in texts.to_pylist()], _TEXT)


def enclosed(texts: pa.Array, mark: str) -> Any:
    """The texts with the mark before and behind each; nulls stay."""
    return _joined(mark, texts, mark)


def bytes_of(texts: pa.Array) -> bytes:
    """All texts behind each other, in UTF-8."""
    if not len(texts):
        return b""
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int64)
    return (
        b""
        if data is None
        else data.slice(
            places[texts.offset], places[texts.offset + len(texts)] - places[texts.offset]
        ).to_pybytes()
    )


def joined(pieces: Sequence[Any]) -> str:
    """Columns of texts, and texts that are the same in each row, side by side, row by row."""
    return bytes_of(_joined(*pieces)).decode()


def _joined(*pieces: Any) -> Any:
    return pc.binary_join_element_wise(
        *(pa.scalar(piece, _TEXT) if isinstance(piece, str) else piece for piece in pieces),
        pa.scalar("", _TEXT),
    )
