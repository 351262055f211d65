"""Calc and Expand: columns computed from columns, by compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.relational_operator import RelationalOperator


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
