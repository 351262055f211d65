"""Aggregates of the rows of windows that came, and of those that were taken back.

A row may be taken back in another window than the one in which it came, as processing time goes on.
There it is subtracted, as in Flink: COUNT may be negative, and a group in which as many rows came
as went is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.relational.groups.changing_calls import BatchOfGroups, ChangingCalls
from flinkpy.relational.state.taken_back import contents, taken_back
from flinkpy.relational.windows.held_aggregates import results_of_groups
from flinkpy.sql.rex.rex_nodes import AggregateCall

if TYPE_CHECKING:
    import numpy.typing as npt


def are_left(columns: Sequence[pa.Array], added: npt.NDArray[np.bool_]) -> Any:
    """The rows but those that came and were taken back, in whatever order."""
    count = len(added)
    if added.all():
        return np.ones(count, np.bool_)
    rows = pa.RecordBatch.from_arrays(list(columns), names=[str(at) for at in range(len(columns))])
    places = np.arange(count) + np.where(added, 0, count)
    stay, found_none = taken_back(contents(rows), places, added)
    return stay | found_none


def are_there(added: npt.NDArray[np.bool_], groups: npt.NDArray[Any], size: int) -> Any:
    """The rows of groups of which not as many came as went."""
    counts = np.bincount(groups, np.where(added, 1, -1), minlength=size)
    return counts[groups] != 0


def results_of_changes(
    calls: Sequence[AggregateCall],
    kinds: Sequence[pa.DataType],
    data: pa.RecordBatch,
    groups: npt.NDArray[np.int64],
    size: int,
) -> list[pa.Array]:
    """The results of each call, of these types, for all groups. The last column says which of the
    rows came."""
    mark = data.num_columns - 1
    added = data.column(mark).to_numpy(zero_copy_only=False)
    rows = data.select(range(mark))
    if added.all():
        return results_of_groups(calls, kinds, rows, groups, size)
    changing = ChangingCalls(calls, rows.schema, kinds, takes_back=True)
    changing.reach(size)
    changing.take(BatchOfGroups(rows, groups, np.where(added, 1, -1), size))
    return changing.results_of(np.arange(size))
