"""Keys as words of 64 bits: equal keys have equal words, whatever the types of their columns.

Each column gives a key a header word, which says the kind and the length of what follows, and
words. So words of several columns stand behind each other. A whole number has the same words as
an integer, a float or a decimal, as all numbers that Python calls equal are one key."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.values.conversion import python_values
from flinkpy.operators.columnar.array_memory import Empty

if TYPE_CHECKING:
    import numpy.typing as npt

_NULL, _WHOLE, _LARGE, _FLOAT, _NAN, _TEXT, _BYTES, _OTHER, _SMALL, _DECIMAL = (
    kind << 56 for kind in range(10)
)
_SMALL_BITS = 55  # whole numbers below have no word of their own: their header has them
_MIX, _SEED = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)
_ONE, _THREE, _SEVEN, _HALF = map(np.uint64, (1, 3, 7, 32))
_AT_ONCE = 32  # words; what is longer goes row by row
_KEPT = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)  # the first bytes
_TWO_63 = 2.0**63
_MOST_SCALE = 18  # of decimals whose digits are words
_ALL_DIGITS = Context(prec=200)


class Words:
    """The words of many keys: ``flat`` has those of all, and those of a key begin at its
    ``start``. With a ``step`` all keys have so many words, and stand behind each other."""

    may_be_whole = True
    """Whether a key can be a whole number."""

    def __init__(
        self,
        flat: npt.NDArray[Any],
        starts: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        step: int | None = None,
    ) -> None:
        self.flat = flat
        self.starts = starts
        self.sizes = sizes
        self.step = step

    def at(self, place: int) -> Any:
        """The word of each key at this place."""
        if self.step is not None:
            return self.flat[place :: self.step]
        return self.flat.take(self.starts + place)

    def taken(self, at: npt.NDArray[Any]) -> Words:
        """Those of the keys at these positions."""
        return Words(self.flat, self.starts[at], self.sizes[at])

    def hashes(self) -> Any:
        """A hash of each key."""
        found = self.sizes.view(np.uint64) * _SEED
        for place, at in _places(self.sizes):
            word = self.at(place) if at is None else self.flat[self.starts[at] + place]
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
                same &= self.at(place) == others.at(place)
            else:
                word = self.flat[self.starts[at] + place]
                same[at] &= word == others.flat[others.starts[at] + place]
        for row in np.flatnonzero(sizes > _AT_ONCE).tolist():
            same[row] &= self._tail(row) == others._tail(row)
        return same

    def whole(self) -> tuple[Any, Any]:
        """For keys of one column: which are whole numbers, and the numbers of all."""
        headers = self.at(0)
        is_small, is_long = headers >> np.uint64(56) == _SMALL >> 56, headers == _WHOLE
        numbers = (headers << np.uint64(8)).view(np.int64) >> 8
        at = np.flatnonzero(is_long)
        numbers[at] = self.flat[self.starts[at] + 1].view(np.int64)
        return is_small | is_long, numbers

    def packed(self) -> Any:
        """The words of these keys alone, one key behind the other."""
        firsts = np.cumsum(self.sizes) - self.sizes
        places = np.arange(int(self.sizes.sum())) + np.repeat(self.starts - firsts, self.sizes)
        return self.flat[places]

    def _tail(self, row: int) -> bytes:
        start = int(self.starts[row])
        tail: bytes = self.flat[start + _AT_ONCE : start + int(self.sizes[row])].tobytes()
        return tail


def _places(sizes: npt.NDArray[np.int64]) -> Any:
    """Each place of a word, and the keys that have one there; None if all have."""
    if not len(sizes):
        return
    fewest, most = int(sizes.min()), min(int(sizes.max()), _AT_ONCE)
    for place in range(most):
        yield place, None if place < fewest else np.flatnonzero(sizes > place)


class KeptWords:
    """The words of the keys with these numbers. Words of keys that are gone are left out when they
    are half of all."""

    def __init__(self, empty: Empty = np.empty) -> None:
        """``empty`` gives arrays."""
        self._empty = empty
        self._flat = np.empty(256, np.uint64)
        self._used = self._lost = 0
        self._starts, self._sizes = np.zeros(64, np.int64), np.zeros(64, np.int64)

    def of(self, numbers: npt.NDArray[np.int64]) -> Words:
        """The words of these keys."""
        return Words(self._flat, self._starts[numbers], self._sizes[numbers])

    def put(self, numbers: npt.NDArray[np.int64], words: Words) -> None:
        """Keeps the words of new keys."""
        if not len(numbers):
            return
        packed = words.packed()
        self._flat = self._with_room(self._flat, self._used + len(packed))
        self._flat[self._used : self._used + len(packed)] = packed
        most = int(numbers.max()) + 1
        self._starts = self._with_room(self._starts, most)
        self._sizes = self._with_room(self._sizes, most)
        self._starts[numbers] = self._used + np.cumsum(words.sizes) - words.sizes
        self._sizes[numbers] = words.sizes
        self._used += len(packed)

    def remove(self, numbers: npt.NDArray[np.int64]) -> None:
        """Forgets the words of these keys."""
        self._lost += int(self._sizes[numbers].sum())
        self._sizes[numbers] = 0
        if 2 * self._lost > self._used:
            there = np.flatnonzero(self._sizes)
            packed = self.of(there).packed()
            self._starts[there] = np.cumsum(self._sizes[there]) - self._sizes[there]
            self._flat = packed
            self._used = len(packed)
            self._lost = 0

    def _with_room(self, array: npt.NDArray[Any], size: int) -> Any:
        now = len(array)
        if size <= now:
            return array
        grown = self._empty(max(size, now + now // 2), array.dtype)
        grown[:now], grown[now:] = array, 0
        return grown


# -- columns ---------------------------------------------------------------------------------------


def words_of(columns: Sequence[tuple[Any, int]]) -> Words:
    """The words of the keys that these plain columns form together; beside each the number of
    nanoseconds in its unit, 1 of other columns."""
    parts = [_column(column, unit) for column, unit in columns]
    sizes = parts[0].sizes if len(parts) == 1 else np.sum([each.sizes for each in parts], axis=0)
    step = int(sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else None
    starts = np.cumsum(sizes) - sizes
    words = Words(np.empty(int(sizes.sum()), np.uint64), starts, sizes, step)
    # a key of several columns is none, such as a struct's with what tells that it is there
    words.may_be_whole = len(parts) == 1 and parts[0].may_be_whole
    begin = _Targets(words.flat, starts, step)
    for part in parts:
        part.write(begin)
        begin = begin.behind(part.sizes)
    return words


class _Targets:
    """Where the words of a column are written. With a ``step`` they are so far from each other."""

    def __init__(
        self, flat: npt.NDArray[Any], starts: npt.NDArray[np.int64], step: int | None
    ) -> None:
        self.flat = flat
        self.starts = starts
        self._step = step

    def put(self, place: int, words: npt.NDArray[Any], at: Any = None) -> None:
        """Writes the words at this place, of the keys ``at`` (None: of all)."""
        if at is not None:
            self.flat[self.starts[at] + place] = words
        elif self._step is not None:
            self.flat[int(self.starts[0]) + place :: self._step][: len(self.starts)] = words
        else:
            self.flat[self.starts + place] = words

    def behind(self, sizes: npt.NDArray[np.int64]) -> _Targets:
        """Behind columns that have so many words."""
        is_regular = self._step is not None and (sizes == sizes[0]).all()
        return _Targets(self.flat, self.starts + sizes, self._step if is_regular else None)


class _Numbers:
    """A header for each row, and a word behind it where ``has_word`` says so (None: everywhere)."""

    may_be_whole = True

    def __init__(self, headers: npt.NDArray[Any], words: npt.NDArray[Any], has_word: Any) -> None:
        self.headers, self.words = headers, words
        self._there = None if has_word is None else np.flatnonzero(has_word)
        self.sizes = np.full(len(headers), 2 if has_word is None else 1, np.int64)
        if self._there is not None:
            self.sizes[self._there] = 2

    def write(self, targets: _Targets) -> None:
        targets.put(0, self.headers)
        if self._there is None:
            targets.put(1, self.words)
        elif len(self._there):
            targets.put(1, self.words[self._there], self._there)


def _numbers(headers: npt.NDArray[Any], words: npt.NDArray[Any], missing: Any) -> _Numbers:
    """Numbers; small whole ones become headers alone, as nulls are."""
    signed = words.view(np.int64)
    is_small = (headers == _WHOLE) & (signed < 1 << _SMALL_BITS) & (signed >= -1 << _SMALL_BITS)
    small = (words & np.uint64((1 << 56) - 1)) | np.uint64(_SMALL)
    headers = np.where(is_small, small, headers)
    if missing is not None:
        headers[missing] = _NULL
        is_small |= missing
    return _Numbers(headers, words, ~is_small)


class _Texts:
    """A header and the bytes of each row."""

    may_be_whole = False

    def __init__(
        self,
        headers: npt.NDArray[Any],
        data: pa.RecordBatch,
        begins: npt.NDArray[Any],
        lengths: npt.NDArray[Any],
    ) -> None:
        self.headers = headers
        self.data = data
        self.begins = begins
        self.lengths = lengths
        self.sizes = 1 + (lengths + 7 >> 3)

    def write(self, targets: _Targets) -> None:
        targets.put(0, self.headers)
        padded = np.zeros((len(self.data) >> 3) + 3, np.uint64)
        padded.view(np.uint8)[: len(self.data)] = self.data
        # A text can begin at each byte: a word of it is made of two
        first, bits = self.begins >> 3, (self.begins.view(np.uint64) & _SEVEN) << _THREE
        back = np.uint64(63) - bits
        shortest = int(self.lengths.min()) if len(self.lengths) else 0
        for place, at in _places(self.sizes - 1):
            where, right, left, lengths = (
                each if at is None else each[at]
                for each in (first + place, bits, back, self.lengths)
            )
            word = padded.take(where) >> right
            word |= (padded.take(where + 1) << left) << _ONE
            if 8 * place + 8 > shortest:
                word &= _KEPT.take(np.minimum(lengths - 8 * place, 8))
            targets.put(1 + place, word, at)
        for row in np.flatnonzero(self.sizes - 1 > _AT_ONCE).tolist():
            begin = int(self.begins[row]) + 8 * _AT_ONCE
            tail = self.data[begin : int(self.begins[row] + self.lengths[row])]
            target = int(targets.starts[row]) + 1 + _AT_ONCE
            words = np.zeros(-(-len(tail) // 8) * 8, np.uint8)
            words[: len(tail)] = tail
            targets.flat[target : target + len(words) // 8] = words.view(np.uint64)


def _column(column: pa.Array, unit: int) -> _Numbers | _Texts:
    kind = column.type
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_null(kind):
        nothing = np.zeros(len(column), np.uint64)
        return _Numbers(nothing, nothing, np.zeros(len(column), np.bool_))
    if pa.types.is_floating(kind):
        return _numbers(*_floats(_filled(column, 0.0)), missing)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        values = _filled(column, False if pa.types.is_boolean(kind) else 0)
        if values.dtype == np.uint64:
            headers = np.where(values >= 1 << 63, np.uint64(_LARGE), np.uint64(_WHOLE))
            return _numbers(headers, values, missing)
        words = _in_nanoseconds(values.astype(np.int64, copy=False), unit)
        if words is not None:
            headers = np.full(len(words), _WHOLE, np.uint64)
            return _numbers(headers, words.view(np.uint64), missing)
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= _MOST_SCALE:
        digits = _digits(column)
        if digits is not None:
            return _numbers(*_decimals(digits, kind.scale), missing)
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


def _digits(column: pa.Array) -> Any:
    """The digits of decimals as 64 bits, those of nulls as 0; None if one of them has more."""
    if column.null_count:
        column = column.fill_null(0)
    halves = np.frombuffer(
        column.buffers()[1] or b"", np.int64, 2 * (column.offset + len(column))
    ).reshape(-1, 2)
    halves = halves[column.offset : column.offset + len(column)]
    low = np.ascontiguousarray(halves[:, 0])
    return low if (halves[:, 1] == low >> 63).all() else None


def _decimals(digits: npt.NDArray[Any], scale: int) -> tuple[Any, Any]:
    """Headers and words. A decimal that is no whole number and no float has its digits without
    zeros at the end, and how many of them stand behind the point."""
    headers = np.full(len(digits), _WHOLE, np.uint64)
    words = digits // 10**scale
    broken = np.flatnonzero(words * 10**scale != digits)
    if not len(broken):
        return headers, words.view(np.uint64)
    rest, places = digits[broken], np.full(len(broken), scale, np.uint64)
    fifths = rest // 5**scale
    is_float = (fifths * 5**scale == rest) & (fifths.astype(np.float64).astype(np.int64) == fifths)
    for _ in range(scale - 1):
        shorter = rest // 10
        at = np.flatnonzero(shorter * 10 == rest)
        if not len(at):
            break
        rest[at] = shorter[at]
        places[at] -= np.uint64(1)
    floats = np.ldexp(fifths[is_float].astype(np.float64), -scale)
    headers[broken] = np.where(is_float, np.uint64(_FLOAT), places | np.uint64(_DECIMAL))
    words[broken] = rest
    words[broken[is_float]] = floats.view(np.int64)
    return headers, words.view(np.uint64)


def whole_words(column: pa.Array, unit: int) -> Any:
    """The words of a column of whole numbers without nulls; None of any other column."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return None
    values = column.to_numpy()
    if values.dtype == np.uint64:
        return values.view(np.int64) if not len(values) or values.max() < 1 << 63 else None
    return _in_nanoseconds(values.astype(np.int64, copy=False), unit)


