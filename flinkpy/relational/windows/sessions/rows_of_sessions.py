"""SESSION: rows wait until their session has ended, and then go out with its window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP, Batch
from flinkpy.core.keys import key_group
from flinkpy.operators.base import OneInputOperator, Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.tables_by_group import (
    by_group,
    from_bytes,
    group_numbers,
    key_of_group,
)
from flinkpy.relational.relational_operator import one_record_batch, pieces, with_schema
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.sessions.session_rows import EndedSessions, SessionRows
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import with_times
from flinkpy.relational.windows.windows_in_time import WindowsInTime
from flinkpy.state.snapshots.arrow_streams import to_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

WORDS = ("window_start", "window_end", "window_time")
SESSIONS = "_rows of sessions"  # the name of the state
# a key of each key group -> how far time was, and the rows
Saved: TypeAlias = "dict[int, tuple[int, bytes]]"


class RowsOfSessionsOperator(WindowsInTime, OneInputOperator):
    """Gives each row with window_start, window_end and window_time behind it, when the session
    ends. ``input.keys`` are the columns that the plan partitions by."""

    def __init__(self, input: WindowedInput, clock: WallClock, schema: pa.Schema) -> None:
        self.input = input
        self.schema = schema
        super().__init__(clock, is_processing=input.window.is_processing)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.schema

    def open(self) -> None:
        input = self.input
        self._sessions = SessionRows(
            input.window.size, input.window.partition, self._held_schema(), self._times
        )
        saved = self.backend.register_region(SESSIONS, self._frozen)
        # keys may come from several subtasks: time goes on from where the last of them was
        now = min((until for until, _ in saved.values()), default=MIN_TIMESTAMP)
        for _, data in saved.values():
            self._sessions.add(from_bytes(data))
        self._sessions.now = now
        super().open()

    def _held_schema(self) -> pa.Schema:
        """That of the input; in processing time there stands behind each row when it came."""
        if not self.is_processing:
            return self.input.schema
        return self.input.schema.append(pa.field("came at", pa.int64()))

    def _times(self, data: pa.RecordBatch) -> npt.NDArray[Any]:
        if self.is_processing:
            came: npt.NDArray[Any] = data.columns[-1].to_numpy()
            return came
        return self.moments(self.input.window, data)

    @property
    def now(self) -> int:
        return self._sessions.now

    @property
    def next_moment(self) -> int | None:
        return self._sessions.next_moment

    def entries_held(self) -> int:
        return self._sessions.rows

    def _frozen(self) -> Callable[[Turns], Saved]:
        parts, now = self._sessions.parts.copy(), self._sessions.now
        keys, max_parallelism = self.input.keys, self.context.task.max_parallelism
        schema = self._held_schema()

        def saved(turns: Turns) -> Saved:
            if not parts:
                return {}
            data = one_record_batch(parts, schema)
            if not keys:
                group = key_group(None, max_parallelism)
                return {key_of_group(group, max_parallelism): (now, to_bytes(data))}
            found: Saved = {}
            for group, part in by_group(data, group_numbers(data, keys, max_parallelism)):
                found[key_of_group(group, max_parallelism)] = now, to_bytes(part)
                turns.give_way()
            return found

        return saved

    def process_batch(self, batch: Batch) -> None:
        data = columns(batch, self.context).data
        with explained(data, self.context):
            data = with_schema(data, self.input.schema)
            if self.is_processing:
                came = pa.array(self.moments(self.input.window, data))
                arrays = [*data.columns, came]
                data = pa.RecordBatch.from_arrays(arrays, schema=self._held_schema())
            self.drop_late(self._sessions.add(data))
        self.set_alarm()

    def advance(self, until: int) -> Work:
        with explained(None, self.context):
            for ended in self._sessions.ended(until):
                for each in pieces(self.results(ended)):
                    self.output.emit(each)
                    yield

    def results(self, ended: EndedSessions) -> pa.RecordBatch:
        """What goes out of the rows of sessions that have ended."""
        columns = ended.data.columns[: len(self.input.schema)]
        return with_times(columns, WORDS, self.times(ended.starts, ended.ends), self.schema)

    def times(self, starts: Any, ends: Any) -> dict[str, Any]:
        """The columns of windows that begin and end there."""
        return dict(zip(WORDS, (starts, ends, self.times_of_windows(ends))))
