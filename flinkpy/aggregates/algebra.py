"""The algebra of aggregates: what one aggregate is, as a callable, as an expression for generated loops, and as kernels over arrays.

``docs/values.md`` says what the built-in ones mean. All of them skip None, so their callers do that. A new aggregate is one class, in a file of this
package, and one entry in ``flinkpy.aggregates.builtin``.

The module is imported with the API, so numpy and Arrow are imported by the methods that compute with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

WHOLE: frozenset[type] = frozenset({int, bool})


class Aggregate(ABC):
    """One built-in aggregate. Values and accumulators are never None."""

    name: ClassVar[str]
    selects: ClassVar[bool] = False
    """Whether the result is one of the values, so that a record can be selected by it (``min_by``)."""
    of_fields: ClassVar[bool] = True
    """Whether an accumulator is a result at any time, so that it can stand in the field of a record and be given out as it grows."""
    only_counts: ClassVar[bool] = False
    """Whether the number of values is all there is to know."""
    of_numbers: ClassVar[bool] = True
    """Whether it computes with the values, so that they must be numbers."""

    # -- values ----------------------------------------------------------------------------------------------------------------

    def first(self, value: Any) -> Any:
        """The accumulator of a single value."""
        return value

    @abstractmethod
    def add(self, accumulator: Any, value: Any) -> Any:
        """The accumulator with one value more. ``accumulator`` itself if nothing changes."""

    def merge(self, accumulator: Any, other: Any) -> Any:
        """The accumulator of all values of two accumulators, those of the first one before those of the other."""
        return self.add(accumulator, other)

    def merges_exactly(self, kinds: set[type]) -> bool:
        """Whether values of these types, and of no others, give the same in whatever parts they are accumulated and merged. Numbers are computed
        exactly if they are whole; what is only compared needs a total order."""
        return kinds <= WHOLE if self.of_numbers else kinds <= WHOLE | {float} or kinds == {str}

    def expression(self, accumulator: str, value: str, with_accumulator: Callable[[str], str]) -> str:
        """``add`` as an expression. For None, and for values that are not ordinary, it may raise or call ``update(current, record)``.

        ``with_accumulator`` turns an expression for the new accumulator into one for the new ``current``.
        """
        raise NotImplementedError(f"{self.name} of records is not there")

    # -- columns ---------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def computed_in(self, input_type: Any) -> Any:
        """The Arrow type of accumulators for a column of that type; ProgramError for a type that the aggregate does not take."""

    def adding(self, computed_in: Any) -> Callable[[Any, Any], Any]:
        """``add`` for Python values of that Arrow type."""
        return self.add

    def identity(self, dtype: Any) -> Any:
        """The number that changes nothing, of a numpy type."""
        raise NotImplementedError

    def grouped(self, values: Any, codes: Any, groups: int) -> Any:
        """The accumulator of each group of numbers. ``codes`` says the group of each number; None: all are in one."""
        raise NotImplementedError

    def is_exact_in_any_order(self, runs: Runs) -> bool:
        """Whether ``running`` gives exactly what adding one number after the other gives."""
        raise NotImplementedError

    def running(self, runs: Runs) -> Any:
        """The accumulator after each number."""
        raise NotImplementedError

    def check(self, accumulators: Any) -> None:
        """OverflowError if one of these exact whole numbers cannot be a result."""

    def result_type(self, computed_in: Any) -> Any:
        """The Arrow type of results."""
        return computed_in

    def results(self, counts: Any, values: Any, accumulators: Callable[[], Any]) -> Any:
        """The results as an Arrow array, null where a count is 0. ``accumulators`` gives the values as one."""
        return accumulators()


@dataclass(frozen=True)
class Runs:
    """Numbers sorted by key, those of one key in their order, as one run behind the other. No run is empty."""

    numbers: Any
    starts: Any  # the position of each run's first number
    ends: Any  # and of its last one
    before: Any  # the accumulator of each run's key so far, or the identity

    @property
    def lengths(self) -> Any:
        """How many numbers each run has."""
        return self.ends - self.starts + 1
