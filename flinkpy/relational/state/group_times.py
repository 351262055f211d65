"""How far event time has come, key group by key group.

A watermark is not part of a snapshot, but what an operator has done up to it is. After a restore
the key groups come from subtasks that were not equally far, and the first watermark is still to
come; a row that was late before must be late again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.keys import key_group_range
from flinkpy.operators.columnar.tables_by_group import key_of_group
from flinkpy.operators.context import TaskInfo
from flinkpy.relational.state.rows_by_group import groups_of_rows

# a key of each key group -> the watermark up to which its rows were processed, and its rows, in the
# form in which the operator saves them
Saved: TypeAlias = "dict[int, tuple[int, Any]]"


class GroupTimes:
    """The watermark of a subtask, and of those of its key groups that were further before a
    restore."""

    def __init__(self, task: TaskInfo) -> None:
        self._task = task
        self._ahead: Any = None  # by key group
        self._furthest = MIN_TIMESTAMP
        self.watermark = MIN_TIMESTAMP

    def advance(self, watermark: int) -> None:
        """A watermark has come."""
        self.watermark = max(watermark, self.watermark)
        if self.watermark >= self._furthest:
            self._ahead = None

    def of(self, data: pa.RecordBatch, keys: Sequence[int]) -> Any:
        """How far time has come for these rows: a number, or one for each."""
        if self._ahead is None:
            return self.watermark
        groups = groups_of_rows(data, keys, self._task.max_parallelism)
        return np.maximum(self._ahead[groups], self.watermark)

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(self, rows: Callable[[Turns], Mapping[int, Any]]) -> Callable[[Turns], Saved]:
        """What gives the rows of each key group, with how far it has come."""
        task, watermark, ahead = self._task, self.watermark, self._ahead

        def saved(turns: Turns) -> Saved:
            found = {}
            by_group = rows(turns)
            owned = key_group_range(task.subtask_index, task.max_parallelism, task.parallelism)
            for group in owned:
                until = watermark if ahead is None else max(watermark, int(ahead[group]))
                data = by_group.get(group, b"")
                if data or until > MIN_TIMESTAMP:
                    found[key_of_group(group, task.max_parallelism)] = until, data
            return found

        return saved

    def restore(self, saved: Mapping[int, tuple[int, Any]]) -> list[Any]:
        """Takes back what ``freeze`` has given; gives the rows."""
        ahead = np.full(self._task.max_parallelism, MIN_TIMESTAMP, np.int64)
        for group in range(self._task.max_parallelism):
            found = saved.get(key_of_group(group, self._task.max_parallelism))
            if found is not None:
                ahead[group] = found[0]
        self._furthest = int(ahead.max())
        if self._furthest > MIN_TIMESTAMP:
            self._ahead = ahead
        return [data for _, data in saved.values() if data]
