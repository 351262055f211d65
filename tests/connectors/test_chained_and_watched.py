"""Sources one behind the other, and files that go on appearing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import WatermarkStrategy
from flinkpy.connectors.files.reading.column_files import (
    AvroSource,
    CsvSource,
    JsonLinesSource,
    ParquetSource,
)
from flinkpy.connectors.files.reading.text_files import FileSplit
from flinkpy.connectors.files.reading.watched_files import (
    FileWatcher,
    WatchedFiles,
    WatchedTextFileSource,
)
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.memory.ranges import NumberSequenceSource
from flinkpy.connectors.source_api.hybrid import HybridSource
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.connectors.source_api.source import Boundedness
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tests.connectors.harness import World


@pytest.mark.parametrize("parallelism", [1, 3])
def test_no_record_of_a_source_comes_before_the_last_of_the_one_before(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    first = NumberSequenceSource(1, 10)
    second = NumberSequenceSource(11, 11)
    third = NumberSequenceSource(12, 30)
    source = HybridSource.builder(first).add_source(second).add_source(third).build()
    with env.from_source(
        source, WatermarkStrategy.no_watermarks(), "numbers"
    ).execute_and_collect() as results:
        found = list(results)
    assert sorted(found) == list(range(1, 31))
    assert sorted(found[:10]) == list(range(1, 11))
    assert found[10] == 11


@pytest.mark.parametrize("mode", list(RuntimeExecutionMode))
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_reader_that_fails_in_a_later_source_reads_what_it_had_of_the_earlier_ones_again(
    parallelism: int, mode: RuntimeExecutionMode, tmp_path: Path
) -> None:
    def fails_once(number: int) -> int:
        if number == 400:
            with contextlib.suppress(FileExistsError):
                (tmp_path / "failed").touch(exist_ok=False)
                raise ValueError("for the first time")
        return number

    restarts = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(restarts).set_parallelism(
        parallelism
    )
    env.set_runtime_mode(mode)
    source = (
        HybridSource.builder(NumberSequenceSource(0, 299))
        .add_source(NumberSequenceSource(300, 599))
        .build()
    )
    found = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .map(fails_once)
        .take(1000)
    )
    assert sorted(found) == list(range(600))


@pytest.mark.parametrize("split_count", [1, 3, 6])
def test_a_reader_that_is_restored_in_an_earlier_source_reads_it_to_its_end(
    split_count: int, tmp_path: Path
) -> None:
    """Two pipelines; one goes back to a checkpoint from before the sources were changed, and the
    enumerator stays."""
    failed = tmp_path / "failed"

    def fails_once(number: int) -> int:
        if number == 310 and not failed.exists():
            failed.touch()
            raise ValueError("for the first time")
        return number

    options = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "execution.checkpointing.interval": "150 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(options).set_parallelism(2)
    source = (
        HybridSource.builder(Paced(0, 300, split_count))
        .add_source(Paced(300, 600, split_count))
        .build()
    )
    found = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .map(fails_once)
        .take(1000)
    )
    assert sorted(found) == list(range(600))


class Paced(PythonSource):
    """Some hundred numbers a second, in so many splits."""

    blocking = True

    def __init__(self, first: int, end: int, split_count: int) -> None:
        self._first = first
        self._size = (end - first) // split_count
        self._split_count = split_count

    def splits(self, parallelism: int) -> list[Any]:
        return [self._first + self._size * number for number in range(self._split_count)]

    def read(self, split: int, position: int) -> Iterator[int]:
        for number in range(split + position, split + self._size):
            threading.Event().wait(0.002)
            yield number


def test_only_the_last_source_may_be_unbounded() -> None:
    endless: Any = DataGeneratorSource(lambda index: index, None, None)
    assert (
        HybridSource.builder(NumberSequenceSource(1, 2)).add_source(endless).build().boundedness
        is Boundedness.CONTINUOUS_UNBOUNDED
    )
    with pytest.raises(ProgramError, match="never ends, so nothing can come behind it"):
        HybridSource.builder(endless).add_source(NumberSequenceSource(1, 2)).build()
    with pytest.raises(ProgramError, match="is made of sources"):
        HybridSource.builder("files")  # type: ignore[arg-type]


class Readers:
    """An enumerator's context: what was assigned to whom, and what is to be run again and again."""

    parallelism = 2
    registered_readers = {0: "a", 1: "b"}

    def __init__(self) -> None:
        self.assigned: list[tuple[int, str]] = []

    def assign_splits(self, subtask: int, splits: list[FileSplit]) -> None:
        self.assigned.extend((subtask, Path(split.file.path).name) for split in splits)

    def call_async(self, function: Any, handler: Any, period_s: float | None = None) -> None:
        def look() -> None:
            handler(function(), None)

        self.look, self.period_s = look, period_s
        look()


