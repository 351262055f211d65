"""Columns in keyed state: one Arrow table per key group, which the backend keeps under a key of
that group. So the state moves by key group when a job is rescaled, without a Python object per key.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.kernels.operand_types import BeyondSigned
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import int64_hashes
from flinkpy.network.partitioning.column_hashes import key_hashes
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.accumulators import KeyedAccumulators
from flinkpy.operators.columnar.column_operators import (
    ColumnOperator,
    columns,
    explained,
    one_batch,
)
from flinkpy.operators.columnar.key_index import PLACES, Grown, KeyIndex, check_keys
from flinkpy.operators.columnar.records_of_keys import FirstRecords
from flinkpy.operators.keyed_state import KeyedStateOperator

if TYPE_CHECKING:
    import numpy.typing as npt

STATE = "_aggregates of columns"  # a key of each key group -> an Arrow table of the group's keys
# In a batch job, this many records wait before they are accumulated; more if there are more keys.
_WAITING = 1 << 15
INPUT = b"input"  # in the table's metadata: the schema of the input records


def group_numbers(data: object, keys: Sequence[str], max_parallelism: int) -> Any:
    """The key group of each row, by these key columns."""
    return (key_hashes(data, keys) % np.uint64(max_parallelism)).astype(np.int64)


def by_group(data: pa.RecordBatch, groups: Any) -> Iterator[tuple[int, Any]]:
    """Cuts a batch or table by the key groups of its rows; rows of one group stay in order."""
    order = np.argsort(groups, kind="stable")
    ordered = data.take(pa.array(order))
    found, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    for group, start, count in zip(found.tolist(), starts.tolist(), counts.tolist()):
        yield group, ordered.slice(start, count)


def key_of_group(group: int, max_parallelism: int) -> int:
    """The key under which a group's table is kept: an integer that falls into that group.

    >>> from flinkpy.core.keys import key_group
    >>> [key_group(key_of_group(group, 128), 128) for group in (0, 17, 127)]
    [0, 17, 127]
    """
    return _keys_of_groups(max_parallelism)[group]


@functools.lru_cache(maxsize=8)
def _keys_of_groups(max_parallelism: int) -> Mapping[int, int]:
    keys: dict[int, int] = {}
    begin, step = 0, 8 * max_parallelism
    while len(keys) < max_parallelism:
        numbers = np.arange(begin, begin + step)
        groups, firsts = np.unique(
            int64_hashes(numbers) % np.uint64(max_parallelism), return_index=True
        )
        for group, key in zip(groups.tolist(), numbers[firsts].tolist()):
            keys.setdefault(group, key)
        begin += step
    return keys


def to_bytes(data: pa.RecordBatch, compression: str | None = None) -> bytes:
    """A batch or table as an Arrow stream. A slice is written without the rest of its buffers."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, data.schema, options=options) as writer:
        writer.write(data)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def from_bytes(data: bytes) -> Any:
    """The record batch that :func:`to_bytes` wrote."""
    return one_batch(pa.ipc.open_stream(data).read_all())


def with_input(schema: pa.Schema, input_schema: Any) -> Any:
    """The schema of a saved table, with the schema of its input records as metadata."""
    return schema.with_metadata({INPUT: input_schema.serialize().to_pybytes()})


def input_schema_of(schema: pa.Schema) -> Any:
    """The schema of the input records of a saved table."""
    return pa.ipc.read_schema(pa.BufferReader(schema.metadata[INPUT]))


