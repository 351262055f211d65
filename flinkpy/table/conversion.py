"""Between record batches and rows: one conversion, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.common.types import Row, rows_of_columns


def python_values(column: Any) -> list[Any]:
    """A column's values. Numbers without nulls go through numpy, several times faster than Arrow's own way."""
    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return values
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    listed: list[Any] = column.to_pylist()
    return listed


def rows_of_batch(data: Any) -> list[Row]:
    """The rows of a ``pyarrow.RecordBatch``, with its columns' names.

    >>> rows_of_batch(pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]}))
    [Row(a=1, b='x'), Row(a=2, b=None)]
    """
    return rows_of_columns(tuple(data.schema.names), [python_values(column) for column in data.columns], data.num_rows)


def batch_of_rows(values: Sequence[Any], schema: Any) -> Any:
    """Rows, tuples or dicts as a record batch of that schema. Raises ValueError saying which record and field does not fit."""
    names = schema.names
    first = values[0]
    if isinstance(first, dict):
        values = [[value[name] for name in names] for value in values]
    try:
        columns = list(zip(*values, strict=True)) if names else []
        if len(columns) != len(names):
            raise ValueError(f"records have {len(columns)} fields, the declared type {len(names)}")
        return pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in zip(columns, schema)], schema=schema)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise ValueError(_culprit(values, schema) or str(error)) from error


def _culprit(values: Sequence[Any], schema: Any) -> str | None:
    for value in values:
        fields = list(value)
        if len(fields) != len(schema):
            return f"{value!r:.100} has {len(fields)} fields, the declared type {len(schema)}: {', '.join(schema.names)}"
        for field, each in zip(schema, fields):
            try:
                pa.scalar(each, field.type)
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                return f"field {field.name!r} of {value!r:.100} is not of its declared type {field.type}"
    return None
