"""Gives each key of column batches a dense number, so that the state of columnar aggregates can be
arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.compiler import column_index
from flinkpy.columns.values.conversion import python_values
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.hash_table import HashTable
from flinkpy.operators.columnar.key_words import KeptWords, Words, whole_words, words_of
from flinkpy.operators.columnar.packed_keys import PackedKeys
from flinkpy.state.heap.frozen_numbers import Freezing, FrozenArray

if TYPE_CHECKING:
    import numpy.typing as npt

PLACES = 1 << 22  # of small integers in an array
_LARGE = 1 << 16  # of arrays by number
_LIMIT = 1 << 62
_SPARSE, _MOST_PLACES = 16, 1 << 24  # places of an array for each number, and in all
_NAN = object()  # stands for all NaNs, which are one key although they do not equal each other


@dataclass(frozen=True)
class Numbered:
    """``ids``: the number of each record's key; ``fresh``: the positions of the first records of
    new keys, in their order."""

    ids: Any
    fresh: Any


@dataclass(frozen=True)
class KeyedBatch:
    """``codes``: for each record, the index of its key among the batch's distinct keys; ``ids``:
    the number of each distinct key; ``firsts``: the position of each distinct key's first record;
    ``is_new``: which keys are new."""

    codes: Any
    ids: Any
    firsts: Any
    is_new: Any

    @cached_property
    def records(self) -> Any:
        """The number of records of each distinct key."""
        return np.bincount(self.codes, minlength=len(self.ids))


class KeyIndex:
    """Gives keys numbers: in the order of their first records, from 0, and first those of keys that
    were forgotten.

    Whole arrays are looked up at once. Small integers (mostly ids) are places in an array; other
    whole numbers, and several of them that fit into one, are their own hashes; of all other keys
    the words are kept and compared."""

    def __init__(
        self, columns: Sequence[str], places: int = PLACES, empty: Empty = np.empty
    ) -> None:
        """Integers below ``places`` are small. ``empty`` gives arrays."""
        self._columns = tuple(columns)
        self._empty = empty
        # the number of key k at index k
        self._small: SmallKeys | None = (
            SmallKeys(places, empty) if len(self._columns) == 1 else None
        )
        self._packed: PackedKeys | None = None  # of several columns
        self._whole, self._other = HashTable(empty), HashTable(empty)
        self._words = KeptWords(empty)
        self._is_whole = Grown(np.bool_, False, empty)  # by number: whether its key is one
        self._unused: list[Any] = []  # arrays of numbers
        self._first_of = empty(64, np.int64)
        self.size = 0
        """Every number is below."""

    def __len__(self) -> int:
        return sum(map(len, (self._small or (), self._whole, self._other)))

    def growth(self, keys: int) -> int:
        """How many bytes it takes for a moment to make room for so many more keys, at most."""
        small = 0 if self._small is None else len(self._small)
        return self._whole.growth(small + keys) + self._other.growth(keys)

    def of(self, data: pa.RecordBatch) -> KeyedBatch:
        """The keys of a record batch, with new ones numbered."""
        found = self.numbers(data)
        ids = found.ids
        if self.size > len(self._first_of):
            self._first_of = self._empty(2 * self.size, np.int64)
        # only the entries of this batch's keys are written and read
        first_of, positions = self._first_of, np.arange(len(ids))
        first_of[ids[::-1]] = positions[::-1]  # the last assignment wins: that of the first record
        first = first_of.take(ids)
        is_first = first == positions
        is_fresh = np.zeros(len(ids), np.bool_)
        is_fresh[found.fresh] = True
        firsts = np.flatnonzero(is_first)
        return KeyedBatch((np.cumsum(is_first) - 1)[first], ids[firsts], firsts, is_fresh[firsts])

    def numbers(self, data: pa.RecordBatch) -> Numbered:
        """The number of each record's key, with new ones numbered; enough if the records are
        grouped later."""
        columns = [data.column(column_index(name, data.schema)) for name in self._columns]
        parts = _parts(columns)
        if not len(self) and len(columns) > 1 and data.num_rows:
            self._packed = PackedKeys.for_keys_like(parts)
        whole = self._whole_keys(parts)
        if whole is None:
            self._leave_small()
            return self._numbers_of_any(columns, parts)
        if self._small is not None and not self._small.can_hold(whole):
            self._leave_small()
        find, put = (
            (self._whole.find, self._put_whole)
            if self._small is None
            else (self._small.find, self._small.put)
        )
        ids = find(whole)
        unknown = np.flatnonzero(ids < 0)
        if not len(unknown):
            return Numbered(ids, unknown)
        new = pa.array(whole[unknown]).dictionary_encode()
        given, codes = self._given(len(new.dictionary)), new.indices.to_numpy()
        put(new.dictionary.to_numpy(), given)
        ids[unknown] = given[codes]
        return Numbered(ids, unknown[_first_positions(codes, len(given))])

    def find(self, data: pa.RecordBatch) -> Any:
        """The number of each record's key; -1 where it is not known."""
        parts = _parts([data.column(column_index(name, data.schema)) for name in self._columns])
        whole = self._whole_keys(parts)
        if whole is None:
            if self._small is not None:
                self._leave_small()
            return self._found_of_any(parts, words_of(parts))[0]
        if self._small is None:
            return self._whole.find(whole)
        return self._small.find_any(whole)

    def forget(self, ids: npt.NDArray[np.int64]) -> None:
        """The keys with these numbers are gone; other keys get their numbers. A number must be
        known, and be there once."""
        self._unused.append(ids)
        if self._small is not None:
            self._small.remove(ids)
            return
        is_whole = self._is_whole.reach(self.size)[ids]
        self._whole.remove(ids[is_whole])
        self._other.remove(ids[~is_whole])
        self._words.remove(ids[~is_whole])

    def _whole_keys(self, parts: list[tuple[Any, int]]) -> Any:
        """The keys as whole numbers; None if not all of them are."""
        if len(parts) == 1:
            return whole_words(*parts[0])
        return None if self._packed is None else self._packed.all(parts)

    def _found_of_any(self, parts: list[tuple[Any, int]], words: Words) -> tuple[Any, Any, Any]:
        """The number of each key, -1 if it has none; which keys are whole numbers, and these."""
        is_whole, numbers = np.zeros(len(words.sizes), np.bool_), np.empty(0, np.int64)
        if self._packed is not None:
            is_whole, numbers = self._packed.of_any(parts)
        elif words.may_be_whole:
            is_whole, numbers = words.whole()
        if not is_whole.any():
            return self._other_numbers(words), is_whole, numbers
        ids = np.empty(len(is_whole), np.int64)
        ids[is_whole] = self._whole.find(numbers[is_whole])
        ids[~is_whole] = self._other_numbers(words.taken(~is_whole))
        return ids, is_whole, numbers

    def _numbers_of_any(self, columns: Sequence[Any], parts: list[tuple[Any, int]]) -> Numbered:
        words = words_of(parts)
        ids, is_whole, numbers = self._found_of_any(parts, words)
        unknown = np.flatnonzero(ids < 0)
        if not len(unknown):
            return Numbered(ids, unknown)
        new = encoded([column.take(pa.array(unknown)) for column in columns])
        given, firsts = self._given(new.count), unknown[new.firsts]
        ids[unknown] = given[new.codes]
        is_whole = is_whole[firsts]
        if is_whole.any():
            self._put_whole(numbers[firsts[is_whole]], given[is_whole])
        others, kept = given[~is_whole], words.taken(firsts[~is_whole])
        self._other.put(kept.hashes(), others)
        self._words.put(others, kept)
        self._is_whole.reach(self.size)[others] = False
        return Numbered(ids, firsts)

    def _other_numbers(self, words: Words) -> Any:
        hashes = words.hashes()
        ids = self._other.find(hashes)
        known = np.flatnonzero(ids >= 0)
        if len(known) == len(ids):
            wrong = np.flatnonzero(~words.equal(self._words.of(ids)))
        else:
            wrong = known[~words.taken(known).equal(self._words.of(ids[known]))]
        if len(wrong):  # several keys have one hash
            ids[wrong] = self._other.find(
                hashes[wrong], lambda at, found: words.taken(wrong[at]).equal(self._words.of(found))
            )
        return ids

    def _put_whole(self, keys: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> None:
        self._whole.put(keys, ids)
        self._is_whole.reach(self.size)[ids] = True

    def _given(self, count: int) -> Any:
        """Numbers for new keys."""
        taken: list[Any] = []
        while self._unused and count:
            last = self._unused.pop()
            if len(last) > count:
                self._unused.append(last[count:])
                last = last[:count]
            taken.append(last)
            count -= len(last)
        taken.append(np.arange(self.size, self.size + count))
        self.size += count
        return np.concatenate(taken)

    def _leave_small(self) -> None:
        if self._small is not None:
            self._put_whole(*self._small.all())
            self._small = None

    def __repr__(self) -> str:
        return f"<KeyIndex of {', '.join(self._columns)}: {len(self)} keys>"


class SmallKeys:
    """The numbers of small integers: that of key k is at index k of an array."""

    def __init__(self, places: int, empty: Empty = np.empty) -> None:
        self._places = places
        self._empty = empty
        self._numbers = Grown(np.int64, -1, empty)
        self._key_of: Grown | None = None  # by number, once a key was forgotten
        self._known = 0

    def __len__(self) -> int:
        return self._known

    def can_hold(self, keys: npt.NDArray[np.int64]) -> bool:
        """Whether these are places of an array."""
        if len(keys) and (keys.min() < 0 or keys.max() >= self._places):
            return False
        self._numbers.reach(int(keys.max()) + 1 if len(keys) else 0)
        return True

    def find(self, keys: npt.NDArray[np.int64]) -> Any:
        """The number of each key; -1 where there is none."""
        return self._numbers.values.take(keys)

    def find_any(self, keys: npt.NDArray[np.int64]) -> Any:
        """The same for any whole numbers."""
        numbers = self._numbers.values
        is_place = (keys >= 0) & (keys < len(numbers))
        return np.where(is_place, numbers.take(np.where(is_place, keys, 0)), -1)

    def put(self, keys: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> None:
        """Adds keys that are not there."""
        self._numbers.values[keys] = ids
        self._known += len(ids)
        if self._key_of is not None:
            self._key_of.reach(int(ids.max()) + 1)[ids] = keys

    def remove(self, ids: npt.NDArray[np.int64]) -> None:
        """Removes the keys with these numbers."""
        if not len(ids):
            return
        if self._key_of is None:
            keys, numbers = self.all()
            self._key_of = Grown(np.int64, -1, self._empty)
            self._key_of.reach(int(numbers.max()) + 1)[numbers] = keys
        self._numbers.values[self._key_of.values[ids]] = -1
        self._known -= len(ids)

    def all(self) -> tuple[Any, Any]:
        """All keys, and their numbers."""
        keys = np.flatnonzero(self._numbers.values >= 0)
        return keys, self._numbers.values[keys]


def check_keys(names: Sequence[str], schema: pa.Schema) -> None:
    """Raises ProgramError for a column that cannot be a key: a list or a map. Streams of rows
    refuse these too, because they can be changed and so have no hash."""
    for name in names:
        if names.count(name) > 1:
            raise ProgramError(f"the key has the column {name!r} twice")
        kind = schema.field(column_index(name, schema)).type
        if not _is_key(kind):
            raise ProgramError(
                f"the column {name!r} is {kind}, which cannot be a key: make the key of "
                "numbers, text, dates or structs of these, "
                "for example by map_batches(...) in front of it"
            )


def _is_key(kind: pa.DataType) -> bool:
    kind = _plain_type(kind)
    if pa.types.is_struct(kind):
        return all(_is_key(field.type) for field in kind)
    return not (pa.types.is_nested(kind) or pa.types.is_union(kind))


def _plain_type(kind: pa.DataType) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    return kind


def _plain(column: pa.Array) -> Any:
    """The column in a form in which Arrow treats equal keys as the same: one zero and one NaN
    without sign. Dates, times and durations become integers, because Python's have no
    nanoseconds."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(column.storage)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column))
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(column), float("nan"), pc.add(column, 0.0))
    if pa.types.is_list(kind):
        return _lists_as_bytes(column)
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column


def _lists_as_bytes(column: pa.ListArray) -> Any:
    """Lists as the words of their elements, one behind the other: equal lists have equal bytes."""
    words = words_of(_parts([column.flatten()]))
    ends = np.append(0, np.cumsum(words.sizes))
    lengths = column.value_lengths().fill_null(0).to_numpy()
    offsets = 8 * ends[np.append(0, np.cumsum(lengths))]
    missing = column.is_null().to_numpy(zero_copy_only=False)
    buffers = [pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(words.packed())]
    found = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(column), [None, *buffers])
    return pc.if_else(pa.array(missing), None, found) if missing.any() else found


def _parts(columns: Sequence[Any]) -> list[tuple[Any, int]]:
    """The plain columns that the key columns are made of, with the nanoseconds in their units: a
    struct is whether it is there, and its fields."""
    parts = []
    for column in columns:
        unit, column = _nanoseconds(_plain_type(column.type)), _plain(column)
        if pa.types.is_struct(column.type):
            parts += _parts([column.is_valid(), *column.flatten()])
        else:
            parts.append((column, unit))
    return parts


def words_of_rows(columns: Sequence[Any]) -> Words:
    """The words of the keys that these columns form together."""
    return words_of(_parts(columns))


@dataclass(frozen=True)
class Encoded:
    """``codes``: for each record, the index of its value among the ``count`` distinct ones;
    ``values`` returns those in a form that a dict tells apart."""

    codes: Any
    count: int
    values: Callable[[], list[Any]]

    @property
    def firsts(self) -> Any:
        """The position of each distinct value's first record."""
        return _first_positions(self.codes, self.count)


def encoded(columns: Sequence[Any]) -> Encoded:
    """The keys that the columns form together."""
    return (
        _encoded(columns[0])
        if len(columns) == 1
        else _combined([_encoded(each) for each in columns])
    )


def _encoded(column: pa.Array) -> Encoded:
    unit, column = _nanoseconds(_plain_type(column.type)), _plain(column)
    if pa.types.is_struct(column.type):  # Arrow cannot dictionary-encode structs
        return _combined([_encoded(each) for each in (column.is_valid(), *column.flatten())])
    found = column.dictionary_encode(null_encoding="encode")

    def values() -> list[Any]:
        listed = python_values(found.dictionary)
        if pa.types.is_floating(column.type):
            return [_NAN if value != value else value for value in listed]
        return (
            listed if unit == 1 else [None if value is None else value * unit for value in listed]
        )

    return Encoded(found.indices.to_numpy(), len(found.dictionary), values)


def _nanoseconds(kind: pa.DataType) -> int:
    """The number of nanoseconds in one unit of a column of dates, times or durations (else 1), so
    that keys stay the same if the unit changes."""
    if pa.types.is_date32(kind):
        return 86_400 * 10**9
    if pa.types.is_date64(kind):
        return 10**6
    counted = pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind)
    return {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit] if counted else 1


def _combined(parts: list[Encoded]) -> Encoded:
    """Joint codes of several columns. They are re-encoded as small numbers before they could
    overflow."""
    joint, size = parts[0].codes.astype(np.int64), parts[0].count
    for part in parts[1:]:
        if size * part.count >= _LIMIT:
            small = pa.array(joint).dictionary_encode()
            joint, size = small.indices.to_numpy().astype(np.int64), len(small.dictionary)
        joint, size = joint * part.count + part.codes, size * part.count
    codes, count = _codes_of(joint, size)

    def values() -> list[Any]:
        firsts = _first_positions(codes, count)
        columns = [(part.values(), part.codes[firsts].tolist()) for part in parts]
        return list(zip(*([listed[code] for code in chosen] for listed, chosen in columns)))

    return Encoded(codes, count, values)


def _codes_of(numbers: npt.NDArray[np.int64], size: int) -> tuple[Any, int]:
    """Numbers below ``size`` as codes in the order in which they first come, and how many there
    are. Where an array with a place for each of them is not too large, it is used: a hash table
    takes five to ten times as long."""
    if size > min(_SPARSE * len(numbers), _MOST_PLACES):
        found = pa.array(numbers).dictionary_encode()
        return found.indices.to_numpy(), len(found.dictionary)
    positions = np.arange(len(numbers), dtype=np.int32)
    code_of = np.empty(size, np.int32)  # only places of these numbers are written and read
    code_of[numbers[::-1]] = positions[::-1]  # the last assignment wins: that of the first record
    firsts = numbers[code_of[numbers] == positions]
    code_of[firsts] = positions[: len(firsts)]
    return code_of[numbers], len(firsts)


def _first_positions(codes: npt.NDArray[Any], count: int) -> Any:
    """The position of each code's first record."""
    firsts = np.empty(count, dtype=np.int64)
    # the last assignment wins: that of the first record
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return firsts


class Grown:
    """A numpy array that grows with the number of keys: it doubles while it is small, and has a
    quarter to spare when it is large."""

    def __init__(self, dtype: npt.DTypeLike, fill: Any, empty: Empty = np.empty) -> None:
        """``empty`` gives arrays."""
        self.fill = fill
        self._empty = empty
        self.values = np.full(64, fill, dtype=dtype)
        self._freezing = Freezing()

    def reach(self, size: int) -> Any:
        """The array, with room for at least ``size`` keys."""
        if size > len(self.values):
            now = len(self.values)
            roomy = 2 * now if now < _LARGE else now + now // 4
            grown = self._empty(max(size, roomy), self.values.dtype)
            grown[:now], grown[now:] = self.values, self.fill
            self._replace(grown)
        return self.values

    def put(self, ids: npt.NDArray[np.int64], values: npt.NDArray[Any], size: int) -> None:
        """Sets the values of these keys, of ``size`` keys. Once it was frozen, this is the only way
        to change it."""
        if values.dtype == object != self.values.dtype:
            self._replace(self.values.astype(object))
        array = self.reach(size)
        if self._freezing:
            self._freezing.keep(ids)
        array[ids] = values

    def freeze(self) -> FrozenArray:
        """The array as it is now."""
        return self._freezing.freeze(self.values, self._empty)

    def _replace(self, values: npt.NDArray[Any]) -> None:
        self.values = values
        self._freezing.leave()


def look_alike(kind: pa.DataType) -> bool:
    """Whether equal values of the type always have the same bits; not so for floats, whose zeros
    and NaNs have two signs."""
    kind = _plain_type(kind)
    if pa.types.is_struct(kind):
        return all(look_alike(field.type) for field in kind)
    return not pa.types.is_floating(kind)
