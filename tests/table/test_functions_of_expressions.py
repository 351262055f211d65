"""What each function of expressions has: a kernel, a meaning for a row, and a way to be shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flinkpy import columns
from flinkpy.columns import rowwise
from flinkpy.columns.expression import Expression
from flinkpy.columns.kernels.kernel_table import KERNELS
from flinkpy.columns.methods.sql_methods import SqlAggregates, SqlMethods, WindowMethods
from flinkpy.table.expressions import col

CASTS = {"to_date", "to_time", "to_timestamp"}  # shown as what they are
PROPERTIES = [
    name
    for kind in Expression.__mro__
    for name, member in vars(kind).items()
    if isinstance(member, property)
    and member.fget is not None
    and member.fget.__name__ == name
    and member.fget.__annotations__["return"] in ("Expression", "E")
]


CALLED = sorted(
    {
        name
        for path in Path(columns.__path__[0]).rglob("*.py")
        for name in re.findall(r"\b_?call\(\s*\"(\w+)\"", path.read_text())
    }
)
"""The functions that methods of expressions call by their names."""
NO_VALUES = {"asc", "desc"}  # what order_by() of a table takes


@pytest.mark.parametrize("name", sorted(set(CALLED) - NO_VALUES))
def test_a_function_that_a_method_calls_has_a_kernel(name: str) -> None:
    assert name in KERNELS


def test_every_function_has_a_kernel_and_a_meaning_for_a_row() -> None:
    assert set(KERNELS) == set(rowwise.FUNCTIONS)


OF_TABLES = {
    "distinct",
    *(name for kind in (SqlMethods, SqlAggregates, WindowMethods) for name in vars(kind)),
}


@pytest.mark.parametrize("name", sorted(set(PROPERTIES) - CASTS - OF_TABLES))
def test_a_property_is_shown_as_it_is_written(name: str) -> None:
    assert repr(getattr(col("price"), name)) == f"{col('price')!r}.{name}"
