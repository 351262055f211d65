"""``flinkpy savepoint``, ``checkpoint`` and ``stop``: what a job is asked for from another process,
and the removal of savepoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flinkpy.actors.gateways import SavepointStatus
from flinkpy.cli.running_session import reach_session
from flinkpy.cli.tell import tell
from flinkpy.core.elements import SnapshotType
from flinkpy.core.errors import ConfigurationError, SavepointError
from flinkpy.core.lifecycles import JOB
from flinkpy.state.checkpoints.locations import absolute
from flinkpy.state.checkpoints.stored_checkpoints import dispose_savepoint
from flinkpy.state.checkpoints.stores_of_locations import file_store_of


def ask_for_snapshot(
    target: str | None,
    definitions: Sequence[str],
    conf: Path | None,
    job_id: str,
    kind: SnapshotType,
    folder: str | None = None,
    form: str | None = None,
    detached: bool = False,
) -> None:
    """Has the job take the snapshot, waits until it is over, and prints where it is. The job is
    named by its id, or by how that begins.

    With ``detached`` it waits only until the job was asked.
    """
    session = reach_session(target, definitions, conf)
    job = session.find_job(job_id)
    if JOB.is_terminal(job.state):
        raise SavepointError(f"job {job.job_id} {job.name!r} has ended: it is {job.state.value}")
    asked = session.job(job.job_id, job.name).request_savepoint(kind, folder, form)
    what = "savepoint" if kind.is_savepoint else "checkpoint"
    if detached:
        error = asked.status().error
        if error is not None:
            raise error
        tell(
            f"{what} of {job.job_id} {job.name!r} was asked for, request "
            f"{asked.request.trigger_id}; "
            f"`flinkpy show {job.job_id}` tells how it stands"
        )
        return
    path = asked.result(on_progress=Progress())
    tell(f"{what} of {job.job_id} {job.name!r}: {path or 'in the memory of the JobManager'}")
    if kind.stops_job:
        tell(f"stopped {job.job_id} {job.name!r}; to go on: flinkpy run -s {path} PROGRAM")


class Progress:
    """Says on standard error how far a snapshot is, when that has changed."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, status: SavepointStatus) -> None:
        line = (
            f"{status.acknowledged} of {status.subtasks} subtasks have saved their state"
            if status.subtasks
            else "waiting until it can begin"
        )
        if line != self._said:
            self._said = line
            tell(line, err=True)


def dispose(path: str) -> None:
    """Removes a savepoint: its files, and its folder if nothing else is there."""
    if not path:
        raise ConfigurationError("name the savepoint's folder")
    folder = absolute(path)
    dispose_savepoint(file_store_of(folder), folder)
    tell(f"removed the savepoint {folder}")
