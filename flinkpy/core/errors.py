"""Errors, sorted by who must act: the job's author, the cluster's operator, the peer, or the
engine's developers (a bug).

Every error can be pickled, because a failure crosses processes on its way to the user. Its message
says what to change."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

from flinkpy.core.secrets.hidden_secrets import without_secrets
from flinkpy.core.source_places import frame_text, short_traceback


class FlinkpyError(Exception):
    """The base class of all errors flinkpy raises. Its text has no secrets: it is shown, logged and
    archived."""

    def __str__(self) -> str:
        return without_secrets(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows (IPython asks for it): the user's lines and the message, none of
        the engine's frames."""
        return short_traceback(self)


# -- the job's author must act ---------------------------------------------------------------------


class ProgramError(FlinkpyError):
    """The program asks for something impossible; raised while it is built, and names the option or
    call to change."""


class ConfigurationError(ProgramError):
    """An option has a wrong name, type or value, or contradicts another one."""


class SavepointRestoreError(ProgramError):
    """The job cannot start from that checkpoint or savepoint: names the operators whose state has
    no place in it."""


class BoundToParallelismError(SavepointRestoreError):
    """The checkpoint has records in flight that can only go on with the parallelism they were sent
    with."""


class OutputClosedError(ProgramError):
    """The reader of what the job prints has gone away (``python job.py | head``)."""


@dataclass(frozen=True)
class UserFrame:
    """One line of the user's own code in a traceback."""

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        return frame_text(self.file, self.line, self.function, self.text)


class BadRecordError(FlinkpyError):
    """A function of flinkpy cannot take its record. To an error policy it is as if a function of
    yours had raised."""


