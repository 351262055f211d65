"""Each kernel gives what the meaning gives row by row, over the values that real data has."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.sql.arrays_of_values import array_of_values, scalar_of_value, values_of_array
from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import CallSite
from flinkpy.columns.sql.row_errors import VALUE_ERRORS
from flinkpy.columns.sql.sql_kernels.sql_kernel_table import SQL_KERNELS
from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS
from flinkpy.common.logical_types.logical_type import TypeFamily
from tests.sql.values.sites import RANDOM, calls, values_of_type

NAMES = sorted(SQL_MEANINGS.keys() - RANDOM)
ERROR = "error"


def same(one: Any, other: Any) -> bool:
    """Whether both are the same to the bit: NaN is, and 0.0 is not -0.0."""
    if isinstance(one, float) and isinstance(other, float):
        if one != one or other != other:
            return one != one and other != other
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, frozenset):
        return bool(one == other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return type(one) is type(other) and bool(one == other) and str(one) == str(other)


def by_meaning(meaning: Any, columns: Sequence[Sequence[Any]], rows: int) -> list[Any]:
    found = []
    for row in range(rows):
        try:
            found.append(meaning(*(column[row] for column in columns)))
        except VALUE_ERRORS:
            found.append(ERROR)
    return found


@st.composite
def drawn_call(draw: st.DrawFn, site: CallSite) -> tuple[CallSite, list[list[Any]], list[Any]]:
    """The site with some constants, the values of each argument row by row, and the operands: a
    slice of an array, or a scalar for a constant."""
    rows = draw(st.integers(0, 6))
    near = any(each.is_a(TypeFamily.INTERVAL) for each in site.arguments)
    columns, operands, constants = [], [], []
    for at, kind in enumerate(site.arguments):
        value = st.one_of(st.none(), values_of_type(kind, near), values_of_type(kind, near))
        if draw(st.integers(0, 3)) == 0:
            constant = draw(value)
            columns.append([constant] * rows)
            operands.append(scalar_of_value(constant, kind))
            constants.append(constant)
        else:
            column = draw(st.lists(value, min_size=rows + 2, max_size=rows + 2))
            columns.append(column[1:-1])
            operands.append(array_of_values(column, kind).slice(1, rows))
            constants.append(site.constant(at))
    return replace(site, constants=tuple(constants)), columns, operands


def compare(name: str, data: st.DataObject, site: CallSite) -> None:
    site, columns, operands = data.draw(drawn_call(site))
    rows = len(columns[0]) if columns else 3
    wanted = by_meaning(SQL_MEANINGS[name](site), columns, rows)
    try:
        array = SQL_KERNELS[name](site)(rows, *operands)
    except VALUE_ERRORS:
        assert ERROR in wanted, wanted
        return
    assert array.type == arrow_of(site.result)
    array.validate(full=True)
    found = values_of_array(array, site.result)
    assert len(found) == rows
    assert all(map(same, found, wanted)), (name, site, columns, found, wanted)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=2)
@given(data=st.data())
def test_a_kernel_gives_what_the_meaning_gives(name: str, data: st.DataObject) -> None:
    compare(name, data, data.draw(st.sampled_from(calls(name))))


@pytest.mark.wide
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50)
@given(data=st.data())
def test_a_kernel_gives_what_the_meaning_gives_for_many_values(
    name: str, data: st.DataObject
) -> None:
    compare(name, data, data.draw(st.sampled_from(calls(name))))


def test_both_tables_have_the_same_functions_and_each_has_a_call() -> None:
    assert SQL_KERNELS.keys() == SQL_MEANINGS.keys()
    assert [name for name in NAMES if not calls(name)] == []


def test_meanings_and_programs_are_loaded_without_numpy_and_arrow() -> None:
    program = (
        "import sys, flinkpy.sql.rex.rex_programs\n"
        "import flinkpy.columns.sql.sql_meanings.sql_meaning_table\n"
        "assert not {'numpy', 'pyarrow'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
