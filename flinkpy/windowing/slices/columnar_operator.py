"""Built-in aggregates over windows of column batches: the same slices as for rows (``slice_operator``), each of them a few arrays.

A batch is cut into slices, and its keys and values are put aside there; they are grouped by kernels, not record by record (``columnar_slices``). What
is special, late records that make windows be evaluated again, goes record by record, so that results are those of rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.aggregates import ColumnAggregate
from flinkpy.columns.compiler import column_index, compile_expression
from flinkpy.columns.conversion import rows_of_batch
from flinkpy.columns.expressions import AggregateCall
from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, CheckpointBarrier, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.column_operators import ColumnOperator
from flinkpy.operators.columnar.key_index import check_keys
from flinkpy.operators.columnar.state_tables import from_bytes, group_numbers, input_schema_of
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.user_errors import user_code_error
from flinkpy.windowing.slices.columnar_slices import Part, SliceColumns, together
from flinkpy.windowing.slices.columnar_snapshots import SavedSlice, load, save
from flinkpy.windowing.slices.held_keys import WindowKeys
from flinkpy.windowing.slices.slice_clock import FollowsTime
from flinkpy.windowing.slices.slice_operator import NO_TIMESTAMPS
from flinkpy.windowing.slices.slice_status import SliceTimes, Standing, slices_within
from flinkpy.windowing.slices.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

SLICES = "_slices of columns"  # a key of each key group -> (what was evaluated until, Arrow table of the group)
WINDOW_COLUMNS = ("window_start", "window_end")
_LARGEST = 1 << 15  # rows in one batch of results


class ColumnarWindowOperator(FollowsTime, DropsLateRecords, KeyedStateOperator, ColumnOperator):
    """What the two forms share. ``keys``: the key columns, none for windows over all records."""

    _input_schema: Any = None  # of the records so far
    _aggregates: Sequence[ColumnAggregate]
    _result: Any

    def __init__(self, keys: Sequence[str], slicing: Slicing, event_time: bool, allowed_lateness: int, late_tag: OutputTag | None) -> None:
        self.keys, self.slicing, self.event_time = tuple(keys), slicing, event_time
        self.allowed_lateness, self.late_tag = allowed_lateness if event_time else 0, late_tag

    @abstractmethod
    def taken_in(self, data: Any, ids: Any) -> Part:
        """The records of a batch."""

    @abstractmethod
    def result(self, part: Part, window: TimeWindow) -> Any:
        """The record batch of a window's groups."""

    def output_schema(self, schema: Any) -> Any:
        self.prepare(schema)
        return self._result

    # -- lifecycle -------------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self._times = SliceTimes(self.slicing, self.allowed_lateness)
        self._slices: dict[int, SliceColumns] = {}
        self._known_keys = WindowKeys(self.keys)
        self._restore()
        self.start_clock()

    def close(self) -> None:
        self.stop_clock()
        super().close()

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        saved = self.backend.engine_values(SLICES)
        slices = []
        for start, columns in self._slices.items():
            part = columns.grouped(self._aggregates, len(self._known_keys))
            slices.append(SavedSlice(start, self._key_batch(part.ids), part))
        max_parallelism = self.context.task.max_parallelism
        ahead = {group: until for group, until in self._ahead.items() if until > self._times.now}
        save(saved, slices, ahead, self._times.now, self._aggregates if slices else (), self._input_schema, max_parallelism)
        try:
            return super().snapshot_state(barrier)
        finally:
            saved.clear()

    def _restore(self) -> None:
        """Key groups may come from several subtasks, not all at the same time: those ahead are left out until the others have caught up."""
        saved = self.backend.engine_values(SLICES)
        self._times.now = now = min((until for until, _ in saved.values()), default=MIN_TIMESTAMP)
        self._ahead: dict[int, int] = {}  # key group -> evaluated until
        for until, data in saved.values():
            table = from_bytes(data)
            if self._input_schema is None:
                self._prepare(input_schema_of(table.schema))
            for each in load(table, self.keys, self._aggregates):
                part = each.part
                ids = self._known_keys.numbers(each.keys) if each.keys is not None else None
                if until > now and each.keys is not None:
                    self._ahead[int(group_numbers(each.keys.slice(0, 1), self.keys, self.context.task.max_parallelism)[0])] = until
                self._slice(each.start).add(Part(part.size, ids, part.counts, part.values, part.firsts), self._aggregates, len(self._known_keys))
        saved.clear()
        self._times.settle(self._slices)

    def _prepare(self, schema: Any) -> None:
        self.prepare(schema)
        self._schema = schema

    # -- records ---------------------------------------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> Batch | None:
        self._input_schema = batch.data.schema
        ids = self._known_keys.numbers(batch.data)
        part = self.taken_in(batch.data, ids)
        if not self.event_time:
            self._add_now(part)
            return None
        stamps = batch.timestamps
        low = MIN_TIMESTAMP if stamps is None else int(stamps.min())
        if stamps is None or low == MIN_TIMESTAMP:
            raise ProgramError(NO_TIMESTAMPS)
        start = self.slicing.slice_of(low)
        if int(stamps.max()) < start + self.slicing.width and self._times.standing(start) is Standing.OPEN:
            self._add(start, part)
        else:
            self._add_scattered(batch, part, stamps)
        return None

    def _slice(self, start: int) -> SliceColumns:
        found = self._slices.get(start)
        if found is None:
            found = self._slices[start] = SliceColumns()
            self._times.entered(start)
        return found

    def _add(self, start: int, part: Part) -> None:
        self._slice(start).add(part, self._aggregates, len(self._known_keys))

    def _add_scattered(self, batch: ColumnBatch, part: Part, stamps: Any) -> None:
        """Records of several slices: each slice's are taken as it stands."""
        starts = self.slicing.slices_of_all(stamps)
        behind: list[Any] = []
        standings: dict[int, Standing] = {}
        for start, positions in _positions(starts):
            standings[start] = standing = self._times.standing(start)
            if standing is Standing.OPEN:
                self._add(start, part.taken(positions))
            else:
                behind.append(positions)
        if behind:
            self._add_behind_time(batch, part, starts, np.sort(np.concatenate(behind)), standings)

    def _add_behind_time(self, batch: ColumnBatch, part: Part, starts: Any, positions: Any, standings: dict[int, Standing]) -> None:
        """One by one, as each may make windows be evaluated again."""
        late: list[int] = []
        stamps = batch.timestamps
        assert stamps is not None
        for position, start in zip(positions.tolist(), starts[positions].tolist()):
            if standings[start] is Standing.REOPENED:
                one = part.taken(np.array([position]))
                self._add(start, one)
                for window in reversed(self._times.evaluated(start)):
                    self._emit(window, self._of_key(self._grouped_slices(window), one.ids))
            elif standings[start] is Standing.OVER or self._times.is_late(int(stamps[position])):
                late.append(position)
        if late and self.late_tag is not None:
            records = rows_of_batch(batch.data.take(pa.array(late)))  # side outputs are streams of rows
            self.output.emit_side(self.late_tag.tag_id, RowBatch(records, stamps[late].tolist()))
        elif late:
            self.drop_late(len(late))

    # -- windows ---------------------------------------------------------------------------------------------------------------

    def _advance(self, until: int) -> None:
        times = self._times
        if times.is_quiet(until):
            times.now = until
            return
        try:
            for window in times.due(self._slices, until):
                self._emit(window, self._without_ahead(self._together(self._grouped_slices(window)), window))
        except Exception as error:
            raise user_code_error(error, self.context) from error
        times.now = until
        for start in times.over(self._slices):
            del self._slices[start]
        times.settle(self._slices)
        if self._ahead and until >= max(self._ahead.values()):
            self._ahead = {}
        self._renumber()

    def _grouped_slices(self, window: TimeWindow) -> list[Part]:
        known = len(self._known_keys)
        return [self._slices[start].grouped(self._aggregates, known) for start in slices_within(window, self.slicing, self._slices)]

    def _together(self, parts: list[Part]) -> Part:
        return parts[0] if len(parts) == 1 else together(parts, self._aggregates, len(self._known_keys))

    def _of_key(self, parts: list[Part], ids: Any) -> Part:
        """The groups of one key, together."""
        if ids is not None:
            parts = [part.taken(at) for part in parts if len(at := np.flatnonzero(part.ids == ids[0]))]
        return self._together(parts)

    def _without_ahead(self, part: Part, window: TimeWindow) -> Part:
        """Without the keys for which the window was evaluated before the job was rescaled."""
        if not self._ahead or part.ids is None:
            return part
        groups = group_numbers(self._key_batch(part.ids), self.keys, self.context.task.max_parallelism).tolist()
        return part.taken(np.flatnonzero([self._ahead.get(group, MIN_TIMESTAMP) < window.end - 1 for group in groups]))

    def _key_batch(self, ids: Any) -> Any:
        return None if ids is None else pa.RecordBatch.from_arrays(self._known_keys.columns(ids), names=list(self.keys))

    def _emit(self, window: TimeWindow, part: Part) -> None:
        if not part.size:
            return
        data = self.result(part, window)
        for at in range(0, data.num_rows, _LARGEST):
            piece = data.slice(at, _LARGEST)
            self.output.emit(ColumnBatch(piece, np.full(piece.num_rows, window.end - 1, np.int64)))

    def _renumber(self) -> None:
        """Keys that no slice holds any more are forgotten, when they are many."""
        numbers = self._known_keys.renumbering(ids for columns in self._slices.values() for ids in columns.ids)
        if numbers is not None:
            for columns in self._slices.values():
                columns.renumber(numbers)


