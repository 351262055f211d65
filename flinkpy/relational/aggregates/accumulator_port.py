"""What an aggregate function does with the values of groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import Grown
from flinkpy.sql.rex.rex_nodes import SortKey

# numbers of groups, or all of them up to one
Groups: TypeAlias = "npt.NDArray[np.int64] | slice"


@dataclass(frozen=True)
class AggregateSite:
    """Where an aggregate function is called: the Arrow types of its arguments, and of its result.
    ``order`` says in which order it takes the rows of a group; its columns stand behind the
    arguments."""

    function: str
    arguments: tuple[pa.DataType, ...]
    result: pa.DataType
    order: tuple[SortKey, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)


class Accumulator(ABC):
    """The values of all groups for one call. Groups have numbers from 0 on; ``groups`` has that of
    each row, and ``size`` is how many groups there are."""

    partial_types: tuple[pa.DataType, ...] = ()
    """Of the columns that ``partial`` gives; empty if the function cannot be computed in parts."""

    @abstractmethod
    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        """Takes the arguments of these rows."""

    @abstractmethod
    def results(self, size: int) -> pa.Array:
        """The result of each group, of the result's type."""

    def partial(self, size: int) -> list[pa.Array]:
        """What has been accumulated for each group, for another accumulator to merge."""
        raise NotImplementedError(type(self).__name__)

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        """Takes what others have accumulated."""
        raise NotImplementedError(type(self).__name__)


class ChangingAccumulator(Accumulator):
    """An accumulator for results that change while rows come: some groups at a time are looked at,
    saved, or gone. Its work does not grow with the number of groups that a batch has no rows of."""

    retracts = False
    """Whether it takes rows back."""

    @abstractmethod
    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        """Takes the arguments of these rows, or takes them back: ``signs`` has 1 and -1; None: all
        are taken."""

    @abstractmethod
    def results_of(self, groups: Groups) -> pa.Array:
        """The results of these groups, of which rows have come before."""

    @abstractmethod
    def partial_of(self, groups: Groups) -> list[pa.Array]:
        """What has been accumulated for these groups, for ``merge``."""

    @abstractmethod
    def clear(self, groups: npt.NDArray[np.int64]) -> None:
        """These groups are as if no row had come."""

    def reach(self, size: int) -> None:
        """There are so many groups."""
        raise NotImplementedError(type(self).__name__)

    @property
    def part_types(self) -> tuple[pa.DataType, ...]:
        """Of the columns that ``part`` gives."""
        return self.partial_types

    def part(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> list[pa.Array]:
        """What these rows make of each of so many groups, for ``take_part`` of another accumulator.
        Nothing of them stays here. More rows may be taken back than come."""
        self.change(columns, groups, signs, size)
        self.reach(size)
        touched = np.arange(size)  # a slice would give what ``clear`` overwrites
        found = self.partial_of(touched)
        self.clear(touched)
        return found

    def take_part(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        """Takes what ``part`` has given."""
        self.merge(columns, groups, size)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self.change(columns, groups, None, size)

    def results(self, size: int) -> pa.Array:
        self.reach(size)
        return self.results_of(slice(0, size))

    def partial(self, size: int) -> list[pa.Array]:
        self.reach(size)
        return self.partial_of(slice(0, size))


class ArrayAccumulator(ChangingAccumulator):
    """One that has a few numbers for each group."""

    arrays: tuple[Grown, ...]

    def reach(self, size: int) -> None:
        for each in self.arrays:
            each.reach(size)

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        return [pa.array(each.values[groups]) for each in self.arrays]

    def clear(self, groups: npt.NDArray[np.int64]) -> None:
        for each in self.arrays:
            each.values[groups] = each.fill


def count_rows(
    counts: Grown, groups: npt.NDArray[Any], signs: npt.NDArray[Any] | None, size: int
) -> None:
    """Adds the rows of each group; those that are taken back (with the sign -1) are subtracted."""
    np.add.at(counts.reach(size), groups, 1 if signs is None else signs)


def present_rows(
    columns: Sequence[pa.Array],
    present: npt.NDArray[np.bool_] | None,
    groups: npt.NDArray[Any],
    signs: npt.NDArray[Any] | None,
) -> tuple[list[pa.Array], npt.NDArray[Any], npt.NDArray[Any] | None]:
    """The rows that are ``present`` (None: all)."""
    if present is None:
        return list(columns), groups, signs
    kept = pa.array(present)
    signs = None if signs is None else signs[present]
    return [column.filter(kept) for column in columns], groups[present], signs


AccumulatorOf: TypeAlias = Callable[[AggregateSite], Accumulator]
