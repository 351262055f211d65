"""INT96 timestamps of Parquet, as Spark 3, Hive and Impala write them: a day, and nanoseconds
within it.

Arrow reads them in one unit. Microseconds reach every day that Python has, but cut what is finer;
nanoseconds cut nothing, but wrap around before 1677 and after 2262. So such columns are read in
both. What the two differ by is what microseconds cut, also where nanoseconds have wrapped around.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

_REACHED_BY_NANOSECONDS = ((1 << 63) - 1) // 1000  # microseconds before and after 1970


def has_int96(schema: pa.Schema) -> bool:
    """Whether a column of this Parquet schema, or a part of one, is an INT96."""
    return any(schema.column(at).physical_type == "INT96" for at in range(len(schema)))


def exact_batches(coarse: Iterator[Any], fine: Iterator[Any], wanted: pa.DataType) -> Iterator[Any]:
    """The record batches of a file that was opened in microseconds, ``coarse``, with the columns of
    ``fine``, opened in nanoseconds, where ``wanted`` has those. Raises ArrowInvalid for a value
    that its column cannot hold."""
    for batch, other in zip(coarse, fine, strict=True):
        for at, name in enumerate(batch.schema.names):
            if name in other.schema.names:
                batch = batch.set_column(
                    at, name, _exact(batch.column(at), other.column(name), wanted.field(name))
                )
        yield batch


def _exact(coarse: Any, fine: Any, wanted: pa.DataType) -> Any:
    in_nanoseconds = "timestamp[ns" in str(wanted.type)
    for micros, nanos in _leaves(coarse, fine):
        counts = _counts(micros)
        cut = _counts(nanos) - counts * 1000
        misfits = np.abs(counts) > _REACHED_BY_NANOSECONDS if in_nanoseconds else cut != 0
        if misfits.any():
            at = int(misfits.argmax())
            shown = pa.scalar(int(counts[at]), pa.timestamp("us")).cast(pa.string()).as_py()
            if in_nanoseconds:
                raise pa.ArrowInvalid(
                    f"column {wanted.name!r} holds {shown}, which no column of nanoseconds "
                    "does; "
                    "give schema= with pa.timestamp('us') for it"
                )
            raise pa.ArrowInvalid(
                f"column {wanted.name!r} holds {shown} and {cut[at]} nanoseconds; "
                "give schema= with pa.timestamp('ns') for it"
            )
    return fine if in_nanoseconds else coarse


def _leaves(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The arrays of timestamps within two columns that differ by their units only."""
    kind = one.type
    if pa.types.is_struct(kind):
        for parts in zip(one.flatten(), other.flatten()):
            yield from _leaves(*parts)
    elif pa.types.is_map(kind):
        yield from _leaves(one.keys, other.keys)
        yield from _leaves(one.items, other.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(one.flatten(), other.flatten())
    elif not kind.equals(other.type):
        yield one, other


def _counts(array: Any) -> Any:
    return array.cast(pa.int64()).fill_null(0).to_numpy()
