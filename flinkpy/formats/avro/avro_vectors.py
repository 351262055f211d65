"""Avro records of many messages, decoded field by field for all messages at once.

Every message has a position. Decoding a field reads it at all positions with a few numpy operations
and moves the positions on, so no Python runs per message. Texts and bytes are gathered into one
buffer. A union of null decodes its value only where there is one; a list decodes the first elements
of all lists, then the second ones, and puts them in order at the end.

It accepts only what surely is a record. A message that ends too early, a branch or a length that
there cannot be, and a date that Python does not have raise :class:`NotSure`, an enum's place that
is none an error of Arrow; then the messages are decoded one by one."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.formats.avro.avro_rows import decimal_of
from flinkpy.formats.avro.avro_schema import AvroType

Rows: TypeAlias = Any  # an array of the places of messages
_PADDING = bytes(16)  # so that what lies behind the last message can be looked at
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST, _LAST = (
    (moment - _EPOCH) // _MICROSECOND for moment in (datetime.datetime.min, datetime.datetime.max)
)
_DAY = 86_400_000_000
_MOST_BYTES = 1 << 31


class NotSure(Exception):
    """A message may be malformed."""


class Vectors:
    """The positions in a batch of messages."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        self._data = np.frombuffer(b"".join([*messages, _PADDING]), np.uint8)
        if len(self._data) >= _MOST_BYTES:
            raise NotSure
        self._end = np.cumsum(lengths)
        self._at = self._end - lengths

    def record(self, found: AvroType) -> list[Any]:
        """The columns of the records that are the messages."""
        rows = np.arange(len(self._at))
        columns = [self._column(each.type, rows) for each in found.fields]
        if not np.array_equal(self._at, self._end):
            raise NotSure
        return columns

    def _column(self, found: AvroType, rows: Rows) -> Any:
        """The values of these messages, which are read on."""
        if found.null_branch is None:
            return self._present(found, rows)
        branch = self._long(rows)
        if ((branch != 0) & (branch != 1)).any():
            raise NotSure
        there = branch != found.null_branch
        values = self._present(found, rows[there])
        if len(values) == len(rows):
            return values
        return values.take(pa.array(np.cumsum(there) - 1, mask=~there))

    def _present(self, found: AvroType, rows: Rows) -> Any:
        if found.kind == "record":
            return self._struct(found, rows)
        if found.kind in ("array", "map"):
            return self._lists(found, rows)
        return _READ[found.kind](self, found, rows)

    def _struct(self, found: AvroType, rows: Rows) -> Any:
        if not found.fields:
            return pa.array([{}] * len(rows), found.arrow())
        return pa.StructArray.from_arrays(
            [self._column(each.type, rows) for each in found.fields], fields=list(found.arrow())
        )

    def _lists(self, found: AvroType, rows: Rows) -> Any:
        """The elements come in blocks, each behind its number of elements; a block of none is the
        last one. A negative number is followed by the block's size."""
        owners, parts = [], []  # of each round: the places within rows, and an element of each
        within = np.arange(len(rows))
        while len(within):
            counts = self._long(rows[within])
            if (counts < 0).any():
                self._long(rows[within[counts < 0]])
                counts = np.abs(counts)
            within, counts = within[counts != 0], counts[counts != 0]
            # elements without bytes; or too many
            if (counts > self._end[rows[within]] - self._at[rows[within]]).any():
                raise NotSure
            for turn in range(int(counts.max(initial=0))):
                now = within[counts > turn]
                owners.append(now)
                parts.append(self._element(found, rows[now]))
        return _lists_of(found, owners, parts, len(rows))

    def _element(self, found: AvroType, rows: Rows) -> tuple[Any, ...]:
        assert found.inner is not None
        key = () if found.kind == "array" else (self._texts(found, rows),)
        return (*key, self._column(found.inner, rows))

    # -- single values -----------------------------------------------------------------------------

    def _long(self, rows: Rows) -> Any:
        """Integers of variable length: seven bits a byte, the lowest first, the sign in the lowest
        bit."""
        at = self._at[rows]
        byte = self._data[at]
        value = (byte & 0x7F).astype(np.uint64)
        at += 1
        more, shift = np.flatnonzero(byte & 0x80), 7
        while len(more):
            byte = self._data[at[more]]
            if shift > 63:
                raise NotSure
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[more] += 1
            more, shift = more[(byte & 0x80) != 0], shift + 7
        self._move(rows, at)
        return ((value >> np.uint64(1)) ^ (~(value & np.uint64(1)) + np.uint64(1))).view(np.int64)

    def _move(self, rows: Rows, at: Any) -> None:
        if (at > self._end[rows]).any():
            raise NotSure
        self._at[rows] = at

    def _gathered(self, rows: Rows, size: int) -> Any:
        """The next ``size`` bytes of each message, one behind the other."""
        at = self._at[rows]
        self._move(rows, at + size)
        return self._data[at[:, None] + np.arange(size)].reshape(-1)

    def _binary(self, rows: Rows) -> Any:
        lengths = self._long(rows)
        at = self._at[rows]
        if (lengths < 0).any() or (lengths > self._end[rows] - at).any():
            raise NotSure
        self._at[rows] = at + lengths
        ends = np.cumsum(lengths)
        begins = ends - lengths
        data = self._data[np.repeat(at - begins, lengths) + np.arange(ends[-1] if len(ends) else 0)]
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return pa.Array.from_buffers(
            pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )

    def _texts(self, found: AvroType, rows: Rows) -> Any:
        try:
            return self._binary(rows).cast(pa.string())
        except pa.ArrowInvalid:
            raise NotSure from None

    def _bytes(self, found: AvroType, rows: Rows) -> Any:
        if found.kind == "bytes":
            column = self._binary(rows)
        else:
            data = self._gathered(rows, found.size)
            column = pa.Array.from_buffers(
                pa.binary(found.size), len(rows), [None, pa.py_buffer(data)]
            )
        return column if found.logical is None else _decimals(column.to_pylist(), found)

    def _numbers(self, found: AvroType, rows: Rows) -> Any:
        numbers = self._long(rows)
        if found.kind == "int":
            short = numbers.astype(np.int32)
            if (short != numbers).any():
                raise NotSure
            numbers = short
        return (
            pa.array(numbers)
            if found.logical is None
            else _moments(numbers.astype(np.int64), found)
        )

    def _floats(self, found: AvroType, rows: Rows) -> Any:
        dtype = np.dtype("<f4" if found.kind == "float" else "<f8")
        return pa.array(self._gathered(rows, dtype.itemsize).view(dtype))

    def _booleans(self, found: AvroType, rows: Rows) -> Any:
        byte = self._gathered(rows, 1)
        if (byte > 1).any():
            raise NotSure
        return pa.array(byte == 1)

    def _symbols(self, found: AvroType, rows: Rows) -> Any:
        # ArrowIndexError for a place that is none
        return pa.array(found.symbols, pa.string()).take(pa.array(self._long(rows)))


