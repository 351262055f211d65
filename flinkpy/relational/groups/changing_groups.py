"""GROUP BY without windows in STREAMING: a row for each group, which changes as rows come.

A batch gives the net change of each of its keys: an insert, an update, or a delete where the last
row of the group went. With one row a batch that is Flink's changelog, row for row; with more it is
that of Flink's mini-batches. Without keys all rows are one group, which comes with the first row
and goes with the last one, as in Flink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.clock import Turns
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import SavepointRestoreError
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch, look_alike
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.operators.columnar.tables_by_group import from_bytes, key_of_group
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.aggregates.calls_of_groups import plain_type
from flinkpy.relational.groups.changed_results import ChangedResults
from flinkpy.relational.groups.changing_calls import BatchOfGroups, ChangingCalls, HasEntries
from flinkpy.relational.groups.listed_parts import listed, unlisted
from flinkpy.relational.key_columns import key_batch
from flinkpy.relational.relational_operator import RelationalOperator
from flinkpy.relational.state.expiry_of_numbers import Expiry
from flinkpy.relational.state.key_numbers import KeyNumbers
from flinkpy.relational.state.rows_by_group import rows_by_group
from flinkpy.sql.rex.rex_nodes import AggregateCall

GROUPS = "groups"
_ROWS, _WRITTEN = "rows", "written"
_MEANING = b"aggregates"  # in the metadata of a saved schema
_SHARE = 4  # numbers that are looked at for expiry with each row of a batch
_FEWEST = 1 << 10
_BEFORE, _DELETE = RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value

Saved = Callable[[Turns], dict[int, bytes]]


@dataclass(frozen=True)
class GroupSpec:
    """Groups by the columns ``keys``, and their ``calls``. ``changes`` are the kinds of rows that
    are given; without UPDATE_BEFORE only the row after an update is sent. ``takes_back``: the input
    has updates or deletes. ``ttl_ms``: how long a group is kept after its last row; 0: for ever."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    changes: ChangelogMode = ALL_CHANGES
    takes_back: bool = True
    ttl_ms: int = 0


def key_fields(spec: GroupSpec, inputs: pa.Schema) -> list[pa.Field]:
    """The columns of the keys."""
    kinds = [plain_type(inputs.field(at).type) for at in spec.keys]
    return [pa.field(f"key {at}", kind) for at, kind in enumerate(kinds)]