def _plain(column: pa.Array) -> Any:
    """The column without dictionary encoding; else the table of each key group would contain the
    whole dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


class KeyedColumnsOperator(KeyedStateOperator, ColumnOperator):
    """What running aggregates over columns share: the keys, the first record of each key, and the
    snapshots."""

    batch_form = BatchForm.ONE_ROW_OF_KEY
    keeps_timestamps = True
    takes_changes = INSERT_ONLY
    has_many_keys = True  # or a single one
    keys: Sequence[str]
    _index: KeyIndex
    _firsts: FirstRecords
    _accumulators: Sequence[KeyedAccumulators] = ()
    _waiting: list[tuple[list[Any], Any]]  # columns, and the number of each record's key
    _waiting_records = _waiting_bytes = 0
    _most_waiting: int | None = None  # bytes; None: any number
    _places = PLACES
    _stamps: Grown
    _is_stamped = False

    def prepare(self, schema: pa.Schema) -> None:
        check_keys(self.keys, schema)

    @abstractmethod
    def values(self, data: pa.RecordBatch) -> list[Any]:
        """The columns to aggregate."""

    @abstractmethod
    def value_names(self) -> list[str]:
        """The names of these columns, for errors."""

    @abstractmethod
    def first_columns(self, data: pa.RecordBatch) -> Any:
        """The columns of each key's first record that are kept."""

    # -- batch jobs --------------------------------------------------------------------------------

    @abstractmethod
    def row_of_each_key(self, results: list[Any]) -> Any:
        """A record batch with the aggregates of all keys, by key number."""

    @abstractmethod
    def stamp(self, stamps: Any, ids: npt.NDArray[np.int64], new: Any) -> None:
        """Sets the timestamps of keys for new records to those that the last running row would
        have."""

    def limit_memory(self, waiting: int) -> None:
        """Lets so many bytes of records wait at most. Called before the first record."""
        self._most_waiting, self._places = waiting, min(PLACES, waiting // 8)
        self.begin_anew()

    @property
    def input_schema(self) -> pa.Schema:
        """Of the records, once one has come."""
        return self._schema

    @property
    def grows(self) -> bool:
        """Whether a key takes more memory with each of its records; known once one has come."""
        return any(each.of.of.needs_objects() for each in self._accumulators)

    def growth(self, records: int) -> int:
        """How many bytes it takes for a moment to make room for so many more keys, at most."""
        return self._index.growth(records)

    def kept_parts(self) -> Sequence[object]:
        """What is kept of the keys."""
        return self._index, self._firsts, self._accumulators, self._stamps

    def is_known(self, data: pa.RecordBatch) -> Any:
        """For each record: whether its key is there."""
        return self._index.find(data) >= 0

    def take(self, batch: ColumnBatch) -> ColumnBatch | None:
        """Takes records for ``last_rows``, or gives the results of a batch job that go out as they
        come. Records wait, and are accumulated when there are many."""
        data, numbered = batch.data, self._index.numbers(batch.data)
        ids = numbered.ids
        if len(numbered.fresh):
            self._firsts.add_new(self.first_columns(data), numbered.fresh)
        values = self.values(data)
        self._waiting.append((values, ids))
        self._waiting_records += len(ids)
        is_much = False
        if self._most_waiting is not None:
            self._waiting_bytes += ids.nbytes + sum(column.nbytes for column in values)
            is_much = self._waiting_bytes > self._most_waiting
        if batch.timestamps is not None:
            self.stamp(self._stamps.reach(len(self._index)), ids, batch.timestamps)
            self._is_stamped = True
        if is_much or self._waiting_records > max(_WAITING, 2 * len(self._index)):
            self._accumulate()
        return None

    def take_batch(self, batch: Batch) -> None:
        """Takes a batch for ``last_results`` of a stream. No running result is computed, so none
        can be an error."""
        batch = columns(batch, self.context)
        with explained(batch.data, self.context):
            self.prepare_for(batch.data.schema)
            self.take(ColumnBatch(batch.data))

    def last_rows(self) -> ColumnBatch | None:
        """The final aggregate of each key, in the order in which the keys first came; None if there
        was no record."""
        keys = len(self._index)
        if not keys:
            return None
        self._accumulate()
        rows = self.row_of_each_key([each.results(keys) for each in self._accumulators])
        return ColumnBatch(rows, self._stamps.values[:keys] if self._is_stamped else None)

    def last_results(self) -> Iterator[ColumnBatch]:
        """The row of each key when the input has ended, in pieces."""
        with explained(None, self.context):
            last = self.last_rows()
        if last is not None:
            step = self.context.batch_records
            for start in range(0, len(last), step):
                yield last.slice(start, step)

    def _accumulate(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._waiting_records = self._waiting_bytes = 0
            columns, ids = waiting[0]
            if len(waiting) > 1:
                columns = [
                    pa.concat_arrays(parts) for parts in zip(*(columns for columns, _ in waiting))
                ]
                ids = np.concatenate([ids for _, ids in waiting])
            records = np.bincount(ids, minlength=len(self._index))
            for accumulators, column, name in zip(self._accumulators, columns, self.value_names()):
                try:
                    accumulators.take(column, ids, records)
                except BeyondSigned as error:
                    raise ProgramError(error.about(f"column {name!r}")) from None

    # -- snapshots ---------------------------------------------------------------------------------

    def open(self) -> None:
        self._schema = None
        self.begin_anew()
        for data in self.backend.register_region(STATE, self._frozen).values():
            self._restore(from_bytes(data))

    def begin_anew(self) -> None:
        """Lets go of all keys."""
        self._index, self._firsts = KeyIndex(self.keys, self._places), FirstRecords()
        self._accumulators = []
        self._waiting, self._waiting_records, self._waiting_bytes = [], 0, 0
        self._stamps, self._is_stamped = Grown(np.int64, MIN_TIMESTAMP), False
        if self._schema is not None:
            self.prepare(self._schema)

    def _restore(self, batch: Any) -> None:
        if self._schema is None:
            self._schema = input_schema_of(batch.schema)
            self.prepare(self._schema)
        names = batch.schema.names
        firsts = batch.select([name for name in names if name.startswith("first ")])
        firsts = firsts.rename_columns(
            [name.removeprefix("first ") for name in firsts.schema.names]
        )
        firsts = firsts.cast(pa.schema([self._schema.field(name) for name in firsts.schema.names]))
        keyed = self._index.of(firsts)
        self._firsts.add(firsts, keyed)
        for at, each in enumerate(self._accumulators):
            values = (
                None
                if each.of.only_counts
                else each.of.accumulators_of(batch.column(f"value {at}"))
            )
            each.put(
                keyed.ids[keyed.codes],
                batch.column(f"count {at}").to_numpy(),
                values,
                len(self._index),
            )

    def entries_held(self) -> int:
        return len(self._index)

    def _frozen(self) -> Callable[[Turns], dict[int, bytes]]:
        keys = len(self._index)
        if not keys:
            return lambda turns: {}
        self._accumulate()
        firsts = self._firsts.freeze()
        schema = self._schema
        max_parallelism = self.context.task.max_parallelism
        accumulators = [each.freeze(keys) for each in self._accumulators]

        def saved(turns: Turns) -> dict[int, bytes]:
            records = firsts.all()
            columns = {
                f"first {name}": _plain(records.column(name)) for name in records.schema.names
            }
            for at, each in enumerate(accumulators):
                columns[f"count {at}"], values = each(turns)
                if values is not None:
                    columns[f"value {at}"] = values
            table = pa.RecordBatch.from_pydict(columns)
            table = table.replace_schema_metadata(with_input(table.schema, schema).metadata)
            groups = group_numbers(records, self.keys, max_parallelism)
            found = {}
            for group, part in by_group(table, groups):
                found[key_of_group(group, max_parallelism)] = to_bytes(part)
                turns.give_way()
            return found

        return saved
