"""``flinkpy checkpoints``: what it prints of checkpoints on disk, and how it fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from zlib import crc32

import pytest

from flinkpy.cli.main import main
from tests.checkpoints.made import JOB, usual


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["checkpoints", *arguments])
    captured = capsys.readouterr()
    return int(end.value.code or 0), captured.out, captured.err


def test_inspect_lists_operators_states_and_entries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = str(usual(tmp_path).location)
    code, out, err = call(capsys, "inspect", location, "-n", "1", "--state", "offsets")
    assert (code, err) == (0, "")
    assert "checkpoint 7 of job 5f3a0c9e" in out
    assert "taken 2023-11-14 22:13:20 UTC" in out
    assert "parallelism 2 of at most 128" in out
    assert "map state of Types.MAP(Types.STRING(), Types.INT())  50 keys" in out
    assert "      0\n" in out
    assert "all checksums match" in out


def test_inspect_gives_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "inspect", "--json", str(usual(tmp_path).location))
    found = json.loads(out)
    assert code == 0
    assert found["damaged"] == []
    assert [
        state["entries"] for operator in found["operators"] for state in operator["states"]
    ] == [50, 50, 50, 50, 50, 6, 3, 2]


def test_inspect_names_damaged_files_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(str(usual(tmp_path).location))
    file = sorted(folder.iterdir())[0]
    file.write_bytes(b"\0" + file.read_bytes()[1:])
    code, out, err = call(capsys, "inspect", str(folder))
    assert code == 1
    assert "all checksums match" not in out
    assert f"the checkpoint is damaged: {file} should be" in err


def test_what_is_no_checkpoint_or_of_a_later_version_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "inspect", str(tmp_path))
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        (
            f"{tmp_path} is no checkpoint: it has no _metadata; it was not completed, or this is "
            "another folder"
        )
    ]
    body = b'{"format":"flinkpy checkpoint","version":99'
    (tmp_path / "_metadata").write_bytes(body + b',"crc32":"%08x"}\n' % crc32(body))
    code, _, err = call(capsys, "inspect", str(tmp_path))
    assert code == 1
    assert "is of version 99, this flinkpy reads version" in err


def test_convert_writes_parquet_files_and_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual(tmp_path)
    monkeypatch.setattr("sys.path", sys.path[:])
    target = tmp_path / "readable"
    code, out, _ = call(capsys, "convert", str(tmp_path / JOB), str(target))
    assert (code, f"wrote checkpoint 7 to {target}: " in out) == (0, True)
    assert len(list(target.glob("counts-*.value.*.parquet"))) == 2
    code, _, err = call(capsys, "convert", str(target), str(target))
    assert (code, err) == (1, f"{target} is not empty: name a new folder for the savepoint\n")


def test_a_folder_that_cannot_be_read_or_written_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    location, file = str(usual(tmp_path).location), tmp_path / "file"
    file.write_text("x")
    for target, message in [
        (file, "is a file: name a new folder for the savepoint"),
        (file / "below", f"{file}: File exists"),
    ]:
        code, _, err = call(capsys, "convert", location, str(target), "--format", "native")
        assert (code, err.strip()) == (1, err.strip())
        assert message in err
        assert "Traceback" not in err

    def refuse(folder: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("os.listdir", refuse)
    assert call(capsys, "inspect", location) == (1, "", f"{location}: Permission denied\n")
