"""Every source passes the connector kit."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkpy.connectors.files.reading.avro_source import AvroSource
from flinkpy.connectors.files.reading.column_files import CsvSource, JsonLinesSource, ParquetSource
from flinkpy.connectors.files.reading.text_files import TextFileSource
from flinkpy.connectors.files.reading.watched_files import WatchedTextFileSource
from flinkpy.connectors.memory.arrow_tables import ArrowSource
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.memory.ranges import CollectionSource, NumberSequenceSource
from flinkpy.connectors.sockets.socket_text import SocketTextSource
from flinkpy.connectors.source_api.hybrid import HybridSource
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.connectors.source_api.source import Source
from flinkpy.testing.connectors import SourceTests


class TestSequence(SourceTests):
    def bounded_source(self) -> Source[Any]:
        return NumberSequenceSource(0, self.laid - 1)


class TestCollection(SourceTests):
    def bounded_source(self) -> Source[Any]:
        return CollectionSource(range(self.laid))


class TestGenerator(SourceTests):
    many = 3_000

    def bounded_source(self) -> Source[Any]:
        return DataGeneratorSource(int, self.laid)

    def unbounded_source(self) -> Source[Any]:
        return DataGeneratorSource(int, rate=1000.0)


class Columns(SourceTests):
    """What columns have in common: a record is a row with one field."""

    def number_of(self, record: Any) -> int:
        return int(record[0])


class TestArrow(Columns):
    def bounded_source(self) -> Source[Any]:
        return ArrowSource(pa.table({"n": range(self.laid)}), 7)


class TestText(SourceTests):
    splits = 3

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        with (self.folder / f"{split}.txt").open("a") as file:
            file.writelines(f"{number}\n" for number in numbers)

    def bounded_source(self) -> Source[Any]:
        return TextFileSource(self.folder, split_bytes=64)


class TestWatchedFolder(TestText):
    discovers = True
    side_by_side = False
    splits = 2
    watched: ClassVar[int] = 0

    def bounded_source(self) -> Source[Any]:
        return super().bounded_source()

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        """A file appears as a whole, and does not grow."""
        type(self).watched += 1
        hidden = self.folder / f".{self.watched}"
        hidden.write_text("".join(f"{number}\n" for number in numbers))
        hidden.rename(self.folder / f"{split}-{self.watched}.txt")

    def unbounded_source(self) -> Source[Any]:
        return WatchedTextFileSource(self.folder, interval_ms=20)


class TestParquet(Columns):
    splits = 2

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        pq.write_table(
            pa.table({"n": list(numbers)}), self.folder / f"{split}.parquet", row_group_size=20
        )

    def bounded_source(self) -> Source[Any]:
        return ParquetSource(self.folder, batch_rows=9)


class TestAvro(Columns):
    splits = 2

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        with (self.folder / f"{split}.avro").open("wb") as file:
            schema = {
                "type": "record",
                "name": "numbers",
                "fields": [{"name": "n", "type": "long"}],
            }
            fastavro.writer(file, schema, [{"n": number} for number in numbers], sync_interval=60)

    def bounded_source(self) -> Source[Any]:
        return AvroSource(self.folder, batch_rows=9)


class TestCsv(Columns):
    splits = 2

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        (self.folder / f"{split}.csv").write_text(
            "n\n" + "".join(f"{number}\n" for number in numbers)
        )

    def bounded_source(self) -> Source[Any]:
        return CsvSource(self.folder, batch_rows=9)


class TestJsonLines(Columns):
    splits = 2

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        (self.folder / f"{split}.jsonl").write_text(
            "".join(json.dumps({"n": number}) + "\n" for number in numbers)
        )

    def bounded_source(self) -> Source[Any]:
        return JsonLinesSource(self.folder, split_bytes=100, batch_rows=9)


class TestHybrid(SourceTests):
    def bounded_source(self) -> Source[Any]:
        return HybridSource(
            [
                NumberSequenceSource(0, self.laid // 3),
                NumberSequenceSource(self.laid // 3 + 1, self.laid - 1),
            ]
        )


# -- written in Python -----------------------------------------------------------------------------


class Countdown(PythonSource):
    """That of the page of connectors."""

    def splits(self, parallelism: int) -> list[int]:
        return [3, 2]

    def read(self, split: int, position: int) -> Iterator[tuple[int, int]]:
        for number in range(split - position, 0, -1):
            yield split, number


class TestCountdown(SourceTests):
    records = 5
    ordered = False

    def bounded_source(self) -> Source[Any]:
        return Countdown()

    def number_of(self, record: Any) -> int:
        split, number = record
        return int(number - 1 if split == 3 else number + 2)

    def test_throughput(self) -> None:
        """Five records take no time."""

    def test_it_reads_ahead_a_bounded_amount(self) -> None:
        """There are five."""

    def test_a_job_that_fails_reads_on_from_its_checkpoint(self) -> None:
        """Five are too few."""


class Shards:
    """An outside system in this process: shards that grow, and can be paused and broken."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.shards: dict[str, list[int]] = {}
        self.paused = False
        self.error: str | None = None
        self.acknowledged: dict[str, int] = {}
        self.readers: dict[str, int] = {}

    def append(self, shard: str, numbers: Sequence[int]) -> None:
        with self.changed:
            self.shards.setdefault(shard, []).extend(numbers)
            self.changed.notify_all()

    def change(self, **values: Any) -> None:
        with self.changed:
            vars(self).update(values)
            self.changed.notify_all()

    def begin(self, shard: str) -> int:
        """A reader begins; readers of earlier attempts end."""
        with self.changed:
            self.readers[shard] = self.readers.get(shard, 0) + 1
            self.changed.notify_all()
            return self.readers[shard]

    def interrupt(self, shard: str) -> None:
        self.begin(shard)

    def after(self, shard: str, position: int, reader: int, *, waits: bool) -> list[int] | None:
        """What stands behind the position; None if there is nothing, and no waiting for it. Raises
        OSError where the reader was interrupted."""
        with self.changed:
            self.changed.wait_for(
                lambda: (
                    self.readers[shard] != reader
                    or self.error is not None
                    or (not self.paused and (not waits or len(self.shards[shard]) > position))
                )
            )
            if self.readers[shard] != reader:
                raise OSError("interrupted")
            if self.error is not None:
                raise OSError(self.error)
            return self.shards[shard][position:] or None


