"""UNNEST: each row with each element of a collection of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.relational_operator import (
    ROWS_AT_ONCE,
    RelationalOperator,
    plain,
    without_columns,
)

# of each pair of a row and an element: the row, the place of the element among all, and its number
_Pairs = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


class UnnestOperator(RelationalOperator):
    """``collection`` is a program that gives one column: arrays, maps or multisets. The elements
    stand behind the row's columns: a ROW is a column for each field, an entry of a map is a key and
    a value, what a multiset has twice comes twice. ``keeps_left``: a row without an element comes
    once, with nulls; one without an element for which ``condition`` (over the result's columns) is
    true, too. ``gives_ordinality`` appends the number of the element, from 1. ``kept`` are
    the columns of the row that come with them (None: all); the collection is rarely one of them."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(
        self,
        collection: CalcProgram,
        schema: pa.Schema,
        *,
        is_multiset: bool = False,
        keeps_left: bool = False,
        gives_ordinality: bool = False,
        kept: Sequence[int] | None = None,
        condition: CalcProgram | None = None,
    ) -> None:
        super().__init__(schema)
        self.collection = collection
        self.is_multiset = is_multiset
        self.keeps_left = keeps_left
        self.gives_ordinality = gives_ordinality
        self.kept = None if kept is None else list(kept)
        self.condition = condition

    def open(self) -> None:
        self._collection = self.compiled(self.collection, ["collection"])
        self._condition = self.compiled_if_any(self.condition)

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            collection = plain(self._collection(batch.data).column(0))
            self._unnest(collection, with_columns(batch, self.kept))

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits the results in pieces")

    def _unnest(self, column: Any, batch: ColumnBatch) -> None:
        starts, lengths, parts = _elements(column)
        parents = np.repeat(np.arange(len(lengths)), lengths)
        ordinality = np.arange(len(parents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = np.repeat(starts, lengths) + ordinality
        if self.is_multiset:
            times = parts.pop().take(pa.array(places)).to_numpy(zero_copy_only=False)
            parents, places = np.repeat(parents, times), np.repeat(places, times)
            lengths = np.bincount(parents, minlength=len(lengths))
            ordinality = np.arange(len(parents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        if self._condition is not None:
            passed = self._passed(batch, (parents, places, ordinality), parts)
            parents, places, ordinality = parents[passed], places[passed], ordinality[passed]
            lengths = np.bincount(parents, minlength=len(lengths))
        if self.keeps_left and not lengths.all():
            alone = np.flatnonzero(lengths == 0)
            at = np.searchsorted(parents, alone)
            parents = np.insert(parents, at, alone)
            places, ordinality = np.insert(places, at, -1), np.insert(ordinality, at, -1)
        for piece in _pieces((parents, places, ordinality)):
            self.output.emit(self._rows(batch, piece, parts))

    def _passed(self, batch: ColumnBatch, pairs: _Pairs, parts: list[Any]) -> npt.NDArray[Any]:
        """Which pairs of a row and an element make the condition true."""
        assert self._condition is not None
        found = [np.zeros(0, bool)]
        for piece in _pieces(pairs):
            data = self._rows(batch, piece, parts).data
            passed = self._condition.run(data).passed
            truths = np.ones(len(data), bool) if passed is None else passed.to_numpy(False)
            found.append(truths)
        return np.concatenate(found)

    def _rows(self, batch: ColumnBatch, pairs: _Pairs, parts: list[Any]) -> ColumnBatch:
        parents, places, ordinality = pairs
        rows, is_alone = batch.take(parents), places < 0
        taken = pa.array(places, mask=is_alone)
        arrays = [*rows.data.columns, *(part.take(taken) for part in parts)]
        if self.gives_ordinality:
            arrays.append(pa.array(ordinality + 1, mask=is_alone))
        conformed = [
            array if array.type == field.type else plain(array).cast(field.type)
            for array, field in zip(arrays, self.schema)
        ]
        return rows.with_columns(pa.RecordBatch.from_arrays(conformed, schema=self.schema))


def _pieces(pairs: _Pairs) -> Iterator[_Pairs]:
    for begin in range(0, len(pairs[0]), ROWS_AT_ONCE):
        parents, places, ordinality = (each[begin : begin + ROWS_AT_ONCE] for each in pairs)
        yield parents, places, ordinality


def with_columns(batch: ColumnBatch, kept: Sequence[int] | None) -> ColumnBatch:
    """The batch with some of its columns; None: all."""
    if kept is None:
        return batch
    if kept:
        return batch.with_columns(batch.data.select(kept))
    return batch.with_columns(without_columns(len(batch)))


def _elements(column: Any) -> tuple[Any, Any, list[Any]]:
    """For each row where its elements begin and how many there are, and the columns that all
    elements are made of."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    if column.null_count:
        lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    if pa.types.is_map(column.type):
        return starts, lengths, [column.keys, column.items]
    values = column.values
    if pa.types.is_struct(values.type):
        return starts, lengths, list(values.flatten())
    return starts, lengths, [values]
