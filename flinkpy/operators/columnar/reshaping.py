"""Operators that keep most columns: with more of them, without some, or under other names. Which
columns there are shows in the first batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.columns.expression import Column, Expression
from flinkpy.columns.expression_functions import refuse_doubles
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.column_operators import SelectColumnsOperator

Chosen = list[tuple[str, Expression]]


class WithColumnsOperator(SelectColumnsOperator):
    """All columns, with the computed ones in the place of those of the same name, or behind the
    others."""

    def __init__(self, computed: Iterable[tuple[str, Expression]]) -> None:
        self.computed = tuple(computed)

    def chosen(self, schema: pa.Schema) -> Chosen:
        return list(
            {**{name: Column(name) for name in schema.names}, **dict(self.computed)}.items()
        )


class DropColumnsOperator(SelectColumnsOperator):
    """All columns but these."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def chosen(self, schema: pa.Schema) -> Chosen:
        for name in self.names:
            column_index(name, schema)
        left: Chosen = [(name, Column(name)) for name in schema.names if name not in self.names]
        if not left:
            raise ProgramError("drop() would leave no column")
        return left


class RenameColumnsOperator(SelectColumnsOperator):
    """All columns in their order, some under new names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = dict(names)

    def chosen(self, schema: pa.Schema) -> Chosen:
        for name in self.names:
            column_index(name, schema)
        renamed: Chosen = [(self.names.get(name, name), Column(name)) for name in schema.names]
        refuse_doubles([name for name, _ in renamed], "rename()")
        return renamed


class AlignColumnsOperator(SelectColumnsOperator):
    """The columns of a wanted schema by name and in its order; null where there is no such
    column."""

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted

    def prepare(self, schema: pa.Schema) -> None:
        self._result = pa.schema(
            [
                schema.field(field.name)
                if field.name in schema.names
                else field.with_nullable(True)
                for field in self.wanted
            ]
        )
        self._select = self._aligned

    def _aligned(self, data: pa.RecordBatch) -> Any:
        there = set(data.schema.names)
        arrays = [
            data.column(field.name) if field.name in there else pa.nulls(data.num_rows, field.type)
            for field in self._result
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._result)
