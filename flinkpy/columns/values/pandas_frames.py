"""Frames of pandas, made of columns without losing a digit.

pandas' own types of whole numbers have no null. Arrow therefore makes floats of a column that has
one, which rounds what lies beyond 2**53. Such a column becomes one of pandas' nullable types here
(``Int64`` and its like), which hold every number and ``pd.NA``. A column without nulls has numpy's
type, as pandas users expect. Lists, maps and structs that have nulls among whole numbers, or
instants with a zone, are Python's, and times with nanoseconds stay Arrow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.core.program.extras import imported

if TYPE_CHECKING:
    import pandas as pd


def pandas_frame(data: pa.Table | pa.RecordBatch, what: str) -> pd.DataFrame:
    """The table or record batch as a frame. Raises ProgramError, which names ``what``, without
    pandas.

    >>> frame = pandas_frame(pa.table({"n": [2**53 + 1, None], "m": [1, 2]}), "to_pandas()")
    >>> frame["n"][0], str(frame["n"].dtype), str(frame["m"].dtype)
    (9007199254740993, 'Int64', 'int64')
    """
    pandas = imported("pandas", "pandas", what)
    exact = {at: _exact(pandas, column) for at, column in enumerate(data.columns)}
    exact = {at: series for at, series in exact.items() if series is not None}
    for at in exact:
        data = data.set_column(at, data.schema.names[at], pa.nulls(data.num_rows))
    frame = data.to_pandas()
    # else its metadata has made an index of some columns
    is_whole = len(frame.columns) == data.num_columns
    for at, series in exact.items():
        place = at if is_whole else frame.columns.get_loc(data.schema.names[at])
        series.index = frame.index
        frame.isetitem(place, series)
    return frame


def _exact(pandas: Any, column: Any) -> Any:
    """The column as a series, where Arrow's own conversion would round, or fail for a digit; else
    None."""
    kind = column.type
    if pa.types.is_integer(kind) and column.null_count:
        nullable = f"{'U' if pa.types.is_unsigned_integer(kind) else ''}Int{kind.bit_width}"
        return column.to_pandas(types_mapper={kind: pandas.api.types.pandas_dtype(nullable)}.get)
    if kind == pa.time64("ns") and pc.any(pc.not_equal(pc.nanosecond(column), 0)).as_py():
        return pandas.Series(pandas.arrays.ArrowExtensionArray(_chunked(column)))
    return pandas.Series(column.to_pylist(), dtype=object) if _loses(column) else None


def _loses(column: Any) -> bool:
    """Whether Arrow's conversion loses something within a list, map or struct: digits of whole
    numbers that have a null among them, or zones."""
    kind = column.type
    if not pa.types.is_nested(kind) or pa.types.is_union(kind) or not len(column):
        return False
    if pa.types.is_struct(kind):
        parts = _parts(column, lambda chunk: [chunk.field(at) for at in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        parts = _parts(column, lambda chunk: [chunk.items])
    else:
        parts = _parts(column, lambda chunk: [pc.list_flatten(chunk)])
    return any(
        (pa.types.is_integer(each.type) and each.null_count > 0)
        or (pa.types.is_timestamp(each.type) and each.type.tz)
        or _loses(each)
        for each in parts
    )


def _parts(column: Any, parts: Callable[[Any], list[Any]]) -> list[Any]:
    return [part for chunk in _chunked(column).chunks for part in parts(chunk)]


def _chunked(column: Any) -> Any:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