class WindowAggregatesOperator(ColumnarWindowOperator):
    """``aggregate(col("price").sum, ...)``: for each window and key the key's columns, the aggregates, and the window's begin and end; these are
    instants where event time has a ``zone``."""

    _types: list[Any]

    def __init__(
        self, keys: Sequence[str], slicing: Slicing, event_time: bool, calls: Sequence[AggregateCall], allowed_lateness: int = 0,
        late_tag: OutputTag | None = None, zone: str | None = None,
    ) -> None:
        super().__init__(keys, slicing, event_time, allowed_lateness, late_tag)
        self.calls, self.zone = tuple(calls), zone
        names = [*self.keys, *(call.name for call in self.calls), *WINDOW_COLUMNS]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ProgramError(f"aggregate(): two columns would be called {doubled[0]!r}; rename one with .alias(\"name\")")

    def prepare(self, schema: Any) -> None:
        check_keys(self.keys, schema)
        compiled = [compile_expression(call.expression, schema) for call in self.calls]
        types = [each.type for each in compiled]
        if self._input_schema is not None and types != self._types:
            raise ProgramError("the types of the aggregated columns changed while the job runs")
        self._evaluates, self._types, self._input_schema = [each.evaluate for each in compiled], types, schema
        self._aggregates = [ColumnAggregate(call.kind, each) for call, each in zip(self.calls, types)]
        fields = [schema.field(column_index(name, schema)) for name in self.keys]
        fields += [pa.field(call.name, each.result_type) for call, each in zip(self.calls, self._aggregates)]
        self._moment = pa.timestamp("ms", self.zone)
        self._result = pa.schema([*fields, *(pa.field(name, self._moment) for name in WINDOW_COLUMNS)])

    def taken_in(self, data: Any, ids: Any) -> Part:
        taken = [aggregate.taken_in(evaluate(data)) for aggregate, evaluate in zip(self._aggregates, self._evaluates)]
        return Part(data.num_rows, ids, [counts for counts, _ in taken], [values for _, values in taken])

    def result(self, part: Part, window: TimeWindow) -> Any:
        aggregates = [each.result(counts, values) for each, counts, values in zip(self._aggregates, part.counts, part.values)]
        moments = [pa.array(np.full(part.size, moment, np.int64)).cast(self._moment) for moment in window]
        return pa.RecordBatch.from_arrays([*self._known_keys.columns(part.ids), *aggregates, *moments], schema=self._result)


