"""Columns in keyed state: one Arrow table per key group, which the backend keeps under a key of
that group. So the state moves by key group when a job is rescaled, without a Python object per key.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.columns.kernels.operand_types import BeyondSigned
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import BatchForm, Work
from flinkpy.operators.columnar.accumulators import KeyedAccumulators
from flinkpy.operators.columnar.column_operators import ColumnOperator, columns, explained
from flinkpy.operators.columnar.key_index import PLACES, Grown, KeyIndex, check_keys, encoded
from flinkpy.operators.columnar.records_of_keys import FirstRecords
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk, bytes_of_objects
from flinkpy.operators.columnar.tables_by_group import (
    by_group,
    from_bytes,
    group_numbers,
    input_schema_of,
    key_of_group,
    with_input,
)
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.state.snapshots.arrow_streams import to_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

STATE = "_aggregates of columns"  # a key of each key group -> an Arrow table of the group's keys
# In a batch job, this many records wait before they are accumulated; more if there are more keys.
_WAITING = 1 << 15


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
    _disk: RowsOnDisk | None = None

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

    # -- keys on disk ------------------------------------------------------------------------------

    def process_batch(self, batch: Batch) -> Work | None:
        if self._disk is None:
            return super().process_batch(batch)
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            self.prepare_for(batch.data.schema)
            self._bring_back(batch.data)
        work = super().process_batch(batch)
        with explained(None, self.context):
            self._relieve(len(batch))
        return work

    def _bring_back(self, data: pa.RecordBatch) -> None:
        """Has in memory what is on disk of the keys of these records."""
        if self._disk is None or not self._disk.holds:
            return
        unknown = np.flatnonzero(self._index.find(data) < 0)
        if not len(unknown):
            return
        keys = [data.column(column_index(name, data.schema)) for name in self.keys]
        keys = [_plain(column.take(pa.array(unknown))) for column in keys]
        firsts = pa.array(encoded(keys).firsts)
        distinct = pa.RecordBatch.from_arrays([each.take(firsts) for each in keys], self.keys)
        for rows in self._disk.taken(distinct):
            self._restore(rows)

    def _relieve(self, records: int) -> None:
        """So many records were taken. Keys beyond their share of memory leave it."""
        disk = self._disk
        assert disk is not None
        if disk.is_due(records) and disk.is_too_much(len(self._index), self.bytes_held()):
            index, rows = self._index, self._rows()(Turns())
            self.begin_anew()
            disk.leave(index, np.arange(rows.num_rows), rows)

    def _keys_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows of the state."""
        keys = [rows.column(f"first {name}") for name in self.keys]
        return pa.RecordBatch.from_arrays(keys, self.keys)

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
            self._bring_back(batch.data)
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
            for rows in () if self._disk is None else self._disk.all_rows():
                self._restore_unknown(rows)
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
        self._schema, self._disk = None, None
        most = self.context.task.max_parallelism
        disk = RowsOnDisk(self.backend, STATE, most, self._keys_of)
        if disk.has_disk and self.has_many_keys:
            self._disk, self._places = disk, disk.places
        self.begin_anew()
        for data in self.backend.register_region(STATE, self._frozen).values():
            self._restore(from_bytes(data))
        for rows in disk.restored():
            self._restore_unknown(rows)
        for schema in disk.schemas[:1] if self._schema is None else ():
            self._schema = input_schema_of(schema)
            self.prepare(self._schema)

    def begin_anew(self) -> None:
        """Lets go of all keys."""
        self._index, self._firsts = KeyIndex(self.keys, self._places), FirstRecords()
        self._accumulators = []
        self._waiting, self._waiting_records, self._waiting_bytes = [], 0, 0
        self._stamps, self._is_stamped = Grown(np.int64, MIN_TIMESTAMP), False
        if self._schema is not None:
            self.prepare(self._schema)

    def _restore_unknown(self, rows: pa.RecordBatch) -> None:
        """Takes those of these rows whose keys are not there."""
        self._restore(rows.filter(pa.array(self._index.find(self._keys_of(rows)) < 0)))

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

    def bytes_held(self) -> int:
        keys = len(self._index)
        arrays = (array for each in self._accumulators for array in each.arrays)
        return held_bytes(*self.kept_parts()) + bytes_of_objects(arrays, keys)

    def _frozen(self) -> Callable[[Turns], dict[int, bytes]]:
        if not len(self._index):
            return lambda turns: {}
        made = self._rows()
        max_parallelism = self.context.task.max_parallelism

        def saved(turns: Turns) -> dict[int, bytes]:
            rows, found = made(turns), dict[int, bytes]()
            groups = group_numbers(self._keys_of(rows), self.keys, max_parallelism)
            for group, part in by_group(rows, groups):
                found[key_of_group(group, max_parallelism)] = to_bytes(part)
                turns.give_way()
            return found

        return saved

    def _rows(self) -> Callable[[Turns], pa.RecordBatch]:
        """What gives the state of now, a row for each key by its number: its first record, counts
        and values."""
        self._accumulate()
        firsts, schema, keys = self._firsts.freeze(), self._schema, len(self._index)
        accumulators = [each.freeze(keys) for each in self._accumulators]

        def rows(turns: Turns) -> pa.RecordBatch:
            records = firsts.all()
            columns = {
                f"first {name}": _plain(records.column(name)) for name in records.schema.names
            }
            for at, each in enumerate(accumulators):
                columns[f"count {at}"], values = each(turns)
                if values is not None:
                    columns[f"value {at}"] = values
            table = pa.RecordBatch.from_pydict(columns)
            return table.replace_schema_metadata(with_input(table.schema, schema).metadata)

        return rows
