"""Listeners of a program: they are called when its jobs are submitted and when they have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.core.secrets.engine_logs import engine_logger

if TYPE_CHECKING:
    from flinkpy.common.job_client import JobClient
    from flinkpy.common.job_execution_result import JobExecutionResult

LOG = engine_logger(__name__)


class JobListener:
    """Derive from it, and register it with ``env.register_job_listener``. Both methods are called
    in the program's thread.

    >>> class Told(JobListener):
    ...     def on_job_submitted(self, job_client, error):
    ...         print("submitted" if error is None else error)
    """

    def on_job_submitted(self, job_client: JobClient | None, error: BaseException | None) -> None:
        """A job was submitted, or could not be: one of both is None."""

    def on_job_executed(
        self, result: JobExecutionResult | None, error: BaseException | None
    ) -> None:
        """``env.execute()`` is about to return this result, or to raise this error;
        ``execute_async()`` does not call this."""


class JobListeners:
    """Those of one environment, in the order in which they were registered. What a listener raises
    is logged, and changes nothing."""

    def __init__(self) -> None:
        self.registered: list[JobListener] = []

    def submitted(self, job_client: JobClient | None, error: BaseException | None) -> None:
        for listener in self.registered:
            try:
                listener.on_job_submitted(job_client, error)
            except Exception:
                LOG.warning(
                    "%r failed when it was told of a submitted job", listener, exc_info=True
                )

    def executed(self, result: JobExecutionResult | None, error: BaseException | None) -> None:
        for listener in self.registered:
            try:
                listener.on_job_executed(result, error)
            except Exception:
                LOG.warning(
                    "%r failed when it was told of a job that has ended", listener, exc_info=True
                )