_READ: dict[str, Callable[[Vectors, AvroType, Rows], Any]] = {
    "null": lambda vectors, found, rows: pa.nulls(len(rows)),
    "boolean": Vectors._booleans,
    "int": Vectors._numbers,
    "long": Vectors._numbers,
    "float": Vectors._floats,
    "double": Vectors._floats,
    "bytes": Vectors._bytes,
    "fixed": Vectors._bytes,
    "string": Vectors._texts,
    "enum": Vectors._symbols,
}


def _lists_of(found: AvroType, owners: list[Any], parts: list[tuple[Any, ...]], count: int) -> Any:
    """Lists or maps of the elements, which came in rounds."""
    owner = np.concatenate([np.empty(0, np.int64), *owners])
    order = pa.array(np.argsort(owner, kind="stable"))
    offsets = pa.array(
        np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))]).astype(np.int32)
    )
    kind = found.arrow()
    kinds = [kind.value_type] if found.kind == "array" else [kind.key_type, kind.item_type]
    columns = [
        pa.concat_arrays([pa.array([], each), *[part[at] for part in parts]]).take(order)
        for at, each in enumerate(kinds)
    ]
    made = pa.ListArray if found.kind == "array" else pa.MapArray
    return made.from_arrays(offsets, *columns)


def _moments(numbers: Any, found: AvroType) -> Any:
    """Dates and times, if Python has them."""
    logical = found.logical or ""
    if logical == "date":
        _check(numbers, _FIRST // _DAY, _LAST // _DAY)
        return pa.array(numbers.astype(np.int32)).cast(pa.date32())
    is_time, in_millis = logical.startswith("time-"), logical.endswith("millis")
    scale = 1000 if in_millis else 1
    _check(numbers, *(bound // scale for bound in ((0, _DAY - 1) if is_time else (_FIRST, _LAST))))
    return pa.array(numbers * scale).cast(found.arrow())


def _check(numbers: Any, low: int, high: int) -> None:
    if ((numbers < low) | (numbers > high)).any():
        raise NotSure


def _decimals(values: Sequence[bytes], found: AvroType) -> Any:
    try:
        return array_of([decimal_of(value, found) for value in values], found.arrow())
    except ValueError:
        raise NotSure from None
