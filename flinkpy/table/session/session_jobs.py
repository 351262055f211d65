"""The jobs that the statements of one session have submitted: SHOW JOBS, DESCRIBE JOB, STOP JOB."""

from __future__ import annotations

import datetime

from flinkpy.common.job_client import JobClient
from flinkpy.common.logical_types.logical_type import LocalZonedTimestampType, RowType
from flinkpy.core.errors import FlinkpyError
from flinkpy.sql.catalog.statement_rows import OK, STRING, StatementRows
from flinkpy.sql.sql_errors import Span, ValidationError
from flinkpy.sql.syntax.statements import StopJob

_COLUMNS = RowType.of(
    ("job id", STRING),
    ("job name", STRING),
    ("status", STRING),
    ("start time", LocalZonedTimestampType(precision=3)),
)


class SessionJobs:
    """In the order in which they were submitted."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobClient] = {}

    def add(self, job: JobClient) -> None:
        self._jobs[job.id] = job

    def shown(self) -> StatementRows:
        """A row for each job."""
        return StatementRows(_COLUMNS, tuple(map(_row, self._jobs.values())))

    def described(self, job_id: str, span: Span) -> StatementRows:
        """The row of one job."""
        return StatementRows(_COLUMNS, (_row(self._job(job_id, span)),))

    def stop(self, statement: StopJob, savepoints: str | None) -> StatementRows:
        """Cancels the job; or stops it with a savepoint in the folder ``savepoints``, and gives the
        savepoint's path."""
        if statement.with_drain and not statement.with_savepoint:
            raise ValidationError(
                "WITH DRAIN stands behind WITH SAVEPOINT: without a savepoint the job is cancelled",
                span=statement.span,
            )
        job = self._job(statement.job_id, statement.span)
        if not statement.with_savepoint:
            job.cancel().result()
            return OK
        path = job.stop_with_savepoint(statement.with_drain, savepoints).result()
        return StatementRows(RowType.of(("savepoint path", STRING)), ((path,),))

    def _job(self, job_id: str, span: Span) -> JobClient:
        found = self._jobs.get(job_id)
        if found is None:
            known = f"it has {', '.join(self._jobs)}" if self._jobs else "it has none"
            raise ValidationError(
                f"this session has submitted no job {job_id!r} ({known}); flinkpy list, cancel and "
                "stop reach those of others on Ray",
                span=span,
            )
        return found


def _row(job: JobClient) -> tuple[object, ...]:
    try:
        overview = job._job.details().overview
    except FlinkpyError:  # its cluster has ended with it
        return job.id, job._job.name, "UNKNOWN", None
    start = datetime.datetime.fromtimestamp(overview.start_ms / 1000, datetime.timezone.utc)
    return job.id, overview.name, overview.state.value, start
