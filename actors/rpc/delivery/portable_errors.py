"""Errors made fit to travel to another process, with the traceback of the process they come
from."""

from __future__ import annotations

import pickle
import traceback

from flinkpy.core.errors import FlinkpyError, RemoteError


def portable(error: BaseException) -> FlinkpyError:
    """Returns the error in a form that can travel: flinkpy's own errors as they are, with a
    ``remote_traceback``; any other error, and one that does not pickle, as a RemoteError with the
    same text."""
    text = remote_traceback_of(error) or "".join(
        traceback.format_exception(type(error), error, error.__traceback__)
    )
    if isinstance(error, FlinkpyError) and _pickles(error):
        return with_remote_traceback(error, text)
    return RemoteError(f"{type(error).__name__}: {error}", text)


def remote_traceback_of(error: BaseException) -> str:
    """Returns the traceback of the process that an error came from; empty for an error that never
    travelled."""
    return str(getattr(error, "remote_traceback", ""))


def with_remote_traceback(error: FlinkpyError, text: str) -> FlinkpyError:
    error.remote_traceback = text  # type: ignore[attr-defined]  # no add_note before Python 3.11
    return error


def _pickles(error: BaseException) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # whatever a foreign __reduce__ or __init__ raises
        return False
