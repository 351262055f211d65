"""Functions that choose one of their arguments, over whole columns. Where an argument may fail, the
program does not call these kernels but computes each argument for its own rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.comparison_kernels import comparison
from flinkpy.columns.sql.sql_kernels.logic_kernels import as_truths, column_of
from flinkpy.columns.sql.sql_kernels.numbers.arithmetic_kernels import as_floats
from flinkpy.common.logical_types.logical_type import BooleanType


def of_kind(operand: Any, kind: pa.DataType) -> Any:
    """An operand in the type of the result: binding has seen to it, but for widths of numbers."""
    if operand.type.equals(kind):
        return operand
    if pa.types.is_floating(kind) and not pa.types.is_null(operand.type):
        return as_floats(operand, kind)
    return operand.cast(kind)


def _case(site: CallSite) -> Kernel:
    kind = arrow_of(site.result)

    def kernel(rows: int, *operands: Any) -> Any:
        found = column_of(of_kind(operands[-1], kind), rows)
        for at in range(len(operands) - 3, -1, -2):
            truths = column_of(pc.fill_null(as_truths(operands[at]), False), rows)
            found = pc.if_else(truths, of_kind(operands[at + 1], kind), found)
        return found

    return kernel


def _coalesce(site: CallSite) -> Kernel:
    kind = arrow_of(site.result)

    def kernel(rows: int, *operands: Any) -> Any:
        return column_of(pc.coalesce(*(of_kind(each, kind) for each in operands)), rows)

    return kernel


def _nullif(site: CallSite) -> Kernel:
    kind = arrow_of(site.result)
    compare = comparison("=")(CallSite(site.arguments, BooleanType()))

    def kernel(rows: int, left: Any, right: Any) -> Any:
        is_equal = pc.fill_null(compare(rows, left, right), False)
        return pc.if_else(is_equal, pa.scalar(None, kind), of_kind(left, kind))

    return kernel


CHOICE_KERNELS: dict[str, KernelOf] = {
    "CASE": _case,
    "IF": _case,
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "NULLIF": _nullif,
}