def _in_nanoseconds(values: npt.NDArray[Any], unit: int) -> Any:
    """None if one of them leaves 64 bits."""
    if unit == 1 or not len(values):
        return values
    reach = max(-int(values.min()), int(values.max()))
    return values * unit if reach <= ((1 << 63) - 1) // unit else None


def _filled(column: pa.Array, value: Any) -> Any:
    return (column.fill_null(value) if column.null_count else column).to_numpy(zero_copy_only=False)


def _floats(values: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Headers and words. NaN and zero have one form."""
    headers = np.full(len(values), _FLOAT, np.uint64)
    words = values.view(np.uint64).copy()
    is_whole = values == np.floor(values)
    for kind, of_kind, to in (
        (_WHOLE, is_whole & (values >= -_TWO_63) & (values < _TWO_63), np.int64),
        (_LARGE, is_whole & (values >= _TWO_63) & (values < 2 * _TWO_63), np.uint64),
    ):
        headers[of_kind], words[of_kind] = kind, values[of_kind].astype(to).view(np.uint64)
    is_nan = values != values
    headers[is_nan], words[is_nan] = _NAN, 0
    return headers, words


def _texts(column: pa.Array, kind: int, missing: Any) -> _Texts:
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
    """Long decimals, and whatever is rare, as bytes of a form that equal values share."""
    heads, written = zip(*map(_odd, values)) if values else ((), ())
    lengths = np.array(list(map(len, written)), np.int64)
    data = np.frombuffer(b"".join(written), np.uint8)
    found = _Texts(np.array(heads, np.uint64), data, np.cumsum(lengths) - lengths, lengths)
    found.may_be_whole = True
    return found


def _odd(value: Any) -> tuple[int, bytes]:
    if value is None:
        return _NULL, b""
    if isinstance(value, (int, Decimal)):
        if value == int(value) and -(1 << 63) <= value < 1 << 64:
            number = int(value)
            if -1 << _SMALL_BITS <= number < 1 << _SMALL_BITS:
                return _SMALL | number & (1 << 56) - 1, b""
            return (
                (_WHOLE, struct.pack("=q", number))
                if number < 1 << 63
                else (_LARGE, struct.pack("=Q", number))
            )
        if float(value) == value:
            return _FLOAT, struct.pack("=d", float(value))
        value = Decimal(value).normalize(_ALL_DIGITS)
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)  # it is finite
        number = int("".join(map(str, digits))) * (-1) ** sign
        if -(1 << 63) <= number < 1 << 63 and 0 < -exponent <= _MOST_SCALE:
            return _DECIMAL | -exponent, struct.pack("=q", number)
    written = f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")
    return _OTHER | len(written), written
