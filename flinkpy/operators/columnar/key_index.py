"""Gives each key of column batches a dense number, so that the state of columnar aggregates can be
arrays.

Only the distinct keys of a batch are looked up in Python; the rest is dictionary encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.compiler import column_index
from flinkpy.columns.values.conversion import python_values
from flinkpy.core.errors import ProgramError
from flinkpy.state.heap.frozen_numbers import Freezing, FrozenArray

_TABLE_LIMIT = 1 << 22
_LIMIT = 1 << 62
_NAN = object()  # stands for all NaNs, which are one key although they do not equal each other


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
    """Numbers keys in order of appearance, from 0. Small integers (mostly ids) are looked up in an
    array, other keys in a dict."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._ids: dict[Any, int] = {}
        # the number of key k at index k
        self._table: Grown | None = Grown(np.int64, -1) if len(self._columns) == 1 else None
        self._known = 0

    def __len__(self) -> int:
        return self._known

    def of(self, data: Any) -> KeyedBatch:
        """The keys of a record batch, with new ones numbered."""
        if self._table is not None:
            column = data.column(column_index(self._columns[0], data.schema))
            if pa.types.is_integer(column.type) and column.null_count == 0:
                keys = column.to_numpy()
                if len(keys) and keys.min() >= 0 and (top := int(keys.max())) < _TABLE_LIMIT:
                    return self._of_small(keys, self._table.reach(top + 1))
            self._leave_table(self._table.values)
        keyed = self._of_any(data)
        self._known = len(self._ids)
        return keyed

    def ids_of(self, data: Any) -> Any:
        """The number of each record's key; enough if the records are grouped later."""
        if self._table is not None:
            column = data.column(column_index(self._columns[0], data.schema))
            if pa.types.is_integer(column.type) and column.null_count == 0 and len(column):
                keys = column.to_numpy()
                if keys.min() >= 0 and (top := int(keys.max())) < _TABLE_LIMIT:
                    return self._ids_of_small(keys, self._table.reach(top + 1))
        keyed = self.of(data)
        return keyed.ids[keyed.codes]

    def _ids_of_small(self, keys: Any, table: Any) -> Any:
        ids, known = table[keys], self._known
        unknown = keys[ids < 0]
        if len(unknown):
            firsts = np.sort(np.unique(unknown, return_index=True)[1])
            table[unknown[firsts]] = np.arange(known, known + len(firsts))
            self._known += len(firsts)
            ids = table[keys]
        return ids

    def _of_small(self, keys: Any, table: Any) -> KeyedBatch:
        known = self._known
        ids = self._ids_of_small(keys, table)
        positions = np.arange(len(ids))
        # only the entries of this batch's keys are written and read
        first_of = np.empty(self._known, dtype=np.int64)
        first_of[ids[::-1]] = positions[::-1]  # the last assignment wins: that of the first record
        first_of = first_of[ids]
        is_first = first_of == positions
        distinct = ids[is_first]
        return KeyedBatch(
            (np.cumsum(is_first) - 1)[first_of], distinct, positions[is_first], distinct >= known
        )

    def _leave_table(self, table: Any) -> None:
        keys = np.nonzero(table >= 0)[0]
        self._ids = dict(zip(keys.tolist(), table[keys].tolist()))
        self._table = None

    def _of_any(self, data: Any) -> KeyedBatch:
        found = encoded([data.column(column_index(name, data.schema)) for name in self._columns])
        keys = found.values()
        known = len(self._ids)
        numbers: list[Any] = list(map(self._ids.get, keys))
        if None in numbers:
            number = self._ids.setdefault
            numbers = [number(key, len(self._ids)) for key in keys]
        ids = np.array(numbers, dtype=np.int64)
        return KeyedBatch(found.codes, ids, found.firsts, ids >= known)

    def __repr__(self) -> str:
        return f"<KeyIndex of {', '.join(self._columns)}: {self._known} keys>"


def check_keys(names: Sequence[str], schema: Any) -> None:
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


