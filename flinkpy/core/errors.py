"""Errors, sorted by who must act: the job's author, the cluster's operator, the peer, or the engine (a bug).

Every one pickles (a failure crosses processes on its way to the user), and its message says what to change.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

from flinkpy.core.program.places import frame_text, short_traceback


class FlinkpyError(Exception):
    """The root of what flinkpy raises."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows (IPython asks for it): the user's lines and the message, none of the engine's frames."""
        return short_traceback(self)


# -- the job's author must act ---------------------------------------------------------------------------------------


class ProgramError(FlinkpyError):
    """The program asks for what cannot be: refused when it is built, with the option or call to change."""


class ConfigurationError(ProgramError):
    """An option has a wrong name, type or value, or contradicts another one."""


class SavepointRestoreError(ProgramError):
    """The job cannot start from that checkpoint or savepoint: names the operators whose state has no place in it."""


class OutputClosedError(ProgramError):
    """Whoever read what the job prints has gone (``python job.py | head``)."""


@dataclass(frozen=True)
class UserFrame:
    """One line of the user's own code in a traceback."""

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        return frame_text(self.file, self.line, self.function, self.text)


class UserCodeError(FlinkpyError):
    """The user's function raised. Says where: the user's frames, the operator, the subtask, the record.

    ``record`` is a bounded repr; ``origin`` says which source split and offset it came from, where known;
    ``traceback`` is the full one, for those who ask, and ``original`` the exception itself, by value, where it travels.
    """

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
    ) -> None:
        super().__init__(cause)
        self.cause, self.operator, self.uid, self.subtask = cause, operator, uid, subtask
        self.record, self.origin, self.frames, self.traceback, self.original = record, origin, frames, traceback, original

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_user_code_error, (self.cause, dict(
            operator=self.operator, uid=self.uid, subtask=self.subtask, record=self.record,
            origin=self.origin, frames=self.frames, traceback=self.traceback, original=self.original,
        ))

    def __str__(self) -> str:
        lines = [self.cause, *map(str, self.frames)]
        lines.append(f"  in operator {self.operator!r}" + (f" (uid {self.uid})" if self.uid else "")
                     + (f", subtask {self.subtask}" if self.subtask else ""))
        if self.record is not None:
            lines.append(f"  on record {self.record}")
        if self.origin is not None:
            lines.append(f"  from {self.origin}")
        return "\n".join(lines)


def _rebuild_user_code_error(cause: str, fields: dict[str, Any]) -> UserCodeError:
    return UserCodeError(cause, **fields)


class JobExecutionError(FlinkpyError):
    """The job ended FAILED. ``cause`` says why: a UserCodeError where a function raised, and ``__cause__`` is then what it raised."""

    def __init__(self, job_name: str, cause: BaseException) -> None:
        super().__init__(job_name, cause)
        self.job_name, self.cause = job_name, cause

    def __str__(self) -> str:
        return f"job {self.job_name!r} failed: {self.cause}"


class JobRestartedError(FlinkpyError):
    """The job was restarted from its beginning while somebody was reading its results, who has had some of them."""


class JobCancelledError(FlinkpyError):
    """The job ended CANCELED while somebody waited for its result."""


# -- the cluster's operator must act ---------------------------------------------------------------------------------


class ResourceUnavailableError(FlinkpyError):
    """The cluster cannot ever, or did not in time, give what the job asks for; says how much and which option."""


class TaskExecutorLostError(FlinkpyError):
    """A worker process went away; its tasks failed with it."""


class CheckpointDamagedError(FlinkpyError):
    """A file of a checkpoint is not what was written: cut short, altered, exchanged or gone. Says which file, what it
    should be, and what was found."""

    def __init__(self, file: str, expected: str, found: str) -> None:
        super().__init__(file, expected, found)
        self.file, self.expected, self.found = file, expected, found

    def __str__(self) -> str:
        return f"the checkpoint is damaged: {self.file} should be {self.expected}, found {self.found}"


class CheckpointError(FlinkpyError):
    """More checkpoints failed in a row than the job tolerates; says why the last one did."""


# -- the peer must act: refused, the sender may retry or is wrong -----------------------------------------------------


class RpcError(FlinkpyError):
    """A remote call did not come back with a value."""


class RpcTimeoutError(RpcError):
    """No answer within the timeout; the call may or may not have been carried out."""


class RecipientUnreachableError(RpcError):
    """Nobody listens at the address, or the process died."""


class EndpointNotRunningError(RpcError):
    """The endpoint was not started yet, or is stopping."""


class NotRegisteredError(RpcError):
    """The recipient does not know the caller (any more): register again."""


class FencingError(RpcError):
    """The message carries a stale leader's token."""


class HandshakeError(RpcError):
    """Version or gateway of the two sides do not agree."""


class RemoteError(RpcError):
    """The remote method raised something; carries its traceback as text."""

    def __init__(self, message: str, remote_traceback: str = "") -> None:
        super().__init__(message, remote_traceback)
        self.message, self.remote_traceback = message, remote_traceback

    def __str__(self) -> str:
        return f"{self.message}\n{self.remote_traceback}" if self.remote_traceback else self.message


class NetworkProtocolError(FlinkpyError):
    """A data connection said something it must not: bad secret, garbage, doubled or missing frame, oversized length."""


class PartitionNotFoundError(FlinkpyError):
    """The requested result partition is not there (yet, or any more)."""


# -- a bug in the engine ------------------------------------------------------------------------------------------------


class EngineError(FlinkpyError):
    """An invariant of the engine does not hold. Please report it with the text."""

    def _render_traceback_(self) -> list[str]:
        return [*traceback.format_exception(self), "this is a bug in flinkpy, please report it with this text"]


class IllegalTransitionError(EngineError):
    """A state machine was asked for a move its table does not have; tells who, from, to and the last events."""
