"""Aggregates of columns: how Arrow columns become numpy values, and how the values of groups are
aggregated.

``flinkpy.aggregates.algebra`` defines what an aggregate does with values; this module handles
Arrow's types and nulls."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates import wide_integers
from flinkpy.aggregates.algebra import Aggregate, Runs
from flinkpy.aggregates.builtin import BUILT_IN
from flinkpy.columns.kernels.operand_types import as_computed, counted_in, is_dictionary
from flinkpy.columns.values.conversion import python_values
from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.columns.values.numpy_types import numpy_type

if TYPE_CHECKING:
    import numpy.typing as npt


class ColumnAggregate:
    """One aggregate over columns. With ``keeps_type`` a selected value keeps the column's own type.

    An accumulator is a count and a value. Values are numpy arrays: of 64-bit numbers (temporal
    types as integers), of Python's integers for sums in ``avg`` that exceed 64 bits, of decimals'
    digits for their sums (int64, or wide integers), and of Python values for all other types.

    >>> highest = ColumnAggregate("max", pa.int8())
    >>> counts, values = highest.values_of(pa.array([3, None, 5]))
    >>> highest.results(
    ...     highest.counted(counts, 3, None, 1), highest.grouped(values, None, 1)
    ... ).to_pylist()
    [5]
    """

    def __init__(
        self,
        kind: str,
        input_type: pa.DataType,
        keeps_type: bool = False,
        options: Sequence[tuple[str, Any]] = (),
    ) -> None:
        self.of: Aggregate = BUILT_IN[kind].with_options(**dict(options))
        self.only_counts = self.of.only_counts
        self.computed_in = self.of.computed_in(_decoded(input_type))
        self.result_type = (
            input_type if keeps_type and self.of.selects else self.of.result_type(self.computed_in)
        )
        self._counted_in = counted_in(self.computed_in)
        self._adds_decimals = self.of.adds_decimals(self.computed_in)
        is_number = (
            self._counted_in is not None
            or self.computed_in == pa.float64()
            or pa.types.is_integer(self.computed_in)
        )
        numbers = np.dtype(
            "int64"
            if self._counted_in is not None
            else numpy_type(self.computed_in)
            if is_number
            else wide_integers.WIDE
            if self._adds_decimals
            else object
        )
        self._of_objects = numbers.kind == "O" or self.of.needs_objects()
        self.dtype = np.dtype(object) if self._of_objects else self.of.accumulator_dtype(numbers)
        self._instead_of_null: Any = (
            None
            if self._of_objects
            else self.of.identity(self.dtype)
            if self.dtype == numbers
            else 0
        )
        self.identity: Any = None if self._of_objects else self.of.identity(self.dtype)

    def values_of(self, column: pa.Array) -> tuple[Any, Any]:
        """The counts (None: one each) and the values (None: only counts matter) of a column's
        records."""
        nulls = column.null_count
        counts = (
            column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64) if nulls else None
        )
        if self.only_counts:
            return counts, None
        if is_dictionary(column.type):
            column = column.dictionary_decode()
        if self._adds_decimals:
            return counts, self._digits(column, counts)
        column = as_computed(column, self.computed_in)
        if self._counted_in is not None:
            column = column.view(self._counted_in).cast(pa.int64())
        if self._of_objects:
            values = np.empty(len(column), dtype=object)
            values[:] = python_values(column)
        else:
            values = (column.fill_null(self._instead_of_null) if nulls else column).to_numpy(
                zero_copy_only=False
            )
        return counts, self.of.lifted(values, None if counts is None else counts > 0)

    def _digits(self, column: pa.Array, counts: Any) -> Any:
        """The digits of decimals. Their scale is that of the type in which they are added, and
        their precision does not matter."""
        if not pa.types.is_decimal128(column.type):
            column = as_computed(column, self.computed_in)
        return wide_integers.of_decimals(column, None if counts is None else counts > 0)

    def accumulators_of(self, saved: Any) -> Any:
        """The values that ``accumulators`` has written."""
        if self.only_counts:
            return None
        if self._adds_decimals:
            return wide_integers.widened(self.values_of(saved)[1])
        loaded = self.of.loaded(saved)
        if loaded is not None:
            return loaded
        # sums beyond 64 bits
        if pa.types.is_decimal(saved.type) and self.computed_in == pa.int64():
            return np.array(
                [self.identity if value is None else int(value) for value in saved.to_pylist()],
                dtype=object,
            )
        return self.values_of(saved)[1]

    @property
    def is_exact(self) -> bool:
        """Whether partial accumulators give the same result however the values are divided. Sums of
        floats are rounded, so theirs do not."""
        return self.of.is_exact_over(self.computed_in)

    def few(self, column: pa.Array, codes: npt.NDArray[np.int64]) -> tuple[Any, Any]:
        """A column and its groups with fewer values and the same aggregates: Arrow compares texts
        and decimals, and makes no Python value of each."""
        is_compared = self.computed_in == pa.string() or pa.types.is_decimal128(self.computed_in)
        if not is_compared or not self.of.selects:
            return column, codes
        table = pa.table([pa.array(codes), column.cast(self.computed_in)], names=["code", "value"])
        left = table.group_by("code", use_threads=False).aggregate([("value", self.of.name)])
        return left.column(f"value_{self.of.name}").combine_chunks(), left.column("code").to_numpy()

    @staticmethod
    def counted(counts: Any, size: int, codes: Any, groups: int) -> Any:
        """The number of values in each group, of ``size`` records; ``codes`` are the groups of the
        records (None: one group)."""
        if counts is None:
            return np.array([size]) if codes is None else np.bincount(codes, minlength=groups)
        return (
            np.array([counts.sum()])
            if codes is None
            else np.bincount(codes, counts, groups).astype(np.int64)
        )

    def grouped(self, values: Any, codes: Any, groups: int) -> Any:
        """The accumulator of each group, of values or of accumulators."""
        if self._adds_decimals:
            return wide_integers.grouped(values, codes, groups)
        if self.dtype != object or self.of.needs_objects():
            return self.of.grouped(values, codes, groups)
        add, found = self.of.adding(self.computed_in), np.full(groups, None, dtype=object)
        for code, value in zip(
            [0] * len(values) if codes is None else codes.tolist(), values.tolist()
        ):
            if value is not None:
                current = found[code]
                found[code] = value if current is None else add(current, value)
        return found

    def joined(self, parts: Sequence[Any]) -> Any:
        """The values, or accumulators, of several parts as one array."""
        return wide_integers.joined(parts) if self._adds_decimals else np.concatenate(parts)

    def added_to(self, accumulators: Any, values: Any, codes: npt.NDArray[np.int64]) -> Any:
        """The accumulator of each group, with these values behind what it has; ``accumulators`` may
        be changed."""
        if self._adds_decimals:
            return wide_integers.grouped(values, codes, len(accumulators), accumulators)
        if self.dtype != object or self.of.needs_objects():
            return self.of.added_to(accumulators, values, codes)
        groups = len(accumulators)
        return self.grouped(
            np.concatenate((accumulators, values)),
            np.concatenate((np.arange(groups), codes)),
            groups,
        )

    def running(self, runs: Runs) -> Any:
        """The accumulator after each value."""
        if self._adds_decimals:
            return wide_integers.running(runs)
        if self.dtype != object and self.of.is_exact_in_any_order(runs):
            return self.of.running(runs)
        add, found = self.of.adding(self.computed_in), np.empty(len(runs.numbers), dtype=object)
        values = runs.numbers.tolist()
        for current, start, end in zip(
            runs.before.tolist(), runs.starts.tolist(), runs.ends.tolist()
        ):
            for at in range(start, end + 1):
                value = values[at]
                if value is not None:
                    current = value if current is None else add(current, value)
                found[at] = current
        if self.dtype.kind == "i":
            self.of.check(found)
        return found if self.dtype == object else found.astype(self.dtype)

    def results(self, counts: Any, values: Any) -> Any:
        """The aggregate of each group as an Arrow array, null where there was no value. Without
        counts every group has one."""
        if self._adds_decimals:
            return self.of.results_of_decimals(counts, values, self.computed_in)
        array = self.of.results(counts, values, lambda: self.accumulators(counts, values))
        return array if array.type == self.result_type else array.cast(self.result_type)

    def accumulators(self, counts: Any, values: Any) -> Any:
        """The values as an Arrow array, which ``accumulators_of`` can read."""
        if self._adds_decimals:
            mask = None if counts is None else counts == 0
            return wide_integers.to_decimals(values, self.computed_in, mask)
        saved = self.of.saved(values, self.computed_in)
        if saved is not None:
            return saved
        if self.dtype == object:
            return array_of(values.tolist(), self.computed_in)
        if values.dtype == object:
            return pa.array(
                list(map(decimal.Decimal, values.tolist())), pa.decimal128(38, 0), mask=counts == 0
            )
        mask = None if counts is None else counts == 0
        if self.dtype.names is not None:
            values = values["value"]
        if self._counted_in is None:
            return pa.array(values, self.computed_in, mask=mask)
        return pa.array(values, pa.int64(), mask=mask).cast(self._counted_in).view(self.computed_in)


def _decoded(kind: pa.DataType) -> Any:
    return kind.value_type if is_dictionary(kind) else kind
