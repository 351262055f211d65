"""What the operators of SESSION share: they take rows into open sessions, in memory or beyond it on
disk, and give results of those that end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP, Batch
from flinkpy.operators.base import OneInputOperator, Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.tables_by_group import from_bytes
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.relational_operator import empty_batch, pieces, with_schema
from flinkpy.relational.state.group_times import GroupTimes, Saved
from flinkpy.relational.state.rows_by_group import rows_by_group
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.sessions.open_sessions import OpenSessions, Tables
from flinkpy.relational.windows.sessions.sessions_on_disk import SessionsOnDisk
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.windows_in_time import WindowsInTime
from flinkpy.state.snapshots.arrow_streams import to_bytes


class KeepsSessions(WindowsInTime, OneInputOperator):
    """``input.keys`` are the columns that the plan partitions by. Without any there is one key,
    whose sessions are in memory."""

    state: ClassVar[str]  # its name
    _disk: SessionsOnDisk | None

    def __init__(self, input: WindowedInput, clock: WallClock, schema: pa.Schema) -> None:
        self.input = input
        self.schema = schema
        super().__init__(clock, is_processing=input.window.is_processing)

    @abstractmethod
    def new_sessions(self) -> OpenSessions[Any]:
        """Of which the operator works; none is open."""

    @abstractmethod
    def results(self, ended: Any) -> pa.RecordBatch:
        """What goes out of sessions that have ended."""

    @abstractmethod
    def saved_tables(self, tables: list[bytes]) -> Any:
        """The form in which the tables of a key group are saved."""

    @abstractmethod
    def restored_tables(self, saved: Any) -> list[bytes]:
        """The tables in this form."""

    def check_restored(self, schema: pa.Schema) -> None:
        """Refuses state that was saved by an operator which gave it another meaning."""

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.schema

    # -- state -------------------------------------------------------------------------------------

    def open(self) -> None:
        task, names = self.context.task, self.input.schema.names
        self._keys = [names.index(each) for each in self.input.keys]
        self._sessions = self.new_sessions()
        self._group_times = GroupTimes(task)
        saved = self.backend.register_region(self.state, self._frozen)
        # keys may come from several subtasks: time goes on from where the last of them was
        self._now = min((until for until, _ in saved.values()), default=MIN_TIMESTAMP)
        for each in self._group_times.restore(saved):
            self._restore([from_bytes(table) for table in self.restored_tables(each)])
        self._disk = None
        if self._keys:
            self._disk = SessionsOnDisk(
                self._sessions, self.backend, self.state, task.max_parallelism
            )
            for schema in self._disk.schemas_saved():
                self.check_restored(schema)
            self._disk.restore()
        super().open()

    def _restore(self, tables: Tables) -> None:
        self.check_restored(tables[0].schema)
        self._sessions.put(
            [with_schema(table, schema) for table, schema in zip(tables, self._sessions.schemas)]
        )

    def _frozen(self) -> Callable[[Turns], Saved]:
        tables, schemas, keys = self._sessions.tables, self._sessions.schemas, self._sessions.keys
        nothing = [to_bytes(empty_batch(each)) for each in schemas]
        max_parallelism = self.context.task.max_parallelism

        def by_group(turns: Turns) -> Mapping[int, Any]:
            found: dict[int, list[bytes]] = {}
            for at, held in enumerate(tables):
                parts = rows_by_group(held, schemas[at], keys[at], max_parallelism, turns)
                for group, part in parts.items():
                    found.setdefault(group, nothing.copy())[at] = part
            return {group: self.saved_tables(each) for group, each in found.items()}

        return self._group_times.freeze(by_group)

    @property
    def now(self) -> int:
        return self._now

    @property
    def next_moment(self) -> int | None:
        holders = (self._sessions, self._disk)
        moments = [each.next_moment for each in holders if each is not None]
        return min((each for each in moments if each is not None), default=None)

    def entries_held(self) -> int:
        return self._sessions.rows

    def bytes_held(self) -> int:
        return held_bytes(self._sessions) + (0 if self._disk is None else self._disk.nbytes)

    # -- rows --------------------------------------------------------------------------------------

    def prepared(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as sessions take them."""
        return data

    def process_batch(self, batch: Batch) -> None:
        data = columns(batch, self.context).data
        with explained(data, self.context):
            data = self.prepared(with_schema(data, self.input.schema))
            if self._disk is not None:
                self._disk.bring_back([data.column(at) for at in self._keys])
            moments = self.moments_of_rows(data)
            now = self._group_times.of(data, self._keys)
            self.drop_late(self._sessions.add(data, moments, now))
            if self._disk is not None:
                self._disk.relieve(data.num_rows)
        self.set_alarm()

    def moments_of_rows(self, data: pa.RecordBatch) -> Any:
        """Where each of these rows lies in time."""
        return self.moments(self.input.window, data)

    def advance(self, until: int) -> Work:
        self._now = until
        self._group_times.advance(until)
        with explained(None, self.context):
            for ended in self._ended(until):
                for each in pieces(self.results(ended)):
                    self.output.emit(each)
                    yield

    def _ended(self, until: int) -> Iterator[Any]:
        """The sessions that end until then: those in memory, and then those on disk."""
        yield from self._sessions.ended(until)
        if self._disk is None:
            return
        for sessions in self._disk.due(until):
            yield from sessions.ended(until)
            if sessions.rows:  # others of their keys
                held = sessions.rows
                self._sessions.put(sessions.taken()[0])
                self._disk.relieve(held)
