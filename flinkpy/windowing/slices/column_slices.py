"""Slices of columns: each slice is a few arrays.

A batch is cut into slices, and its keys and values are put aside there; they are grouped by
kernels, not record by record (``grouped_parts``)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.builtin import OF_FIELDS
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.aggregate_plan import AggregateCall
from flinkpy.columns.compiler import column_index, compile_expression, compile_selection
from flinkpy.columns.expression import Column, Expression
from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.core.clock import Turns
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import key_group
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.key_index import check_keys
from flinkpy.operators.columnar.tables_by_group import (
    from_bytes,
    group_numbers,
    input_schema_of,
    key_of_group,
)
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.spilling.log_in_file import PARTS, LogInFile
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.heap.sampled_sizes import bytes_of_parts
from flinkpy.state.slice_log import PiecesOfSlices, restored_log, to_leave
from flinkpy.windowing.slices.column_snapshots import SavedSlice, load, save
from flinkpy.windowing.slices.grouped_parts import Part, SliceColumns, together
from flinkpy.windowing.slices.held_keys import WindowKeys
from flinkpy.windowing.slices.store import Evaluated, Saved, SliceStore
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt

    from flinkpy.operators.spilling.operator_memory import OperatorMemory

WINDOW_COLUMNS = ("window_start", "window_end")
LARGEST = 1 << 15  # rows in one batch of results


class ColumnSlices(SliceStore):
    """What the two forms share. ``keys``: the key columns, none for windows over all records."""

    state_name = "_slices of columns"  # a key of each key group -> Arrow table of the group
    gives_timestamps = True  # whether results carry the last moment of their window
    _schema: Any = None  # of the records so far
    _memory: OperatorMemory | None = None  # of a batch job
    _aggregates: Sequence[ColumnAggregate] = ()
    _result: Any

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)

    @abstractmethod
    def prepare(self, schema: pa.Schema) -> None:
        """Chooses kernels for batches of this schema; ProgramError for what it cannot do with
        it."""

    @abstractmethod
    def taken_in(self, data: pa.RecordBatch, ids: npt.NDArray[np.int64]) -> Part:
        """The records of a batch."""

    @abstractmethod
    def result(self, part: Part, window: TimeWindow) -> Any:
        """The record batch of a window's groups."""

    @property
    def is_exact(self) -> bool:
        """Whether no aggregate is rounded, as far as the types of the columns are known yet."""
        return all(each.is_exact for each in self._aggregates)

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return self._result

    def open(self, context: OperatorContext, backend: KeyedStateBackend | None) -> None:
        self._context = context
        self._slices: dict[int, SliceColumns] = {}
        self.known_keys = WindowKeys(self.keys)
        self._log: PiecesOfSlices | None = None
        # which parts of the keys are apart on disk, and in snapshots: key groups
        self._parts = context.task.max_parallelism
        self._room = 0  # so many records may come until their memory is looked at
        if backend is not None:
            most = context.task.max_parallelism
            self._on_disk = restored_log(
                backend, self.state_name, lambda group: key_of_group(group, most), _no_notes
            )
            self._log = self._on_disk.log
        if self._memory is not None:
            self._log, self._parts = LogInFile(self._memory), PARTS

    def spill_to(self, memory: OperatorMemory) -> None:
        self._memory = memory

    def free_memory(self) -> None:
        log = self._log
        if isinstance(log, LogInFile) and not log.is_read and self._schema is not None:
            self._let_leave(log, 0)

    @property
    def nbytes(self) -> int:
        return bytes_of_parts(list(self._slices.values()), len, attrgetter("nbytes"))

    def freeze(self) -> Callable[[Turns], Iterable[Saved]]:
        """Nobody changes an array of a slice, so it is enough to know which there are."""
        slices = [(start, held.freeze()) for start, held in self._slices.items()]
        keys = self.known_keys.freeze()
        known = self.known_keys.size
        aggregates = self._aggregates
        schema = None if self._schema is None else self.described(self._schema)
        max_parallelism = self._context.task.max_parallelism

        def saved(turns: Turns) -> Iterator[Saved]:
            grouped = []
            for start, held in slices:
                for part in held.parts(aggregates, known):
                    grouped.append(SavedSlice(start, keys.batch(part.ids), part))
                    turns.give_way()
            for each in save(grouped, aggregates, schema, max_parallelism) if grouped else ():
                yield each
                turns.give_way()

        return saved

    def restore(self, saved: Mapping[Any, Any]) -> Mapping[Any, Any]:
        for pieces in self._on_disk.pieces.values():  # what was on disk came first
            for _, data in pieces:
                self._load(data, self._put)
        self._restore_log()
        for data in saved.values():
            self._load(data, self._put)
        return {key: key_group(key, self._context.task.max_parallelism) for key in saved}

    def _load(self, data: bytes, take: Callable[[int, Part], None]) -> None:
        """Takes the slices of a saved table."""
        table = from_bytes(data)
        self.check_saved(input_schema_of(table.schema))
        if self._schema is None:
            self.prepare(schema := input_schema_of(table.schema))
            self._schema = schema
        for each in load(table, self.keys, self._aggregates):
            ids = self.known_keys.numbers(each.keys) if each.keys is not None else None
            part = each.part
            take(each.start, Part(part.size, ids, part.counts, part.values, part.firsts))

    def _restore_log(self) -> None:
        """What lies on disk stays there; one piece says what is aggregated, and how."""
        if self._log is None or not self._log.starts:
            return
        first = next(
            piece
            for start, group in product(sorted(self._log.starts), self._log.groups)
            for piece in self._log.pieces(start, group)
        )
        self._load(first, lambda start, part: None)
        for start in self._log.starts:
            self._slices[start] = SliceColumns(self.is_exact)

    def described(self, schema: Any) -> Any:
        """The schema of the records as it is saved, with what ``check_saved`` wants to know."""
        return schema

    def check_saved(self, schema: Any) -> None:
        """Raises SavepointRestoreError for a saved schema of an aggregate that means something
        else. Functions and expressions may be edited, so only SQL knows."""

    def __getstate__(self) -> dict[str, Any]:
        """Only what the program said travels: nothing prepared."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    # -- batches -----------------------------------------------------------------------------------

    def records_of(self, batch: Batch) -> Part:
        data = columns(batch, self._context).data
        with explained(data, self._context):
            if self._schema is None or not self._schema.equals(data.schema):
                self.prepare(data.schema)
                self._schema = data.schema
            return self.taken_in(data, self.known_keys.numbers(data))

    def times(self, batch: Batch) -> npt.NDArray[np.int64] | None:
        """The event time of each record, in milliseconds; None if there is none."""
        return columns(batch, self._context).timestamps

    def span(self, batch: Batch) -> tuple[int, int] | None:
        stamps = self.times(batch)
        return None if stamps is None else (int(stamps.min()), int(stamps.max()))

    def stamps(self, batch: Batch) -> list[int]:
        stamps = self.times(batch)
        return [] if stamps is None else stamps.tolist()

    def by_slice(self, batch: Batch, records: Part, slicing: Slicing) -> Iterator[tuple[int, Part]]:
        stamps = self.times(batch)
        assert stamps is not None
        starts = slicing.slices_of_all(stamps)
        order = np.argsort(starts, kind="stable")
        ordered = starts[order]
        ends = (np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist()
        for begin, end in zip([0, *ends], [*ends, len(order)]):
            yield int(ordered[begin]), records.taken(order[begin:end])

    def one(self, records: Part, position: int) -> Part:
        return records.taken(np.array([position]))

    def late_records(self, batch: Batch, positions: list[int]) -> RowBatch:
        """Side outputs are streams of rows."""
        stamps = self.stamps(batch)
        late = columns(batch, self._context).take(np.array(positions))
        return RowBatch(rows_of_batch(late.data, late.kinds), [stamps[at] for at in positions])

    # -- slices ------------------------------------------------------------------------------------

    @property
    def starts(self) -> Collection[int]:
        return self._slices.keys()

    def add(self, start: int, records: Part) -> None:
        try:
            self._put(start, records)
        except BaseException as error:
            raise user_code_error(error, self._context) from error

    def relieve(self) -> None:
        """Slices beyond their share of memory go to the log, those that are needed last first."""
        log = self._log
        if log is None or self._schema is None or sum(map(len, self._slices.values())) < self._room:
            return
        self._let_leave(log, log.memory())

    def _let_leave(self, log: PiecesOfSlices, most: int) -> None:
        """Writes slices if they take more bytes than that."""
        held = {start: each.nbytes for start, each in self._slices.items()}
        count, size = sum(map(len, self._slices.values())), sum(held.values())
        self._room = count + max(0, (most - size) * count // max(1, 2 * size))
        leaving = list(to_leave(held, most))
        for start in leaving:
            self._write(log, start)
        if leaving:
            self._room = 0
            self._forget_keys()

    def _write(self, log: PiecesOfSlices, start: int) -> None:
        parts = self._slices[start].parts(self._aggregates, self.known_keys.size)
        slices = [SavedSlice(start, self.known_keys.batch(part.ids), part) for part in parts]
        schema = self.described(self._schema)
        found = save(slices, self._aggregates, schema, self._parts)
        log.write(start, {group: data for _, group, data in found})
        # sums of floats are rounded as they come: what follows is added to what is on disk
        self._slices[start] = SliceColumns(self.is_exact)

    @property
    def is_on_disk(self) -> bool:
        return self._log is not None and bool(self._log.starts)

    def group_of(self, share: Any, max_parallelism: int) -> int:
        """The shares of columns are key groups."""
        group: int = share
        return group

    def _put(self, start: int, part: Part) -> None:
        held = self._slices.get(start)
        if held is None:
            held = self._slices[start] = SliceColumns()
        held.add(part, self._aggregates, self.known_keys.size)

    def forget(self, starts: list[int], is_over: Callable[[TimeWindow], bool]) -> None:
        """Keys that no slice holds any more are forgotten too, when they are many."""
        for start in starts:
            del self._slices[start]
            if self._log is not None:
                self._log.forget(start)
        self._forget_keys()

    def _forget_keys(self) -> None:
        self.known_keys.forget_all_but(ids for held in self._slices.values() for ids in held.ids)

    def parts(self, starts: list[int], survives: Callable[[int], bool]) -> Iterable[Part]:
        """Of slices that are on disk in part, key group by key group."""
        log = self._log
        if log is None or log.starts.isdisjoint(starts):
            yield self.evaluate(starts, survives)
            return
        here = [self._by_group(start) for start in starts]
        for group in log.groups:
            found = list[Part]()
            for start, held in zip(starts, here):
                found += self._of_slice(self._pieces(start, group) + held.get(group, []))
            if found:
                yield together(found, self._aggregates, self.known_keys.size)
                self._forget_keys()

    def _of_slice(self, parts: list[Part]) -> list[Part]:
        """What a slice has, grouped if it matters: where sums are rounded, a window adds up what
        its slices have, and not their records one by one."""
        if len(parts) < 2 or self.is_exact:
            return parts
        return [together(parts, self._aggregates, self.known_keys.size)]

    def _pieces(self, start: int, group: int) -> list[Part]:
        """What is on disk of a slice, in the order in which it came."""
        found: list[Part] = []
        for piece in self._log.pieces(start, group) if self._log is not None else ():
            self._load(piece, lambda _, part: found.append(part))
        return found

    def _by_group(self, start: int) -> dict[int, list[Part]]:
        """What is in memory of a slice."""
        most, found = self._parts, dict[int, list[Part]]()
        for part in self._slices[start].parts(self._aggregates, self.known_keys.size):
            if part.ids is None:
                found.setdefault(key_group(None, most), []).append(part)
                continue
            groups = group_numbers(self.known_keys.batch(part.ids), self.keys, most)
            for group in np.unique(groups).tolist():
                found.setdefault(group, []).append(part.taken(np.flatnonzero(groups == group)))
        return found

    def evaluate(self, starts: list[int], survives: Callable[[int], bool]) -> Part:
        return self._put_together(starts, None)

    def fold(self, starts: list[int], together: Part) -> None:
        """The first of these slices has what all of them have, and the others go."""
        for start in starts:
            del self._slices[start]
        self._put(starts[0], together)

    def evaluate_key(self, starts: list[int], record: Part) -> Part:
        return self._put_together(starts, record.ids)

    def _put_together(self, starts: list[int], ids: npt.NDArray[np.int64] | None) -> Part:
        """The slices as one part; ``ids`` has the only key that is wanted (None: all)."""
        parts: list[Part] = []
        for start in starts:
            held = self._slices[start].parts(self._aggregates, self.known_keys.size)
            if self.is_on_disk:
                held = self._of_slice(self._pieces(start, self._group_of(ids)) + held)
            parts += held
        if ids is not None:
            parts = [
                part.taken(at) for part in parts if len(at := np.flatnonzero(part.ids == ids[0]))
            ]
        if len(parts) == 1 and not self.is_on_disk:
            return parts[0]
        return together(parts, self._aggregates, self.known_keys.size)

    def _group_of(self, ids: npt.NDArray[np.int64] | None) -> int:
        """The key group of one key."""
        most = self._parts
        if ids is None:
            return key_group(None, most)
        group: int = group_numbers(self.known_keys.batch(ids[:1]), self.keys, most)[0].item()
        return group

    def only(self, contents: Part, is_wanted: Callable[[Any], bool]) -> Part:
        if contents.ids is None:
            return contents
        groups = group_numbers(
            self.known_keys.batch(contents.ids), self.keys, self._context.task.max_parallelism
        ).tolist()
        return contents.taken(np.flatnonzero([is_wanted(group) for group in groups]))

    # -- results -----------------------------------------------------------------------------------

    def emit(self, windows: Iterable[Evaluated], now: int, operator: StreamOperator) -> Work:
        try:
            for window, part in windows:
                data: Any = self.result(part, window) if part.size else None
                for at in range(0, part.size, LARGEST):
                    piece = data.slice(at, LARGEST)
                    stamps = (
                        np.full(piece.num_rows, window.end - 1, np.int64)
                        if self.gives_timestamps
                        else None
                    )
                    operator.output.emit(ColumnBatch(piece, stamps))
                    if at + LARGEST < part.size:
                        yield
        except BaseException as error:
            raise user_code_error(error, self._context) from error


class AggregateSlices(ColumnSlices):
    """``aggregate(col("price").sum, ...)``: for each window and key the key's columns, the
    aggregates or the ``results`` that are computed from them, and the window's begin and end; these
    are instants where event time has a ``zone``."""

    _types: list[Any]

    def __init__(
        self,
        keys: Sequence[str],
        calls: Sequence[AggregateCall],
        zone: str | None = None,
        results: Sequence[tuple[str, Expression]] | None = None,
    ) -> None:
        super().__init__(keys)
        self.calls = tuple(calls)
        self.zone = zone
        self.results = results
        names = [
            *self.keys,
            *(
                (call.name for call in self.calls)
                if results is None
                else (name for name, _ in results)
            ),
            *WINDOW_COLUMNS,
        ]
        self.shown = names
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ProgramError(
                f"aggregate(): two columns would be called {doubled[0]!r}; rename one with "
                '.alias("name")'
            )

    def prepare(self, schema: pa.Schema) -> None:
        check_keys(self.keys, schema)
        compiled = [compile_expression(call.expression, schema) for call in self.calls]
        types = [each.type for each in compiled]
        if self._schema is not None and types != self._types:
            raise ProgramError("the types of the aggregated columns changed while the job runs")
        self._evaluates, self._types = [each.evaluate for each in compiled], types
        self._aggregates = [
            ColumnAggregate(call.kind, each, options=call.options)
            for call, each in zip(self.calls, types)
        ]
        fields = [schema.field(column_index(name, schema)) for name in self.keys]
        fields += [
            pa.field(call.name, each.result_type)
            for call, each in zip(self.calls, self._aggregates)
        ]
        self._moment = pa.timestamp("ms", self.zone)
        self._row = pa.schema([*fields, *(pa.field(name, self._moment) for name in WINDOW_COLUMNS)])
        computed = dict(self.results or ())
        self._result, self._select = compile_selection(
            [(name, computed.get(name, Column(name))) for name in self.shown], self._row
        )

    def taken_in(self, data: pa.RecordBatch, ids: npt.NDArray[np.int64]) -> Part:
        taken = [
            aggregate.values_of(evaluate(data))
            for aggregate, evaluate in zip(self._aggregates, self._evaluates)
        ]
        return Part(
            data.num_rows, ids, [counts for counts, _ in taken], [values for _, values in taken]
        )

    def result(self, part: Part, window: TimeWindow) -> Any:
        aggregates = [
            each.results(counts, values)
            for each, counts, values in zip(self._aggregates, part.counts, part.values)
        ]
        moments = [
            pa.array(np.full(part.size, moment, np.int64)).cast(self._moment) for moment in window
        ]
        return self._select(
            pa.RecordBatch.from_arrays(
                [*self.known_keys.columns(part.ids), *aggregates, *moments], schema=self._row
            )
        )


class FieldSlices(ColumnSlices):
    """``sum``, ``min`` and ``max`` of a column: the first record of each window and key with the
    column replaced, as with rows."""

    def __init__(self, keys: Sequence[str], kind: str, position: int | str) -> None:
        super().__init__(keys)
        if kind not in OF_FIELDS:
            raise ProgramError(f"{kind!r} is no aggregate of windows over columns")
        self.kind, self.position = kind, position

    def prepare(self, schema: pa.Schema) -> None:
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
        self._aggregates = [ColumnAggregate(self.kind, field.type, keeps_type=True)]
        self._others = [name for at, name in enumerate(schema.names) if at != self._at]
        self._result = schema.set(self._at, pa.field(field.name, self._aggregates[0].result_type))

    def taken_in(self, data: pa.RecordBatch, ids: npt.NDArray[np.int64]) -> Part:
        counts, values = self._aggregates[0].values_of(data.column(self._at))
        return Part(
            data.num_rows,
            ids,
            [counts],
            [values],
            data.select(self._others) if self._others else None,
        )

    def result(self, part: Part, window: TimeWindow) -> Any:
        arrays = [] if part.firsts is None else list(part.firsts.columns)
        arrays.insert(self._at, self._aggregates[0].results(part.counts[0], part.values[0]))
        return pa.RecordBatch.from_arrays(arrays, schema=self._result)


def _no_notes() -> Callable[[int], None]:
    return lambda group: None
