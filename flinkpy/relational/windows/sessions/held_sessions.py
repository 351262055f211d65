"""WindowAggregate over SESSION with calls that need the rows: they are held until their session has
ended, and then grouped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.windows.held_aggregates import results_of_groups
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.sessions.rows_of_sessions import RowsOfSessionsOperator
from flinkpy.relational.windows.sessions.session_rows import EndedSessions
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import with_times
from flinkpy.sql.rex.rex_nodes import AggregateCall

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class HeldSessionsOperator(RowsOfSessionsOperator):
    """For each session the key's columns, the calls, and of the window what ``properties``
    names."""

    results_of = staticmethod(results_of_groups)

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        properties: Sequence[str],
        input: WindowedInput,
        clock: WallClock,
        schema: pa.Schema,
    ) -> None:
        super().__init__(input, clock, schema)
        self.calls = tuple(calls)
        self.properties = tuple(properties)

    def open(self) -> None:
        self._functions = OpenedCalls(self.calls, self.context)
        super().open()

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def results(self, ended: EndedSessions) -> pa.RecordBatch:
        numbers, groups = self.groups_of(ended)
        starts, ends, *columns = numbers.key_columns()
        at = len(columns)
        kinds = [field.type for field in self.schema][at : at + len(self.calls)]
        data = ended.data.select(range(len(self.input.schema)))
        columns += self.results_of(self.calls, kinds, data, groups, len(numbers))
        times = self.times(starts.to_numpy(), ends.to_numpy())
        return with_times(columns, self.properties, times, self.schema)

    def groups_of(self, ended: EndedSessions) -> tuple[GroupNumbers, npt.NDArray[np.int64]]:
        """The groups by start, end and key, and to which each row belongs."""
        names = self.input.schema.names
        keys = [ended.data.column(names.index(each)) for each in self.input.keys]
        places = [pa.array(ended.starts), pa.array(ended.ends), *keys]
        numbers = GroupNumbers(range(len(places)))
        rows = pa.RecordBatch.from_arrays(places, names=[str(at) for at in range(len(places))])
        return numbers, numbers.of(rows)
