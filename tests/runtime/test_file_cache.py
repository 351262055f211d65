"""Registered files on one TaskExecutor: there once, for as long as a job needs them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from flinkpy.connectors.memory.pieces import Pieces
from flinkpy.core.errors import ProgramError, ResourceUnavailableError
from flinkpy.core.ids import JobId
from flinkpy.runtime.files.cached_files import CachedFile, FromBlocks
from flinkpy.runtime.files.file_cache import FileCache

pytestmark = pytest.mark.finding("gaps G13")

ONE, TWO = JobId("one"), JobId("two")
MODEL = FromBlocks(Pieces([b"mo", b"del"], [1, 1]))


def left(cache: FileCache, job: JobId) -> None:
    for folder in cache.leave(job):
        folder.remove()


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    return {"io.tmp.dirs": str(tmp_path)}


def test_jobs_and_names_share_one_file_until_the_last_job_has_left(
    values: dict[str, Any], tmp_path: Path
) -> None:
    cache = FileCache()
    cache.join(
        ONE,
        [CachedFile("a", "model.bin", "1", MODEL), CachedFile("b", "model.bin", "1", MODEL)],
        values,
    )
    cache.join(TWO, [CachedFile("c", "model.bin", "1", MODEL)], values)
    [path] = {cache.path(ONE, "a"), cache.path(ONE, "b"), cache.path(TWO, "c")}
    assert (Path(path).read_text(), Path(path).name) == ("model", "model.bin")
    assert Path(path).is_relative_to(tmp_path)
    assert cache.materialised == 1
    left(cache, ONE)
    assert Path(path).exists()
    with pytest.raises(ProgramError, match="no cached file 'a'"):
        cache.path(ONE, "a")
    left(cache, TWO)
    assert list(tmp_path.iterdir()) == []


def test_files_of_other_content_or_use_are_others(values: dict[str, Any]) -> None:
    cache = FileCache()
    cache.join(
        ONE,
        [
            CachedFile("a", "f", "1", MODEL),
            CachedFile("b", "f", "2", FromBlocks(Pieces([], []))),
            CachedFile("c", "f", "1", MODEL, executable=True),
        ],
        values,
    )
    paths = {name: Path(cache.path(ONE, name)) for name in "abc"}
    assert [path.read_text() for path in paths.values()] == ["model", "", "model"]
    assert [bool(path.stat().st_mode & 0o100) for path in paths.values()] == [False, False, True]
    cache.close()
    assert not any(path.exists() for path in paths.values())


class Slow:
    """Content that comes when it is let go, and fails at first."""

    def __init__(self, failures: int = 0) -> None:
        self.may_come, self.failures = threading.Event(), failures

    def write_to(self, target: Path) -> None:
        self.may_come.wait(60)
        if self.failures:
            self.failures -= 1
            raise OSError("the store does not answer")
        target.write_text("late")


def test_a_function_waits_until_its_file_is_there(values: dict[str, Any]) -> None:
    cache, content, found = FileCache(), Slow(), list[str]()
    cache.join(ONE, [CachedFile("a", "f", "1", content)], values)
    reader = threading.Thread(target=lambda: found.append(Path(cache.path(ONE, "a")).read_text()))
    reader.start()
    assert not found
    content.may_come.set()
    reader.join(60)
    assert found == ["late"]
    cache.close()


def test_what_could_not_be_brought_is_told_and_tried_again_for_the_next_attempt(
    values: dict[str, Any],
) -> None:
    cache, content = FileCache(), Slow(failures=1)
    content.may_come.set()
    file = CachedFile("a", "f", "1", content)
    cache.join(ONE, [file], values)
    for _ in range(2):  # two subtasks of one attempt
        with pytest.raises(
            ResourceUnavailableError,
            match="the cached file 'a' cannot be brought to this worker: the store does not answer",
        ):
            cache.path(ONE, "a")
    cache.join(ONE, [file], values)
    assert Path(cache.path(ONE, "a")).read_text() == "late"
    cache.close()


def test_a_file_that_comes_when_its_job_has_left_does_not_stay(
    values: dict[str, Any], tmp_path: Path
) -> None:
    cache, content = FileCache(), Slow()
    cache.join(ONE, [CachedFile("a", "f", "1", content)], values)
    [entry] = cache._entries.values()
    left(cache, ONE)
    content.may_come.set()
    assert not entry.path.result(60).exists()
    assert list(tmp_path.iterdir()) == []
