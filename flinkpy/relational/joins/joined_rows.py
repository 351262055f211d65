"""Rows of two inputs side by side."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.calc_compiler import CompiledCalc
from flinkpy.relational.relational_operator import plain


class JoinedRows:
    """Makes results of this schema of rows of a left and of a right input. ``condition`` is over
    the columns of both, those of the left first."""

    def __init__(
        self,
        left: pa.Schema,
        right: pa.Schema,
        schema: pa.Schema,
        condition: CompiledCalc | None = None,
    ) -> None:
        self._sides = (left, right)
        self._names = [*left.names, *right.names]
        self._schema = schema
        self._condition = condition

    def passing(self, left: pa.RecordBatch, right: pa.RecordBatch) -> Any:
        """For which of these pairs the condition is true; None: for all."""
        if self._condition is None:
            return None
        pair = pa.RecordBatch.from_arrays([*left.columns, *right.columns], names=self._names)
        passed = self._condition.run(pair).passed
        return None if passed is None else passed.to_numpy(zero_copy_only=False)

    def joined(self, left: pa.RecordBatch | None, right: pa.RecordBatch | None) -> pa.RecordBatch:
        """Both sides' columns; those of the side that is None are null."""
        there = left if left is not None else right
        assert there is not None
        columns: list[Any] = []
        for side, schema in zip((left, right), self._sides):
            if side is None:
                columns += [pa.nulls(there.num_rows, field.type) for field in schema]
            else:
                columns += side.columns
        return self.alone(columns)

    def alone(self, columns: list[Any]) -> pa.RecordBatch:
        """These columns in the types of the results."""
        arrays = [
            column if column.type == field.type else pc.cast(plain(column), field.type)
            for column, field in zip(columns, self._schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
