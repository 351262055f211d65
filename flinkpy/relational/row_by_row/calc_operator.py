"""Calc and Expand: columns computed from columns, by compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import BEYOND_TIME, Batch, ColumnBatch, Watermark
from flinkpy.operators.base import Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.relational_operator import RelationalOperator
from flinkpy.relational.row_times import times_of


class CalcOperator(RelationalOperator):
    """The columns of a program for the rows that pass its conditions. Kinds and event times of
    these rows go along."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, program: CalcProgram, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.program = program

    def open(self) -> None:
        self._calc = self.compiled(self.program, self.schema.names)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        result = self._calc.run(batch.data)
        if not result.batch.num_rows:
            return None
        rest = batch if result.passed is None else _passed(batch, result.passed)
        return rest.with_columns(result.batch)


class CalcAtWatermarkOperator(CalcOperator):
    """A program that also reads the watermark of the operator, in a column of this type behind the
    others. It is null before there is one."""

    def __init__(self, program: CalcProgram, schema: pa.Schema, kind: pa.DataType) -> None:
        super().__init__(program, schema)
        self.kind = kind

    def open(self) -> None:
        super().open()
        self._watermark: int | None = None

    def process_watermark(self, watermark: Watermark) -> Work | None:
        if watermark.timestamp < BEYOND_TIME:
            self._watermark = watermark.timestamp
        return super().process_watermark(watermark)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        rows = batch.data.num_rows
        if self._watermark is None:
            column = pa.nulls(rows, self.kind)
        else:
            column = times_of(np.full(rows, self._watermark, np.int64), self.kind)
        names = [*batch.data.schema.names, "watermark"]
        data = pa.RecordBatch.from_arrays([*batch.data.columns, column], names=names)
        return super().process_columns(batch.with_columns(data))


def _passed(batch: ColumnBatch, passed: pa.BooleanArray) -> ColumnBatch:
    """The event times and kinds of the rows that passed; their columns are not needed."""
    if (batch.timestamps is None and batch.kinds is None) or not batch.data.num_columns:
        return batch
    return batch.with_columns(batch.data.select([0])).filter(passed)


class ExpandOperator(RelationalOperator):
    """Each row once for each program: grouping sets."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, programs: Sequence[CalcProgram], schema: pa.Schema) -> None:
        super().__init__(schema)
        self.programs = tuple(programs)

    def open(self) -> None:
        self._calcs = [self.compiled(each, self.schema.names) for each in self.programs]

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            for calc in self._calcs:
                self.output.emit(batch.with_columns(calc(batch.data)))

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits a batch for each program")
