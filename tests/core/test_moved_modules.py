"""Classes that were pickled before their module moved."""

from __future__ import annotations

import pickle
from importlib.util import find_spec

import pytest

from flinkpy.connectors.files.paths import FileInfo
from flinkpy.connectors.files.reading.text_files import FileSplit
from flinkpy.core.program import code
from flinkpy.core.program.moved_modules import MOVED
from flinkpy.state.inspection.lenient_unpickler import load_leniently

OLD, NEW = b"flinkpy.connectors.files.text_files", FileSplit.__module__.encode()
SPLIT = FileSplit("words-0", FileInfo("words.txt", 7), 0, 7)


def saved_before_the_move(split: FileSplit) -> bytes:
    return pickle.dumps(split, 3).replace(NEW, OLD)


def test_a_split_that_was_saved_before_its_module_moved_is_loaded() -> None:
    saved = saved_before_the_move(SPLIT)
    assert OLD in saved
    assert code.loads(saved) == SPLIT
    assert load_leniently(saved) == SPLIT


def test_a_module_that_never_was_is_an_error() -> None:
    saved = pickle.dumps(SPLIT, 3).replace(NEW, b"flinkpy.nowhere")
    with pytest.raises(ModuleNotFoundError, match=r"flinkpy\.nowhere"):
        code.loads(saved)


def test_what_moved_is_where_the_table_says_and_nothing_is_at_its_old_place() -> None:
    for old, new in MOVED.items():
        assert find_spec(new) is not None, new
        room, _, name = old.rpartition(".")
        assert not is_package(room) or find_spec(old) is None, name


def is_package(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
