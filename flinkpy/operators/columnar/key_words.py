"""Keys as words of 64 bits: equal keys have equal words, whatever the types of their columns.

Each column gives a key a header word, which says the kind and the length of what follows, and
words. So words of several columns stand behind each other. A whole number is the same word as an
integer, a float or a decimal, as all numbers that Python calls equal are one key."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.values.conversion import python_values

_NULL, WHOLE, _LARGE, _FLOAT, _NAN, _TEXT, _BYTES, _OTHER = (kind << 56 for kind in range(8))
_MIX, _SEED = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_AT_ONCE = 32  # words; what is longer goes row by row
_KEPT = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)  # the first bytes
_TWO_63 = 2.0**63
_ALL_DIGITS = Context(prec=200)


class Words:
    """The words of many keys: ``flat`` has those of all, and those of a key begin at its
    ``start``."""

    def __init__(self, flat: Any, starts: Any, sizes: Any) -> None:
        self.flat, self.starts, self.sizes = flat, starts, sizes

    def taken(self, at: Any) -> Words:
        """Those of the keys at these positions."""
        return Words(self.flat, self.starts[at], self.sizes[at])

    def hashes(self) -> Any:
        """A hash of each key."""
        found = self.sizes.view(np.uint64) * _SEED
        for place, at in _places(self.sizes):
            word = self.flat[self.starts + place if at is None else self.starts[at] + place]
            mixed = ((found if at is None else found[at]) ^ word) * _MIX
            mixed ^= mixed >> _HALF
            if at is None:
                found = mixed
            else:
                found[at] = mixed
        for row in np.flatnonzero(self.sizes > _AT_ONCE).tolist():
            found[row] ^= np.uint64(hash(self._tail(row)) & ((1 << 64) - 1))
        return found.view(np.int64)

    def equal(self, others: Words) -> Any:
        """Whether each key is the other's at the same position."""
        same = self.sizes == others.sizes
        sizes = np.where(same, self.sizes, 0)
        for place, at in _places(sizes):
            if at is None:
                same &= self.flat[self.starts + place] == others.flat[others.starts + place]
            else:
                word = self.flat[self.starts[at] + place]
                same[at] &= word == others.flat[others.starts[at] + place]
        for row in np.flatnonzero(sizes > _AT_ONCE).tolist():
            same[row] &= self._tail(row) == others._tail(row)
        return same

    def packed(self) -> Any:
        """The words of these keys alone, one key behind the other."""
        firsts = np.cumsum(self.sizes) - self.sizes
        places = np.arange(int(self.sizes.sum())) + np.repeat(self.starts - firsts, self.sizes)
        return self.flat[places]

    def _tail(self, row: int) -> bytes:
        start = int(self.starts[row])
        tail: bytes = self.flat[start + _AT_ONCE : start + int(self.sizes[row])].tobytes()
        return tail


def _places(sizes: Any) -> Any:
    """Each place of a word, and the keys that have one there; None if all have."""
    if not len(sizes):
        return
    fewest, most = int(sizes.min()), min(int(sizes.max()), _AT_ONCE)
    for place in range(most):
        yield place, None if place < fewest else np.flatnonzero(sizes > place)


class KeptWords:
    """The words of the keys with these numbers. Words of keys that are gone are left out when they
    are half of all."""

    def __init__(self) -> None:
        self._flat = np.empty(256, np.uint64)
        self._used = self._lost = 0
        self._starts, self._sizes = np.zeros(64, np.int64), np.zeros(64, np.int64)

    def of(self, numbers: Any) -> Words:
        """The words of these keys."""
        return Words(self._flat, self._starts[numbers], self._sizes[numbers])

    def put(self, numbers: Any, words: Words) -> None:
        """Keeps the words of new keys."""
        if not len(numbers):
            return
        packed = words.packed()
        self._flat = _with_room(self._flat, self._used + len(packed))
        self._flat[self._used : self._used + len(packed)] = packed
        most = int(numbers.max()) + 1
        self._starts = _with_room(self._starts, most)
        self._sizes = _with_room(self._sizes, most)
        self._starts[numbers] = self._used + np.cumsum(words.sizes) - words.sizes
        self._sizes[numbers] = words.sizes
        self._used += len(packed)

    def remove(self, numbers: Any) -> None:
        """Forgets the words of these keys."""
        self._lost += int(self._sizes[numbers].sum())
        self._sizes[numbers] = 0
        if 2 * self._lost > self._used:
            there = np.flatnonzero(self._sizes)
            packed = self.of(there).packed()
            self._starts[there] = np.cumsum(self._sizes[there]) - self._sizes[there]
            self._flat, self._used, self._lost = packed, len(packed), 0


