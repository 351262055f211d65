"""Conversion between record batches and rows. All other files use these functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.columns.values.exact_casts import cast_exactly
from flinkpy.columns.values.inference import inferred_type
from flinkpy.columns.values.numpy_types import numpy_type
from flinkpy.common.types import Row, RowKind, has_kinds, rows_of_columns
from flinkpy.core.errors import ProgramError


def python_values(column: pa.Array) -> list[Any]:
    """A column's values in the form that they have in a row: structs are Rows, maps are dicts.
    Numbers without nulls go through numpy, which is several times faster than Arrow's own
    conversion."""
    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        if not len(column):  # whose buffer may have any size
            return []
        # not by to_numpy(), which imports pandas if it is installed
        end = column.offset + len(column)
        numbers = np.frombuffer(column.buffers()[1], numpy_type(kind), end)
        values: list[Any] = numbers[column.offset :].tolist()
        return values
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif _has_rows(kind):
        return _nested_values(column)
    in_micros = _times_in_microseconds(kind)
    listed: list[Any] = (column if in_micros.equals(kind) else column.cast(in_micros)).to_pylist()
    return listed


def _times_in_microseconds(kind: pa.DataType) -> Any:
    """The type with microseconds in times of day, as Python has them. A cast to it refuses finer
    ones, which Arrow's own conversion cuts."""
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if _is_list(kind) and not kind.value_type.equals(_times_in_microseconds(kind.value_type)):
        return pa.list_(kind.value_field.with_type(_times_in_microseconds(kind.value_type)))
    return kind


def _has_rows(kind: pa.DataType) -> bool:
    """Whether Arrow's own Python values of this type differ from those in a row."""
    return bool(
        pa.types.is_struct(kind)
        or pa.types.is_map(kind)
        or (_is_list(kind) and _has_rows(kind.value_type))
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _nested_values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_struct(kind):
        rows = rows_of_columns(
            tuple(field.name for field in kind),
            [python_values(each) for each in column.flatten()],
            len(column),
        )
        return (
            [row if there else None for row, there in zip(rows, column.is_valid().to_pylist())]
            if column.null_count
            else rows
        )
    if pa.types.is_map(kind):
        return _dicts(column)
    values = iter(python_values(column.flatten()))
    return [
        None if length is None else list(islice(values, length))
        for length in pc.list_value_length(column).to_pylist()
    ]


def _dicts(column: pa.Array) -> list[Any]:
    """The values of a map column. All keys are in one array, all values in another, and ``offsets``
    says where each map begins."""
    ends = column.offsets.to_pylist()
    start = ends[0] if ends else 0
    keys, values = (
        python_values(part.slice(start, ends[-1] - start)) if ends else []
        for part in (column.keys, column.items)
    )
    dicts = [
        dict(zip(keys[begin - start : end - start], values[begin - start : end - start]))
        for begin, end in pairwise(ends)
    ]
    return (
        [each if there else None for each, there in zip(dicts, column.is_valid().to_pylist())]
        if column.null_count
        else dicts
    )


_PLAIN = {"string_view": pa.string(), "binary_view": pa.binary()}


def without_views(data: pa.RecordBatch) -> Any:
    """The table or record batch without string and binary views, wherever they are in a column, and
    without run-end encoding. Arrow has few kernels for these, and cannot even take rows from
    them."""
    for at, field in enumerate(data.schema):
        if pa.types.is_run_end_encoded(field.type):
            data = data.set_column(
                at, field.with_type(field.type.value_type), _decoded(data.column(at))
            )
    schema = pa.schema(
        [field.with_type(_without_views(field.type)) for field in data.schema], data.schema.metadata
    )
    return data if schema.equals(data.schema) else data.cast(schema)


def _without_views(kind: pa.DataType) -> Any:
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    for is_list, list_of in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_list(kind):
            return list_of(kind.value_field.with_type(_without_views(kind.value_type)))
    return _PLAIN.get(str(kind), kind)


def _decoded(column: pa.Array) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array(list(map(pc.run_end_decode, column.chunks)), column.type.value_type)
    return pc.run_end_decode(column)


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> Any:
    """The batch with exactly this schema: columns are selected by name and cast. Raises
    ArrowInvalid for missing columns and for values that a cast would change."""
    missing = [name for name in schema.names if name not in batch.schema.names]
    if missing:
        raise pa.ArrowInvalid(f"no column {', '.join(missing)}")
    return pa.RecordBatch.from_arrays(
        [cast_exactly(batch.column(field.name), field) for field in schema], schema=schema
    )


def batch_of_columns(columns: Mapping[str, Any]) -> Any:
    """A record batch from named columns: arrays of Arrow, numpy and pandas, or lists of values as
    in rows."""
    arrays = {name: _array(values, name) for name, values in columns.items()}
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _array(values: Any, name: str) -> Any:
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array) or hasattr(values, "__array__"):
        return pa.array(values)
    values = list(values)
    return array_of(values, inferred_type(values, name), name)