class GroupAggregateOperator(KeyedStateOperator, RelationalOperator):
    """Gives the keys of each group, then the results of its calls. ``inputs`` is the schema of the
    input."""

    keeps_timestamps = False

    def __init__(self, spec: GroupSpec, inputs: pa.Schema, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.spec = spec
        self.inputs = inputs
        self.emits_changes = spec.changes
        self.takes_changes = ALL_CHANGES if spec.takes_back else INSERT_ONLY

    # -- what comes --------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        data = batch.data
        now_ms = self.context.clock.time_ms() if self._expiry is not None else 0
        self._sweep(now_ms, data.num_rows)
        keys = self._key_columns(data)
        self._bring_back(keys)
        keyed = self._groups.of(keys)
        numbers = keyed.ids
        was = ~keyed.is_new
        if self._expiry is not None:
            self._expire(numbers, was, now_ms)
        self._calls.reach(self._groups.size)
        before = self._calls.results_of(numbers) if was.any() else []
        self._take(batch, keyed, was)
        is_now = np.ones(len(numbers), np.bool_)
        if self.spec.takes_back:
            is_now = self._rows.values[numbers] > 0
        after = self._calls.results_of(numbers)
        keys = self._shown_keys(data, keyed)
        if not is_now.all():
            self._forget(numbers[~is_now])
        self._relieve(data.num_rows)
        sends_before = self.spec.changes.contains(RowKind.UPDATE_BEFORE)
        return ChangedResults(was, is_now, sends_before=sends_before).rows(
            keys, before, after, self.schema, leaves_out_equal=self._expiry is None
        )

    def _take(self, batch: ColumnBatch, keyed: KeyedBatch, was: npt.NDArray[np.bool_]) -> None:
        """Takes the rows of a batch; ``was``: which of its groups were there."""
        data, codes, signs = batch.data, keyed.codes, signs_of(batch.kinds)
        if signs is not None and not was.all():
            known = _comes_or_is_known(codes, signs, was)
            if not known.all():
                data, codes, signs = data.filter(pa.array(known)), codes[known], signs[known]
        groups, size = keyed.ids[codes], self._groups.size
        self._calls.take(BatchOfGroups(data, groups, signs, size))
        if self.spec.takes_back:
            np.add.at(self._rows.reach(size), groups, 1 if signs is None else signs)

    def _shown_keys(self, data: pa.RecordBatch, keyed: KeyedBatch) -> Sequence[pa.Array]:
        """The keys of the groups of a batch, as each was in its first row: 0.0 and -0.0 are one
        key, and a row that is taken back must look as it did."""
        if not self.spec.keys or all(look_alike(field.type) for field in self._key_schema):
            firsts = pa.array(keyed.firsts)
            return [data.column(at).take(firsts) for at in self.key_places]
        return list(self._groups.keys_of(keyed.ids).columns)

    @property
    def key_places(self) -> Sequence[int]:
        """Where the keys are in what comes."""
        return self.spec.keys

    def _key_columns(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows; where there are none all rows have the same."""
        if not self.spec.keys:
            return pa.RecordBatch.from_arrays(
                [pa.array(np.ones(data.num_rows, np.bool_))], schema=self._key_schema
            )
        names = self._key_schema.names
        return pa.RecordBatch.from_arrays([data.column(at) for at in self.key_places], names=names)

    # -- what goes ---------------------------------------------------------------------------------

    def _forget(self, numbers: npt.NDArray[np.int64]) -> None:
        """These groups are gone."""
        self._clear(numbers)
        if self._disk is not None and self._disk.holds:
            self._disk.remove(key_batch(self._groups.keys_of(numbers).columns))
        if self._expiry is not None:
            self._expiry.forget(numbers)
        self._groups.free(numbers)

    def _clear(self, numbers: npt.NDArray[np.int64]) -> None:
        self._calls.clear(numbers)
        if self.spec.takes_back:
            self._rows.reach(self._groups.size)[numbers] = 0

    def _sweep(self, now_ms: int, rows: int) -> None:
        """Forgets some of the groups that have expired."""
        if self._expiry is not None:
            expired = self._expiry.expired(now_ms, max(_FEWEST, _SHARE * rows))
            if len(expired):
                self._forget(expired)
            if self._disk is not None:
                self._disk.sweep(max(_FEWEST, rows), lambda data: self._has_expired(data, now_ms))

    def _expire(
        self, numbers: npt.NDArray[np.int64], was: npt.NDArray[np.bool_], now_ms: int
    ) -> None:
        """Groups of a batch that have expired begin anew; all of the batch are written to now."""
        assert self._expiry is not None
        expired = was & ~self._expiry.is_alive(numbers, now_ms)
        if expired.any():
            self._clear(numbers[expired])
            was[expired] = False
        self._expiry.touch(numbers, now_ms)

    def _has_expired(self, data: pa.RecordBatch, now_ms: int) -> Any:
        written: Any = data.column(_WRITTEN).to_numpy()
        return written <= now_ms - self.spec.ttl_ms

    # -- groups on disk ----------------------------------------------------------------------------

    def _bring_back(self, keys: pa.RecordBatch) -> None:
        """Has in memory what is on disk of these groups."""
        if self._disk is not None and self._disk.holds:
            for rows in self._disk.lacked(self._groups.index, key_batch(keys.columns)):
                self._take_in(rows)

    def _relieve(self, rows: int) -> None:
        """Groups beyond their share of memory leave it."""
        disk = self._disk
        if disk is None or not disk.is_due(rows):
            return
        if disk.is_too_much(len(self._groups), self.bytes_held()):
            groups = self._groups
            keys = groups.freeze()
            numbers = keys.numbers()
            columns = [*keys.take(numbers).columns, *self._kept_columns(numbers)]
            place_of = np.zeros(groups.size, np.int64)
            place_of[numbers] = np.arange(len(numbers))
            for entries, kind in zip(self._calls.with_entries.values(), self._list_types()):
                owners, data = entries.freeze_entries()()
                columns.append(listed(place_of[owners], data.columns, kind, len(numbers)))
            self._begin_anew()
            left = pa.RecordBatch.from_arrays(columns, schema=self._schema_on_disk())
            disk.leave(groups.index, numbers, left)

    def _take_in(self, rows: pa.RecordBatch) -> None:
        """Groups that were on disk, of which memory has none."""
        width = len(self._region_schema)
        numbers = self._restore_groups(rows.select(range(width)))
        for entries, lists in zip(self._calls.with_entries.values(), rows.columns[width:]):
            owners, columns = unlisted(lists, numbers)
            data = pa.RecordBatch.from_arrays(columns, schema=entries.entries_schema)
            entries.restore_entries((owners, data), self._groups.size)

    def _keys_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return key_batch(rows.columns[: len(self._key_schema)])

    def _list_types(self) -> list[pa.DataType]:
        with_entries = self._calls.with_entries.values()
        return [pa.list_(pa.struct(list(each.entries_schema))) for each in with_entries]

    def _schema_on_disk(self) -> pa.Schema:
        """A row for each group, with a list of its rows in each part of the state that has many."""
        lists = [pa.field(f"list {at}", kind) for at, kind in enumerate(self._list_types())]
        return pa.schema([*self._region_schema, *lists], metadata=self._region_schema.metadata)

    # -- snapshots ---------------------------------------------------------------------------------

    def open(self) -> None:
        self._functions = OpenedCalls(self.spec.calls, self.context)
        self._key_schema = pa.schema(
            key_fields(self.spec, self.inputs) or [pa.field("key 0", pa.bool_())]
        )
        most = self.context.task.max_parallelism
        disk = RowsOnDisk(self.backend, GROUPS, most, self._keys_of)
        self._places = disk.places
        self._begin_anew()
        self._region_schema = self._columns_of_groups()
        self._restore(self.backend.register_region(GROUPS, self._freeze))
        for name, entries in self._calls.with_entries.items():
            frozen = _FreezesEntries(self, name)
            self._restore_entries(entries, self.backend.register_region(name, frozen))
        for schema in disk.schemas:
            self._check(schema, self._schema_on_disk())
        for rows in disk.restored():
            is_new = self._groups.find(self._keys_of(rows)) < 0
            self._take_in(rows.filter(pa.array(is_new)))
        self._disk = disk if disk.has_disk and self.spec.keys else None

    def _begin_anew(self) -> None:
        """There are no groups."""
        self._groups = KeyNumbers(self._key_schema, self._places)
        self._rows = Grown(np.int64, 0)
        self._expiry = Expiry(self.spec.ttl_ms) if self.spec.ttl_ms else None
        results = [field.type for field in self.schema][len(self.spec.keys) :]
        self._calls = ChangingCalls(
            self.spec.calls, self.inputs, results, takes_back=self.spec.takes_back
        )

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def entries_held(self) -> int:
        return len(self._groups)

    def bytes_held(self) -> int:
        return held_bytes(self._groups, self._rows, self._expiry, self._calls)

    def _columns_of_groups(self) -> pa.Schema:
        fields = list(self._key_schema)
        if self.spec.takes_back:
            fields.append(pa.field(_ROWS, pa.int64()))
        if self._expiry is not None:
            fields.append(pa.field(_WRITTEN, pa.int64()))
        for number, each in self._calls.kept.items():
            kinds = each.partial_types
            fields += [pa.field(f"call {number} part {at}", kind) for at, kind in enumerate(kinds)]
        return pa.schema(fields, metadata={_MEANING: self._meaning().encode()})

    def _meaning(self) -> str:
        """What is aggregated, in words: least values are no greatest ones, whose state looks the
        same. Columns go by name, as their order changes with what else a query reads."""
        names = self.inputs.names
        found = []
        for call in self.spec.calls:
            arguments = ", ".join(names[at] for at in call.arguments)
            text = f"{call.function.upper()}({'DISTINCT ' * call.distinct}{arguments})"
            found.append(text if call.filter is None else f"{text} FILTER {names[call.filter]}")
        return ", ".join([*(names[at] for at in self.spec.keys), *found])

    def _freeze(self) -> Saved:
        keys, schema = self._groups.freeze(), self._region_schema
        numbers = keys.numbers()
        columns = self._kept_columns(numbers) if len(numbers) else []
        return self._saved(
            lambda: (
                pa.RecordBatch.from_arrays([*keys.take(numbers).columns, *columns], schema=schema)
                if len(numbers)
                else None
            ),
            schema,
        )

    def _kept_columns(self, numbers: npt.NDArray[np.int64]) -> list[pa.Array]:
        """What is kept of these groups beside their keys."""
        columns: list[pa.Array] = []
        if self.spec.takes_back:
            columns.append(pa.array(self._rows.values[numbers]))
        if self._expiry is not None:
            columns.append(pa.array(self._expiry.written(numbers)))
        for each in self._calls.kept.values():
            columns += each.partial_of(numbers)
        return columns

    def _saved(self, rows: Callable[[], pa.RecordBatch | None], schema: pa.Schema) -> Saved:
        max_parallelism = self.context.task.max_parallelism
        keys = range(len(self.spec.keys))

        def saved(turns: Turns) -> dict[int, bytes]:
            data = rows()
            if data is None or not data.num_rows:
                return {}
            found = rows_by_group([data], schema, keys, max_parallelism, turns)
            return {key_of_group(group, max_parallelism): each for group, each in found.items()}

        return saved

    def _restore(self, saved: Mapping[Any, bytes]) -> None:
        for each in saved.values():
            data = from_bytes(each)
            self._check(data.schema, self._region_schema)
            self._restore_groups(data)

    def _restore_groups(self, data: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Takes groups that are not there, as ``_freeze`` has given them; gives their numbers."""
        width = len(self._key_schema)
        numbers: npt.NDArray[np.int64] = self._groups.numbers(data.select(range(width)))
        size = self._groups.size
        self._calls.reach(size)
        columns = iter(data.columns[width:])
        if self.spec.takes_back:
            self._rows.reach(size)[numbers] = next(columns).to_numpy()
        if self._expiry is not None:
            self._expiry.set_written(numbers, next(columns).to_numpy())
        for accumulator in self._calls.kept.values():
            parts = [next(columns) for _ in accumulator.partial_types]
            if parts:
                accumulator.merge(parts, numbers, size)
        return numbers

    def freeze_entries(self, name: str) -> Saved:
        """What gives the rows of a part of the state, with the keys of their groups."""
        entries = self._calls.with_entries[name]
        keys, frozen = self._groups.freeze(), entries.freeze_entries()
        schema = pa.schema([*self._key_schema, *entries.entries_schema])

        def rows() -> pa.RecordBatch:
            groups, data = frozen()
            columns = [*keys.take(groups).columns, *data.columns]
            return pa.RecordBatch.from_arrays(columns, schema=schema)

        return self._saved(rows, schema)

    def _restore_entries(self, entries: HasEntries, saved: Mapping[Any, bytes]) -> None:
        width, size = len(self._key_schema), self._groups.size
        schema = pa.schema([*self._key_schema, *entries.entries_schema])
        for each in saved.values():
            data = from_bytes(each)
            self._check(data.schema, schema)
            groups = self._groups.find(data.select(range(width)))
            entries.restore_entries((groups, data.select(range(width, len(schema)))), size)

    def _check(self, found: pa.Schema, schema: pa.Schema) -> None:
        """Refuses the state of another query."""
        if not found.equals(schema, check_metadata=True):
            raise SavepointRestoreError(
                f"the state of {self.context.name!r} is of another query: it has "
                f"{_shown(found)}, and the operator now has {_shown(schema)}; start from it with "
                "the query as it was, or without this state"
            )


class _FreezesEntries:
    """Freezes one part of an operator's state."""

    def __init__(self, operator: GroupAggregateOperator, name: str) -> None:
        self._operator = operator
        self._name = name

    def __call__(self) -> Saved:
        return self._operator.freeze_entries(self._name)


def _shown(schema: pa.Schema) -> str:
    meaning = (schema.metadata or {}).get(_MEANING, b"").decode()
    columns = ", ".join(f"{field.name} {field.type}" for field in schema)
    return f"[{meaning}] in the columns {columns}" if meaning else f"the columns {columns}"


def signs_of(kinds: npt.NDArray[np.int8] | None) -> npt.NDArray[np.int64] | None:
    """1 for a row that comes, -1 for one that is taken back; None if all come."""
    if kinds is None:
        return None
    is_back = (kinds == _BEFORE) | (kinds == _DELETE)
    return 1 - 2 * is_back.astype(np.int64) if is_back.any() else None


def _comes_or_is_known(
    codes: npt.NDArray[Any], signs: npt.NDArray[np.int64], was: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """The rows that count: one that is taken back before a row of its group came does not. It can
    be of a group that has expired, or of rows that an earlier operator left out, as in Flink."""
    comes = np.flatnonzero(signs > 0)
    first = np.full(len(was), len(codes))
    first[codes[comes[::-1]]] = comes[::-1]
    counts: npt.NDArray[np.bool_] = (
        was[codes] | (signs > 0) | (np.arange(len(codes)) > first[codes])
    )
    return counts
