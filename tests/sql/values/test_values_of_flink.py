"""Each expression of which Flink was asked the value: the meaning and the kernels give it too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flinkpy.columns.sql.row_errors import VALUE_ERRORS
from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS
from flinkpy.core.errors import BadRecordError
from flinkpy.sql.logical.logical_rex import RexAggregate
from flinkpy.sql.rex.rex_nodes import Rex
from flinkpy.sql.sql_errors import SqlError
from tests.sql.values.reference_values import (
    ReferenceValue,
    bound,
    functions_in,
    kernel_of,
    meaning_of,
    reference_values,
    shown,
)

REFERENCE = reference_values()
# Where Flink gives one answer when it folds a constant and another for a row, flinkpy gives the
# second one always; the table has that too, of expressions over a column.
OF_ROWS = {
    # it folds a FLOAT as if it were a DOUBLE
    "CAST(CAST(0.1 AS FLOAT) AS DOUBLE)": "0.10000000149011612",
    # it fails as the null that comes is NOT NULL for constants
    "LPAD('abc', 5, '')": "NULL",
    "LPAD('abc', -1, 'x')": "NULL",
}
_AT_RUN_TIME = {"True": "TRUE", "False": "FALSE", "inf": "Infinity"}


def wanted(reference: ReferenceValue) -> str:
    """The value of the table. What was collected at run time is written as Python writes it."""
    value = OF_ROWS.get(reference.expression, reference.value)
    return _AT_RUN_TIME.get(value, value) if reference.at_run_time else value


def scalar(reference: ReferenceValue) -> Rex | None:
    """The expression, if all its functions are there; None for an aggregate, or a refusal."""
    try:
        rex = bound(reference.expression)
    except SqlError:
        assert reference.value == "refused"
        return None
    if isinstance(rex, RexAggregate) or not functions_in(rex) <= SQL_MEANINGS.keys():
        return None
    return rex


def value_or_error(compute: object) -> str:
    assert callable(compute)
    try:
        return str(compute())
    except VALUE_ERRORS + (BadRecordError,):
        return "error"


@pytest.mark.parametrize("reference", REFERENCE, ids=[each.expression for each in REFERENCE])
def test_an_expression_has_the_value_that_flink_gave(reference: ReferenceValue) -> None:
    rex = scalar(reference)
    if rex is None:
        return
    column = pa.array([1], pa.int64())
    value = wanted(reference)
    value = "error" if value.startswith("error") else value
    assert value_or_error(lambda: shown(meaning_of(rex, [1]), rex)) == value
    assert value_or_error(lambda: shown(kernel_of(rex, column)[0], rex)) == value


def test_most_expressions_are_compared() -> None:
    assert sum(scalar(each) is not None for each in REFERENCE) >= 317
