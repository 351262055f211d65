"""Arrays in the memory that they may take, and in files beyond."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.operators.columnar.array_memory import ArrayMemory
from flinkpy.operators.columnar.key_index import Grown
from tests.operators.arrays_in_files import in_files


def test_arrays_beyond_their_memory_lie_in_files_that_go_with_them(tmp_path: Path) -> None:
    memory = ArrayMemory(1 << 20, [str(tmp_path)])
    before = open_files()
    fits, beyond = memory.empty(1 << 19, np.bool_), memory.empty((1 << 16, 2), np.int64)
    assert [type(each.base) for each in (fits, beyond)] == [type(None), mmap.mmap]
    assert memory.used == fits.nbytes
    assert not list(tmp_path.iterdir())
    beyond[:] = 7
    assert beyond.sum() == 7 << 17
    del fits, beyond
    assert not memory.used
    assert open_files() == before


def test_an_array_that_grows_keeps_what_it_has_wherever_it_lies() -> None:
    for memory in (ArrayMemory(), ArrayMemory(1 << 17), in_files()):
        grown = Grown(np.int32, -1, memory.empty)
        grown.put(np.arange(100), np.arange(100), 100)
        frozen = grown.freeze()
        grown.put(np.array([3, 200_000]), np.array([5, 6]), 200_001)
        assert grown.values[[2, 3, 4, 150, 200_000]].tolist() == [2, 5, 4, -1, 6]
        assert (np.asarray(frozen._array)[:100] == np.arange(100)).all()


def test_a_disk_without_room_is_told_before_a_page_of_it_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ResourceUnavailableError, match=r"No space left.*io\.tmp\.dirs"):
        ArrayMemory(0, [str(tmp_path)]).empty(1 << 20, np.int64)


def open_files() -> int:
    """How many this process has."""
    return len(os.listdir("/dev/fd"))
