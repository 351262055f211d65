"""The archive of a job: a file with its id as name, in Flink's form: what REST answers of it, by
path."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from flinkpy.core.ids import JobId
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import join

_JOB_ID = re.compile(r"[0-9a-f]{32}")


def write_archive(store: FileStore, folder: str, job_id: JobId, answers: Mapping[str, str]) -> None:
    """``answers`` are JSON, by path. FileExistsError if the job is archived already."""
    data = json.dumps(
        {"archive": [{"path": path, "json": answer} for path, answer in answers.items()]}
    ).encode()
    store.write_atomically(join(folder, job_id), [data])


def is_archived(store: FileStore, folder: str, job_id: JobId) -> bool:
    return store.exists(join(folder, job_id))


def read_archive(store: FileStore, folder: str, job_id: JobId) -> dict[str, str]:
    """What was written. Raises ValueError for a file that is no archive."""
    path = join(folder, job_id)
    try:
        answers = {each["path"]: each["json"] for each in json.loads(store.read(path))["archive"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is no archive of a job: {type(error).__name__}") from None
    if not all(isinstance(text, str) for answer in answers.items() for text in answer):
        raise ValueError(f"{path} is no archive of a job: its answers are no text")
    return answers


def archived_jobs(store: FileStore, folder: str) -> Sequence[JobId]:
    """The jobs whose archives are in the folder."""
    return [JobId(name) for name in store.list(folder) if _JOB_ID.fullmatch(name)]
