"""WindowAggregate over SESSION: the aggregates of each open session, merged as sessions grow
together, go out when it ends."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.meanings import check_meaning, meaning_in, meaning_of
from flinkpy.relational.windows.sessions.keeps_sessions import KeepsSessions
from flinkpy.relational.windows.sessions.session_parts import SessionParts, SessionResults
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import with_times
from flinkpy.sql.rex.rex_nodes import AggregateCall


class SessionAggregatesOperator(KeepsSessions):
    """For each session the key's columns, the calls, and of the window what ``properties``
    names."""

    state = "_parts of sessions"

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        properties: Sequence[str],
        input: WindowedInput,
        clock: WallClock,
        schema: pa.Schema,
    ) -> None:
        self.calls = tuple(calls)
        self.properties = tuple(properties)
        self.meaning = meaning_of(calls, input.keys, input.window, input.schema.names)
        super().__init__(input, clock, schema)

    def open(self) -> None:
        self._functions = OpenedCalls(self.calls, self.context)
        super().open()

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def new_sessions(self) -> SessionParts:
        width = len(self.input.keys)
        return SessionParts(
            self.input.window.size,
            self._keys,
            self.calls,
            self.input.schema,
            [field.type for field in self.schema][width : width + len(self.calls)],
            self.meaning,
        )

    def saved_tables(self, tables: list[bytes]) -> list[bytes]:
        return tables

    def restored_tables(self, saved: list[bytes]) -> list[bytes]:
        return saved

    def check_restored(self, schema: pa.Schema) -> None:
        check_meaning(self.context.name, meaning_in(schema), self.meaning)

    def results(self, ended: SessionResults) -> pa.RecordBatch:
        times = {
            "window_start": ended.starts,
            "window_end": ended.ends,
            "window_time": self.times_of_windows(ended.ends),
        }
        return with_times(ended.columns, self.properties, times, self.schema)