class WindowFieldOperator(ColumnarWindowOperator):
    """``sum``, ``min`` and ``max`` of a column: the first record of each window and key with the column replaced, as with rows."""

    def __init__(
        self, keys: Sequence[str], slicing: Slicing, event_time: bool, kind: str, position: int | str, allowed_lateness: int = 0,
        late_tag: OutputTag | None = None,
    ) -> None:
        super().__init__(keys, slicing, event_time, allowed_lateness, late_tag)
        if kind not in ("sum", "min", "max"):
            raise ProgramError(f"{kind!r} is no aggregate of windows over columns")
        self.kind, self.position = kind, position

    def prepare(self, schema: Any) -> None:
        check_keys(self.keys, schema)
        if isinstance(self.position, str):
            self._at = column_index(self.position, schema)
        elif -len(schema) <= self.position < len(schema):
            self._at = self.position % len(schema)
        else:
            raise ProgramError(f"{self.kind}({self.position}): there are {len(schema)} columns")
        field = schema.field(self._at)
        if field.name in self.keys:
            raise ProgramError(f"{self.kind}({field.name!r}): the column is part of the key")
        self._aggregates, self._input_schema = [ColumnAggregate(self.kind, field.type, keeps_type=True)], schema
        self._others = [name for at, name in enumerate(schema.names) if at != self._at]
        self._result = schema.set(self._at, pa.field(field.name, self._aggregates[0].result_type))

    def taken_in(self, data: Any, ids: Any) -> Part:
        counts, values = self._aggregates[0].taken_in(data.column(self._at))
        return Part(data.num_rows, ids, [counts], [values], data.select(self._others) if self._others else None)

    def result(self, part: Part, window: TimeWindow) -> Any:
        arrays = [] if part.firsts is None else list(part.firsts.columns)
        arrays.insert(self._at, self._aggregates[0].result(part.counts[0], part.values[0]))
        return pa.RecordBatch.from_arrays(arrays, schema=self._result)


def _positions(starts: Any) -> Iterator[tuple[int, Any]]:
    """For each slice the positions of its records, in their order."""
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for begin, end in zip([0, *ends.tolist()], [*ends.tolist(), len(order)]):
        yield int(ordered[begin]), order[begin:end]
