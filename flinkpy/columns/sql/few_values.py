"""A few plain values as an array, made of their bytes.

``pyarrow.array`` looks whether it was given a pandas frame, and for that imports pandas, if it is
installed. That takes a fifth of a second or more: as long as many a statement."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

_MOST = 64  # for more, pyarrow's loop is faster
_FORMS: dict[pa.DataType, tuple[type, str]] = {
    pa.int8(): (int, "b"),
    pa.int16(): (int, "h"),
    pa.int32(): (int, "i"),
    pa.int64(): (int, "q"),
    pa.float64(): (float, "d"),
}


def array_of_few(values: Sequence[Any], kind: pa.DataType) -> Any:
    """The array; None if there are many values, or others than whole numbers, floats and texts that
    are there."""
    if not 0 < len(values) <= _MOST:
        return None
    types = set(map(type, values))
    if kind in _FORMS and types == {_FORMS[kind][0]}:
        try:
            data = struct.pack(f"={len(values)}{_FORMS[kind][1]}", *values)
        except struct.error:  # one is too large; pyarrow says so
            return None
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])
    if pa.types.is_string(kind) and types == {str}:
        try:
            written = [value.encode() for value in values]
        except UnicodeEncodeError:
            return None
        ends = [0]
        for each in written:
            ends.append(ends[-1] + len(each))
        offsets = pa.py_buffer(struct.pack(f"={len(ends)}i", *ends))
        data = b"".join(written)
        return pa.Array.from_buffers(kind, len(values), [None, offsets, pa.py_buffer(data)])
    return None
