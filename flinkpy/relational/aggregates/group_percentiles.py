"""PERCENTILE: the value below which a share of a group's values lies, between two of them where no
value stands there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.aggregates.accumulator_port import AggregateSite
from flinkpy.relational.aggregates.group_collections import Collected
from flinkpy.sql.rex.rex_nodes import SortKey

_LEAST_FIRST = SortKey(0)


class PercentileOfGroup(Collected):
    """Arguments are the value, the share (or an array of shares, which gives an array), and how
    often the value counts. The shares of a group are those of one of its rows: they are the same in
    all."""

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(
            AggregateSite(site.function, site.arguments, site.result, (_LEAST_FIRST,), site.options)
        )

    def results(self, size: int) -> pa.Array:
        columns, starts = self._by_group(size)
        values = columns[0].cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # how many values stand at or before each row, over all groups
        counted = np.cumsum(_times(columns, len(values)))
        ends = np.append(0, counted)[starts]
        totals = np.diff(ends)
        has_values = totals > 0
        first_rows = starts[:-1][has_values]
        shares, owners, lengths = _shares(columns[1], first_rows, np.flatnonzero(has_values))
        places = (totals[owners] - 1) * shares
        below, above = np.floor(places).astype(np.int64), np.ceil(places).astype(np.int64)
        low = values[np.searchsorted(counted, ends[owners] + below, side="right")]
        high = values[np.searchsorted(counted, ends[owners] + above, side="right")]
        with np.errstate(invalid="ignore"):
            between = (above - places) * low + (places - below) * high
        found = np.where((above == below) | (low == high), low, between)
        if not pa.types.is_list(self.site.result):
            whole = np.zeros(size)
            whole[has_values] = found
            return pa.array(whole, pa.float64(), mask=~has_values)
        sizes = np.zeros(size, np.int64)
        sizes[has_values] = lengths
        offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
        of_groups = pa.array(offsets, mask=np.append(~has_values, False))
        return pa.ListArray.from_arrays(of_groups, pa.array(found)).cast(self.site.result)


def _times(columns: list[pa.Array], rows: int) -> npt.NDArray[Any]:
    """How often each value counts: once, or as the call says; not at all if that is null, 0 or
    less."""
    if len(columns) < 3:
        return np.ones(rows, np.int64)
    times: npt.NDArray[Any] = columns[2].fill_null(0).cast(pa.int64()).to_numpy()
    return np.maximum(times, 0)  # type: ignore[no-any-return]


def _shares(
    column: pa.Array, rows: npt.NDArray[Any], groups: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """The shares in these rows one behind the other, the group of each, and how many each row
    has."""
    chosen = column.take(pa.array(rows))
    if not pa.types.is_list(chosen.type):
        return chosen.to_numpy(zero_copy_only=False), groups, np.ones(len(rows), np.int64)
    lengths = chosen.value_lengths().to_numpy(zero_copy_only=False)
    shares = chosen.flatten().to_numpy(zero_copy_only=False)
    return shares, np.repeat(groups, lengths), lengths
