"""HashJoin of BATCH: one side is kept, found by key; the other passes by.

The task reads the side that is kept to its end first (``reads_first``); what comes of the other
side before waits. Rows of the kept side that must go out without a partner are marked, and go out
at the end. The kept side lies in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.column_operators import explained
from flinkpy.relational.joins.built_side import BuiltSide, JoinKeys
from flinkpy.relational.relational_operator import RelationalJoin, pieces
from flinkpy.sql.rex.relational_terms import JoinKind

_OF_ONE_SIDE = (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True)
class JoinSpec:
    """What is joined. ``condition`` is over the columns of both sides, those of the left first.
    ``null_aware`` wants the right side built, and all of it in each subtask."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...] = ()
    condition: CalcProgram | None = None
    null_aware: bool = False
    builds_left: bool = False

    @property
    def keeps_left(self) -> bool:
        """Whether a row of the left without a partner goes out."""
        return self.kind in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_right(self) -> bool:
        return self.kind in (JoinKind.RIGHT, JoinKind.FULL)


class HashJoinOperator(RelationalJoin):
    """Joins its inputs, whose rows have the schemas ``left`` and ``right``."""

    def __init__(
        self, spec: JoinSpec, left: pa.Schema, right: pa.Schema, schema: pa.Schema
    ) -> None:
        super().__init__(schema)
        self.spec = spec
        self.left = left
        self.right = right
        self.reads_first = 0 if spec.builds_left else 1

    def open(self) -> None:
        spec = self.spec
        left = JoinKeys(spec.left_keys, spec.null_safe)
        right = JoinKeys(spec.right_keys, spec.null_safe)
        built_keys, self._keys = (left, right) if spec.builds_left else (right, left)
        self._built = BuiltSide(built_keys, self.left if spec.builds_left else self.right)
        self._condition = None if spec.condition is None else self.compiled(spec.condition, [])
        self._pair_schema = pa.schema([*self.left, *self.right])
        self._met: Any = None  # of the rows that are kept: whether they met one
        self._waiting: list[pa.RecordBatch] = []

    @property
    def _keeps_built(self) -> bool:
        """Whether it matters which of the kept rows have met one."""
        spec = self.spec
        if not spec.builds_left:
            return spec.keeps_right
        return spec.keeps_left or spec.kind in _OF_ONE_SIDE

    @property
    def _keeps_probed(self) -> bool:
        return self.spec.keeps_right if self.spec.builds_left else self.spec.keeps_left

    def take(self, data: pa.RecordBatch, is_right: bool) -> Iterator[pa.RecordBatch]:
        if is_right != self.spec.builds_left:
            self._built.add(data)
        elif self._built.is_sealed:
            yield from self._probe(data)
        else:
            self._waiting.append(data)

    def end_input(self, input_index: int) -> None:
        if input_index != self.reads_first or self._built.is_sealed:
            return
        with explained(None, self.context):
            self._built.seal()
            self._met = np.zeros(self._built.rows.num_rows, np.bool_)
            waiting, self._waiting = self._waiting, []
            for data in waiting:
                for given in self._probe(data):
                    for each in pieces(given):
                        self.output.emit(each)

    # -- a batch of the side that passes by --------------------------------------------------------

    def _probe(self, data: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        numbers = self._built.numbers_of(data, self._keys)
        if self.spec.kind in _OF_ONE_SIDE:
            yield from self._one_side(data, numbers)
            return
        met = np.zeros(data.num_rows, np.bool_)
        for at, rows in self._pairs(data, numbers):
            if self._keeps_probed:
                met[at] = True
            if self._keeps_built:
                self._met[rows] = True
            yield self._joined(data.take(pa.array(at)), self._built.rows.take(pa.array(rows)))
        if self._keeps_probed and not met.all():
            alone = data.filter(pa.array(~met))
            yield self._joined(alone, None)

    def _pairs(self, data: pa.RecordBatch, numbers: npt.NDArray[Any]) -> Iterator[tuple[Any, Any]]:
        """Positions of these rows and of kept rows with which they are joined."""
        for at, rows in self._built.pairs(numbers):
            if self._condition is None:
                yield at, rows
                continue
            mask = self._passing(data, at, rows)
            if mask is None:
                yield at, rows
            elif mask.any():
                yield at[mask], rows[mask]

    def _passing(self, data: pa.RecordBatch, at: npt.NDArray[Any], rows: Any) -> Any:
        """For which of these pairs the condition is true; None: for all."""
        assert self._condition is not None
        probed, kept = data.take(pa.array(at)), self._built.rows.take(pa.array(rows))
        left, right = (kept, probed) if self.spec.builds_left else (probed, kept)
        names = self._pair_schema.names
        pair = pa.RecordBatch.from_arrays([*left.columns, *right.columns], names=names)
        passed = self._condition.run(pair).passed
        return None if passed is None else passed.to_numpy(zero_copy_only=False)

    def _joined(self, probed: Any, kept: Any) -> pa.RecordBatch:
        """Both sides' columns; those of the side that is None are null."""
        left, right = (kept, probed) if self.spec.builds_left else (probed, kept)
        there = probed if probed is not None else kept
        columns = []
        for side, schema in ((left, self.left), (right, self.right)):
            if side is None:
                columns += [pa.nulls(there.num_rows, field.type) for field in schema]
            else:
                columns += side.columns
        return self._with_schema(columns)

    def _with_schema(self, columns: list[Any]) -> pa.RecordBatch:
        arrays = [
            column if column.type == field.type else _conformed(column, field.type)
            for column, field in zip(columns, self.schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # -- SEMI and ANTI -----------------------------------------------------------------------------

    def _one_side(
        self, data: pa.RecordBatch, numbers: npt.NDArray[Any]
    ) -> Iterator[pa.RecordBatch]:
        spec = self.spec
        if spec.builds_left:
            for _, rows in self._pairs(data, numbers):
                self._met[rows] = True
            return
        met = np.zeros(data.num_rows, np.bool_)
        if self._condition is None:
            met = self._built.partners(numbers) > 0
        else:
            for at, _ in self._pairs(data, numbers):
                met[at] = True
        wanted = met if spec.kind is JoinKind.SEMI else ~met & ~self._unknown(data)
        if wanted.all():
            yield self._with_schema(data.columns)
        elif wanted.any():
            yield self._with_schema(data.filter(pa.array(wanted)).columns)

    def _unknown(self, data: pa.RecordBatch) -> Any:
        """NOT IN: for which rows a null makes it unknown whether they are in."""
        nothing = np.zeros(data.num_rows, np.bool_)
        if not self.spec.null_aware or not self._built.rows.num_rows:
            return nothing
        has_null = self._null_keys(data, self.spec.left_keys)
        if self._condition is None:
            return ~nothing if self._built.has_null_key else has_null
        kept_nulls = np.flatnonzero(self._null_keys(self._built.rows, self.spec.right_keys))
        everything = np.arange(self._built.rows.num_rows)
        found = nothing
        for row in range(data.num_rows):  # correlated NOT IN over nulls is rare
            others = everything if has_null[row] else kept_nulls
            for begin in range(0, len(others), 1 << 15):
                rows = others[begin : begin + (1 << 15)]
                passing = self._passing(data, np.full(len(rows), row), rows)
                found[row] |= bool(passing is None or passing.any())
        return found

    @staticmethod
    def _null_keys(data: pa.RecordBatch, keys: tuple[int, ...]) -> Any:
        mask = np.zeros(data.num_rows, np.bool_)
        for at in keys:
            mask |= data.column(at).is_null().to_numpy(zero_copy_only=False)
        return mask

    # -- the end -----------------------------------------------------------------------------------

    def last_batches(self) -> Iterator[ColumnBatch]:
        if not self._keeps_built or not self._built.rows.num_rows:
            return
        spec, rows = self.spec, self._built.rows
        wanted = self._met if spec.kind is JoinKind.SEMI else ~self._met
        places = np.flatnonzero(wanted)
        for begin in range(0, len(places), 1 << 15):
            part = rows.take(pa.array(places[begin : begin + (1 << 15)]))
            if spec.kind in _OF_ONE_SIDE:
                yield from pieces(self._with_schema(part.columns))
            else:
                yield from pieces(self._joined(None, part))


def _conformed(column: Any, kind: pa.DataType) -> Any:
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    return column if column.type == kind else pc.cast(column, kind)
