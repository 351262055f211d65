"""Kernels for comparison, for logic, and for choosing between values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.operand_types import (
    ANY_INT,
    BOOL,
    INT,
    BeyondSigned,
    Kernel,
    Types,
    as_computed,
    bring,
    common_type,
    with_casts,
)


def comparison(kernel: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wanted = common_type(types)
        if pa.types.is_null(wanted):
            return lambda left, right: pa.nulls(
                len(left) if isinstance(left, pa.Array) else len(right), BOOL
            )
        if pa.types.is_timestamp(wanted) and wanted.unit == "ns":
            return lambda *moments: kernel(*(_in_nanoseconds(each, wanted) for each in moments))
        brought = with_casts(kernel, types, wanted)
        return (
            _also_large(brought, with_casts(kernel, types, ANY_INT))
            if wanted == INT and pa.uint64() in types
            else brought
        )

    return choose


def _in_nanoseconds(moments: pa.Array, kind: pa.DataType) -> Any:
    """For comparisons: years that nanoseconds do not reach, before 1678 and after 2261, become the
    first and the last moment that they reach."""
    if moments.type.equals(kind) or pa.types.is_null(moments.type):
        return moments.cast(kind)
    end = (2**63 - 1) // {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[moments.type.unit]
    counted = pc.max_element_wise(moments.cast(INT), -end, skip_nulls=False)
    return pc.min_element_wise(counted, end, skip_nulls=False).cast(moments.type).cast(kind)


def _also_large(kernel: Kernel, exact: Kernel) -> Kernel:
    """Compares as decimals if there are integers of 2**63 or more."""

    def either(*values: Any) -> Any:
        try:
            return kernel(*values)
        except BeyondSigned:
            return exact(*values)

    return either


def logic(kernel: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        if not all(pa.types.is_boolean(kind) or pa.types.is_null(kind) for kind in types):
            raise TypeError("it needs truth values; put parentheses around comparisons")
        return with_casts(kernel, types, BOOL)

    return choose


def is_in(types: Types, values: tuple[Any, ...]) -> Kernel:
    choices = _choices(values)
    wanted = common_type([types[0], choices.type])
    if wanted == INT and pa.types.is_uint64(types[0]):
        wanted = ANY_INT
    choices = as_computed(choices, wanted)
    # Arrow compares bits, but NaN equals nothing, and 0.0 equals -0.0
    if pa.types.is_floating(wanted):
        choices = choices.filter(pc.equal(choices, choices))
        if pc.any(pc.equal(choices, 0.0)).as_py():
            choices = pa.concat_arrays([choices, pa.array([0.0, -0.0], wanted)])

    def kernel(column: Any) -> Any:
        found = pc.is_in(column, value_set=choices)
        return (
            found
            if not column.null_count
            else pc.if_else(column.is_null(), pa.scalar(None, BOOL), found)
        )

    return with_casts(kernel, types, wanted)


def _choices(values: tuple[Any, ...]) -> Any:
    """The values as an array; numbers beside floats are floats, and those of 2**63 or more are
    decimals."""
    if any(isinstance(value, float) for value in values):
        return pa.array(
            [float(value) if isinstance(value, (int, Decimal)) else value for value in values]
        )
    if any(isinstance(value, int) and value >= 1 << 63 for value in values):
        return pa.array([Decimal(value) if isinstance(value, int) else value for value in values])
    return pa.array(values)


def is_truth(wanted: bool) -> Callable[[Types], Kernel]:
    return logic(lambda values: pc.fill_null(values if wanted else pc.invert(values), False))


def then(types: Types) -> Kernel:
    condition, *branches = types
    if not pa.types.is_boolean(condition) and not pa.types.is_null(condition):
        raise TypeError("then() needs a truth value in front")
    wanted = common_type(branches)
    casts = [bring(kind, wanted) for kind in branches]

    def kernel(truth: Any, if_true: Any, if_false: Any) -> Any:
        one, other = [
            value if cast is None else cast(value)
            for cast, value in zip(casts, (if_true, if_false))
        ]
        truth = pc.fill_null(truth.cast(BOOL), False)
        chosen = pc.if_else(truth, one, other)
        if isinstance(chosen, pa.Array):
            return chosen
        return pa.repeat(
            chosen, next(len(each) for each in (if_true, if_false) if isinstance(each, pa.Array))
        )

    return kernel


def best(compare: Kernel, nan_wins: bool) -> Callable[[Types], Kernel]:
    """``greatest`` and ``least``: NaN is the greatest; of equal values the first is kept; null
    where one is null."""

    def choose(types: Types) -> Kernel:
        wanted = common_type(types)
        if pa.types.is_null(wanted):
            return lambda *values: next(each for each in values if isinstance(each, pa.Array))

        def better(chosen: Any, value: Any) -> Any:
            takes = compare(value, chosen)
            if pa.types.is_floating(wanted):
                winner, loser = (value, chosen) if nan_wins else (chosen, value)
                takes = pc.or_(takes, pc.and_(pc.is_nan(winner), pc.invert(pc.is_nan(loser))))
            return pc.if_else(takes, value, chosen)

        return with_casts(lambda *values: functools.reduce(better, values), types, wanted)

    return choose


def coalesce(types: Types) -> Kernel:
    return with_casts(pc.coalesce, types, common_type(types))
