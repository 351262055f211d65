"""A row for which an expression has no value: a division by zero, a text that is no number."""

from __future__ import annotations

from collections.abc import Mapping

from flinkpy.core.errors import BadRecordError

# What meanings and kernels raise for values that they cannot take; Arrow's are ValueErrors
VALUE_ERRORS = (ArithmeticError, ValueError)
# What a statement without FROM reads; an error does not name it
NO_COLUMN = "(no column)"
_MOST_COLUMNS, _MOST_CHARACTERS = 20, 60


def row_error(text: str, error: BaseException, row: Mapping[str, object]) -> BadRecordError:
    """The error of a row, with the expression's text and the row's values."""
    shown = [
        f"{name}={value!r:.{_MOST_CHARACTERS}}" for name, value in row.items() if name != NO_COLUMN
    ]
    if not shown:
        return BadRecordError(f"{text}: {_reason(error)}")
    if len(shown) > _MOST_COLUMNS:
        shown[_MOST_COLUMNS:] = ["..."]
    return BadRecordError(f"{text}: {_reason(error)}, in the row ({', '.join(shown)})")


def batch_error(text: str, error: BaseException, rows: int) -> BadRecordError:
    """The error of a function that takes whole batches, and does not say at which row it
    failed."""
    return BadRecordError(f"{text}: {_reason(error)}, in a batch of {rows} rows")


def _reason(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
