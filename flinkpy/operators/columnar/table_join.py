"""Joins a stream of columns with a table that every subtask holds.

The table does not change while a record passes, so nothing is kept of the stream: no state, no
windows, no order to wait for. After a restart the table is there again before the first record.

``JoinedTable`` is where other tables come in."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.compiler import column_index
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import FlinkpyError, ProgramError
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.operators.columnar.column_operators import (
    ColumnOperator,
    columns,
    explained,
    one_batch,
)
from flinkpy.operators.columnar.joined_columns import JoinedColumns
from flinkpy.operators.columnar.key_index import encoded
from flinkpy.operators.context import OperatorContext, TimerHandle

ROWS_AT_ONCE = 1 << 16  # of a batch of results

logger = engine_logger(__name__)


class JoinedTable(ABC):
    """A table of known columns, as the operator of each subtask gets it. It is pickled."""

    schema: pa.Schema
    reload_s: float | None = None  # seconds after which it is loaded again

    @abstractmethod
    def load(self) -> pa.Table:
        """The table now. May block: it is called before the first record, and later in a thread of
        its own."""


class TableIndex:
    """The rows of a table by their key. Null equals nothing; NaN equals NaN.

    >>> index = TableIndex(pa.table({"k": [1, 2, 1], "v": ["a", "b", "c"]}), ["k"])
    >>> at, rows = index.pairs([pa.array([1, 3, None, 2])], keeps_all=True)
    >>> at.tolist(), rows.tolist()
    ([0, 0, 1, 2, 3], [0, 2, -1, -1, 1])
    """

    def __init__(self, table: pa.Table, keys: Sequence[str]) -> None:
        self.rows = one_batch(table)
        key_columns = [self.rows.column(column_index(name, self.rows.schema)) for name in keys]
        there = _without_null(key_columns)
        key_columns = [column.filter(there) for column in key_columns]
        self._sorted: Any = None  # of whole numbers: the distinct ones, ascending
        self._numbers: dict[Any, int] = {}
        if len(key_columns) == 1 and pa.types.is_integer(key_columns[0].type):
            self._sorted, codes = np.unique(key_columns[0].to_numpy(), return_inverse=True)
            count = len(self._sorted)
        else:
            found = encoded(key_columns)
            codes, count = found.codes.astype(np.int64), found.count
            self._numbers = {key: number for number, key in enumerate(found.values())}
        self._order = np.flatnonzero(there.to_numpy(zero_copy_only=False))[
            np.argsort(codes, kind="stable")
        ]
        # the last is that of unknown keys
        self._counts = np.append(np.bincount(codes, minlength=count), 0)
        self._starts = np.cumsum(self._counts) - self._counts

    def pairs(self, key_columns: Sequence[Any], *, keeps_all: bool) -> tuple[Any, Any]:
        """Positions of records and of their rows, in the order of the records, then of the rows.
        With ``keeps_all`` a record without a row is there once, with the row -1."""
        number = self._numbers_of(key_columns)
        partners = self._counts[number]
        given = np.maximum(partners, 1) if keeps_all else partners
        at = np.repeat(np.arange(len(number)), given)
        within = np.arange(len(at)) - (np.cumsum(given) - given)[at]
        is_pair = partners[at] > 0
        rows = np.full(len(at), -1, dtype=np.int64)
        rows[is_pair] = self._order[self._starts[number[at[is_pair]]] + within[is_pair]]
        return at, rows

    def _numbers_of(self, key_columns: Sequence[Any]) -> Any:
        """The number of each record's key; -1 if the table does not have it."""
        there = _without_null(key_columns).to_numpy(zero_copy_only=False)
        if self._sorted is None:
            found = encoded(key_columns)
            numbers = np.array(
                [self._numbers.get(key, -1) for key in found.values()], dtype=np.int64
            )
            return np.where(there, numbers[found.codes], -1)
        number = np.full(len(there), -1, dtype=np.int64)
        if len(self._sorted):
            keys = key_columns[0].drop_null().to_numpy()
            at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
            number[there] = np.where(self._sorted[at] == keys, at, -1)
        return number


