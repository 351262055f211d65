"""A savepoint that a program, or a command, has asked for and waits for."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Protocol, TypeVar

from flinkpy.actors.gateways import DispatcherGateway, SavepointRequest, SavepointStatus
from flinkpy.core.clock import Clock
from flinkpy.core.elements import SavepointFormatType, SnapshotType
from flinkpy.core.errors import ConfigurationError, RpcTimeoutError
from flinkpy.core.futures import Future
from flinkpy.core.ids import IdFactory, JobId
from flinkpy.state.checkpoints.locations import absolute

T = TypeVar("T")


class Session(Protocol):
    """Where the job runs: the cluster's client."""

    clock: Clock

    @property
    def poll_s(self) -> float:
        """How long one call may stay open."""
        ...

    def ask(self, call: Callable[[DispatcherGateway], Future[T]], extra_s: float = 0.0) -> T: ...


class RequestedSavepoint:
    """It is asked for with the first call. Each call asks under the same id, so it can be
    repeated."""

    def __init__(self, session: Session, job_id: JobId, request: SavepointRequest) -> None:
        self._session = session
        self._job_id = job_id
        self.request = request

    def status(self, wait_s: float = 0.0) -> SavepointStatus:
        """How it stands; if it is not over, after so many seconds."""
        return self._session.ask(
            lambda dispatcher: dispatcher.request_savepoint(self._job_id, self.request, wait_s),
            wait_s,
        )

    def result(
        self,
        timeout: float | None = None,
        on_progress: Callable[[SavepointStatus], None] = lambda status: None,
    ) -> str:
        """The folder, when it is over; of a checkpoint in the JobManager's memory an empty text.
        Raises the reason if there is none, and RpcTimeoutError after so many seconds.
        ``on_progress`` is told how it stands, every few seconds."""
        clock, poll_s = self._session.clock, self._session.poll_s
        end = None if timeout is None else clock.monotonic() + timeout
        while True:
            rest = poll_s if end is None else min(poll_s, max(0.0, end - clock.monotonic()))
            status = self.status(rest)
            if status.error is not None:
                raise status.error
            if status.is_over and self._has_stopped(rest):
                return status.location or ""
            if end is not None and clock.monotonic() >= end:
                raise RpcTimeoutError(f"the savepoint is not complete within {timeout:g} s")
            on_progress(status)

    def _has_stopped(self, wait_s: float) -> bool:
        """Whether the session knows that the job has ended, if it was to stop: it hears of it a
        moment later than the JobMaster."""
        if not self.request.snapshot_type.stops_job:
            return True
        return (
            self._session.ask(
                lambda dispatcher: dispatcher.request_job_result(self._job_id, wait_s), wait_s
            )
            is not None
        )


def savepoint_request(
    snapshot_type: SnapshotType, directory: str | PathLike[str] | None, format_type: str | None
) -> SavepointRequest:
    """A request under a new id. A folder without a scheme is a path on this machine, and relative
    ones start from this process's working directory."""
    if directory is not None and (not isinstance(directory, (str, PathLike)) or not str(directory)):
        raise ConfigurationError(
            f"a savepoint's folder is a path or a URL, this is {directory!r:.80}"
        )
    try:
        form = SavepointFormatType[(format_type or SavepointFormatType.NATIVE.name).upper()]
    except KeyError:
        raise ConfigurationError(
            f"savepoints are of type canonical or native, not {format_type}"
        ) from None
    return SavepointRequest(
        IdFactory().hex(),
        snapshot_type,
        None if directory is None else absolute(str(directory)),
        form,
    )
