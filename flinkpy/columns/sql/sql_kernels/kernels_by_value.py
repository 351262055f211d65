"""Kernels that compute a function's meaning value by value: for functions that are rare, or whose
result is a Python object anyway."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.arrays_of_values import array_of_values, values_of_array
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.common.logical_types.logical_type import LogicalType


def by_value(name: str) -> KernelOf:
    """The kernel of a function that has a meaning only. A program calls it once per distinct value
    where its argument is a dictionary."""

    def choose(site: CallSite) -> Kernel:
        from flinkpy.columns.sql.sql_meanings.sql_meaning_table import SQL_MEANINGS

        meaning = SQL_MEANINGS[name](site)

        def kernel(rows: int, *operands: Any) -> Any:
            columns = [values_of(each, kind, rows) for each, kind in zip(operands, site.arguments)]
            if columns:
                found = [meaning(*values) for values in zip(*columns)]
            else:
                found = [meaning() for _ in range(rows)]
            return array_of_values(found, site.result)

        return kernel

    return choose


def values_of(operand: Any, kind: LogicalType, rows: int) -> list[Any]:
    """The Python values of an operand for each row."""
    if isinstance(operand, pa.Scalar):
        return values_of_array(pa.repeat(operand, 1), kind) * rows
    return values_of_array(operand, kind)
