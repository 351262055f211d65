"""SESSION: rows wait until their session has ended, and then go out with its window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, Watermark
from flinkpy.core.keys import key_group
from flinkpy.operators.base import BatchForm, OneInputOperator, Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.state_tables import (
    by_group,
    from_bytes,
    group_numbers,
    key_of_group,
    to_bytes,
)
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.relational.relational_operator import one_record_batch, pieces, with_schema
from flinkpy.relational.row_times import times_of
from flinkpy.relational.windows.held_windows import WindowedInput, moments_of
from flinkpy.relational.windows.session_rows import EndedSessions, SessionRows
from flinkpy.relational.windows.wall_clock import WallClock

SESSIONS = "_rows of sessions"  # the name of the state
# a key of each key group -> how far time was, and the rows
Saved: TypeAlias = "dict[int, tuple[int, bytes]]"


class RowsOfSessionsOperator(DropsLateRecords, KeyedStateOperator, OneInputOperator):
    """Gives each row with window_start, window_end and window_time behind it, when the session
    ends. ``input.keys`` are the columns that the plan partitions by."""

    batch_form = BatchForm.AT_END_OF_TIME
    parks = True

    def __init__(self, input: WindowedInput, clock: WallClock, schema: pa.Schema) -> None:
        self.input = input
        self.clock = clock
        self.schema = schema

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.schema

    def open(self) -> None:
        input = self.input
        self._sessions = SessionRows(
            input.window.size,
            input.window.partition,
            input.schema,
            lambda data: moments_of(input.window, self.clock, data),
        )
        saved = self.backend.register_region(SESSIONS, self._frozen)
        # keys may come from several subtasks: time goes on from where the last of them was
        now = min((until for until, _ in saved.values()), default=MIN_TIMESTAMP)
        for _, data in saved.values():
            self._sessions.add(from_bytes(data))
        self._sessions.now = now

    def entries_held(self) -> int:
        return self._sessions.rows

    def _frozen(self) -> Callable[[Turns], Saved]:
        parts, now = self._sessions.parts.copy(), self._sessions.now
        keys, max_parallelism = self.input.keys, self.context.task.max_parallelism

        def saved(turns: Turns) -> Saved:
            if not parts:
                return {}
            data = one_record_batch(parts, self.input.schema)
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
            self.drop_late(self._sessions.add(with_schema(data, self.input.schema)))

    def process_watermark(self, watermark: Watermark) -> Work:
        until = self.clock.passed(watermark.timestamp)
        if until > self._sessions.now:
            with explained(None, self.context):
                for ended in self._sessions.ended(until):
                    for each in pieces(self._with_windows(ended)):
                        self.output.emit(each)
                        yield
        super().process_watermark(watermark)

    def _with_windows(self, ended: EndedSessions) -> pa.RecordBatch:
        moments = (ended.starts, ended.ends, self.clock.instants(ended.ends - 1))
        kinds = [field.type for field in self.schema][ended.data.num_columns :]
        added = [times_of(each, kind) for each, kind in zip(moments, kinds)]
        return pa.RecordBatch.from_arrays([*ended.data.columns, *added], schema=self.schema)

    def __getstate__(self) -> dict[str, Any]:
        """Only the operator's arguments travel to the workers."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
