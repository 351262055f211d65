"""WindowAggregate over SESSION: the aggregates of each open session, merged as sessions grow
together, go out when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

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
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.relational_operator import one_record_batch, pieces, with_schema
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.meanings import check_meaning, meaning_in, meaning_of
from flinkpy.relational.windows.sessions.session_parts import SessionParts, SessionResults
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import with_times
from flinkpy.relational.windows.windows_in_time import WindowsInTime
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.state.snapshots.arrow_streams import to_bytes

PARTS = "_parts of sessions"  # the name of the state
# a key of each key group -> how far time was, and its rows of each table
Saved: TypeAlias = "dict[int, tuple[int, list[bytes]]]"


class SessionAggregatesOperator(WindowsInTime, OneInputOperator):
    """For each session the key's columns, the calls, and of the window what ``properties`` names.
    ``input.keys`` are the columns that the plan partitions by."""

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
        self.input = input
        self.schema = schema
        self.meaning = meaning_of(calls, input.keys, input.window, input.schema.names)
        super().__init__(clock, is_processing=input.window.is_processing)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.schema

    def open(self) -> None:
        self._functions = OpenedCalls(self.calls, self.context)
        names, width = self.input.schema.names, len(self.input.keys)
        self._sessions = SessionParts(
            self.input.window.size,
            [names.index(each) for each in self.input.keys],
            self.calls,
            self.input.schema,
            [field.type for field in self.schema][width : width + len(self.calls)],
            self.meaning,
        )
        saved = self.backend.register_region(PARTS, self._frozen)
        for _, tables in saved.values():
            batches = [from_bytes(each) for each in tables]
            check_meaning(self.context.name, meaning_in(batches[0].schema), self.meaning)
            self._sessions.put(batches)
        # keys may come from several subtasks: time goes on from where the last of them was
        self._sessions.now = min((until for until, _ in saved.values()), default=MIN_TIMESTAMP)
        super().open()

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    @property
    def now(self) -> int:
        return self._sessions.now

    @property
    def next_moment(self) -> int | None:
        return self._sessions.next_moment

    def entries_held(self) -> int:
        return self._sessions.rows

    def _frozen(self) -> Callable[[Turns], Saved]:
        tables, now = self._sessions.tables, self._sessions.now
        schemas, keys = self._sessions.groups.schemas, self._sessions.groups.keys
        max_parallelism = self.context.task.max_parallelism

        def saved(turns: Turns) -> Saved:
            if not tables[0]:
                return {}
            found: Saved = {}
            for number, (held, schema) in enumerate(zip(tables, schemas)):
                data = one_record_batch(held, schema)
                if keys:
                    parts = by_group(data, group_numbers(data, keys, max_parallelism))
                else:
                    parts = iter([(key_group(None, max_parallelism), data)])
                for group, part in parts:
                    key = key_of_group(group, max_parallelism)
                    nothing = [to_bytes(each.empty_table()) for each in schemas]
                    found.setdefault(key, (now, nothing))[1][number] = to_bytes(part)
                    turns.give_way()
            return found

        return saved

    def process_batch(self, batch: Batch) -> None:
        data = columns(batch, self.context).data
        with explained(data, self.context):
            data = with_schema(data, self.input.schema)
            self.drop_late(self._sessions.add(data, self.moments(self.input.window, data)))
        self.set_alarm()

    def advance(self, until: int) -> Work:
        with explained(None, self.context):
            ended = self._sessions.ended(until)
            if ended is not None:
                for each in pieces(self._results(ended)):
                    self.output.emit(each)
                    yield

    def _results(self, ended: SessionResults) -> pa.RecordBatch:
        times = {
            "window_start": ended.starts,
            "window_end": ended.ends,
            "window_time": self.times_of_windows(ended.ends),
        }
        return with_times(ended.columns, self.properties, times, self.schema)
