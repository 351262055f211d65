"""Finds and reads manifests: that of one checkpoint, and that of a job's newest.

A checkpoint is there when its manifest is. A folder without one is in the making, or was given up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from flinkpy.core.errors import CheckpointDamagedError, FlinkpyError, ProgramError
from flinkpy.core.ids import JobId
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import folder_of, join, name_of
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import location_of, own_files

LOG = engine_logger(__name__)
METADATA = "_metadata"
_CHECKPOINT, _JOB_ID = re.compile(r"chk-([0-9]+)"), re.compile(r"[0-9a-f]{32}")


def checkpoint_folder(job_dir: str, checkpoint_id: int) -> str:
    """Where the job keeps this checkpoint.

    >>> checkpoint_folder("/tmp/checkpoints/job", 17)
    '/tmp/checkpoints/job/chk-17'
    """
    return join(job_dir, f"chk-{checkpoint_id}")


def job_folder_of(location: str) -> str:
    """The name of the folder of a job that this location is, or that the checkpoint there is in:
    the job's id, unless somebody has renamed it.

    >>> (
    ...     job_folder_of("/tmp/checkpoints/job/chk-17/_metadata"),
    ...     job_folder_of("/tmp/checkpoints/job"),
    ... )
    ('job', 'job')
    """
    folder = folder_of(location) if name_of(location) == METADATA else location
    return name_of(folder_of(folder) if _CHECKPOINT.fullmatch(name_of(folder)) else folder)


def owner_of(store: FileStore, location: str) -> JobId | None:
    """The job that deletes the checkpoint there, or the newest of the folder of a job there, when
    it has newer ones: so its manifest says, whatever the folders are called and however they are
    reached. None for a savepoint, and where there is no manifest that is intact."""
    folder = folder_of(location) if name_of(location) == METADATA else location
    for place in (
        folder,
        *(checkpoint_folder(folder, each) for each in checkpoint_ids(store, folder)),
    ):
        file = join(place, METADATA)
        try:
            manifest = Manifest.from_bytes(store.read(file), file)
        except (OSError, FlinkpyError):  # who starts from it will say why
            continue
        return None if manifest.is_savepoint else manifest.job_id
    return None


def checkpoint_ids(store: FileStore, job_dir: str) -> list[int]:
    """The numbers of all checkpoints of the job that have a folder, the newest first."""
    matches = [_CHECKPOINT.fullmatch(name) for name in store.list(job_dir)]
    return sorted((int(match[1]) for match in matches if match), reverse=True)


def load_checkpoint(store: FileStore, location: str) -> CompletedCheckpoint:
    """The checkpoint in this folder, or with this manifest. ProgramError if there is none;
    CheckpointDamagedError if the manifest is not intact."""
    return load_manifest(store, location).checkpoint


def load_manifest(store: FileStore, location: str) -> Manifest:
    """As ``load_checkpoint``, with the job that the checkpoint is of."""
    folder = folder_of(location) if name_of(location) == METADATA else location
    try:
        return _read(store, folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ProgramError(_there_is_none(store, folder)) from error


def latest_checkpoint(store: FileStore, job_dir: str) -> CompletedCheckpoint | None:
    """The newest checkpoint whose manifest is intact and whose files are there, as long as they
    should be. A damaged one is reported in the log and passed over; other errors are raised, since
    a store that does not answer may hold a newer checkpoint."""
    for checkpoint_id in checkpoint_ids(store, job_dir):
        try:
            checkpoint = _read(store, checkpoint_folder(job_dir, checkpoint_id)).checkpoint
            _check_lengths(store, checkpoint)
            return checkpoint
        except (FileNotFoundError, NotADirectoryError):
            continue
        except CheckpointDamagedError as error:
            LOG.warning("checkpoint %d is passed over for an older one: %s", checkpoint_id, error)
    return None


def _check_lengths(store: FileStore, checkpoint: CompletedCheckpoint) -> None:
    """CheckpointDamagedError if a file is missing or too short. What its bytes are is seen by who
    reads them."""
    ends: dict[str, int] = {}
    for handle in checkpoint.handles():
        if handle.path is not None and handle.length:
            file = location_of(checkpoint.location or "", handle)
            ends[file] = max(ends.get(file, 0), handle.offset + handle.length)
    for file, end in ends.items():
        try:
            last = store.read(file, end - 1, 1)
        except FileNotFoundError:
            last = b""
        if not last:
            raise CheckpointDamagedError(
                file, f"a file of at least {end} bytes", "no such file, or a shorter one"
            )


def shared_files_of_others(store: FileStore, job_dir: str, location: str) -> frozenset[str]:
    """The shared files that checkpoints of the job use, without the one at this location."""
    folders = [
        checkpoint_folder(job_dir, checkpoint_id)
        for checkpoint_id in checkpoint_ids(store, job_dir)
    ]
    found: set[str] = set()
    for folder in folders:
        if folder != location and store.exists(join(folder, METADATA)):
            found |= _read(store, folder).checkpoint.shared_files()
    return frozenset(found)


def complete_checkpoints(store: FileStore, job_dir: str) -> list[CompletedCheckpoint]:
    """All that have a manifest, oldest first. CheckpointDamagedError if that of the newest is not
    intact; older ones that are not are left out."""
    found: list[CompletedCheckpoint] = []
    for checkpoint_id in checkpoint_ids(store, job_dir):
        try:
            found.append(_read(store, checkpoint_folder(job_dir, checkpoint_id)).checkpoint)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except CheckpointDamagedError as error:
            if not found:
                raise
            LOG.warning("checkpoint %d is left out: %s", checkpoint_id, error)
    return found[::-1]


def remove_checkpoint(store: FileStore, folder: str) -> None:
    """Removes the checkpoint in this folder, or what there is of it."""
    # first, so that nobody takes what is left for a checkpoint
    store.delete(join(folder, METADATA))
    store.delete_dir(folder)


def remove_if_empty(store: FileStore, folder: str) -> None:
    """Removes the folder, unless there is something in it."""
    if not store.list(folder):
        store.delete_dir(folder)


def dispose_savepoint(store: FileStore, location: str) -> None:
    """Removes the savepoint's files, and its folder if nothing else is there. ProgramError if it is
    none, or a checkpoint that belongs to its job."""
    folder = folder_of(location) if name_of(location) == METADATA else location
    savepoint = load_checkpoint(store, folder)
    if _CHECKPOINT.fullmatch(name_of(folder)):
        raise ProgramError(
            f"{folder} is a checkpoint, and its files may belong to others of its job; only "
            "savepoints are disposed of"
        )
    store.delete(join(folder, METADATA))
    for file in own_files(folder, savepoint.handles()):
        store.delete(file)
    remove_if_empty(store, folder)


def _read(store: FileStore, folder: str) -> Manifest:
    file = join(folder, METADATA)
    manifest = Manifest.from_bytes(store.read(file), file)
    for expected, found in _out_of_place(folder, manifest):
        raise CheckpointDamagedError(file, f"the manifest of {expected}", f"that of {found}")
    return replace(manifest, checkpoint=replace(manifest.checkpoint, location=folder))


def _out_of_place(folder: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What the names of the folders say against the manifest. Folders that were given other names
    say nothing."""
    number, job = _CHECKPOINT.fullmatch(name_of(folder)), name_of(folder_of(folder))
    if number and int(number[1]) != manifest.checkpoint.checkpoint_id:
        yield f"checkpoint {number[1]}", f"checkpoint {manifest.checkpoint.checkpoint_id}"
    if number and _JOB_ID.fullmatch(job) and job != manifest.job_id:
        yield f"job {job}", f"job {manifest.job_id}"


def _there_is_none(store: FileStore, folder: str) -> str:
    within = checkpoint_ids(store, folder)
    if within:
        newest = checkpoint_folder(folder, within[0])
        return f"{folder} is no checkpoint, but has some: name one of them, for example {newest}"
    if store.exists(folder):
        return (
            f"{folder} is no checkpoint: it has no {METADATA}; it was not completed, or this "
            "is another folder"
        )
    return f"there is no checkpoint {folder}"
