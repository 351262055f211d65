"""Finds and reads manifests: that of one checkpoint, and that of a job's newest.

A checkpoint is there when its manifest is. A folder without one is in the making, or was given up.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace

from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import folder_of, join, name_of
from flinkpy.state.checkpoints.manifest import Manifest

LOG = logging.getLogger(__name__)
METADATA = "_metadata"
_CHECKPOINT, _JOB_ID = re.compile(r"chk-([0-9]+)"), re.compile(r"[0-9a-f]{32}")


def checkpoint_folder(job_dir: str, checkpoint_id: int) -> str:
    """Where the job keeps this checkpoint.

    >>> checkpoint_folder("/tmp/checkpoints/job", 17)
    '/tmp/checkpoints/job/chk-17'
    """
    return join(job_dir, f"chk-{checkpoint_id}")


def checkpoint_ids(store: FileStore, job_dir: str) -> list[int]:
    """Of all checkpoints of the job that have a folder, the newest first."""
    matches = [_CHECKPOINT.fullmatch(name) for name in store.list(job_dir)]
    return sorted((int(match[1]) for match in matches if match), reverse=True)


def load_checkpoint(store: FileStore, location: str) -> CompletedCheckpoint:
    """The checkpoint in this folder, or with this manifest. ProgramError if there is none; CheckpointDamagedError if
    the manifest is not intact."""
    folder = folder_of(location) if name_of(location) == METADATA else location
    try:
        return _read(store, folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ProgramError(_there_is_none(store, folder)) from error


def latest_checkpoint(store: FileStore, job_dir: str) -> CompletedCheckpoint | None:
    """The newest checkpoint whose manifest is intact. A damaged one is reported in the log and passed over; other
    errors are raised, since a store that does not answer may hold a newer checkpoint."""
    for checkpoint_id in checkpoint_ids(store, job_dir):
        try:
            return _read(store, checkpoint_folder(job_dir, checkpoint_id))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except CheckpointDamagedError as error:
            LOG.warning("checkpoint %d is passed over for an older one: %s", checkpoint_id, error)
    return None


def _read(store: FileStore, folder: str) -> CompletedCheckpoint:
    file = join(folder, METADATA)
    manifest = Manifest.from_bytes(store.read(file), file)
    for expected, found in _out_of_place(folder, manifest):
        raise CheckpointDamagedError(file, f"the manifest of {expected}", f"that of {found}")
    return replace(manifest.checkpoint, location=folder)


def _out_of_place(folder: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What the names of the folders say against the manifest. Folders that were given other names say nothing."""
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
        return f"{folder} is no checkpoint: it has no {METADATA}; it was not completed, or this is another folder"
    return f"there is no checkpoint {folder}"
