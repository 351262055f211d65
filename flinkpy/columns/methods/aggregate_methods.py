"""The aggregates of expressions."""

from __future__ import annotations

from flinkpy.columns.methods.expression_base import E, ExpressionBase
from flinkpy.core.errors import ProgramError


class AggregateMethods(ExpressionBase[E]):
    """Aggregates, which belong into ``aggregate(...)``. All of them skip nulls."""

    __slots__ = ()

    @property
    def count(self) -> E:
        """The number of values that are not null."""
        return self._aggregate("count")

    @property
    def count_distinct(self) -> E:
        """The number of different values that are not null, counted exactly: every one is kept in
        the state."""
        return self._aggregate("count_distinct")

    @property
    def sum(self) -> E:
        """The sum; null while there is no value."""
        return self._aggregate("sum")

    @property
    def avg(self) -> E:
        """The mean as a float: the sum divided by the count; null while there is no value."""
        return self._aggregate("avg")

    @property
    def min(self) -> E:
        return self._aggregate("min")

    @property
    def max(self) -> E:
        return self._aggregate("max")

    @property
    def first_value(self) -> E:
        """The first value that is not null, in the order in which records arrive."""
        return self._aggregate("first_value")

    @property
    def last_value(self) -> E:
        """The last value that is not null, in the order in which records arrive."""
        return self._aggregate("last_value")

    @property
    def var_pop(self) -> E:
        """The variance of the values: the mean of their squared distances from their mean."""
        return self._aggregate("var_pop")

    @property
    def var_samp(self) -> E:
        """The variance estimated from a sample, with one less than the count as divisor; null below
        two values."""
        return self._aggregate("var_samp")

    @property
    def stddev_pop(self) -> E:
        """The standard deviation of the values: the root of ``var_pop``."""
        return self._aggregate("stddev_pop")

    @property
    def stddev_samp(self) -> E:
        """The standard deviation estimated from a sample: the root of ``var_samp``."""
        return self._aggregate("stddev_samp")

    @property
    def median(self) -> E:
        """The value in the middle; the mean of the two in the middle of an even number of
        values."""
        return self._aggregate("median")

    def percentile(self, percentage: float) -> E:
        """The exact value below which that share of the values lies, with linear interpolation
        between the two nearest. Every value is kept in the state. Raises ProgramError for a share
        that is not between 0 and 1."""
        if (
            isinstance(percentage, bool)
            or not isinstance(percentage, (int, float))
            or not 0 <= percentage <= 1
        ):
            raise ProgramError(
                f"percentile() takes a share from 0 to 1, such as 0.95, this is {percentage!r:.80}"
            )
        return self._aggregate("percentile", percentage=float(percentage))