def rows_of_batch(data: pa.RecordBatch, kinds: Any = None) -> list[Row]:
    """The rows of a ``pyarrow.RecordBatch``, with the columns' names. ``kinds`` are those of its
    ``ColumnBatch``, if it is one of a stream.

    >>> rows_of_batch(pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]}))
    [Row(a=1, b='x'), Row(a=2, b=None)]
    """
    try:
        columns = [python_values(column) for column in data.columns]
    except (OverflowError, ValueError, pa.ArrowException) as error:
        raise _beyond_python(data) or error from error
    rows = rows_of_columns(tuple(data.schema.names), columns, data.num_rows)
    if kinds is not None:
        for row, kind in zip(rows, kinds.tolist()):
            if kind:
                row.set_row_kind(_KINDS[kind])
    return rows


_KINDS = tuple(RowKind)


def kinds_of_rows(values: Sequence[Any]) -> Any:
    """The kinds of rows as columns have them; None if all are inserts, as tuples and dicts are."""
    if not has_kinds():
        return None
    kinds = np.array(
        [value.get_row_kind().value if isinstance(value, Row) else 0 for value in values], np.int8
    )
    return kinds if kinds.any() else None


def _beyond_python(data: pa.RecordBatch) -> Exception | None:
    """Says which value no object of Python holds: days before year 1 and after 9999, and what is
    finer than microseconds."""
    for field, column in zip(data.schema, data.columns):
        for at in range(len(column)):
            try:
                python_values(column.slice(at, 1))
            except (OverflowError, ValueError, pa.ArrowException) as error:
                value = f"column {field.name!r} holds {_shown(column.slice(at, 1))} ({field.type})"
                return ProgramError(
                    f"row {at} of a batch: {value}, which no object of Python holds "
                    f"({error}); work on columns, or cast it with "
                    f"select(col({field.name!r}).cast(...)) before rows are made"
                )
    return None


def _shown(column: pa.Array) -> str:
    try:
        return str(column.cast(pa.string())[0].as_py())
    except pa.ArrowException:
        return " ".join(str(column).split())[:200]


def batch_of_rows(values: Sequence[Any], schema: pa.Schema) -> Any:
    """Rows, tuples or dicts as a record batch of that schema. Raises ValueError, which names the
    record and the field, for a value that does not fit."""
    names = schema.names
    first = values[0]
    if isinstance(first, dict):
        values = [[value[name] for name in names] for value in values]
    try:
        columns = list(zip(*values, strict=True)) if names else []
        if len(columns) != len(names):
            raise ValueError(f"records have {len(columns)} fields, the declared type {len(names)}")
        return pa.RecordBatch.from_arrays(
            [array_of(column, field.type, field.name) for column, field in zip(columns, schema)],
            schema=schema,
        )
    except (LookupError, ValueError, TypeError) as error:
        raise ValueError(_culprit(values, schema) or str(error)) from error


def _culprit(values: Sequence[Any], schema: pa.Schema) -> str | None:
    for value in values:
        fields = list(value)
        if len(fields) != len(schema):
            return (
                f"{value!r:.100} has {len(fields)} fields, the declared type {len(schema)}: "
                f"{', '.join(schema.names)}"
            )
        for field, each in zip(schema, fields):
            try:
                array_of([each], field.type, field.name)
            except (LookupError, ValueError, TypeError) as error:
                return (
                    f"field {field.name!r} of {value!r:.100} is not of its declared type "
                    f"{field.type}: {error}"
                )
    return None
