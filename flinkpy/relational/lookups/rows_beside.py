"""Rows beside what a table has for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.calc_compiler import CompiledCalc
from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.joins.joined_rows import JoinedRows
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.lookups.lookup_port import Found
from flinkpy.relational.relational_operator import ROWS_AT_ONCE, CompilesCalcs


@dataclass(frozen=True)
class LookupSpec:
    """A lookup join. ``keys`` gives the key columns of a row, ``chosen`` what is wanted of a row
    that is found (None: all of it), ``condition`` is over both. ``left`` and ``found`` are the
    schemas of the rows and of what is beside them."""

    keys: CalcProgram
    left: pa.Schema
    found: pa.Schema
    keeps_left: bool = False
    chosen: CalcProgram | None = None
    condition: CalcProgram | None = None


@dataclass(frozen=True)
class AskedKeys:
    """The keys of a batch, without those that have a null; ``places`` are their rows."""

    keys: pa.RecordBatch
    places: npt.NDArray[Any]


class RowsBeside:
    """The join of one subtask; ``operator`` opens and closes its expressions."""

    def __init__(self, spec: LookupSpec, schema: pa.Schema, operator: CompilesCalcs) -> None:
        self._keeps_left = spec.keeps_left
        self._schema = schema
        self._keys: CompiledCalc = operator.compiled(spec.keys, key_names(len(spec.keys.outputs)))
        self._chosen = (
            None if spec.chosen is None else operator.compiled(spec.chosen, spec.found.names)
        )
        condition = operator.compiled_if_any(spec.condition)
        self._pair = JoinedRows(spec.left, spec.found, schema, condition)

    def keys(self, batch: ColumnBatch) -> AskedKeys:
        """What has to be asked for a batch."""
        keys = key_batch(self._keys(batch.data).columns)
        places = np.arange(len(batch))
        if not any(column.null_count for column in keys.columns):
            return AskedKeys(keys, places)
        there = reduce(pc.and_, [column.is_valid() for column in keys.columns])
        return AskedKeys(keys.filter(there), places[there.to_numpy(zero_copy_only=False)])

    def joined(self, batch: ColumnBatch, asked: AskedKeys, found: Found) -> Iterator[ColumnBatch]:
        """The rows of a batch with what was found, in pieces of bounded size."""
        at, rows = asked.places[found.at], found.rows
        if self._chosen is not None:
            ran = self._chosen.run(rows)
            if ran.passed is not None:
                at = at[ran.passed.to_numpy(zero_copy_only=False)]
            rows = ran.batch
        at, rows = self._passing(batch.data, at, rows)
        places = np.arange(len(at))
        if self._keeps_left:
            alone = np.setdiff1d(np.arange(len(batch)), at)
            before = np.searchsorted(at, alone)
            at, places = np.insert(at, before, alone), np.insert(places, before, -1)
        for begin in range(0, len(at), ROWS_AT_ONCE):
            piece = slice(begin, begin + ROWS_AT_ONCE)
            ours = batch.take(at[piece])
            theirs = rows.take(pa.array(places[piece], mask=places[piece] < 0))
            yield ours.with_columns(self._pair.joined(ours.data, theirs))

    def _passing(
        self, data: pa.RecordBatch, at: npt.NDArray[Any], rows: pa.RecordBatch
    ) -> tuple[npt.NDArray[Any], pa.RecordBatch]:
        passed = self._pair.passing(data.take(pa.array(at)), rows)
        if passed is None:
            return at, rows
        return at[passed], rows.filter(pa.array(passed))
