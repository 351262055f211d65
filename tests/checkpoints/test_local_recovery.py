"""Jobs whose tasks restart where they ran: they read the copies that are there, and give what they
give undisturbed, whatever became of these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Types
from flinkpy.datastream.connectors.file_system import FileSink
from tests.checkpoints.paced import failing_at, failures, visible_lines
from tests.checkpoints.test_recovery import FAILING, InOrder, environment, keyed, source
from tests.waiting import eventually

BACKENDS = ["hashmap", "rocksdb"]


def options(folder: Path, backend: str) -> dict[str, Any]:
    if backend == "rocksdb":
        pytest.importorskip("rocksdict")
    return {
        "state.backend.type": backend,
        "execution.checkpointing.incremental": True,
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "execution.checkpointing.data-inline-threshold": 0,
        "execution.state-recovery.from-local": True,
        "execution.checkpointing.local-backup.dirs": str(folder / "local"),
    }


def run(
    folder: Path, values: dict[str, Any], fails: Callable[[Any], Any] = lambda record: record
) -> list[str]:
    """Runs the job to its end; gives what can be seen then."""
    env = environment(2, **values)
    keyed(source(env).map(fails)).process(InOrder()).map(str, Types.STRING()).sink_to(
        FileSink(folder / "out")
    )
    env.execute()
    return sorted(visible_lines(folder / "out"))


def failing_when(done: Callable[[], None], folder: Path) -> Callable[[Any], Any]:
    """Fails at some records, when this has been done."""
    fails = failing_at(folder, *FAILING)

    def pass_or_fail(record: Any) -> Any:
        try:
            return fails(record)
        except ValueError:
            done()
            raise

    return pass_or_fail


def copies(folder: Path) -> list[Path]:
    return [each for each in (folder / "local").glob("flinkpy-backups-*/*") if each.name != "owner"]


def lose_originals(folder: Path, within: str = "*") -> None:
    """All that tasks have written for checkpoints, or what is in their folder of this name; what
    the JobMaster has written stays. So does a file that has no copy yet: another task may be
    writing it for the next checkpoint, and its copy is a link to it."""
    copied = {contents(copy) for copy in copies(folder)} - {None}
    for file in (folder / "checkpoints").glob(f"*/{within}/*"):
        is_of_tasks = not file.name.startswith((".", "_metadata", "coordinators"))
        if is_of_tasks and contents(file) in copied:
            file.unlink(missing_ok=True)
            (folder / "lost").touch()


def contents(file: Path) -> bytes | None:
    """None, if the file is gone: its checkpoint is not needed any more."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return run(folder, {"execution.checkpointing.dir": str(folder / "checkpoints")})


@pytest.mark.parametrize("backend", BACKENDS)
def test_tasks_restart_from_copies_when_the_files_of_their_checkpoints_are_gone(
    backend: str, tmp_path: Path, undisturbed: list[str]
) -> None:
    found = run(
        tmp_path,
        options(tmp_path, backend),
        failing_when(lambda: lose_originals(tmp_path), tmp_path / "failed"),
    )
    assert found == undisturbed
    assert failures(tmp_path / "failed") == len(FAILING)
    assert (tmp_path / "lost").exists()
    eventually(lambda: list((tmp_path / "local").iterdir()) == [])


def cut_short(data: bytes) -> bytes:
    return data[: len(data) // 2]


def altered(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def swapped(data: bytes) -> bytes:
    return bytes(len(data))


@pytest.mark.wide(but=("hashmap-swapped", "rocksdb-altered"))
@pytest.mark.parametrize("damage", [cut_short, altered, swapped, None])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_job_whose_copies_are_damaged_gives_what_it_gives_undisturbed(
    backend: str, damage: Callable[[bytes], bytes] | None, tmp_path: Path, undisturbed: list[str]
) -> None:
    def damage_copies() -> None:
        """Each becomes another file, as it may be a link to the checkpoint's own."""
        for copy in copies(tmp_path):
            data = copy.read_bytes()
            copy.unlink()
            if damage is not None and data:
                copy.write_bytes(damage(data))

    found = run(
        tmp_path, options(tmp_path, backend), failing_when(damage_copies, tmp_path / "failed")
    )
    assert found == undisturbed
    eventually(lambda: list((tmp_path / "local").iterdir()) == [])


@pytest.mark.parametrize("backend", BACKENDS)
def test_copies_are_kept_and_not_read_where_only_that_is_wanted(
    backend: str, tmp_path: Path, undisturbed: list[str]
) -> None:
    kept: list[int] = []
    values = {
        **options(tmp_path, backend),
        "execution.state-recovery.from-local": False,
        "execution.checkpointing.local-backup.enabled": True,
    }
    found = run(
        tmp_path,
        values,
        failing_when(lambda: kept.append(len(copies(tmp_path))), tmp_path / "failed"),
    )
    assert found == undisturbed
    assert all(kept)
    eventually(lambda: list((tmp_path / "local").iterdir()) == [])
