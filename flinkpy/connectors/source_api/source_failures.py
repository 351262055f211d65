"""Turns an error inside a source into one that its author can act on."""

from __future__ import annotations

import traceback

from flinkpy.core.errors import FlinkpyError, UserCodeError
from flinkpy.operators.user_errors import (
    by_value,
    format_error,
    frames_of,
    frames_of_declaration,
    record_at_fault,
    with_place,
)


def as_user_error(
    error: BaseException,
    operator: str,
    *,
    uid: str | None = None,
    subtask: str = "",
    origin: str | None = None,
) -> FlinkpyError:
    """``error`` as a UserCodeError that names the operator; errors of flinkpy stay what
    they are."""
    if isinstance(error, FlinkpyError):
        return with_place(error, operator=operator, uid=uid, subtask=subtask, origin=origin)
    wrapped = UserCodeError(
        format_error(error),
        operator=operator,
        uid=uid,
        subtask=subtask,
        record=record_at_fault(error),
        origin=origin,
        frames=frames_of(error) or frames_of_declaration(error),
        traceback="".join(traceback.format_exception(type(error), error, error.__traceback__)),
        original=by_value(error),
    )
    wrapped.__cause__ = error
    return wrapped
