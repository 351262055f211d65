"""The folders of a worker's own disk that options name: a job's first tasks find out whether they
can be used."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from flinkpy.core.errors import ConfigurationError, ResourceUnavailableError
from flinkpy.core.files.file_systems import is_lasting
from flinkpy.core.options.checkpointing import LOCAL_BACKUP_DIRECTORIES, keeps_local_backups
from flinkpy.core.options.engine import TMP_DIRS
from flinkpy.core.options.schema import Option, read
from flinkpy.core.options.state import ROCKSDB_DIRECTORY, STATE_BACKEND, StateBackendKind, folders


def check_local_folders(values: Mapping[str, Any], *, has_run: bool) -> None:
    """Makes the folders that the job uses, once in a process. Raises ConfigurationError, which
    ends the job, if one can never be made or written. If the disk is full, or the job has run
    before, it raises ResourceUnavailableError, after which the job restarts: then the disk is at
    fault, and another worker may have a better one."""
    for option in _used(values):
        for folder in folders(read(values, option)):
            try:
                _check(folder)
            except OSError as error:
                is_option_wrong = is_lasting(error) and not has_run
                kind = ConfigurationError if is_option_wrong else ResourceUnavailableError
                reason = error.strerror or error
                where = f"{folder} on this worker"
                raise kind(
                    f"option {option.key}: nothing can be written to {where}: {reason}"
                ) from None


def _used(values: Mapping[str, Any]) -> Iterator[Option[Any]]:
    yield TMP_DIRS
    if read(values, STATE_BACKEND) is StateBackendKind.ROCKSDB:
        yield ROCKSDB_DIRECTORY
    if keeps_local_backups(values):
        yield LOCAL_BACKUP_DIRECTORIES


@lru_cache(maxsize=256)
def _check(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix="flinkpy-begun-", dir=folder) as file:
        file.write(b"files are about to be written here\n")
