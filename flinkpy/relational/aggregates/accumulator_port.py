"""What an aggregate function does with the values of groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt
import pyarrow as pa

from flinkpy.sql.rex.rex_nodes import SortKey


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


AccumulatorOf: TypeAlias = Callable[[AggregateSite], Accumulator]
