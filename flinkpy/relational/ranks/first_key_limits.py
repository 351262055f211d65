"""Which rows cannot be among the best ones of their partition, by their first sort key alone: most
rows of a stream are found behind here, and are not compared with the rows that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.sort_codes import ascending_codes
from flinkpy.sql.rex.rex_nodes import SortKey

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _says_all(kind: pa.DataType) -> bool:
    """Whether the codes of a column are the same in every batch, as numbers of 64 bits."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_floating(kind)
    ) and not pa.types.is_uint64(kind)


class FirstKeyLimits:
    """The code of the first sort key of the last row that counts, by partition."""

    def __init__(self, keys: Sequence[SortKey], schema: pa.Schema) -> None:
        self._key = keys[0] if keys and _says_all(schema.field(keys[0].index).type) else None
        self._is_only = len(keys) == 1
        self._limits = Grown(np.int64, _GREATEST)

    def are_behind(self, data: pa.RecordBatch, partitions: Any, have: Any, added: Any) -> Any:
        """Which rows are behind the last one of their partition for sure, of those whose partitions
        ``have`` a limit; None if none is. A row that is not ``added`` may take an equal one back.
        """
        if self._key is None or not have.any():
            return None
        codes = self._key_codes(data)
        limits = self._limits.reach(int(partitions.max()) + 1).take(partitions)
        behind = codes > limits
        if self._is_only:  # of equal rows the first one is before the others
            behind |= added & (codes == limits) & (codes != _GREATEST) & (codes != _LEAST)
        behind &= have
        return behind if behind.any() else None

    def put(
        self, partitions: npt.NDArray[np.int64], data: pa.RecordBatch, last: npt.NDArray[np.int64]
    ) -> None:
        """Sets the limits of these partitions: the rows at the positions ``last``."""
        if self._key is not None and len(partitions):
            limits = self._limits.reach(int(partitions.max()) + 1)
            limits[partitions] = self._key_codes(data.take(pa.array(last)))

    def _key_codes(self, data: pa.RecordBatch) -> Any:
        """One number a row. That of null is the least or the greatest, which may be another row's
        too."""
        assert self._key is not None
        column = plain(data.column(self._key.index))
        codes = ascending_codes(column)[0].astype(np.int64, copy=False)
        if self._key.descending:
            codes = ~codes
        if column.null_count:
            is_null = column.is_null().to_numpy(zero_copy_only=False)
            codes = np.where(is_null, _LEAST if self._key.nulls_first else _GREATEST, codes)
        return codes