def watcher(
    folder: Path, readers: Readers, checkpoint: WatchedFiles | None = None
) -> FileWatcher[FileSplit]:
    context: Any = readers
    made = WatchedTextFileSource(folder, interval_ms=500).create_enumerator(context, checkpoint)
    assert isinstance(made, FileWatcher)
    made.start()
    return made


def test_a_file_is_handed_out_once_when_it_appears(tmp_path: Path) -> None:
    readers = Readers()
    files = watcher(tmp_path / "later", readers)
    files.handle_split_request(0, "a")
    assert (readers.assigned, readers.period_s) == ([], 0.5)
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "one.txt").write_text("x\n")
    (tmp_path / "later" / ".hidden").write_text("x\n")
    readers.look()
    readers.look()
    files.handle_split_request(1, "b")
    assert readers.assigned == [(0, "one.txt")]
    (tmp_path / "later" / "two.txt").write_text("x\n")
    readers.look()
    assert readers.assigned == [(0, "one.txt"), (1, "two.txt")]


def test_a_restored_watcher_does_not_hand_out_what_was_read(tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("x\n")
    readers = Readers()
    files = watcher(tmp_path, readers)
    files.handle_split_request(0, "a")
    again = Readers()
    restored = watcher(tmp_path, again, files.snapshot_state(1))
    restored.handle_split_request(1, "b")
    restored.handle_split_request(0, "a")
    assert (readers.assigned, again.assigned) == ([(0, "one.txt")], [(1, "two.txt")])


def test_what_is_there_is_read_by_a_running_job(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a\nb\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(
        WatchedTextFileSource(tmp_path, interval_ms=20),
        WatermarkStrategy.no_watermarks(),
        "watched",
    )
    with contextlib.closing(stream.execute_and_collect()) as results:
        assert [next(results), next(results)] == ["a", "b"]
        (tmp_path / ".two.txt").write_text("c\n")
        (tmp_path / ".two.txt").rename(tmp_path / "two.txt")
        assert next(results) == "c"


WATCHED: dict[str, tuple[str, Any]] = {
    "parquet": (
        "parquet",
        lambda folder, schema: ParquetSource(folder, schema=schema, watch_interval_ms=500),
    ),
    "csv": ("csv", lambda folder, schema: CsvSource(folder, schema=schema, watch_interval_ms=500)),
    "json": (
        "json",
        lambda folder, schema: JsonLinesSource(folder, schema=schema, watch_interval_ms=500),
    ),
    "avro": (
        "avro",
        lambda folder, schema: AvroSource(folder, schema=schema, watch_interval_ms=500),
    ),
}


@pytest.mark.parametrize("kind", WATCHED)
def test_files_of_columns_that_appear_later_are_read_once_also_after_a_restore(
    kind: str, tmp_path: Path
) -> None:
    form, source_of = WATCHED[kind]

    def add(city: str, *numbers: int) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_arrow(pa.table({"n": list(numbers)})).sink_to(
            FileSink(tmp_path / f"city={city}", form)
        )
        env.execute("add")

    schema = pa.schema([("n", pa.int64())])
    (tmp_path / "none yet").mkdir()
    assert source_of(tmp_path / "none yet", schema).boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    add("Oslo", 1, 2)
    world = World(source_of(tmp_path, schema))
    rounds(world)
    assert [tuple(row) for row in world.values] == [(1, "Oslo"), (2, "Oslo")]
    add("Rome", 3)
    rounds(world)
    second = world.checkpoint()
    add("Bergen", 4)
    rounds(second)
    assert [tuple(row) for row in world.values + second.values] == [
        (1, "Oslo"),
        (2, "Oslo"),
        (3, "Rome"),
        (4, "Bergen"),
    ]
    world.close()
    second.close()


def rounds(world: World) -> None:
    """Looks into the folder a few times."""
    for _ in range(3):
        while world.step():
            pass
        world.clock.advance(0.6)
        for delay, action in list(world.scheduled):
            world.scheduled.remove((delay, action))
            action()
    while world.step():
        pass


def test_a_running_job_reads_files_of_columns_that_appear(tmp_path: Path) -> None:
    def add(number: int) -> int:
        (tmp_path / f".{number}").write_text(f"n\n{number}\n")
        (tmp_path / f".{number}").rename(tmp_path / f"{number}.csv")
        return number - 1

    add(1)
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.from_csv(tmp_path, watch_interval=20).map(lambda row: add(row.n + 1)).take(4) == [
        1,
        2,
        3,
        4,
    ]
    with pytest.raises(
        ProgramError, match="watch_interval is in milliseconds from 1 on, this is 0"
    ):
        env.from_parquet(tmp_path, watch_interval=0)
