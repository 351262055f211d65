"""Sources one behind the other, and files that go on appearing."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import WatermarkStrategy
from flinkpy.connectors.files.text_files import FileSplit
from flinkpy.connectors.files.watched_files import FileWatcher, WatchedFiles, WatchedTextFileSource
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.memory.ranges import NumberSequenceSource
from flinkpy.connectors.source_api.hybrid import HybridSource
from flinkpy.connectors.source_api.source import Boundedness
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment


@pytest.mark.parametrize("parallelism", [1, 3])
def test_no_record_of_a_source_comes_before_the_last_of_the_one_before(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    first, second, third = NumberSequenceSource(1, 10), NumberSequenceSource(11, 11), NumberSequenceSource(12, 30)
    source = HybridSource.builder(first).add_source(second).add_source(third).build()
    with env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").execute_and_collect() as results:
        found = list(results)
    assert sorted(found) == list(range(1, 31))
    assert sorted(found[:10]) == list(range(1, 11))
    assert found[10] == 11


def test_only_the_last_source_may_be_unbounded() -> None:
    endless: Any = DataGeneratorSource(lambda index: index, None, None)
    assert HybridSource.builder(NumberSequenceSource(1, 2)).add_source(endless).build().boundedness is Boundedness.CONTINUOUS_UNBOUNDED
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


def watcher(folder: Path, readers: Readers, checkpoint: WatchedFiles | None = None) -> FileWatcher:
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
    stream = env.from_source(WatchedTextFileSource(tmp_path, interval_ms=20), WatermarkStrategy.no_watermarks(), "watched")
    with contextlib.closing(stream.execute_and_collect()) as results:
        assert [next(results), next(results)] == ["a", "b"]
        (tmp_path / ".two.txt").write_text("c\n")
        (tmp_path / ".two.txt").rename(tmp_path / "two.txt")
        assert next(results) == "c"
