"""Every sink passes the connector kit."""

from __future__ import annotations

import csv
import io
import json
import os
import socket
import sys
import threading
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkpy.connectors.collect.collect_server import CollectServer
from flinkpy.connectors.files.writing.compaction import FileCompactor, FileCompactStrategy
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.object_sink import ObjectSink
from flinkpy.connectors.print_sink import PrintSink
from flinkpy.connectors.sinks import (
    Committer,
    OperatorContext,
    Sink,
    SinkWriter,
    SocketSink,
    ThreadedSinkWriter,
    rows_of,
)
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import FlinkpyError
from flinkpy.testing.connectors import ManifestTable, ManifestTableSink, SinkTests

EVERY_SECOND = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()


class Files(SinkTests):
    """What file sinks have in common."""

    format = "text"

    def open(self) -> None:
        self.out = self.folder / uuid.uuid4().hex

    def sink(self) -> Sink:
        return FileSink(self.out, self.format)

    def read(self) -> Iterable[Any]:
        for file in sorted(self.out.rglob("*")) if self.out.exists() else ():
            if file.is_file() and not file.name.startswith("."):
                yield from self.records_of(file)

    def records_of(self, file: Path) -> Iterable[Any]:
        return file.read_text().split()


class TestTextFiles(Files):
    pass


@pytest.mark.wide
class TestJointTextFiles(Files):
    late_checkpoints = 1

    def sink(self) -> Sink:
        return FileSink(self.out, compact=(EVERY_SECOND, FileCompactor.concat_file_compactor()))


@pytest.mark.wide
class TestCsvFiles(Files):
    format = "csv"

    def record(self, number: int) -> Any:
        return number, f"text {number}"

    def records_of(self, file: Path) -> Iterable[Any]:
        with file.open(newline="") as text:
            return [row[0] for row in list(csv.reader(text)) if row[0].isdigit()]


@pytest.mark.wide
class TestJsonFiles(Files):
    format = "json"

    def record(self, number: int) -> Any:
        return {"n": number}

    def records_of(self, file: Path) -> Iterable[Any]:
        return [json.loads(line)["n"] for line in file.read_text().splitlines()]


class TestParquetFiles(Files):
    format = "parquet"

    def batch_of(self, numbers: list[int]) -> Batch:
        return ColumnBatch(pa.RecordBatch.from_pydict({"n": numbers}))

    def records_of(self, file: Path) -> Iterable[Any]:
        return [number for column in pq.read_table(file).columns for number in column.to_pylist()]


# -- that of the page of connectors ----------------------------------------------------------------


class Documents(Sink):
    """A JSON document for the records of each checkpoint."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return DocumentWriter(self.folder)

    def create_committer(self, context: OperatorContext) -> Committer:
        return Publisher()


class DocumentWriter(SinkWriter):
    def __init__(self, folder: str) -> None:
        self.folder, self.records = folder, list[Any]()

    def write_batch(self, batch: Batch) -> None:
        self.records += rows_of(batch)

    def prepare_commit(self) -> Sequence[Any]:
        if not self.records:
            return []
        name = f"{uuid.uuid4().hex}.json"
        hidden = os.path.join(self.folder, f".{name}")
        with open(hidden, "w") as file:
            json.dump(self.records, file)
        self.records = []
        return [(hidden, os.path.join(self.folder, name))]


class Publisher(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        for hidden, name in committables:
            if os.path.exists(hidden):
                os.rename(hidden, name)


class TestDocuments(Files):
    def open(self) -> None:
        super().open()
        self.out.mkdir()

    def sink(self) -> Sink:
        return Documents(str(self.out))

    def records_of(self, file: Path) -> Iterable[Any]:
        found: list[int] = json.loads(file.read_text())
        return found


class TestManifestTable(SinkTests):
    """A sink with a global committer."""

    says = "the catalog is away"

    def open(self) -> None:
        self.place = self.folder / uuid.uuid4().hex
        self.table = ManifestTable(self.place)
        self.table.create()

    def sink(self) -> Sink:
        return ManifestTableSink(self.place)

    def read(self) -> Iterable[Any]:
        return self.table.rows()

    def fail(self) -> None:
        self.table.refuse_commits("the catalog is away")

    def mend(self) -> None:
        self.table.allow_commits()


class TestCollect(SinkTests):
    """The program that iterates over results is the outside system."""

    seen_within_s = 10.0

    def open(self) -> None:
        self.given: list[int] = []
        self.server = CollectServer()
        threading.Thread(
            target=self._iterate, args=(self.server, self.given), name="outside", daemon=True
        ).start()

    def _iterate(self, server: CollectServer, given: list[int]) -> None:
        try:
            for record in server:
                given.append(record)  # noqa: PERF402  # each is seen when it comes
        except FlinkpyError:
            """The server was closed."""

    def close(self) -> None:
        self.server.close()

    def sink(self) -> Sink:
        return self.server.sink()

    def read(self) -> Iterable[Any]:
        return list(self.given)


# -- at least once ---------------------------------------------------------------------------------


class Appended:
    """An object with ``write``."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, value: Any) -> None:
        with open(self.path, "a") as file:
            file.write(f"{value}\n")


class TestObject(SinkTests):
    exactly_once = False
    many = 2000

    def open(self) -> None:
        self.path = self.folder / uuid.uuid4().hex

    def sink(self) -> Sink:
        return ObjectSink(Appended(str(self.path)))

    def read(self) -> Iterable[Any]:
        return self.path.read_text().split() if self.path.exists() else ()


