"""Files of a job with checkpoints hold each record once, whatever fails: in any order, lost and
late notices, crashes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.connectors.files.writing.buckets import BucketAssigner
from flinkpy.connectors.files.writing.compaction import FileCompactor, FileCompactStrategy
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.files.writing.rolling import RollingPolicy
from flinkpy.core.elements import RowBatch
from flinkpy.operators.sinks.sink_operator import SinkOperator
from flinkpy.state.snapshots.saved_state import SavedState
from tests.connectors.harness import Collected, operator_context
from tests.connectors.sink_world import WITH_CHECKPOINTS, SinkWorld


class Small(RollingPolicy):
    """Two batches a part."""

    def __init__(self) -> None:
        self.asked = 0

    def should_roll(self, part: Any, now_ms: int) -> bool:
        self.asked += 1
        return self.asked % 2 == 0


EVERY_SECOND = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
BY_SIZE = FileCompactStrategy.builder().set_size_threshold(8).build()
BY_PARITY = BucketAssigner.by_value(lambda value: f"b{value % 2}")
CONCAT = FileCompactor.concat_file_compactor()
SINKS: dict[str, Callable[[Path], FileSink]] = {
    "plain": FileSink,
    "rolling": lambda path: FileSink(path, rolling=Small()),
    "buckets": lambda path: FileSink(
        path, buckets=BucketAssigner.by_value(lambda value: f"b{value % 3}")
    ),
    "rolling buckets": lambda path: FileSink(path, buckets=BY_PARITY, rolling=Small()),
    "joined": lambda path: FileSink(path, rolling=Small(), compact=(BY_SIZE, CONCAT)),
    "joined late": lambda path: FileSink(path, rolling=Small(), compact=(EVERY_SECOND, CONCAT)),
    "as they are": lambda path: FileSink(
        path, compact=(EVERY_SECOND, FileCompactor.identical_file_compactor())
    ),
    "parquet": lambda path: FileSink(path, "parquet"),
}
LATE = ("joined late", "as they are")


class Folder:
    """What a reader sees. What was seen once is never changed or taken away."""

    def __init__(self, path: Path, parquet: bool) -> None:
        self.path, self._parquet = path, parquet
        self._seen: dict[Path, bytes] = {}

    def files(self, hidden: bool) -> list[Path]:
        return sorted(
            file
            for file in self.path.rglob("*")
            if file.is_file() and file.name.startswith(".") == hidden
        )

    def records(self) -> list[int]:
        found: list[int] = []
        files = {file: file.read_bytes() for file in self.files(hidden=False)}
        for file, content in self._seen.items():
            assert files.get(file) == content, f"{file.name} was changed"
        self._seen = files
        for file, content in files.items():
            found += (
                pq.read_table(file)["f0"].to_pylist()
                if self._parquet
                else map(int, content.split())
            )
        return sorted(found)


@contextmanager
def broken_after(renames: int) -> Iterator[None]:
    """A committer dies on the way."""
    left = [renames]
    real = os.replace

    def replace(source: str, target: str) -> None:
        if left[0] == 0:
            raise OSError("the disk is gone")
        left[0] -= 1
        real(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replace)
        yield


STEP = st.one_of(
    st.tuples(st.just("feed"), st.integers(1, 12)),
    st.tuples(st.just("feed"), st.integers(1, 3)),
    st.tuples(st.just("barrier"), st.just(0)),
    st.tuples(st.just("feed and barrier"), st.integers(1, 5)),
    st.tuples(st.just("complete"), st.integers(0, 7)),  # which subtasks are told, by bits
    st.tuples(st.just("told all"), st.just(0)),
    st.tuples(st.just("abort"), st.integers(0, 2)),
    st.tuples(st.just("broken"), st.integers(0, 3)),
    st.tuples(st.just("crash"), st.integers(0, 1)),
    st.tuples(st.just("rescale"), st.integers(1, 3)),
)
STEPS = st.lists(STEP, min_size=10, max_size=30)


class Run:
    """One job, its folder, and what must hold behind each step."""

    def __init__(self, kind: str, path: Path, parallelism: int) -> None:
        self.late = kind in LATE
        self.world = SinkWorld(SINKS[kind](path), parallelism)
        self.folder = Folder(path, kind == "parquet")

    def step(self, name: str, number: int) -> None:
        world = self.world
        if "feed" in name:
            world.feed(number)
        if "barrier" in name:
            world.barrier()
        elif name == "abort":
            world.abort(world.barrier(number))
        elif name in ("complete", "told all", "broken") and world.running:
            self.complete(name, number)
        elif name in ("crash", "rescale"):
            world.crash(number if name == "rescale" else None, closed=number > 0)
            self.check(everything=world.completed is not None and not self.late)
        self.check()

    def complete(self, name: str, number: int) -> None:
        world = self.world
        if name == "broken":
            with broken_after(number):
                try:
                    world.complete(world.running[-1])
                except OSError:
                    pass
                else:
                    return
            world.crash()
            self.check(everything=not self.late)
            return
        world.complete(
            world.running[0], lambda subtask: name != "complete" or bool(number >> subtask & 1)
        )
        self.check(everything=name == "told all" and not self.late)

    def check(self, everything: bool = False) -> None:
        """Each record once, none behind the last complete checkpoint, and all before it where it
        says so."""
        seen = self.folder.records()
        allowed = 0 if self.world.completed is None else self.world.completed.position
        assert len(set(seen)) == len(seen)
        assert not seen or seen[-1] < allowed
        if everything:
            assert seen == list(range(allowed))


@pytest.mark.parametrize("kind", SINKS)
@settings(max_examples=25, deadline=None)
@given(steps=STEPS, parallelism=st.integers(1, 3), dies_late=st.booleans())
def test_each_record_is_seen_once_whatever_fails(
    kind: str, steps: list[tuple[str, int]], parallelism: int, dies_late: bool
) -> None:
    if kind == "parquet":
        steps = steps[:12]
    with tempfile.TemporaryDirectory() as made:
        run = Run(kind, Path(made), parallelism)
        try:
            for name, number in steps:
                run.step(name, number)
            run.world.feed(5)
            run.world.end_input()
            run.check()
            if dies_late:
                run.world.barrier()
                run.step("crash", 1)
                run.world.feed(5)
                run.world.end_input()
            run.world.last_checkpoint()
        finally:
            run.world.close()
        assert run.folder.records() == list(range(run.world.position))
        if all(name != "rescale" for name, _ in steps):
            assert run.folder.files(hidden=True) == []


def lone_writer(path: Path, subtask: int, attempt: int, state: SavedState | None) -> SinkOperator:
    operator = SinkOperator(FileSink(path))
    operator.setup(
        replace(operator_context(subtask, 2, attempt), configuration=WITH_CHECKPOINTS), Collected()
    )
    operator.initialize_state(state)
    operator.open()
    return operator


def test_a_subtask_that_begins_late_leaves_the_files_of_others_alone(tmp_path: Path) -> None:
    world = SinkWorld(FileSink(tmp_path), 2)
    world.feed(4)
    checkpoint = world.barrier()
    world.complete(checkpoint)
    world.feed(4)
    world.close()
    first = lone_writer(tmp_path, 0, 1, checkpoint.states[0])
    first.process_batch(RowBatch([100]))
    second = lone_writer(tmp_path, 1, 1, checkpoint.states[1])
    first.finish()
    first.commit_pending()
    assert Folder(tmp_path, parquet=False).records() == [0, 1, 2, 3, 100]
    first.close()
    second.close()


@pytest.mark.parametrize("restored", [False, True])
def test_an_attempt_that_begins_when_a_later_one_has_begun_leaves_its_files_alone(
    restored: bool, tmp_path: Path
) -> None:
    """The order to start it was late, and nobody waits for it any more."""
    world = SinkWorld(FileSink(tmp_path), 2)
    if restored:
        world.feed(4)
        world.complete(world.barrier())
    world.close()
    state = world.completed.states[0] if world.completed is not None else None
    later = lone_writer(tmp_path, 0, 2, state)
    later.process_batch(RowBatch([100]))
    late = lone_writer(tmp_path, 0, 1, state)
    later.finish()
    later.commit_pending()
    assert Folder(tmp_path, parquet=False).records() == [*range(4 * restored), 100]
    late.close()
    later.close()


def test_an_attempt_that_begins_from_the_beginning_clears_away_what_is_left(tmp_path: Path) -> None:
    world = SinkWorld(FileSink(tmp_path), 2)
    world.feed(4)
    world.crash()
    assert Folder(tmp_path, parquet=False).files(hidden=True) == []
    world.close()


def test_files_a_reader_took_away_do_not_stop_the_restored_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = SinkWorld(FileSink(tmp_path))
    world.feed(4)
    world.complete(world.barrier())
    for file in tmp_path.iterdir():
        file.unlink()
    world.crash()
    world.feed(1)
    world.end_input()
    world.last_checkpoint()
    world.close()
    assert Folder(tmp_path, parquet=False).records() == [4]
    assert "moved or removed" in caplog.text


@pytest.mark.parametrize(
    "configuration", [{}, {**WITH_CHECKPOINTS, "execution.runtime-mode": "BATCH"}]
)
def test_without_checkpoints_and_in_batch_mode_files_are_seen_at_the_end(
    tmp_path: Path, configuration: dict[str, Any]
) -> None:
    world = SinkWorld(FileSink(tmp_path), 2, configuration)
    world.feed(4)
    world.end_input()
    assert Folder(tmp_path, parquet=False).records() == [0, 1, 2, 3]
    assert not any(operator.waits_for_final_checkpoint for operator in world.operators)
    world.close()


def test_names_of_files_and_folders_are_on_disk_before_a_checkpoint_is_complete_and_after_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, tuple[str, ...]]] = []  # what, and the names that a folder had then
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append((path, tuple(os.listdir(path)) if os.path.isdir(path) else ()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    top = os.path.realpath(tmp_path / "out")
    world = SinkWorld(
        FileSink(top, buckets=BucketAssigner.by_value(lambda value: "a/b")), 1, WITH_CHECKPOINTS
    )
    world.feed(3)
    checkpoint = world.barrier()
    hidden, folders = synced[0][0], dict(synced[1:])
    assert os.path.basename(hidden).startswith(".part-")
    assert folders[f"{top}/a/b"] == (os.path.basename(hidden),)
    assert {f"{top}/a", top, os.path.dirname(top)} <= set(folders)
    synced.clear()
    world.complete(checkpoint)
    assert dict(synced)[f"{top}/a/b"] == (os.path.basename(hidden)[1:].partition(".inprogress")[0],)
    world.close()
