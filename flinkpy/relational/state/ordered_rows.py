"""Rows by key, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch, KeyIndex
from flinkpy.operators.context import OperatorContext
from flinkpy.relational.key_columns import key_names
from flinkpy.relational.state.expiry_of_numbers import Expiry
from flinkpy.relational.state.frozen_chunks import FrozenColumn, OfKeys, RowsInChunks
from flinkpy.relational.state.multi_map import MultiMap
from flinkpy.relational.state.row_memory import RowMemory
from flinkpy.relational.state.row_store import RowStore
from flinkpy.relational.state.rows_by_key import keys_of
from flinkpy.relational.state.saved_rows import WRITTEN, SavedRows
from flinkpy.state.heap.frozen_numbers import FrozenArray
from flinkpy.state.snapshots.chunked_regions import FrozenChunk, FrozenChunks

PLACE = "$place"  # beside rows in chunks
_SWEPT = 4  # keys are looked at for each row that comes
Numbers = npt.NDArray[np.int64]
# Which of these rows are there, by what is beside them
Rest: TypeAlias = Callable[[pa.RecordBatch, Mapping[str, Any]], Any]


class OrderedRows:
    """Rows of this schema, with a number each, and the number of their key. A key's rows are in one
    of two lists, ``first`` and ``others``; who uses it says which. With ``ttl_ms`` (0: none) a key
    that was not written to for so long has no rows any more."""

    def __init__(
        self, schema: pa.Schema, keys: Sequence[int], ttl_ms: int, context: OperatorContext
    ) -> None:
        self.keys = tuple(keys)
        self._memory = RowMemory.configured(context.configuration)
        self.store = RowStore(schema, self._memory)
        self.empty = self._memory.arrays.empty
        """Gives arrays, for what is kept of each row or key elsewhere."""
        self.first, self.others = MultiMap(self.empty), MultiMap(self.empty)
        self._context = context
        self._index = KeyIndex(key_names(len(self.keys) or 1), empty=self.empty)
        # by row: how many came before it; with a TTL, its key
        self._places, self._keys = Grown(np.int64, 0, self.empty), Grown(np.int32, 0, self.empty)
        self._next = 0  # place
        self._expiry = Expiry(ttl_ms, self.empty) if ttl_ms else None
        self._saved = SavedRows(schema, keys, context.task.max_parallelism)

    def __len__(self) -> int:
        return len(self.store)

    def free_memory(self) -> None:
        """The process is short of memory: rows go to files."""
        self._memory.free()

    @property
    def size(self) -> int:
        """Every number of a key is below."""
        return self._index.size

    def of(self, data: pa.RecordBatch) -> tuple[KeyedBatch, Numbers]:
        """The keys of rows that come, and the places of these rows; a key that is given no row then
        must be forgotten."""
        self._sweep(data.num_rows)
        keyed = self._index.of(keys_of(data, self.keys))
        if self._expiry is not None:
            known = keyed.ids[~keyed.is_new]
            now_ms = self._context.clock.time_ms()
            self._drop_rows(known[~self._expiry.is_alive(known, now_ms)])
        self._next += data.num_rows
        return keyed, np.arange(self._next - data.num_rows, self._next)

    def places(self, rows: Numbers) -> Numbers:
        """Where these rows are in the order in which they came."""
        return self._places.values.take(rows)

    def add(self, data: pa.RecordBatch, places: Numbers, keys: Numbers) -> Numbers:
        """Keeps rows with these keys, and gives their numbers; they are in no list yet."""
        rows = self.store.add(data)
        self._places.put(rows, places, self.store.size)
        if self._expiry is not None:
            self._keys.put(rows, keys, self.store.size)
        return rows

    def touch(self, keys: Numbers) -> None:
        """These keys are written to now."""
        if self._expiry is not None:
            self._expiry.touch(keys, self._context.clock.time_ms())

    def forget(self, keys: Numbers) -> None:
        """These keys are gone, with all their rows."""
        if not len(keys):
            return
        self._drop_rows(keys)
        if self._expiry is not None:
            self._expiry.forget(keys)
        self._index.forget(keys)

    def _drop_rows(self, keys: Numbers) -> None:
        for each in (self.first, self.others):
            at, rows = each.pairs(keys)
            each.remove(keys[at], rows)
            self.store.delete(rows)

    def _sweep(self, rows: int) -> None:
        if self._expiry is not None:
            self.forget(self._expiry.expired(self._context.clock.time_ms(), _SWEPT * rows))

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(
        self, rest: Rest | None = None, marks: Mapping[str, FrozenArray] | None = None
    ) -> FrozenChunks:
        """The rows of now, in the order in which they came. A snapshot in one piece has those that
        ``rest`` leaves, one in chunks has all, with these ``marks`` beside them."""
        written: FrozenColumn | None = None
        if self._expiry is not None:
            self._keys.reach(self.store.size)
            written = OfKeys(self._keys.freeze(), self._expiry.freeze())
        self._places.reach(self.store.size)
        columns = {} if written is None else {WRITTEN: written}
        columns |= {PLACE: self._places.freeze(), **(marks or {})}
        groups = self._context.task.max_parallelism
        chunks = RowsInChunks(self.store.freeze(), columns, self.keys, groups)
        return _FrozenInOrder(chunks, self._saved, len(self.store.schema), rest)

    def restore(
        self, saved: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[KeyedBatch, Numbers, Mapping[str, Any]]]:
        """Takes back what ``freeze`` has given. Gives, for some at a time, the keys of the rows,
        their numbers, and their marks; they are in no list yet."""
        width, now_ms = len(self.store.schema), self._context.clock.time_ms()
        for each in saved:
            beside = dict(zip(each.schema.names[width:], each.columns[width:]))
            data, written = self._saved.apart(
                each.select(range(width + (WRITTEN in beside))), now_ms
            )
            keyed = self._index.of(keys_of(data, self.keys))
            if self._expiry is not None:
                self._expiry.set_written(keyed.ids, written[keyed.firsts])
            places = np.arange(self._next, self._next + len(written))
            if PLACE in beside:
                places = beside.pop(PLACE).to_numpy()
            self._next = max(self._next, int(places.max(initial=-1)) + 1)
            marks = {name: column.to_numpy() for name, column in beside.items()}
            yield keyed, self.add(data, places, keyed.ids[keyed.codes]), marks


class _FrozenInOrder(FrozenChunks):
    """Rows with their places, behind their ``width`` columns."""

    def __init__(
        self, chunks: RowsInChunks, saved: SavedRows, width: int, rest: Rest | None
    ) -> None:
        self._chunks = chunks
        self._saved = saved
        self._width = width
        self._rest = rest
        self.keys, self.folders = chunks.keys, chunks.folders

    def chunks(self, turns: Turns) -> Sequence[FrozenChunk]:
        return self._chunks.chunks(turns)

    def in_one_piece(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that ``rest`` leaves, and when each was written to."""
        order = np.argsort(rows.column(PLACE).to_numpy())
        rows = rows.take(pa.array(order))
        data = rows.select(range(self._width))
        names, columns = rows.schema.names[self._width :], rows.columns[self._width :]
        beside = {name: column.to_numpy() for name, column in zip(names, columns)}
        written = beside.get(WRITTEN)
        if self._rest is not None:
            stays = self._rest(data, beside)
            data, written = (
                data.filter(pa.array(stays)),
                None if written is None else written[stays],
            )
        return self._saved.beside(data, written)