class TestPrint(SinkTests):
    exactly_once = False

    def open(self) -> None:
        self.before, self.printed = sys.stdout, io.StringIO()

    def close(self) -> None:
        sys.stdout = self.before

    def sink(self) -> Sink:
        sys.stdout = self.printed  # only here: pytest has another one in the test than before it
        return PrintSink(formatter=as_record)

    def read(self) -> Iterable[Any]:
        return [
            line.split()[-1]
            for line in self.printed.getvalue().splitlines()
            if " record " in f" {line}"
        ]


def as_record(value: Any) -> str:
    return f"record {value}"


class LineServer:
    """Reads lines from whoever connects; it can pause, and hang up."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.lines: list[int] = []
        self.paused = self.broken = self.closed = False
        self.connections: list[socket.socket] = []
        self._listening = socket.create_server(("localhost", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, name="outside", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with self.changed:
                if self.broken or self.closed:
                    connection.close()
                self.connections.append(connection)
            threading.Thread(
                target=self._read, args=(connection,), name="outside", daemon=True
            ).start()

    def _read(self, connection: socket.socket) -> None:
        rest = b""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: not self.paused)
            try:
                data = connection.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            with self.changed:
                self.lines += [int(line.split()[0]) for line in lines]
                self.changed.notify_all()

    def change(self, *, paused: bool = False, broken: bool = False) -> None:
        with self.changed:
            self.paused, self.broken = paused, broken
            self.changed.notify_all()
        for connection in self.connections if broken else ():
            connection.close()

    def close(self) -> None:
        self.change()
        with self.changed:
            self.closed = True
        try:
            self._listening.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listening.close()
        for connection in self.connections:
            connection.close()


class TestSocket(SinkTests):
    exactly_once = False
    seen_within_s = 5.0
    says = "the server at localhost"

    def open(self) -> None:
        self.server = LineServer()

    def close(self) -> None:
        self.server.close()

    def sink(self) -> Sink:
        return SocketSink("localhost", self.server.port)

    def record(self, number: int) -> Any:
        """Long enough to fill what lies between writer and server."""
        return f"{number} {'x' * 2000}"

    def number_of(self, record: Any) -> int:
        return int(record)

    def read(self) -> Iterable[Any]:
        with self.server.changed:
            return sorted(set(self.server.lines))

    def pause(self) -> None:
        self.server.change(paused=True)

    def go_on(self) -> None:
        self.server.change()

    def fail(self) -> None:
        self.server.change(broken=True)

    def mend(self) -> None:
        self.server.change()

    def test_a_job_goes_on_when_the_outside_system_works_again(self) -> None:
        """It does, but what lies in the network when the connection breaks is lost: the server
        tells nobody what it has read."""


# -- on a thread of its own ------------------------------------------------------------------------


class Shelf:
    """An outside system in this process, with transactions; it can pause and fail."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.prepared: dict[str, list[int]] = {}
        self.committed: dict[str, list[int]] = {}
        self.paused, self.error = False, ""
        self.interrupted: set[str] = set()

    def change(self, **values: Any) -> None:
        with self.changed:
            vars(self).update(values)
            self.changed.notify_all()

    def interrupt(self, writer: str) -> None:
        with self.changed:
            self.interrupted.add(writer)
            self.changed.notify_all()

    def answer(self, writer: str = "") -> None:
        """Waits while it is paused."""
        with self.changed:
            self.changed.wait_for(lambda: not self.paused or writer in self.interrupted)
            if self.error:
                raise OSError(self.error)


SHELVES: dict[str, Shelf] = {}


class ShelfSink(Sink):
    """Its writer waits for the outside system, and so has a thread of its own."""

    def __init__(self, name: str, on_thread: bool = True) -> None:
        self.name, self.on_thread = name, on_thread

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        writer = ShelfWriter(SHELVES[self.name])
        return ThreadedSinkWriter(writer, context) if self.on_thread else writer

    def create_committer(self, context: OperatorContext) -> Committer:
        return ShelfCommitter(SHELVES[self.name])


class ShelfWriter(SinkWriter):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.name = shelf, uuid.uuid4().hex
        self.transaction: str | None = None
        self.gathered: list[int] = []

    def write_batch(self, batch: Batch) -> None:
        self.gathered += rows_of(batch)
        if len(self.gathered) > 10:
            self.flush()

    def flush(self) -> None:
        self.shelf.answer(self.name)
        if self.gathered:
            self.transaction = self.transaction or uuid.uuid4().hex
            self.shelf.prepared.setdefault(self.transaction, []).extend(self.gathered)
            self.gathered = []

    def prepare_commit(self) -> Sequence[Any]:
        transaction, self.transaction = self.transaction, None
        return [transaction] if transaction is not None else []

    def interrupt(self) -> None:
        self.shelf.interrupt(self.name)


class ShelfCommitter(Committer):
    """What was committed is not prepared any more: the second time it does nothing."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def commit(self, committables: Sequence[Any]) -> None:
        self.shelf.answer()
        for transaction in committables:
            if transaction in self.shelf.prepared:
                self.shelf.committed[transaction] = self.shelf.prepared.pop(transaction)


class TestShelf(SinkTests):
    says = "the shelf is broken"
    most_held = 1000

    def open(self) -> None:
        self.name = uuid.uuid4().hex
        self.shelf = SHELVES[self.name] = Shelf()

    def close(self) -> None:
        SHELVES.pop(self.name, None)

    def sink(self) -> Sink:
        return ShelfSink(self.name)

    def read(self) -> Iterable[Any]:
        return [
            number for transaction in list(self.shelf.committed.values()) for number in transaction
        ]

    def pause(self) -> None:
        self.shelf.change(paused=True)

    def go_on(self) -> None:
        self.shelf.change(paused=False)

    def fail(self) -> None:
        self.shelf.change(error="the shelf is broken, and will be mended")

    def mend(self) -> None:
        self.shelf.change(error="")