def _with_room(array: Any, size: int) -> Any:
    if size <= len(array):
        return array
    grown = np.zeros(max(size, len(array) + len(array) // 2), array.dtype)
    grown[: len(array)] = array
    return grown


# -- columns ---------------------------------------------------------------------------------------


def words_of(columns: Sequence[tuple[Any, int]]) -> Words:
    """The words of the keys that these plain columns form together; beside each the number of
    nanoseconds in its unit, 1 of other columns."""
    parts = [_column(column, unit) for column, unit in columns]
    sizes = np.sum([part.sizes for part in parts], axis=0)
    starts = np.cumsum(sizes) - sizes
    flat, begin = np.zeros(int(sizes.sum()), np.uint64), starts
    for part in parts:
        part.write(flat, begin)
        begin = begin + part.sizes
    return Words(flat, starts, sizes)


class _Numbers:
    """A header and a word for each row; a header alone where there is none."""

    def __init__(self, headers: Any, words: Any, missing: Any = None) -> None:
        self.headers, self.words = headers, words
        self.sizes = np.full(len(words), 2, np.int64)
        self._there = None if missing is None else np.flatnonzero(~missing)
        if missing is not None:
            self.headers[missing] = _NULL
            self.sizes[missing] = 1

    def write(self, flat: Any, starts: Any) -> None:
        flat[starts] = self.headers
        if self._there is None:
            flat[starts + 1] = self.words
        else:
            flat[starts[self._there] + 1] = self.words[self._there]


class _Texts:
    """A header and the bytes of each row."""

    def __init__(self, headers: Any, data: Any, begins: Any, lengths: Any) -> None:
        self.headers, self.data, self.begins, self.lengths = headers, data, begins, lengths
        self.sizes = 1 + (lengths + 7 >> 3)

    def write(self, flat: Any, starts: Any) -> None:
        flat[starts] = self.headers
        # a word can begin at each byte
        padded = np.zeros(len(self.data) + 8, np.uint8)
        padded[: len(self.data)] = self.data
        loads = np.ndarray((len(self.data) + 1,), np.uint64, padded, strides=(1,))
        for place, at in _places(self.sizes - 1):
            begins, lengths, targets = (
                each if at is None else each[at] for each in (self.begins, self.lengths, starts)
            )
            left = np.minimum(lengths - 8 * place, 8)
            flat[targets + (1 + place)] = loads[begins + 8 * place] & _KEPT[left]
        for row in np.flatnonzero(self.sizes - 1 > _AT_ONCE).tolist():
            begin = int(self.begins[row]) + 8 * _AT_ONCE
            tail = self.data[begin : int(self.begins[row] + self.lengths[row])]
            target = int(starts[row]) + 1 + _AT_ONCE
            words = np.zeros(-(-len(tail) // 8) * 8, np.uint8)
            words[: len(tail)] = tail
            flat[target : target + len(words) // 8] = words.view(np.uint64)


def _column(column: Any, unit: int) -> _Numbers | _Texts:
    kind = column.type
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_null(kind):
        nothing = np.zeros(len(column), np.uint64)
        return _Numbers(nothing, nothing, np.ones(len(column), np.bool_))
    if pa.types.is_floating(kind):
        return _Numbers(*_floats(_filled(column, 0.0)), missing)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        values = _filled(column, False if pa.types.is_boolean(kind) else 0)
        if values.dtype == np.uint64:
            headers = np.where(values >= 1 << 63, np.uint64(_LARGE), np.uint64(WHOLE))
            return _Numbers(headers, values, missing)
        words = _in_nanoseconds(values.astype(np.int64, copy=False), unit)
        if words is not None:
            headers = np.full(len(words), WHOLE, np.uint64)
            return _Numbers(headers, words.view(np.uint64), missing)
    if pa.types.is_fixed_size_binary(kind) or str(kind) == "binary_view":
        column = column.cast(pa.large_binary())
    elif str(kind) == "string_view":
        column = column.cast(pa.large_string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _texts(column, _TEXT, missing)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return _texts(column, _BYTES, missing)
    values = python_values(column)
    if unit > 1:
        values = [None if value is None else value * unit for value in values]
    return _one_by_one(values)


def whole_words(column: Any, unit: int) -> Any:
    """The words of a column of whole numbers without nulls; None of any other column."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return None
    values = column.to_numpy()
    if values.dtype == np.uint64:
        return values.view(np.int64) if not len(values) or values.max() < 1 << 63 else None
    return _in_nanoseconds(values.astype(np.int64, copy=False), unit)


def _in_nanoseconds(values: Any, unit: int) -> Any:
    """None if one of them leaves 64 bits."""
    if unit == 1 or not len(values):
        return values
    reach = max(-int(values.min()), int(values.max()))
    return values * unit if reach <= ((1 << 63) - 1) // unit else None


def _filled(column: Any, value: Any) -> Any:
    return (column.fill_null(value) if column.null_count else column).to_numpy(zero_copy_only=False)


def _floats(values: Any) -> tuple[Any, Any]:
    """Headers and words. NaN and zero have one form."""
    headers = np.full(len(values), _FLOAT, np.uint64)
    words = values.view(np.uint64).copy()
    is_whole = values == np.floor(values)
    for kind, of_kind, to in (
        (WHOLE, is_whole & (values >= -_TWO_63) & (values < _TWO_63), np.int64),
        (_LARGE, is_whole & (values >= _TWO_63) & (values < 2 * _TWO_63), np.uint64),
    ):
        headers[of_kind], words[of_kind] = kind, values[of_kind].astype(to).view(np.uint64)
    is_nan = values != values
    headers[is_nan], words[is_nan] = _NAN, 0
    return headers, words


def _texts(column: Any, kind: int, missing: Any) -> _Texts:
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    offsets = np.frombuffer(offsets or b"", np.int64 if wide else np.int32)
    offsets = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    if not len(offsets):
        offsets = np.zeros(1, np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    read = np.frombuffer(data or b"", np.uint8)[first:last]
    begins, lengths = offsets[:-1] - first, np.diff(offsets)
    headers = lengths.view(np.uint64) | np.uint64(kind)
    if missing is not None:
        headers[missing], lengths = _NULL, np.where(missing, 0, lengths)
    return _Texts(headers, read, begins, lengths)


def _one_by_one(values: list[Any]) -> _Texts:
    """Decimals, and whatever is rare, as bytes of a form that equal values share."""
    heads, written = zip(*map(_odd, values)) if values else ((), ())
    lengths = np.array(list(map(len, written)), np.int64)
    data = np.frombuffer(b"".join(written), np.uint8)
    return _Texts(np.array(heads, np.uint64), data, np.cumsum(lengths) - lengths, lengths)


def _odd(value: Any) -> tuple[int, bytes]:
    if value is None:
        return _NULL, b""
    if isinstance(value, (int, Decimal)):
        if value == int(value) and -(1 << 63) <= value < 1 << 64:
            number = int(value)
            return (
                (WHOLE, struct.pack("=q", number))
                if number < 1 << 63
                else (_LARGE, struct.pack("=Q", number))
            )
        if float(value) == value:
            return _FLOAT, struct.pack("=d", float(value))
        value = Decimal(value).normalize(_ALL_DIGITS)
    written = f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")
    return _OTHER | len(written), written
