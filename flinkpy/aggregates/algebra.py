"""The interface of aggregates. Each one is a callable, an expression for generated loops, and
kernels over arrays.

``docs/values.md`` defines the built-in ones. All of them ignore None, which callers leave out. A
new aggregate is one class, in a file of this package, and one entry in
``flinkpy.aggregates.builtin``.

The module is imported with the API, so only the methods that compute with numpy and Arrow import
them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

WHOLE: frozenset[type] = frozenset({int, bool})


class Aggregate(ABC):
    """One built-in aggregate. Values and accumulators are never None."""

    name: ClassVar[str]
    selects: ClassVar[bool] = False
    """Whether the result is one of the values, so that it can select a record (``min_by``)."""
    of_fields: ClassVar[bool] = True
    """Whether every accumulator is a result, so that it can replace a field of a record and be
    emitted as it grows."""
    only_counts: ClassVar[bool] = False
    """Whether the number of values is all there is to know."""
    of_numbers: ClassVar[bool] = True
    """Whether it computes with the values, so that they must be numbers."""

    def with_options(self, **options: Any) -> Aggregate:
        """This aggregate with constants of its own, such as the share of a percentile."""
        return self

    # -- values ------------------------------------------------------------------------------------

    def first(self, value: object) -> Any:
        """The accumulator for a single value."""
        return value

    @abstractmethod
    def add(self, accumulator: Any, value: Any) -> Any:
        """The accumulator with one more value; ``accumulator`` itself if nothing changes."""

    def merge(self, accumulator: Any, other: Any) -> Any:
        """The accumulator for the values of two accumulators, those of the first before those of
        the other."""
        return self.add(accumulator, other)

    def merges_exactly(self, kinds: set[type]) -> bool:
        """Whether values of these types, and of no others, give the same in whatever parts they are
        accumulated and merged. Numbers are computed exactly if they are whole; what is only
        compared needs a total order."""
        return kinds <= WHOLE if self.of_numbers else kinds <= WHOLE | {float} or kinds == {str}

    def expression(
        self, accumulator: str, value: str, with_accumulator: Callable[[str], str]
    ) -> str:
        """``add`` as an expression. For None, and for unusual values, it may raise or call
        ``update(current, record)``.

        ``with_accumulator`` turns an expression for the new accumulator into one for the new
        ``current``."""
        raise NotImplementedError(f"{self.name} of records is not there")

    # -- columns -----------------------------------------------------------------------------------

    @abstractmethod
    def computed_in(self, input_type: pa.DataType) -> Any:
        """The Arrow type of accumulators for a column of that type; raises ProgramError for a type
        that the aggregate does not support."""

    def accumulator_dtype(self, dtype: np.dtype[Any]) -> Any:
        """The numpy type of accumulators, for values of this one."""
        return dtype

    def needs_objects(self) -> bool:
        """Whether the values are wanted as Python objects, with None for null."""
        return False

    def adds_decimals(self, computed_in: pa.DataType) -> bool:
        """Whether it adds up decimals of this type by their digits, which are integers: of 64 bits
        as values, of 192 bits as accumulators (``flinkpy.aggregates.wide_integers``)."""
        return False

    def results_of_decimals(
        self,
        counts: npt.NDArray[np.int64] | None,
        values: npt.NDArray[Any],
        computed_in: pa.DataType,
    ) -> Any:
        """``results`` of accumulators that are decimals' digits."""
        raise NotImplementedError

    def lifted(self, values: npt.NDArray[Any], present: npt.NDArray[np.bool_] | None) -> Any:
        """What stands for single values among the accumulators. ``present`` says where there is a
        value (None: everywhere)."""
        return values

    def saved(self, accumulators: npt.NDArray[Any], computed_in: pa.DataType) -> Any:
        """The accumulators as an Arrow array, from which ``loaded`` makes them again; None if they
        are values."""
        return None

    def loaded(self, saved: object) -> Any:
        """The accumulators that ``saved`` has written; None if they are values."""
        return None

    def is_exact_over(self, computed_in: pa.DataType) -> bool:
        """Whether partial accumulators give the same result however the values are divided, in
        their order."""
        import pyarrow as pa

        return bool(
            self.only_counts
            or self.selects
            or pa.types.is_integer(computed_in)
            or pa.types.is_decimal(computed_in)
        )

    def adding(self, computed_in: pa.DataType) -> Callable[[Any, Any], Any]:
        """``add`` for Python values of that Arrow type."""
        return self.add

    def identity(self, dtype: np.dtype[Any]) -> Any:
        """The neutral number of the aggregate, in a numpy type."""
        raise NotImplementedError

    def grouped(self, values: npt.NDArray[Any], codes: npt.NDArray[np.int64], groups: int) -> Any:
        """The accumulator of each group of numbers. ``codes`` are the groups of the numbers; None:
        all are in one group."""
        raise NotImplementedError

    def added_to(
        self, accumulators: npt.NDArray[Any], values: npt.NDArray[Any], codes: npt.NDArray[np.int64]
    ) -> Any:
        """The accumulators of all groups, with these numbers behind what they have;
        ``accumulators`` may be changed."""
        import numpy as np

        groups = len(accumulators)
        return self.grouped(
            np.concatenate((accumulators, values)),
            np.concatenate((np.arange(groups), codes)),
            groups,
        )

    def is_exact_in_any_order(self, runs: Runs) -> bool:
        """Whether ``running`` gives exactly the result of adding one number after the other."""
        raise NotImplementedError

    def running(self, runs: Runs) -> Any:
        """The accumulator after each number."""
        raise NotImplementedError

    def check(self, accumulators: npt.NDArray[Any]) -> None:
        """Raises OverflowError if one of these exact integers cannot be a result."""

    def result_type(self, computed_in: pa.DataType) -> Any:
        """The Arrow type of results."""
        return computed_in

    def results(
        self,
        counts: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        accumulators: Callable[[], Any],
    ) -> Any:
        """The results as an Arrow array, null where the count is 0. ``accumulators`` returns the
        values as an Arrow array."""
        return accumulators()


class OfColumns(Aggregate):
    """An aggregate that only columns have. Its accumulators are more than a value."""

    of_fields = False

    def add(self, accumulator: Any, value: Any) -> Any:
        raise NotImplementedError(f"{self.name} of records is not there")


def floats_of_numbers(name: str, input_type: pa.DataType) -> Any:
    """The type of an aggregate that computes in floats. Raises ProgramError for a column without
    numbers."""
    import pyarrow as pa

    from flinkpy.columns.kernels.operand_types import wide

    try:
        wide(input_type)
    except TypeError:
        raise ProgramError(f"{name} needs numbers, this is {input_type}") from None
    return pa.float64()


@dataclass(frozen=True)
class Runs:
    """Numbers sorted by key, as one run per key after the other; the numbers of a key keep their
    order. No run is empty."""

    numbers: Any
    starts: Any  # the position of each run's first number
    ends: Any  # the position of each run's last number
    before: Any  # the accumulator of each run's key so far, or the identity

    @property
    def lengths(self) -> Any:
        """The length of each run."""
        return self.ends - self.starts + 1
