"""The environment's base class: settings, sources and submission of one recorded program.

It is generic in the class of its streams, so that it need not import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from flinkpy.common.configuration import Configuration
from flinkpy.common.job_client import JobClient
from flinkpy.common.job_execution_result import JobExecutionResult
from flinkpy.common.job_listener import JobListener
from flinkpy.core.errors import ProgramError
from flinkpy.core.options import engine as options
from flinkpy.core.options.schema import read
from flinkpy.core.program.coroutines import refuse_coroutines
from flinkpy.core.program.prompts import shorten_errors
from flinkpy.datastream.env import submission
from flinkpy.datastream.env.checkpoint_settings import CheckpointSettings
from flinkpy.datastream.env.dependencies import ProgramFiles
from flinkpy.datastream.env.program_settings import ProgramSettings, default_options
from flinkpy.datastream.env.ray_sources import RaySources
from flinkpy.datastream.env.read_verbs import ReadVerbs
from flinkpy.datastream.env.source_verbs import S
from flinkpy.datastream.streams.recorded_program import RecordedProgram


class Environment(ProgramSettings, CheckpointSettings, ProgramFiles, RaySources[S], ReadVerbs[S]):
    """An environment whose sources return streams of type ``S``."""

    def __init__(self, configuration: Configuration | Mapping[str, Any] | None = None) -> None:
        shorten_errors()
        self.program = RecordedProgram(default_options())
        if configuration is not None:
            self.configure(configuration)

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs what was defined since the last ``execute``, and waits for it to end.

        Raises JobExecutionError if the job fails. If a function raised, its cause is a
        UserCodeError with the user's frame, the operator and the record. A job submitted detached
        (``flinkpy run -d``) is not waited for."""
        return submission.execute(self.program, job_name)

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Submits what was defined since the last ``execute`` and returns when the job has
        initialised, before its first record.

        Raises JobExecutionError if it cannot, as when the savepoint that it starts from does not
        fit. At its own end the program waits for jobs that would end with it, as embedded jobs
        do."""
        from flinkpy.cluster.end_of_program import register_background_job

        job = submission.submit(self.program, job_name, waits=True)
        if read(self.program.values, options.ATTACHED):
            register_background_job(job)
        return JobClient(job)

    def register_job_listener(self, job_listener: JobListener) -> None:
        """Calls the listener for each job that this environment submits from now on, and when the
        job has ended. Raises ProgramError for what is no JobListener.

        >>> env.register_job_listener(JobListener())  # doctest: +SKIP
        """
        if not isinstance(job_listener, JobListener):
            raise ProgramError(
                "register_job_listener() takes an object of a class derived from "
                f"JobListener, this is {job_listener!r:.80}"
            )
        refuse_coroutines(job_listener, "register_job_listener()")
        self.program.listeners.registered.append(job_listener)

    def get_job_listeners(self) -> list[JobListener]:
        """Those that were registered."""
        return list(self.program.listeners.registered)

    def clear_job_listeners(self) -> None:
        """Calls no listener from now on."""
        self.program.listeners.registered.clear()

    def get_execution_plan(self) -> str:
        """The plan as JSON: the operators and the streams between them."""
        from flinkpy.graph.plan import plan_json

        return plan_json(submission.stream_graph(self.program, None))

    def _repr_html_(self) -> str | None:
        """In a notebook, the graph of what was defined and not executed yet; with None it shows the
        text."""
        from flinkpy.cluster.display.plan_picture import plan_html

        try:
            return plan_html(submission.stream_graph(self.program, None), "not executed yet")
        except Exception:  # there is nothing yet, or it is not complete: execute() would say so
            return None

    def close(self) -> None:
        """Drops what was defined and not executed."""
        self.program.transformations.clear()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an environment belongs to the program: functions run on the workers, and cannot use it"
        )

    def __repr__(self) -> str:
        return (
            f"<StreamExecutionEnvironment: {len(self.program.transformations)} operators, "
            f"parallelism {self.get_parallelism()}>"
        )