HERE: dict[str, Shards] = {}


class ShardSource(PythonSource):
    """Reads shards that have an end, or none; in rows or in columns."""

    blocking = True
    positioned = True
    has_timestamps = True

    def __init__(
        self, name: str, *, bounded: bool, columnar: bool = False, discovers: bool = False
    ) -> None:
        self.name = name
        self.bounded = bounded
        self.columnar = columnar
        if discovers:
            self.discovery_interval_s = 0.02

    def splits(self, parallelism: int) -> list[str]:
        return sorted(HERE[self.name].shards)

    def read(self, split: str, position: int | None) -> Iterator[Any]:
        shards, at = HERE[self.name], position or 0
        reader = shards.begin(split)
        while (numbers := shards.after(split, at, reader, waits=not self.bounded)) is not None:
            if self.columnar:
                part = numbers[:5]
                at += len(part)
                yield pa.table({"n": part}), [1000 + number for number in part], at
            else:
                for number in numbers:
                    at += 1
                    yield number, 1000 + number, at

    def interrupt(self, split: str) -> None:
        HERE[self.name].interrupt(split)

    def acknowledge(self, split: str, position: int | None) -> None:
        HERE[self.name].acknowledged[split] = position or 0


class ShardTests(SourceTests):
    splits = 2
    says = "the shards are gone"
    columnar = False

    def open(self) -> None:
        self.name = str(self.folder)
        self.shards = HERE[self.name] = Shards()

    def close(self) -> None:
        HERE.pop(self.name, None)
        self.shards.change(paused=False, error="the shards are closed")  # whoever still waits

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        self.shards.append(f"shard {split}", numbers)

    def bounded_source(self) -> Source[Any]:
        return ShardSource(self.name, bounded=True, columnar=self.columnar)

    def unbounded_source(self) -> Source[Any]:
        return ShardSource(
            self.name, bounded=False, columnar=self.columnar, discovers=self.discovers
        )

    def timestamp_of(self, number: int) -> int:
        return 1000 + number

    def acknowledged(self) -> set[int]:
        return {
            number
            for shard, position in self.shards.acknowledged.items()
            for number in self.shards.shards[shard][:position]
        }

    def pause(self) -> None:
        self.shards.change(paused=True)

    def go_on(self) -> None:
        self.shards.change(paused=False)

    def fail(self) -> None:
        self.shards.change(error="the shards are gone for a while")

    def mend(self) -> None:
        self.shards.change(error=None)


class TestShards(ShardTests):
    pass


@pytest.mark.wide
class TestShardsThatBecomeMore(ShardTests):
    discovers = True


@pytest.mark.wide
class TestShardsOfColumns(ShardTests):
    columnar = True

    def number_of(self, record: Any) -> int:
        return int(record[0])


# -- a server that cannot repeat itself ------------------------------------------------------------


class Lines:
    """Gives its lines to whoever connects first, and stays connected."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("localhost", 0))
        self.port = self._listening.getsockname()[1]
        self.waiting: deque[bytes] = deque()
        self.changed = threading.Condition()
        self.closed = False
        threading.Thread(target=self._serve, name="outside", daemon=True).start()

    def _serve(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        with connection:
            while True:
                with self.changed:
                    self.changed.wait_for(lambda: self.waiting or self.closed)
                    if self.closed:
                        return
                    line = self.waiting.popleft()
                try:
                    connection.sendall(line)
                except OSError:
                    return

    def say(self, numbers: Sequence[int]) -> None:
        with self.changed:
            self.waiting.append("".join(f"{number}\n" for number in numbers).encode())
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        try:
            self._listening.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listening.close()


class TestSocket(SourceTests):
    replays = False
    many = 5_000

    def open(self) -> None:
        self.server = Lines()

    def close(self) -> None:
        self.server.close()

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        self.server.say(numbers)

    def unbounded_source(self) -> Source[Any]:
        return SocketTextSource("localhost", self.server.port)
