"""``col``, ``lit`` and the functions of expressions, at PyFlink's module path."""

from flinkpy.columns.expression_functions import (
    and_,
    coalesce,
    col,
    concat,
    concat_ws,
    date_format,
    greatest,
    if_then_else,
    least,
    lit,
    not_,
    null_of,
    or_,
    timestamp_diff,
    to_date,
    to_timestamp,
    to_timestamp_ltz,
    when,
)
from flinkpy.columns.units import TimeIntervalUnit, TimePointUnit
from flinkpy.core.program.public_names import publish

__all__ = [
    "TimeIntervalUnit",
    "TimePointUnit",
    "and_",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "date_format",
    "greatest",
    "if_then_else",
    "least",
    "lit",
    "not_",
    "null_of",
    "or_",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "when",
]

publish(__name__)
