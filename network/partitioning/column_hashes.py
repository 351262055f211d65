"""``stable_hash`` for the keys of column batches, computed for whole columns. Each value has the
same hash as in rows.

Integers are hashed by numpy. Other columns are dictionary-encoded by Arrow, and only their distinct
values are hashed in Python. Hashes of text are cached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import int64_hashes, stable_hash, tuple_hashes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_REMEMBERED = 1 << 18
_hashes_of_text: dict[str, int] = {}
_NULL = stable_hash(None)


def key_hashes(data: pa.RecordBatch, columns: Sequence[str]) -> npt.NDArray[np.uint64]:
    """The hash of each record's key: the value of the one column, or the tuple of several."""
    missing = [name for name in columns if name not in data.schema.names]
    if missing:
        raise ProgramError(
            f"no key column {missing[0]!r}; the batch has {', '.join(data.schema.names)}"
        )
    hashes = [column_hashes(data.column(name)) for name in columns]
    return hashes[0] if len(hashes) == 1 else tuple_hashes(hashes)


def column_hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    """``stable_hash`` of every value; nulls hash as None."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        return _integer_hashes(column)
    return _distinct_hashes(column)


def _integer_hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = column.null_count
    values = pc.fill_null(column, 0) if nulls else column
    hashes = int64_hashes(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if nulls:
        hashes = np.where(column.is_null().to_numpy(zero_copy_only=False), np.uint64(_NULL), hashes)
    return hashes


def _distinct_hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    import numpy as np
    import pyarrow as pa

    # only the type can convert its values to Python
    if isinstance(column.type, pa.BaseExtensionType):
        return _hashes_one_by_one(column)
    try:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # nested values: one by one
        return _hashes_one_by_one(column)
    if pa.types.is_string(encoded.dictionary.type) or pa.types.is_large_string(
        encoded.dictionary.type
    ):
        found = _text_hashes(encoded.dictionary.to_pylist())
    else:
        found = [stable_hash(_hashable(value)) for value in encoded.dictionary.to_pylist()]
    table = np.array([*found, _NULL], dtype=np.uint64)
    indices = encoded.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(found))
    result: npt.NDArray[np.uint64] = table[indices.to_numpy(zero_copy_only=False)]
    return result


def _hashes_one_by_one(column: pa.Array) -> npt.NDArray[np.uint64]:
    import numpy as np

    return np.fromiter(
        (stable_hash(_hashable(value)) for value in column.to_pylist()),
        dtype=np.uint64,
        count=len(column),
    )


def _text_hashes(values: list[str | None]) -> list[int]:
    if len(_hashes_of_text) > _REMEMBERED:
        _hashes_of_text.clear()
    known = _hashes_of_text
    hashes = []
    for value in values:
        found = known.get(value) if value is not None else _NULL
        if found is None:
            found = known[value] = stable_hash(value)  # type: ignore[index]
        hashes.append(found)
    return hashes


def _hashable(value: Any) -> Any:
    """Lists and structs as the tuples that they are in rows."""
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(_hashable(item) for item in value.values())
    return value