class JoinTableOperator(ColumnOperator):
    """Emits each record with each row of the table that has its key; with ``keeps_all``, also those
    records that find none, once and with nulls. ``keys`` are the columns' names on both sides."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(
        self, table: JoinedTable, keys: tuple[Sequence[str], Sequence[str]], *, keeps_all: bool
    ) -> None:
        self.table = table
        self.keys = (tuple(keys[0]), tuple(keys[1]))
        self.keeps_all = keeps_all

    def prepare(self, schema: pa.Schema) -> None:
        self._joined = JoinedColumns(
            self.keys, schema, self.table.schema, "join_table()", optional=self.keeps_all
        )

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return self._joined.schema

    def open(self) -> None:
        with explained(None, self.context):
            self._loaded = LoadedIndex(self.table, self.keys[1], self.context)

    def close(self) -> None:
        loaded = getattr(self, "_loaded", None)
        if loaded is not None:
            loaded.close()

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            self.prepare_for(batch.data.schema)
            key_columns = [
                batch.data.column(column_index(name, batch.data.schema)) for name in self.keys[0]
            ]
            at, rows = self._loaded.now.pairs(key_columns, keeps_all=self.keeps_all)
        for begin in range(0, len(at), ROWS_AT_ONCE):
            self.output.emit(
                self._pieces(
                    batch, at[begin : begin + ROWS_AT_ONCE], rows[begin : begin + ROWS_AT_ONCE]
                )
            )

    def process_columns(self, batch: ColumnBatch) -> Batch | None:
        raise NotImplementedError("process_batch emits the results in pieces")

    def _pieces(self, batch: ColumnBatch, at: Any, rows: Any) -> ColumnBatch:
        ours, theirs = batch.take(at), pa.array(rows, mask=rows < 0)
        arrays = ours.data.columns
        table = self._loaded.now.rows
        arrays += [table.column(number).take(theirs) for number in self._joined.right]
        return ours.with_columns(pa.RecordBatch.from_arrays(arrays, schema=self._joined.schema))


class LoadedIndex:
    """The rows of a table by their key, in one subtask; loaded here, and again as often as the
    table says."""

    def __init__(self, table: JoinedTable, keys: Sequence[str], context: OperatorContext) -> None:
        self._table = table
        self._keys = tuple(keys)
        self._context = context
        self._closed = False
        self._timer: TimerHandle | None = None
        self.now = TableIndex(table.load(), self._keys)
        self._load_later()

    def close(self) -> None:
        """It is not loaded again."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _load_later(self) -> None:
        if self._table.reload_s is not None and not self._closed:
            self._timer = self._context.timers.call_later(self._table.reload_s, self._load_aside)

    def _load_aside(self) -> None:
        name = f"table of {self._context.task.subtask_name}"
        threading.Thread(target=self._load_again, name=name, daemon=True).start()

    def _load_again(self) -> None:
        """In a thread of its own: records go on meeting the table of before."""
        try:
            index: TableIndex | None = TableIndex(self._table.load(), self._keys)
        except Exception as error:
            logger.warning(
                "%s: the table could not be loaded again, the one of before stays: %s: %s",
                self._context.name,
                type(error).__name__,
                error,
                exc_info=not isinstance(error, FlinkpyError),
            )
            index = None
        self._context.run_in_task(functools.partial(self._put, index))

    def _put(self, index: TableIndex | None) -> None:
        if index is not None:
            self.now = index
        self._load_later()


def _without_null(key_columns: Sequence[Any]) -> Any:
    return functools.reduce(pc.and_, [column.is_valid() for column in key_columns])


def same_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with these columns. Raises ProgramError if it has others, also of other types:
    numbers go into a column of other numbers if they equal them, but never into one of text."""
    from flinkpy.columns.values.conversion import conformed

    try:
        for field in schema:
            at = table.schema.get_field_index(field.name)
            if at >= 0 and not _same_kind(table.schema.field(at).type, field.type):
                raise ValueError(
                    f"column {field.name!r} was {field.type} and is {table.schema.field(at).type}"
                )
        return pa.Table.from_batches([conformed(one_batch(table), schema)])
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise ProgramError(
            f"join_table(): the table was loaded with other columns than before: {error}"
        ) from None


_KINDS: list[Callable[[pa.DataType], bool]] = [
    pa.types.is_boolean,
    lambda kind: (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    ),
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    lambda kind: (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    ),
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    pa.types.is_struct,
    pa.types.is_map,
    pa.types.is_nested,
]


def _same_kind(have: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of the one type may equal values of the other. Nulls go into every column."""
    if pa.types.is_null(have):
        return True
    if pa.types.is_dictionary(have) or pa.types.is_dictionary(wanted):
        plain = [
            kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (have, wanted)
        ]
        return _same_kind(*plain)
    is_a = next((is_a for is_a in _KINDS if is_a(wanted)), wanted.equals)
    if not is_a(have):
        return False
    if pa.types.is_struct(wanted):
        return all(
            have.get_field_index(each.name) < 0 or _same_kind(have.field(each.name).type, each.type)
            for each in wanted
        )
    return have.num_fields == wanted.num_fields and all(
        _same_kind(have.field(at).type, wanted.field(at).type) for at in range(wanted.num_fields)
    )
