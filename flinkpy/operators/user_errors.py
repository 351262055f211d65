"""Turns an exception of user code into a :class:`UserCodeError` that says where it happened: user's
frames, operator, subtask, record.

The error always names the record that failed. Results of the records before it in the same batch
are not emitted: the attempt has failed, and in Flink too it is chance how many of an attempt's last
results get out. A restart goes back to the last checkpoint anyway.

A function may also raise what is no Exception, such as SystemExit. It fails its record like any
other, so who calls a function catches BaseException. What comes from outside passes: see
``comes_from_outside``."""

from __future__ import annotations

import functools
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import replace
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any, NoReturn

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
_FEW = 8  # a longer tuple holds data

ENDS_PROGRAMS = ", which ends programs; raise an Exception instead"


def user_code_error(
    error: BaseException, context: OperatorContext, record: object = _NO_RECORD
) -> FlinkpyError:
    """The error to raise for an exception of a user's function. Errors of the engine are returned
    as they are, with the user's line if a function called what raises them; what comes from outside
    is raised."""
    if isinstance(error, FlinkpyError) and not is_of_function(error):
        return with_place(
            error,
            operator=context.name,
            uid=context.uid,
            subtask=context.task.subtask_name,
            record=None if record is _NO_RECORD else bounded_repr(record),
        )
    if comes_from_outside(error):
        raise error
    frames = frames_of(error)
    return UserCodeError(
        format_error(error) + _hint(error, has_frames=bool(frames)),
        operator=context.name,
        uid=context.uid,
        subtask=context.task.subtask_name,
        record=record_at_fault(error) if record is _NO_RECORD else bounded_repr(record),
        frames=frames or frames_of_declaration(error, context.functions),
        traceback="".join(traceback.format_exception(type(error), error, error.__traceback__))
        if context.explains_errors
        else "",
        original=by_value(error) if context.explains_errors else None,
        is_exit=not isinstance(error, Exception),
    )


def raise_told(
    error: BaseException, context: OperatorContext, record: object = _NO_RECORD
) -> NoReturn:
    """Raises what ``user_code_error`` gives. An error of the engine that passes through stays the
    same object."""
    told = user_code_error(error, context, record)
    if told is error:
        raise error
    raise told from error


def with_place(error: FlinkpyError, **where: Any) -> FlinkpyError:
    """The error of the engine, with the function's line and ``where`` it was in its text, if a
    function raised it or called what raises it. What passes an outer operator has them already."""
    frames = user_frames(error.__traceback__)
    if frames and type(error).__str__ is FlinkpyError.__str__ and not hasattr(error, "has_place"):
        error.has_place = True  # type: ignore[attr-defined]
        told = UserCodeError(str(error), frames=frames, **where)
        error.args = (str(told), *error.args[1:])
    return error


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


def frames_of_declaration(
    error: BaseException, functions: Sequence[object] = ()
) -> tuple[UserFrame, ...]:
    """Where the function is declared whose result the engine could not use: the function has
    returned, and has no frame of its own in the traceback. The error may say which one it is.
    Otherwise it is one of the operator's functions, of which key selectors are the first."""
    at_fault = getattr(error, "function_at_fault", None)
    if at_fault is not None:
        functions = (at_fault,)
    codes = [code for code in map(code_of, functions) if code is not None]
    if len(codes) > 1:
        codes = codes[:-1] if _is_of_key(error) else codes[-1:]
    return tuple(_frame(code, code.co_firstlineno) for code in codes)


def _is_of_key(error: BaseException) -> bool:
    return str(error).startswith(("unhashable type", "what makes the key", "a key "))


def code_of(function: object) -> CodeType | None:
    """The code of a function of the program's own, or of the method that the engine calls of a
    function object; of one of the engine's, that of the program's own which it holds. None if there
    is none in Python."""
    waiting, seen = [function], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        found = _python_function(each)
        if found is not None and _is_users(found):
            return found.__code__
        waiting += _held_by(each)
    return None


def _python_function(value: object) -> FunctionType | None:
    function = getattr(value, "__func__", value)
    if isinstance(function, FunctionType):
        return function
    kind = type(value)
    called = [name for base in kind.__mro__ for name in getattr(base, "__abstractmethods__", ())]
    methods = (getattr(kind, name, None) for name in [*called, "__call__"])
    return next((each for each in methods if isinstance(each, FunctionType)), None)


def _is_users(function: FunctionType) -> bool:
    module = str(function.__module__)
    return not (is_engine_module(module) or _is_tool_module(module, function.__code__.co_filename))


def _held_by(value: object) -> list[Any]:
    """What a function or an object of the engine's holds."""
    if isinstance(value, functools.partial):
        return [value.func, *value.args]
    if type(value) is tuple and len(value) <= _FEW:
        return list(value)
    if isinstance(value, FunctionType):
        if not is_engine_module(str(value.__module__)):
            return []
        return [cell.cell_contents for cell in value.__closure__ or ()]
    if isinstance(value, MethodType):
        return [value.__self__]
    if is_engine_module(type(value).__module__):
        return list(getattr(value, "__dict__", {}).values())
    return []


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
    return _is_tool_module(str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename)


def _is_tool_module(name: str, file: str) -> bool:
    package = name.partition(".")[0]
    return package in _TOOLS or (package in sys.stdlib_module_names and file.startswith(_STANDARD))


def is_engine(frame: FrameType) -> bool:
    """Whether the frame is of flinkpy."""
    # By module name, not by file: actors/, scheduler/ and network/ do not lie under flinkpy/.
    return is_engine_module(str(frame.f_globals.get("__name__", "")))


def is_engine_module(name: str) -> bool:
    """Whether the module of that name is flinkpy's."""
    return name == "flinkpy" or name.startswith("flinkpy.")
