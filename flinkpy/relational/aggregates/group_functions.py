"""The aggregate functions of SQL, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AccumulatorOf, AggregateSite
from flinkpy.relational.aggregates.group_bitmaps import (
    BitmapOfGroup,
    BuiltBitmap,
    CommonBitmap,
    OddBitmap,
)
from flinkpy.relational.aggregates.group_collections import (
    ArrayOfGroup,
    ListOfGroup,
    MultisetOfGroup,
)
from flinkpy.relational.aggregates.group_counts import Average, Count, Sum, Sum0
from flinkpy.relational.aggregates.group_decimals import DecimalAverage, DecimalSum, DecimalSum0
from flinkpy.relational.aggregates.group_extremes import extreme
from flinkpy.relational.aggregates.group_json import JsonArrayOfGroup, JsonObjectOfGroup
from flinkpy.relational.aggregates.group_percentiles import PercentileOfGroup
from flinkpy.relational.aggregates.group_values import KeptRow, OnlyRow
from flinkpy.relational.aggregates.group_variances import Variance

CODE = "code"
"""The option of a call that has the function itself, where it is one of the program."""

COUNTS_DISTINCT = "APPROX_COUNT_DISTINCT"
"""Counted exactly."""


class AccumulatorCode(Protocol):
    """An aggregate function of the program."""

    def accumulator(self) -> Accumulator: ...


def _of_numbers(plain: AccumulatorOf, of_decimals: AccumulatorOf) -> AccumulatorOf:
    def chosen(site: AggregateSite) -> Accumulator:
        is_decimal = pa.types.is_decimal(site.arguments[0])
        return (of_decimals if is_decimal else plain)(site)

    return chosen


ACCUMULATORS: Mapping[str, AccumulatorOf] = {
    "COUNT": Count,
    COUNTS_DISTINCT: Count,
    "SUM": _of_numbers(Sum, DecimalSum),
    "$SUM0": _of_numbers(Sum0, DecimalSum0),
    "AVG": _of_numbers(Average, DecimalAverage),
    "MIN": extreme,
    "MAX": extreme,
    "STDDEV": Variance,
    "STDDEV_POP": Variance,
    "STDDEV_SAMP": Variance,
    "VAR_POP": Variance,
    "VAR_SAMP": Variance,
    "VARIANCE": Variance,
    "FIRST_VALUE": KeptRow,
    "LAST_VALUE": KeptRow,
    "SINGLE_VALUE": OnlyRow,
    "ARRAY_AGG": ArrayOfGroup,
    "LISTAGG": ListOfGroup,
    "COLLECT": MultisetOfGroup,
    "JSON_ARRAYAGG": JsonArrayOfGroup,
    "JSON_OBJECTAGG": JsonObjectOfGroup,
    "PERCENTILE": PercentileOfGroup,
    "BITMAP_BUILD_AGG": BuiltBitmap,
    "BITMAP_BUILD_CARDINALITY_AGG": BuiltBitmap,
    "BITMAP_OR_AGG": BitmapOfGroup,
    "BITMAP_OR_CARDINALITY_AGG": BitmapOfGroup,
    "BITMAP_AND_AGG": CommonBitmap,
    "BITMAP_AND_CARDINALITY_AGG": CommonBitmap,
    "BITMAP_XOR_AGG": OddBitmap,
    "BITMAP_XOR_CARDINALITY_AGG": OddBitmap,
}


def accumulator_of(site: AggregateSite) -> Accumulator:
    """The accumulator for a call. Raises ProgramError for a function that groups cannot have
    yet."""
    code = site.options.get(CODE)
    if code is not None:
        return cast("AccumulatorCode", code).accumulator()
    found = ACCUMULATORS.get(site.function.upper())
    if found is None:
        raise ProgramError(f"the aggregate function {site.function} is not there yet")
    return found(site)
