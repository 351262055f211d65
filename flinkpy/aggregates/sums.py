"""``sum``, and ``avg``, which is a sum divided at the end. Integers and decimals are added exactly,
floats from first to last."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.algebra import Aggregate, Runs
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

# Arrow's largest precision; Python's default context rounds to 28 digits
_EXACT = decimal.Context(prec=76, traps=[decimal.Inexact])
_LIMIT = 1 << 63
_EXACT_FLOATS = 1 << 53  # every integer below equals a float
_LOW = 32


class Sum(Aggregate):
    name = "sum"

    def add(self, accumulator: Any, value: Any) -> Any:
        return accumulator + value

    def expression(
        self, accumulator: str, value: str, with_accumulator: Callable[[str], str]
    ) -> str:
        return with_accumulator(f"{accumulator} + {value}")

    def computed_in(self, input_type: pa.DataType) -> Any:
        """The widest type of the column's kind of number. Sums of decimals have up to 38 digits, as
        in Flink."""
        import pyarrow as pa

        from flinkpy.columns.kernels.operand_types import wide

        if pa.types.is_decimal(input_type):
            return (
                pa.decimal256(76, input_type.scale)
                if pa.types.is_decimal256(input_type)
                else pa.decimal128(38, input_type.scale)
            )
        try:
            return wide(input_type)
        except TypeError:
            raise ProgramError(f"{self.name} needs numbers, this is {input_type}") from None

    def adding(self, computed_in: pa.DataType) -> Callable[[Any, Any], Any]:
        import pyarrow as pa

        return _EXACT.add if pa.types.is_decimal(computed_in) else operator.add

    def adds_decimals(self, computed_in: pa.DataType) -> bool:
        import pyarrow as pa

        return bool(pa.types.is_decimal128(computed_in))

    def identity(self, dtype: np.dtype[Any]) -> Any:
        import numpy as np

        if dtype.names is not None:
            return np.zeros((), dtype)[()]
        return 0 if _is_whole(dtype) else -0.0

    def grouped(self, values: npt.NDArray[Any], codes: npt.NDArray[np.int64], groups: int) -> Any:
        """Sums per group. Integer sums beyond 64 bits are an array of Python's integers: they are
        no result, but more numbers may bring them back."""
        import numpy as np

        if values.dtype == np.float64:
            return _added(values, codes, groups)
        if values.dtype == object or _reach(values) * len(values) >= _LIMIT:
            exact = _exactly_added(values, codes, groups)
            return (
                exact.astype(np.int64)
                if all(-_LIMIT <= value < _LIMIT for value in exact)
                else exact
            )
        return _added(values, codes, groups)

    def added_to(
        self, accumulators: npt.NDArray[Any], values: npt.NDArray[Any], codes: npt.NDArray[np.int64]
    ) -> Any:
        import numpy as np

        alike = accumulators.dtype == values.dtype != object and len(values) > 0
        if not alike or (
            values.dtype != np.float64
            and _reach(values) * len(values) + _reach(accumulators) >= _LIMIT
        ):
            return super().added_to(accumulators, values, codes)
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(accumulators, codes, values)
        return accumulators

    def is_exact_in_any_order(self, runs: Runs) -> bool:
        """False for floats, whose sums are rounded, and for integers whose sums may exceed 64
        bits."""
        numbers, before = runs.numbers, runs.before
        if not _is_whole(numbers.dtype):
            return False
        return _reach(numbers) * len(numbers) + _reach(before) < _LIMIT

    def running(self, runs: Runs) -> Any:
        """One cumulative sum over all runs, from which each run's start is subtracted; exact,
        because 64-bit numbers wrap around both ways."""
        import numpy as np

        with np.errstate(over="ignore"):
            total = np.cumsum(runs.numbers)
            offset = runs.before - (total[runs.starts] - runs.numbers[runs.starts])
            return total + np.repeat(offset, runs.lengths)

    def results(
        self,
        counts: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        accumulators: Callable[[], Any],
    ) -> Any:
        if values.dtype == object:
            self.check(values)
        return accumulators()

    def results_of_decimals(
        self,
        counts: npt.NDArray[np.int64] | None,
        values: npt.NDArray[Any],
        computed_in: pa.DataType,
    ) -> Any:
        from flinkpy.aggregates.wide_integers import to_decimals

        return to_decimals(values, computed_in, None if counts is None else counts == 0)

    def check(self, accumulators: npt.NDArray[Any]) -> None:
        if any(isinstance(value, int) and not -_LIMIT <= value < _LIMIT for value in accumulators):
            raise OverflowError("a sum leaves 64 bits; cast the column to DataTypes.DOUBLE()")


class Average(Sum):
    """The sum divided by the count, rounded once."""

    name = "avg"
    of_fields = False

    def result_type(self, computed_in: pa.DataType) -> Any:
        import pyarrow as pa

        return pa.float64()

    def results(
        self,
        counts: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        accumulators: Callable[[], Any],
    ) -> Any:
        import numpy as np
        import pyarrow as pa

        if values.dtype == object:  # decimals, or integers beyond 64 bits
            return pa.array(
                [
                    float(Fraction(value) / count) if count else None
                    for value, count in zip(values, counts.tolist())
                ],
                pa.float64(),
            )
        means, divisors = np.empty(len(values)), np.maximum(counts, 1)
        is_large = (
            np.zeros(len(values), np.bool_)
            if values.dtype == np.float64
            else (values >= _EXACT_FLOATS) | (values <= -_EXACT_FLOATS)
        )
        if is_large.any():
            means[is_large] = values[is_large].astype(object) / divisors[is_large].astype(object)
            means[~is_large] = values[~is_large].astype(np.float64) / divisors[~is_large]
        else:
            means = values / divisors
        return pa.array(means.astype(np.float64, copy=False), mask=counts == 0)

    def results_of_decimals(
        self, counts: Any, values: npt.NDArray[Any], computed_in: pa.DataType
    ) -> Any:
        import numpy as np
        import pyarrow as pa

        from flinkpy.aggregates.wide_integers import nearest_floats

        means = nearest_floats(values, np.maximum(counts, 1), 10**computed_in.scale)
        return pa.array(means, mask=counts == 0)


def _is_whole(dtype: np.dtype[Any]) -> bool:
    return bool(dtype.kind in "iu")


def _reach(numbers: Any) -> int:
    """How far these integers are from zero at most."""
    return max(abs(int(numbers.min())), abs(int(numbers.max())))


def _added(values: npt.NDArray[Any], codes: npt.NDArray[np.int64] | None, groups: int) -> Any:
    import numpy as np

    # Infinities of both signs give NaN, large floats an infinity, as elsewhere
    with np.errstate(invalid="ignore", over="ignore"):
        # ``sum`` adds floats pairwise; ``cumsum`` adds them from first to last, as ``add.at`` does
        if codes is None:
            return (
                np.cumsum(values)[-1:] if values.dtype == np.float64 else np.array([values.sum()])
            )
        sums = np.full(groups, -0.0 if values.dtype == np.float64 else 0, values.dtype)
        np.add.at(sums, codes, values)
        return sums


def _exactly_added(
    values: npt.NDArray[Any], codes: npt.NDArray[np.int64] | None, groups: int
) -> Any:
    """Sums as Python's integers. The sums of the numbers' high and low halves stay within 64
    bits."""
    import numpy as np

    if values.dtype == object:
        sums = np.full(groups, 0, dtype=object)
        np.add.at(sums, np.zeros(len(values), np.int64) if codes is None else codes, values)
        return sums
    high, low = (
        _added(half, codes, groups).astype(object)
        for half in (values >> _LOW, values & ((1 << _LOW) - 1))
    )
    return high * (1 << _LOW) + low
