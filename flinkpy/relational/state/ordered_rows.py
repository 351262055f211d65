"""Rows by key, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch, KeyIndex
from flinkpy.operators.context import OperatorContext
from flinkpy.relational.key_columns import key_names
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.state.expiry_of_numbers import Expiry
from flinkpy.relational.state.multi_map import MultiMap
from flinkpy.relational.state.row_memory import RowMemory
from flinkpy.relational.state.row_store import RowStore
from flinkpy.relational.state.rows_by_key import keys_of
from flinkpy.relational.state.saved_rows import SavedRows

_SWEPT = 4  # keys are looked at for each row that comes
Numbers = npt.NDArray[np.int64]


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
        self._places = Grown(np.int64, 0, self.empty)  # by row: how many came before it
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

    def add(self, data: pa.RecordBatch, places: Numbers) -> Numbers:
        """Keeps rows, and gives their numbers; they are in no list yet."""
        rows = self.store.add(data)
        self._places.reach(self.store.size)[rows] = places
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
        self, rest: Callable[[pa.RecordBatch, Numbers], Any] | None = None
    ) -> Callable[[Turns], dict[int, bytes]]:
        """What gives the rows of now by key group, in the order in which they came. ``rest`` is
        given the rows and their numbers, and says which of them are there."""
        store, schema, places = self.store.freeze(), self.store.schema, self._places.values.copy()
        written = None
        if self._expiry is not None:
            written = np.zeros(self.store.size, np.int64)
            for each in (self.first, self.others):
                at, rows = each.pairs(np.arange(self._index.size))
                written[rows] = self._expiry.written(at)

        def ordered() -> tuple[pa.RecordBatch, Any]:
            parts = store.batches()
            data = one_record_batch([each for each, _ in parts], schema)
            rows = np.concatenate([np.empty(0, np.int64), *(each for _, each in parts)])
            order = np.argsort(places[rows])
            data, rows = data.take(pa.array(order)), rows[order]
            if rest is not None:
                stays = rest(data, rows)
                data, rows = data.filter(pa.array(stays)), rows[stays]
            return data, None if written is None else written[rows]

        return self._saved.frozen(ordered)

    def restore(self, saved: Iterable[bytes]) -> tuple[KeyedBatch, Numbers]:
        """Takes back what ``freeze`` has given. Gives the keys of the rows, and their numbers; they
        are in no list yet."""
        data, written = self._saved.restored(saved, self._context.clock.time_ms())
        keyed = self._index.of(keys_of(data, self.keys))
        if self._expiry is not None:
            self._expiry.set_written(keyed.ids, written[keyed.firsts])
        self._next = data.num_rows
        return keyed, self.add(data, np.arange(data.num_rows))