class UserCodeError(FlinkpyError):
    """The user's function raised an exception. Says where: the user's frames, the operator, the
    subtask, the record.

    ``record`` is a repr of bounded length; ``origin`` says which source split and offset the record
    came from, if known. ``traceback`` is the full traceback. ``original`` is the pickled exception,
    if it could be pickled. ``is_exit``: it is no Exception, as SystemExit, so the job is not
    restarted."""

    def __init__(
        self,
        cause: str,
        *,
        operator: str,
        uid: str | None = None,
        subtask: str = "",
        record: str | None = None,
        origin: str | None = None,
        frames: tuple[UserFrame, ...] = (),
        traceback: str = "",
        original: bytes | None = None,
        is_exit: bool = False,
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.operator = operator
        self.uid = uid
        self.subtask = subtask
        self.record = record
        self.origin = origin
        self.frames = frames
        self.traceback = traceback
        self.original = original
        self.is_exit = is_exit

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_user_code_error, (
            self.cause,
            dict(
                operator=self.operator,
                uid=self.uid,
                subtask=self.subtask,
                record=self.record,
                origin=self.origin,
                frames=self.frames,
                traceback=self.traceback,
                original=self.original,
                is_exit=self.is_exit,
            ),
        )

    def __str__(self) -> str:
        lines = [self.cause, *map(str, self.frames)]
        lines.append(
            f"  in operator {self.operator!r}"
            + (f" (uid {self.uid})" if self.uid else "")
            + (f", subtask {self.subtask}" if self.subtask else "")
        )
        if self.record is not None:
            lines.append(f"  on record {self.record}")
        if self.origin is not None:
            lines.append(f"  from {self.origin}")
        return without_secrets("\n".join(lines))


def _rebuild_user_code_error(cause: str, fields: dict[str, Any]) -> UserCodeError:
    return UserCodeError(cause, **fields)


class TaskInterrupted(BaseException):
    """Raised in a function of a task that was cancelled. ``finally`` and ``with`` work as usual; it
    is no Exception, so that ``except Exception`` does not hold it up."""


class JobExecutionError(FlinkpyError):
    """The job ended FAILED. ``cause`` says why; if a function raised, it is a UserCodeError and
    ``__cause__`` is the function's exception."""

    def __init__(self, job_name: str, cause: BaseException) -> None:
        super().__init__(job_name, cause)
        self.job_name, self.cause = job_name, cause

    def __str__(self) -> str:
        return without_secrets(f"job {self.job_name!r} failed: {self.cause}")


class JobRestartedError(FlinkpyError):
    """The job restarted from its beginning after somebody had read some of its results."""


class JobCancelledError(FlinkpyError):
    """The job ended CANCELED while somebody waited for its result."""


# -- the cluster's operator must act ---------------------------------------------------------------


class ResourceUnavailableError(FlinkpyError):
    """The cluster can never give what the job asks for, or did not in time; says how much was asked
    for and by which option."""


class TaskExecutorLostError(FlinkpyError):
    """A worker process was lost, and its tasks failed with it."""


class MemoryLimitExceededError(FlinkpyError):
    """A worker was about to exceed the memory that options give it, and the task that had grown
    most failed. Names the owners of the memory, and what would make it less."""


class CheckpointDamagedError(FlinkpyError):
    """A file of a checkpoint is not what was written: cut short, altered, exchanged or gone. Says
    which file, what it should be, and what was found."""

    def __init__(self, file: str, expected: str, found: str) -> None:
        super().__init__(file, expected, found)
        self.file = file
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return without_secrets(
            f"the checkpoint is damaged: {self.file} should be {self.expected}, found {self.found}"
        )


class CheckpointError(FlinkpyError):
    """More checkpoints failed in a row than the job tolerates; says why the last one did."""


class SavepointError(FlinkpyError):
    """There is no savepoint; says why. Unless the message says otherwise, the job goes on as if
    nobody had asked."""


# -- the peer must act: refused, the sender may retry or is wrong ----------------------------------


class RpcError(FlinkpyError):
    """A remote call did not come back with a value."""


class RpcTimeoutError(RpcError):
    """No answer came within the timeout; the call may or may not have been carried out."""


class RecipientUnreachableError(RpcError):
    """Nobody listens at the address, or the process has died."""


class EndpointNotRunningError(RpcError):
    """The endpoint has not started yet, or is stopping."""


class ProcessEndedError(RpcError):
    """The process that was asked ends: by an error of the engine (``is_bug``), or because it was
    told to; the message says which."""

    def __init__(self, message: str, is_bug: bool = False) -> None:
        super().__init__(message, is_bug)
        self.message, self.is_bug = message, is_bug

    def __str__(self) -> str:
        return self.message


class NotRegisteredError(RpcError):
    """The recipient does not know the caller, or no longer does; the caller must register again."""


class FencingError(RpcError):
    """The message carries the fencing token of an earlier leader."""


class HandshakeError(RpcError):
    """The two sides differ in version or gateway."""


class RemoteError(RpcError):
    """The remote method raised an exception, whose traceback this carries as text."""

    def __init__(self, message: str, remote_traceback: str = "") -> None:
        super().__init__(message, remote_traceback)
        self.message, self.remote_traceback = message, remote_traceback

    def __str__(self) -> str:
        return without_secrets(
            f"{self.message}\n{self.remote_traceback}" if self.remote_traceback else self.message
        )


class NetworkProtocolError(FlinkpyError):
    """A peer broke the protocol of data connections: bad secret, garbage, repeated or missing
    frame, excessive length."""


class PartitionNotFoundError(FlinkpyError):
    """The requested result partition does not exist yet, or no longer does."""


# -- a bug in the engine ---------------------------------------------------------------------------


class EngineError(FlinkpyError):
    """An invariant of the engine does not hold. Please report it with its text."""

    def _render_traceback_(self) -> list[str]:
        return [
            *traceback.format_exception(self),
            "this is a bug in flinkpy, please report it with this text",
        ]


class IllegalTransitionError(EngineError):
    """A state machine was asked for a move that its table does not allow; names the owner, both
    states and the last moves."""
