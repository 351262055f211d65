"""The program's handle on a submitted job: its state, its result, and how to cancel it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from flinkpy.common.completable_future import CompletableFuture
from flinkpy.common.job_execution_result import JobExecutionResult
from flinkpy.common.job_id import JobID
from flinkpy.common.job_status import JobStatus
from flinkpy.core.elements import SnapshotType
from flinkpy.core.lifecycles import JobState
from flinkpy.metrics.reported import without_metrics


class SubmittedJob(Protocol):
    """A job as the cluster's client returns it (``flinkpy.cluster.client.ClusterJob``). All calls
    block."""

    @property
    def job_id(self) -> str: ...

    @property
    def name(self) -> str: ...

    def status(self) -> JobState: ...

    def details(self) -> Any: ...

    def metrics(self) -> Any: ...

    def picture(self) -> Any: ...

    def cancel(self) -> None: ...

    def request_savepoint(
        self,
        snapshot_type: SnapshotType,
        directory: str | PathLike[str] | None = None,
        format_type: str | None = None,
    ) -> Any: ...

    def result(self, timeout: float | None = None) -> Any: ...


_RESULT = "write get_job_execution_result().result(), which waits for the job's end"
_INSTEAD = {  # what people try, and what to write
    **dict.fromkeys(("wait", "await_termination", "join", "result", "get", "done"), _RESULT),
    **dict.fromkeys(
        ("stop", "kill", "terminate", "abort"),
        ("write cancel().result(), or stop_with_savepoint(...) for a job that is to go on later"),
    ),
    **dict.fromkeys(("state", "get_status", "is_running"), "write status"),
    "job_id": "write id, or get_job_id() for PyFlink's JobID",
    **dict.fromkeys(
        ("metrics", "accumulators"), "write get_metrics().result() or get_accumulators().result()"
    ),
    "savepoint": "write trigger_savepoint().result()",
}


class JobClient:
    """Returned by ``env.execute_async()``.

    >>> client = env.execute_async("words")  # doctest: +SKIP
    >>> client.get_job_status().result()  # doctest: +SKIP
    <JobStatus.RUNNING: 'RUNNING'>
    >>> client.cancel().result()  # doctest: +SKIP
    """

    def __init__(self, job: SubmittedJob) -> None:
        self._job = job

    @property
    def id(self) -> str:
        """The job's id, as the command line takes it; ``get_job_id`` gives PyFlink's JobID."""
        return self._job.job_id

    @property
    def status(self) -> JobStatus:
        """The job's state now; ``get_job_status`` gives PyFlink's future of it.

        >>> client.status.name  # doctest: +SKIP
        'RUNNING'
        """
        return JobStatus[self._job.status().name]

    def get_job_id(self) -> JobID:
        return JobID(self._job.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """The job's state at the time when ``result`` is called."""
        return CompletableFuture(lambda timeout: JobStatus[self._job.status().name])

    def cancel(self) -> CompletableFuture[None]:
        """Sends the cancellation at once; the future is done when it has been delivered."""
        return _started(self._job.cancel)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result at the job's end. The future's ``result`` raises JobExecutionError if the job
        failed, JobCancelledError if it was cancelled."""
        return CompletableFuture(self._execution_result, self._job.cancel)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The accumulators, merged over subtasks; those of a running job have their current
        values."""
        return CompletableFuture(
            lambda timeout: without_metrics(self._job.metrics().accumulators)[0]
        )

    def get_metrics(self) -> CompletableFuture[dict[str, Any]]:
        """The current metrics by identifier: those of functions (``Map.0.late``); and for each
        running subtask those of the engine (docs/metrics.md), prefixed with the task (``Source:
        numbers -> Map.0.busyTimeMsPerSecond``) or the operator (``Map.0.numRecordsOut``), as long
        as that has a name of its own. Of a job that has ended all remain but those per second."""
        return CompletableFuture(self._metrics)

    def trigger_savepoint(
        self, savepoint_directory: str | PathLike[str] | None = None, format_type: object = None
    ) -> CompletableFuture[str]:
        """Asks for a savepoint at once, while the job goes on. The future has its folder: a new one
        in ``savepoint_directory``, or in the folder of ``execution.checkpointing.savepoint-dir``.
        Its ``result`` raises SavepointError with the reason if there is none."""
        return self._savepoint(SnapshotType.SAVEPOINT, savepoint_directory, format_type)

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,
        savepoint_directory: str | PathLike[str] | None = None,
        format_type: object = None,
    ) -> CompletableFuture[str]:
        """Asks for a savepoint at once, and for the job to stop with it: nothing is processed
        behind it, and the job ends FINISHED. With ``advance_to_end_of_event_time`` the sources end
        first, and windows and timers of event time fire: for a job that is not to go on. The future
        has the savepoint's folder when the job has ended; its ``result`` raises SavepointError with
        the reason if there is none."""
        kind = SnapshotType.TERMINATE if advance_to_end_of_event_time else SnapshotType.SUSPEND
        return self._savepoint(kind, savepoint_directory, format_type)

    def _savepoint(
        self, kind: SnapshotType, directory: str | PathLike[str] | None, format_type: object
    ) -> CompletableFuture[str]:
        name = None if format_type is None else str(getattr(format_type, "name", format_type))
        future: CompletableFuture[str] = CompletableFuture(
            self._job.request_savepoint(kind, directory, name).result
        )
        future.done()  # sends the request
        return future

    def _execution_result(self, timeout: float | None = None) -> JobExecutionResult:
        return execution_result(self._job.result(timeout), self._job.name)

    def _metrics(self, timeout: float | None) -> dict[str, Any]:
        told = self._job.metrics()
        return {**told.engine, **without_metrics(told.accumulators)[1]}

    if not TYPE_CHECKING:  # mypy must report a missing attribute

        def __getattr__(self, name: str) -> NoReturn:
            hint = (
                f"a JobClient has no {name}: {_INSTEAD[name]}"
                if name in _INSTEAD
                else f"'JobClient' object has no attribute {name!r}"
            )
            raise AttributeError(hint, name=name, obj=self)

    def __repr__(self) -> str:
        """The job's state, and a line for each vertex: records per second since the last call, and
        in total."""
        try:
            return str(self._job.picture())
        except Exception as error:
            # a repr must not raise
            return f"<JobClient {self._job.name!r} {self._job.job_id}: {error}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Text and HTML from the same moment; notebooks call this first."""
        try:
            picture = self._job.picture()
            return {"text/plain": str(picture), "text/html": picture.html()}
        except Exception:
            return {"text/plain": repr(self)}

    def _repr_html_(self) -> str | None:
        """The job's graph with states, records and back-pressure, for notebooks; with None they
        show the text."""
        return self._repr_mimebundle_().get("text/html")


def execution_result(result: Any, name: str) -> JobExecutionResult:
    """The cluster's JobResult as PyFlink's class."""
    return JobExecutionResult(result.job_id, name, result.runtime_ms, result.accumulators)


def _started(action: Callable[[], None]) -> CompletableFuture[None]:
    future: CompletableFuture[None] = CompletableFuture(lambda timeout: action())
    future.done()
    return future