def _is_key(kind: Any) -> bool:
    kind = _plain_type(kind)
    if pa.types.is_struct(kind):
        return all(_is_key(field.type) for field in kind)
    return not (pa.types.is_nested(kind) or pa.types.is_union(kind))


def _plain_type(kind: Any) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    return kind


def _plain(column: Any) -> Any:
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
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column


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


def _encoded(column: Any) -> Encoded:
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


def _nanoseconds(kind: Any) -> int:
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
    found = pa.array(joint).dictionary_encode()
    codes, count = found.indices.to_numpy(), len(found.dictionary)

    def values() -> list[Any]:
        firsts = _first_positions(codes, count)
        columns = [(part.values(), part.codes[firsts].tolist()) for part in parts]
        return list(zip(*([listed[code] for code in chosen] for listed, chosen in columns)))

    return Encoded(codes, count, values)


def _first_positions(codes: Any, count: int) -> Any:
    """The position of each code's first record."""
    firsts = np.empty(count, dtype=np.int64)
    # the last assignment wins: that of the first record
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return firsts


class Grown:
    """A numpy array that doubles in size as the number of keys grows."""

    def __init__(self, dtype: Any, fill: Any) -> None:
        self._fill = fill
        self.values = np.full(64, fill, dtype=dtype)
        self._freezing = Freezing()

    def reach(self, size: int) -> Any:
        """The array, with room for at least ``size`` keys."""
        if size > len(self.values):
            grown = np.full(max(size, 2 * len(self.values)), self._fill, dtype=self.values.dtype)
            grown[: len(self.values)] = self.values
            self._replace(grown)
        return self.values

    def put(self, ids: Any, values: Any, size: int) -> None:
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
        return self._freezing.freeze(self.values)

    def _replace(self, values: Any) -> None:
        self.values = values
        self._freezing.leave()


class FirstRecords:
    """The first record of every key, in chunks; growing chunks are merged, so that there are few
    and each is copied seldom."""

    def __init__(self) -> None:
        self._chunks: list[Any] = []

    def add(self, data: Any, keyed: KeyedBatch) -> None:
        """Keeps the first records of the batch's new keys."""
        if not keyed.is_new.any():
            return
        self._add(data, keyed.firsts[keyed.is_new][np.argsort(keyed.ids[keyed.is_new])])

    def add_new(self, data: Any, ids: Any, known: int) -> None:
        """The same, given the number of each record's key; numbers from ``known`` on are new."""
        new = np.flatnonzero(ids >= known)
        self._add(data, new[np.unique(ids[new], return_index=True)[1]])

    def _add(self, data: Any, new: Any) -> None:
        self._chunks.append(pa.Table.from_batches([data.take(pa.array(new))]))
        while len(self._chunks) > 1 and self._chunks[-2].num_rows <= 2 * self._chunks[-1].num_rows:
            self._chunks[-2:] = [pa.concat_tables(self._chunks[-2:]).combine_chunks()]

    def take(self, ids: Any, names: Sequence[str]) -> list[Any]:
        """These columns of the first records of the keys ``ids``."""
        found = (
            pa.concat_tables([chunk.select(names) for chunk in self._chunks])
            .take(pa.array(ids))
            .combine_chunks()
        )
        return [
            column.chunk(0) if column.num_chunks else pa.array([], column.type)
            for column in found.columns
        ]

    def all(self) -> Any:
        """The first records of all keys, by key number."""
        if len(self._chunks) > 1:
            self._chunks = [pa.concat_tables(self._chunks).combine_chunks()]
        return self._chunks[0].to_batches()[0]

    def freeze(self) -> FirstRecords:
        """Those of now: chunks are never changed."""
        frozen = FirstRecords()
        frozen._chunks = list(self._chunks)
        return frozen


def look_alike(kind: Any) -> bool:
    """Whether equal values of the type always have the same bits; not so for floats, whose zeros
    and NaNs have two signs."""
    kind = _plain_type(kind)
    if pa.types.is_struct(kind):
        return all(look_alike(field.type) for field in kind)
    return not pa.types.is_floating(kind)
