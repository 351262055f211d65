"""The built-in aggregates by name."""

from __future__ import annotations

from flinkpy.aggregates.algebra import Aggregate
from flinkpy.aggregates.counts import Count
from flinkpy.aggregates.distinct_values import CountDistinct
from flinkpy.aggregates.extremes import Max, Min
from flinkpy.aggregates.first_and_last import FirstValue, LastValue
from flinkpy.aggregates.percentiles import Median, Percentile
from flinkpy.aggregates.sums import Average, Sum
from flinkpy.aggregates.variances import Deviation, SampleDeviation, SampleVariance, Variance

BUILT_IN: dict[str, Aggregate] = {
    each.name: each
    for each in (
        Sum(),
        Min(),
        Max(),
        Count(),
        Average(),
        CountDistinct(),
        FirstValue(),
        LastValue(),
        Variance(),
        SampleVariance(),
        Deviation(),
        SampleDeviation(),
        Median(),
        Percentile(),
    )
}
# those that can replace a field of the first record
OF_FIELDS = tuple(name for name, each in BUILT_IN.items() if each.of_fields)
