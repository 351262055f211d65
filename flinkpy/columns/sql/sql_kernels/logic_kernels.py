"""Kernels of logic of three values, and of tests for null."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf

BOOL = pa.bool_()


def column_of(operand: Any, rows: int) -> Any:
    """An operand as an array: a constant stands in every row."""
    if not isinstance(operand, pa.Scalar):
        return operand
    # Arrow repeats a list, a map or a row at least once
    return pa.repeat(operand, rows) if rows else pa.array([], operand.type)


def as_truths(operand: Any) -> Any:
    """An operand of BOOLEAN; the NULL of no type is unknown."""
    return operand.cast(BOOL) if pa.types.is_null(operand.type) else operand


def _folded(operate: Callable[[Any, Any], Any]) -> KernelOf:
    def kernel(rows: int, *operands: Any) -> Any:
        found = functools.reduce(operate, map(as_truths, operands))
        return column_of(found, rows)

    return lambda site: kernel


def _of_truth(function: Callable[[Any], Any]) -> KernelOf:
    return lambda site: lambda rows, operand: column_of(function(as_truths(operand)), rows)


def _of_any(function: Callable[[Any], Any]) -> KernelOf:
    return lambda site: lambda rows, operand: column_of(function(operand), rows)


def inverted(kernel_of: KernelOf) -> KernelOf:
    """NOT of a function: null where that is null."""

    def choose(site: CallSite) -> Kernel:
        kernel = kernel_of(site)
        return lambda rows, *operands: pc.invert(kernel(rows, *operands))

    return choose


LOGIC_KERNELS: dict[str, KernelOf] = {
    "AND": _folded(pc.and_kleene),
    "OR": _folded(pc.or_kleene),
    "NOT": _of_truth(pc.invert),
    "IS TRUE": _of_truth(lambda truths: pc.fill_null(truths, False)),
    "IS NOT TRUE": _of_truth(lambda truths: pc.fill_null(pc.invert(truths), True)),
    "IS FALSE": _of_truth(lambda truths: pc.fill_null(pc.invert(truths), False)),
    "IS NOT FALSE": _of_truth(lambda truths: pc.fill_null(truths, True)),
    "IS UNKNOWN": _of_any(pc.is_null),
    "IS NOT UNKNOWN": _of_any(pc.is_valid),
    "IS NULL": _of_any(pc.is_null),
    "IS NOT NULL": _of_any(pc.is_valid),
}
