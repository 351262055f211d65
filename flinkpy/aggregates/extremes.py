"""``min`` and ``max``. NaN is greater than every other value; of equal values the first is kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.algebra import Aggregate, Runs
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class Extreme(Aggregate):
    selects = True
    of_numbers = False
    better: str  # the comparison of a value that takes the place of another one
    worse: str

    @abstractmethod
    def replaces(self, value: Any, current: Any) -> bool:
        """Whether the value replaces the current one."""

    def add(self, accumulator: Any, value: Any) -> Any:
        return value if self.replaces(value, accumulator) else accumulator

    def expression(
        self, accumulator: str, value: str, with_accumulator: Callable[[str], str]
    ) -> str:
        """For values that cannot be ordered neither comparison is true, so they are left to
        ``update``."""
        return (
            f"current if {value} {self.worse} {accumulator} else {with_accumulator(value)} if "
            f"{value} {self.better} {accumulator} "
            "else update(current, record)"
        )

    def computed_in(self, input_type: pa.DataType) -> Any:
        return kept_in(input_type, self.name)

    @abstractmethod
    def pick(self, values: npt.NDArray[Any]) -> Any:
        """The numpy function that returns the better of two numbers of the values' type."""

    def grouped(
        self, values: npt.NDArray[Any], codes: npt.NDArray[np.int64] | None, groups: int
    ) -> Any:
        import numpy as np

        with np.errstate(invalid="ignore"):  # NaNs are allowed
            if codes is None:
                best = np.array([self.pick(values).reduce(values)])
            else:
                best = np.full(groups, self.identity(values.dtype), dtype=values.dtype)
                self.pick(values).at(best, codes, values)
        return _with_first_zeros(best, values, codes) if values.dtype.kind == "f" else best

    def added_to(
        self, accumulators: npt.NDArray[Any], values: npt.NDArray[Any], codes: npt.NDArray[np.int64]
    ) -> Any:
        import numpy as np

        if accumulators.dtype != values.dtype or (
            values.dtype.kind == "f"
            and (_has_negative_zero(accumulators) or _has_negative_zero(values))
        ):
            return super().added_to(accumulators, values, codes)
        with np.errstate(invalid="ignore"):
            self.pick(values).at(accumulators, codes, values)
        return accumulators

    def is_exact_in_any_order(self, runs: Runs) -> bool:
        """True unless there are zeros of both signs, of which the first must be kept."""
        return runs.numbers.dtype.kind != "f" or not (
            _has_negative_zero(runs.numbers) or _has_negative_zero(runs.before)
        )

    def running(self, runs: Runs) -> Any:
        """Works on ranks instead of values, shifted so that no run reaches into the range of the
        run before: then one accumulation serves all runs. NaN has the highest rank."""
        import numpy as np

        numbers, starts = runs.numbers.copy(), runs.starts
        with np.errstate(invalid="ignore"):
            numbers[starts] = self.pick(numbers)(numbers[starts], runs.before)
        distinct, ranks = np.unique(numbers, return_inverse=True)
        pick = self.pick(ranks)
        direction = 1 if pick is np.maximum else -1
        shifts = direction * np.repeat(np.arange(len(starts)), runs.lengths) * len(distinct)
        return distinct[pick.accumulate(ranks + shifts) - shifts]


class Min(Extreme):
    name = "min"
    better, worse = "<", ">="

    def replaces(self, value: Any, current: Any) -> bool:
        return bool(value == value and (current != current or value < current))

    def identity(self, dtype: np.dtype[Any]) -> Any:
        import numpy as np

        return np.nan if dtype.kind == "f" else np.iinfo(dtype).max

    def pick(self, values: npt.NDArray[Any]) -> Any:
        import numpy as np

        # Fmin returns the number if the other operand is NaN
        return np.fmin if values.dtype.kind == "f" else np.minimum


class Max(Extreme):
    name = "max"
    better, worse = ">", "<="

    def replaces(self, value: Any, current: Any) -> bool:
        return bool(current == current and (value != value or value > current))

    def identity(self, dtype: np.dtype[Any]) -> Any:
        import numpy as np

        return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min

    def pick(self, values: npt.NDArray[Any]) -> Any:
        import numpy as np

        return np.maximum


def _has_negative_zero(floats: Any) -> bool:
    import numpy as np

    return bool(np.signbit(floats[floats == 0]).any())


def _with_first_zeros(
    best: Any, values: npt.NDArray[Any], codes: npt.NDArray[np.int64] | None
) -> Any:
    """The floats ``best``, with the sign of the zero that came first: numpy does not define whether
    it returns 0.0 or -0.0."""
    import numpy as np

    at = np.flatnonzero(values == 0)
    if len(at) and np.signbit(values[at]).any():
        group = np.zeros(len(at), np.int64) if codes is None else codes[at]
        first = np.zeros(len(best))
        first[group[::-1]] = values[at[::-1]]  # the last assignment wins: that of the first zero
        best = np.where(best == 0, first, best)
    return best


def kept_in(input_type: pa.DataType, name: str) -> Any:
    """The type in which single values of a column are kept. Raises ProgramError if there is
    none."""
    import pyarrow as pa

    from flinkpy.columns.kernels.operand_types import is_text, wide

    if pa.types.is_integer(input_type) or pa.types.is_floating(input_type):
        return input_type if pa.types.is_uint64(input_type) else wide(input_type)
    if is_text(input_type):
        return pa.string()
    if pa.types.is_decimal32(input_type) or pa.types.is_decimal64(input_type):
        return pa.decimal128(input_type.precision, input_type.scale)
    if (
        (pa.types.is_nested(input_type) and not pa.types.is_list(input_type))
        or pa.types.is_union(input_type)
        or pa.types.is_interval(input_type)
    ):
        raise ProgramError(f"{name} of {input_type} is not there; cast it")
    return input_type
