"""From an exception in the user's code to a :class:`UserCodeError` that says where: their frames, the operator, the subtask, the record.

The record is always the one at fault. What an operator made of the records before it in the same batch is not passed on: the attempt has failed, and
in Flink too it is chance how much of an attempt's last results had left it. A restart begins at the last checkpoint, as if neither had been.
"""

from __future__ import annotations

import linecache
import reprlib
import traceback
from types import FrameType, TracebackType
from typing import Any

from flinkpy.core.errors import FlinkpyError, UserCodeError, UserFrame
from flinkpy.operators.base import OperatorContext

RECORD_REPR_CHARS = 200

_NO_RECORD = object()


def user_code_error(error: BaseException, context: OperatorContext, record: Any = _NO_RECORD) -> FlinkpyError:
    """The error to raise for what a user's function raised. An error of the engine itself passes unchanged."""
    if isinstance(error, FlinkpyError):
        return error
    if record is _NO_RECORD:
        record = getattr(error, "record_at_fault", _NO_RECORD)  # of a key selector called by a writer
    return UserCodeError(
        f"{type(error).__name__}: {error}",
        operator=context.name, uid=context.uid, subtask=context.task.subtask_name,
        record=None if record is _NO_RECORD else bounded_repr(record),
        frames=user_frames(error.__traceback__),
        traceback="".join(traceback.format_exception(type(error), error, error.__traceback__)),
    )


def bounded_repr(value: Any, limit: int = RECORD_REPR_CHARS) -> str:
    """The value's repr, at most ``limit`` characters, whatever its ``__repr__`` does."""
    try:
        text = repr(value) if not _is_large(value) else reprlib.repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_large(value: Any) -> bool:
    return isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)) and len(value) > RECORD_REPR_CHARS


def user_frames(start: TracebackType | None) -> tuple[UserFrame, ...]:
    """The frames of the traceback that are not the engine's, outermost first."""
    frames = []
    here = start
    while here is not None:
        if not _is_engine(here.tb_frame):
            code = here.tb_frame.f_code
            text = linecache.getline(code.co_filename, here.tb_lineno).strip()
            frames.append(UserFrame(code.co_filename, here.tb_lineno, code.co_name, text))
        here = here.tb_next
    return tuple(frames)


def _is_engine(frame: FrameType) -> bool:
    # By module name, not by file: actors/, scheduler/ and network/ do not lie under flinkpy/.
    module = str(frame.f_globals.get("__name__", ""))
    return module == "flinkpy" or module.startswith("flinkpy.")
