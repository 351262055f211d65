"""Turns an exception of user code into a :class:`UserCodeError` that says where it happened: user's
frames, operator, subtask, record.

The error always names the record that failed. Results of the records before it in the same batch
are not emitted: the attempt has failed, and in Flink too it is chance how many of an attempt's last
results get out. A restart goes back to the last checkpoint anyway.

A function may also raise what is no Exception, such as SystemExit. It fails its record like any
other, so who calls a function catches BaseException. What comes from outside passes: see
``comes_from_outside``."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import traceback
from dataclasses import replace
from types import CodeType, FrameType, TracebackType

from flinkpy.core.errors import (
    BadRecordError,
    FlinkpyError,
    TaskInterrupted,
    UserCodeError,
    UserFrame,
)
from flinkpy.core.program.code import dumps
from flinkpy.core.users_values import bounded_repr
from flinkpy.operators.context import OperatorContext

MESSAGE_CHARS = 4000
ORIGINAL_BYTES = 1 << 20
FRAMES_AT_EACH_END = 8  # of the frames that are shown; endless recursion has a thousand

# the engine calls them too, so as outermost frames they are not the user's
_TOOLS = ("pyarrow", "numpy", "pandas")
_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen ")

_NO_RECORD = object()

ENDS_PROGRAMS = ", which ends programs; raise an Exception instead"


def user_code_error(
    error: BaseException, context: OperatorContext, record: object = _NO_RECORD
) -> FlinkpyError:
    """The error to raise for an exception of a user's function. Errors of the engine are returned
    unchanged; what comes from outside is raised."""
    if isinstance(error, FlinkpyError) and not is_of_function(error):
        return error
    if comes_from_outside(error):
        raise error
    frames = frames_of(error)
    return UserCodeError(
        format_error(error) + _hint(error, has_frames=bool(frames)),
        operator=context.name,
        uid=context.uid,
        subtask=context.task.subtask_name,
        record=record_at_fault(error) if record is _NO_RECORD else bounded_repr(record),
        frames=frames,
        traceback="".join(traceback.format_exception(type(error), error, error.__traceback__))
        if context.explains_errors
        else "",
        original=by_value(error) if context.explains_errors else None,
        is_exit=not isinstance(error, Exception),
    )


def record_at_fault(error: BaseException) -> str | None:
    """The record as an error shows it, if the exception says which it is: those raised for a writer
    or a source do. It is on the cause, if that was a StopIteration in a generator."""
    record = getattr(
        error, "record_at_fault", getattr(error.__cause__, "record_at_fault", _NO_RECORD)
    )
    return None if record is _NO_RECORD else bounded_repr(record)


def is_of_function(error: BaseException) -> bool:
    """Whether a function raised the error because of its record, and it is none of the program or
    the engine."""
    return not isinstance(error, FlinkpyError) or isinstance(error, BadRecordError)


def comes_from_outside(error: BaseException) -> bool:
    """Whether no function raised the error: the cancellation of its task, Ctrl-C, which Python
    raises in the main thread, or the end of a generator of the engine's that is dropped."""
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    return isinstance(error, TaskInterrupted) or (
        isinstance(error, GeneratorExit) and not frames_of(error)
    )


def by_value(error: BaseException) -> bytes | None:
    """The pickled exception, for the program that waits for the job; None if it cannot be pickled
    or is too large."""
    try:
        data = dumps(error, "the exception")
        return data if len(data) <= ORIGINAL_BYTES else None
    except Exception:
        return None


def _hint(error: BaseException, *, has_frames: bool) -> str:
    """What to change if the function raised what is no Exception, or returned something the engine
    cannot use; the traceback then has no frame of the user."""
    if not isinstance(error, Exception):
        return ENDS_PROGRAMS
    text = str(error) if type(error) is TypeError and not has_frames else ""
    if text.startswith("unhashable type"):
        return (
            "; a key must be hashable: instead of a list or a dict use a tuple of what tells "
            "records apart"
        )
    if text.endswith("is not iterable"):
        return (
            "; a function with any number of results returns a list of them, or yields each; "
            "for exactly one there is map()"
        )
    return ""


def frames_of(error: BaseException) -> tuple[UserFrame, ...]:
    """The user's frames of the error, or else of its cause. The interpreter turns a StopIteration
    raised in a generator into a RuntimeError, and only its cause has the user's frame."""
    found = user_frames(error.__traceback__)
    return found if found or error.__cause__ is None else user_frames(error.__cause__.__traceback__)


def format_error(error: BaseException) -> str:
    """The error's type, text and notes, and those of the errors it was raised from; of bounded
    length, whatever ``__str__`` does."""
    text = _text(error)
    cause, seen = error.__cause__, {id(error)}
    while cause is not None and id(cause) not in seen:
        text += f" (raised from {_text(cause)})"
        seen.add(id(cause))
        cause = cause.__cause__
    return text if len(text) <= 2 * MESSAGE_CHARS else text[: 2 * MESSAGE_CHARS - 1] + "…"


def _text(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = "\n".join([str(error), *map(str, getattr(error, "__notes__", ()))])
    except BaseException as another:  # SystemExit too: it is about another error
        return f"{name}, whose text raises {type(another).__name__}"
    if not text:
        return name
    return f"{name}: {text if len(text) <= MESSAGE_CHARS else text[: MESSAGE_CHARS - 1] + '…'}"


def user_frames(start: TracebackType | None) -> tuple[UserFrame, ...]:
    """The user's frames of the traceback, outermost first; frames of the engine and of libraries
    that it calls are left out. If there are very many, only those at both ends."""
    found: list[tuple[CodeType, int]] = []
    here = start
    while here is not None:
        if not (is_engine(here.tb_frame) or (not found and is_tool(here.tb_frame))):
            found.append((here.tb_frame.f_code, here.tb_lineno))
        here = here.tb_next
    frames = [_frame(code, line) for code, line in found[:FRAMES_AT_EACH_END]]
    rest = found[FRAMES_AT_EACH_END:]
    if len(rest) > FRAMES_AT_EACH_END:
        left_out, rest = len(rest) - FRAMES_AT_EACH_END, rest[-FRAMES_AT_EACH_END:]
        frames[-1] = replace(frames[-1], text=f"{frames[-1].text}\n  … {left_out} more frames")
    return (*frames, *(_frame(code, line) for code, line in rest))


def _frame(code: CodeType, line: int) -> UserFrame:
    return UserFrame(
        code.co_filename, line, code.co_name, linecache.getline(code.co_filename, line).strip()
    )


def is_tool(frame: FrameType) -> bool:
    """Whether the frame is of the standard library, or of a library that the engine calls too."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in _TOOLS or (
        package in sys.stdlib_module_names and frame.f_code.co_filename.startswith(_STANDARD)
    )


def is_engine(frame: FrameType) -> bool:
    """Whether the frame is of flinkpy."""
    # By module name, not by file: actors/, scheduler/ and network/ do not lie under flinkpy/.
    module = str(frame.f_globals.get("__name__", ""))
    return module == "flinkpy" or module.startswith("flinkpy.")
