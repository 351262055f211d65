from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.core.files import spill_file
from flinkpy.core.files.spill_file import SpillFile
from flinkpy.core.options.engine import spill_folders


def test_what_is_appended_is_read_anywhere_and_the_file_has_no_name(tmp_path: Path) -> None:
    file = SpillFile([str(tmp_path)])
    assert file.append([b"abc", bytearray(b"de"), memoryview(b"f")]) == 0
    assert file.append([b"ghi"]) == 6
    assert (file.read(2, 3), file.read(6, 3), file.read(8, 10), file.size) == (
        b"cde",
        b"ghi",
        b"i",
        9,
    )
    assert list(tmp_path.iterdir()) == []
    file.close()
    file.close()


def test_a_folder_that_cannot_be_written_is_told_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(ResourceUnavailableError, match=r"cannot spill to .* set io\.tmp\.dirs"):
            SpillFile([str(folder)])


def test_a_closed_file_cannot_be_read() -> None:
    file = SpillFile()
    file.append([b"x"])
    file.close()
    with pytest.raises(ResourceUnavailableError):
        file.read(0, 1)


def test_folders_are_separated_by_commas() -> None:
    assert spill_folders({"io.tmp.dirs": "/a, /b,"}) == ("/a", "/b")
    assert spill_folders({}) == ()


def test_the_documentation_holds() -> None:
    assert doctest.testmod(spill_file).failed == 0
