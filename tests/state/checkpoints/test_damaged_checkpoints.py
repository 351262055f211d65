"""Checkpoints whose files were altered: what is read is what was written, or the error says that it
is not."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.ids import JobId
from flinkpy.state.checkpoints.checkpoint_storage import (
    FileCheckpointStorage,
    MemoryCheckpointStorage,
)
from flinkpy.state.checkpoints.manifest import Manifest
from tests.state.checkpoints.written import JOB, THRESHOLD, contents, contents_of, written

IDS = (3, 4)
KINDS = (
    "flip a bit",
    "set a byte",
    "cut",
    "cut the beginning",
    "double",
    "append",
    "exchange",
    "remove",
)


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints of a job, and one of another job."""
    directory = tmp_path_factory.mktemp("intact")
    for job, checkpoint_ids in ((JOB, IDS), (JobId("1" * 32), (3,))):
        storage = FileCheckpointStorage(str(directory), job, THRESHOLD)
        for checkpoint_id in checkpoint_ids:
            storage.store(written(storage, checkpoint_id))
    return directory


def alter(files: list[Path], random_: random.Random) -> str:
    """Damages one file, or exchanges two; says what it did."""
    file = random_.choice(files)
    content = bytearray(file.read_bytes())
    place = random_.randrange(len(content))
    kind = random_.choice(KINDS)
    if kind == "flip a bit":
        content[place] ^= 1 << random_.randrange(8)
    elif kind == "set a byte":
        content[place] = (content[place] + random_.randrange(1, 256)) % 256
    elif kind == "cut":
        del content[place:]
    elif kind == "cut the beginning":
        del content[: place + 1]
    elif kind == "double":
        content[place:place] = content[place:]
    elif kind == "append":
        content += random_.randbytes(5)
    elif kind == "remove" and file.name != "_metadata":
        file.unlink()
        return f"{kind} {file}"
    else:
        other = random_.choice([each for each in files if each != file])
        content, exchanged = bytearray(other.read_bytes()), content
        other.write_bytes(exchanged)
        kind = f"exchange {other} with"
    file.write_bytes(content)
    return f"{kind} at {place} of {file}"


@pytest.mark.wide(but=("3]",))
@pytest.mark.parametrize("hundred", range(5))
def test_what_is_read_of_an_altered_checkpoint_is_right_or_an_error(
    intact: Path, tmp_path: Path, hundred: int
) -> None:
    damaged = []
    for seed in range(100 * hundred, 100 * hundred + 100):
        directory = shutil.copytree(intact, tmp_path / str(seed))
        done = alter(
            sorted(path for path in directory.rglob("*") if path.is_file()), random.Random(seed)
        )
        storage = FileCheckpointStorage(str(directory), JOB, THRESHOLD)
        for checkpoint_id in IDS:
            try:
                found = contents(storage, storage.load(f"{storage.job_dir}/chk-{checkpoint_id}"))
            except CheckpointDamagedError as error:
                damaged.append((error.file, directory))
            else:
                assert found == contents_of(checkpoint_id), done
    assert len(damaged) > 40
    assert all(file.startswith(str(directory)) for file, directory in damaged)


def manifest_bytes() -> bytes:
    checkpoint = written(MemoryCheckpointStorage(), 3)
    return Manifest(JOB, checkpoint).to_bytes()


def test_every_bit_of_a_manifest_counts() -> None:
    content = manifest_bytes()
    for place in range(len(content)):
        for bit in range(8):
            altered = bytearray(content)
            altered[place] ^= 1 << bit
            with pytest.raises(CheckpointDamagedError):
                Manifest.from_bytes(bytes(altered), "file")


def test_a_manifest_cut_anywhere_is_an_error() -> None:
    content = manifest_bytes()
    for end in range(len(content)):
        with pytest.raises(CheckpointDamagedError):
            Manifest.from_bytes(content[:end], "file")
