"""Which rows cannot be among the best ones of their partition, by their first sort key alone: most
rows of a stream are found behind here, and are not compared with the rows that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.ranks.sort_keys import absolute_codes, is_absolute
from flinkpy.sql.rex.rex_nodes import SortKey

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class FirstKeyLimits:
    """The code of the first sort key of the last row that counts, by partition."""

    def __init__(self, keys: Sequence[SortKey], schema: pa.Schema, empty: Empty) -> None:
        """``empty`` gives arrays."""
        self.key = keys[0] if keys and is_absolute(schema.field(keys[0].index).type) else None
        self._is_only = len(keys) == 1
        self._limits = Grown(np.int64, _GREATEST, empty)

    def are_behind(self, data: pa.RecordBatch, partitions: Any, have: Any, added: Any) -> Any:
        """Which rows are behind the last one of their partition for sure, of those whose partitions
        ``have`` a limit; None if none is. A row that is not ``added`` may take an equal one back.
        """
        if self.key is None or not have.any():
            return None
        codes = _codes(data, self.key)
        limits = self._limits.reach(int(partitions.max()) + 1).take(partitions)
        behind = codes > limits
        if self._is_only:  # of equal rows the first one is before the others
            behind |= added & (codes == limits) & (codes != _GREATEST) & (codes != _LEAST)
        behind &= have
        return behind if behind.any() else None

    def put(self, partitions: npt.NDArray[np.int64], last: pa.RecordBatch) -> None:
        """Sets the limits of these partitions to these rows, one for each."""
        if self.key is not None and len(partitions):
            limits = self._limits.reach(int(partitions.max()) + 1)
            limits[partitions] = _codes(last, self.key)


def _codes(data: pa.RecordBatch, key: SortKey) -> Any:
    """One number a row. That of null is the least or the greatest, which may be another row's
    too."""
    codes, is_null = absolute_codes(data, key)
    if is_null is None:
        return codes
    return np.where(is_null, _LEAST if key.nulls_first else _GREATEST, codes)
