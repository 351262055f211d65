"""The state of one job as its scheduler drives it, and the error that the job is to be blamed
on."""

from __future__ import annotations

from flinkpy.core.errors import PartitionNotFoundError, RemoteError
from flinkpy.core.lifecycles import JOB, JobState, StateMachine
from flinkpy.scheduler.protocol import Command, JobStateChanged


def is_symptom(error: BaseException) -> bool:
    """Whether the failure only says that another one happened: a lost connection, a partition that
    went away, an error that a neighbour reports."""
    return isinstance(error, (PartitionNotFoundError, ConnectionError, RemoteError))


class RootCause:
    """Which of the failures that end a job is shown: the first, unless it is a mere symptom and a
    real one follows."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def offer(self, error: BaseException) -> None:
        if self.error is None or (is_symptom(self.error) and not is_symptom(error)):
            self.error = error


class JobLifecycle:
    """Moves the job from state to state; each move is a command, written to ``commands``."""

    def __init__(self, job_name: str, commands: list[Command]) -> None:
        self._machine = StateMachine(JOB, f"job {job_name!r}")
        self._commands = commands
        self.cause = RootCause()

    @property
    def state(self) -> JobState:
        return self._machine.state

    @property
    def is_terminal(self) -> bool:
        return self._machine.is_terminal

    @property
    def is_running(self) -> bool:
        """Whether the job makes progress, as a whole or in the parts that do not restart at the
        moment."""
        return self._machine.state in (JobState.RUNNING, JobState.RESTARTING)

    def allows(self, state: JobState) -> bool:
        return self._machine.lifecycle.allows(self._machine.state, state)

    def move(self, state: JobState, error: BaseException | None = None) -> None:
        """``error`` is why the job restarts. If it fails, the cause counts."""
        self._machine.move(state)
        is_failure = state in (JobState.FAILING, JobState.FAILED)
        self._commands.append(JobStateChanged(state, self.cause.error if is_failure else error))

    def blame(self, error: BaseException) -> None:
        """One more failure of a job that may be failing already: perhaps the one that caused the
        others."""
        if self._machine.state is JobState.FAILING:
            self.cause.offer(error)
