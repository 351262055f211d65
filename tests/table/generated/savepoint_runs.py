"""Runs a drawn query in two jobs: the first stops with a savepoint in the middle of its rows, and
the second goes on from there with another parallelism."""

from __future__ import annotations

import itertools
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.connectors.memory.ranges import PieceReader
from flinkpy.connectors.source_api.readers import UNTIL_WOKEN, NothingYet, SequentialReader
from flinkpy.connectors.source_api.source import ReaderContext, SourceReader
from flinkpy.core.elements import Batch
from flinkpy.core.errors import FlinkpyError
from flinkpy.table import TableEnvironment
from flinkpy.table.factories.changing_tables import ChangesSource
from flinkpy.testing.tables import clear_results, results
from tests.table.generated.drawn_queries import Case
from tests.table.generated.query_runs import (
    Rows,
    Way,
    declare_tables,
    environment_of,
    is_refusal,
    last_state,
)

RECOVERY = "execution.state-recovery.path"
PATIENCE_S = 30.0
_numbers = itertools.count(1)


class _Halfway:
    """The readers of a job that give a part of their rows, and then wait."""

    def __init__(self, random: Random) -> None:
        self._changed = threading.Condition()
        self._random = random
        self._reading, self._waiting = 0, 0

    def create_reader(self, source: ChangesSource, context: ReaderContext) -> SourceReader[Any]:
        return SequentialReader(context, lambda split: self._reader(source, context, split))

    def _reader(self, source: ChangesSource, context: ReaderContext, split: Any) -> PieceReader:
        reader = _HalfwayReader(split, source, context.wake_up)
        with self._changed:
            reader.until = self._random.randint(split.start, split.end)
            self._reading += 1
        reader.on_wait = self._waits
        return reader

    def _waits(self) -> None:
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()

    def wait(self) -> None:
        """Until each reader waits that has begun."""
        with self._changed:
            here = self._changed.wait_for(
                lambda: 0 < self._reading == self._waiting, timeout=PATIENCE_S
            )
        assert here, "the sources did not get so far"


class _HalfwayReader(PieceReader):
    until: int
    on_wait: Any

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        if self.snapshot().start < self.until:
            return super().next_batch(limit)
        on_wait, self.on_wait = self.on_wait, lambda: None
        on_wait()
        return UNTIL_WOKEN


@contextmanager
def _waiting_halfway(random: Random) -> Iterator[_Halfway]:
    halfway = _Halfway(random)

    def create_reader(self: ChangesSource, context: ReaderContext) -> SourceReader[Any]:
        return halfway.create_reader(self, context)

    with mock.patch.object(ChangesSource, "create_reader", create_reader):
        yield halfway


_SCANNED = re.compile(r"TableSourceScan\(table=\[\[[^\]]*?(\w+)\]")


def run_over_savepoint(case: Case, first: Way, second: Way, random: Random) -> Rows | None:
    """What is left of the changes that both jobs write; None if STREAMING cannot carry the query
    yet, or it reads no table that has rows."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            changes = _stopped(case, first, random, Path(folder))
            if changes is None:
                return None
            environment = environment_of(second)
            declare_tables(environment, case, second)
            environment.get_config().set(RECOVERY, str(changes.pop()))
            return last_state([*changes, *_written(environment, case)])
    finally:
        environment_of(second).execute_sql(f"RESET '{RECOVERY}'")
        clear_results()


def _stopped(case: Case, way: Way, random: Random, folder: Path) -> list[Any] | None:
    """The changes up to the savepoint, and its path."""
    environment = environment_of(way)
    declare_tables(environment, case, way)
    try:
        scanned = _SCANNED.findall(environment.explain_sql(case.flink))
    except FlinkpyError as error:
        if not is_refusal(error):
            raise
        return None
    if not any(case.rows[name] for name in scanned):
        return None
    sink = _declare_sink(environment, case)
    with _waiting_halfway(random) as halfway:
        running = environment.execute_sql(f"INSERT INTO {sink} {case.flink}")
        job = running.get_job_client()
        assert job is not None
        halfway.wait()
        savepoint = job.stop_with_savepoint(False, str(folder)).result()
        return [*results(sink), savepoint]


def _declare_sink(environment: TableEnvironment, case: Case) -> str:
    schema = environment.sql_query(case.flink).get_schema()
    name = f"kept_{next(_numbers)}"
    columns = ", ".join(f"k{at} {_declared(field.type)}" for at, field in enumerate(schema))
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ('connector' = 'values', "
        "'sink-insert-only' = 'false')"
    )
    return name


def _declared(type: LogicalType) -> str:
    """The type in a declaration: the mark of an event time is no word of SQL, and no column has the
    type of an empty text."""
    return str(type).replace(" *ROWTIME*", "").replace("CHAR(0)", "STRING")


def _written(environment: TableEnvironment, case: Case) -> list[Any]:
    sink = _declare_sink(environment, case)
    environment.execute_sql(f"INSERT INTO {sink} {case.flink}").wait(int(PATIENCE_S * 1000))
    return results(sink)
