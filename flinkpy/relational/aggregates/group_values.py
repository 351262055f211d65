"""FIRST_VALUE, LAST_VALUE and SINGLE_VALUE: one row of each group is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.present_values import all_present
from flinkpy.relational.relational_operator import plain

_DEAD = 1 << 15  # rows that no group keeps, before they are dropped


class KeptRow(Accumulator):
    """The first or the last value of each group that is not null."""

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._is_first = site.function.upper() == "FIRST_VALUE"
        self.partial_types = (site.result,)
        self._chunks: list[pa.Array] = []
        self._rows = 0
        self._row_of = Grown(np.int64, -1)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        column = plain(columns[0])
        present = all_present([column])
        at = np.arange(len(groups)) if present is None else np.flatnonzero(present)
        self._keep(column, groups, at, size)

    def _keep(
        self, column: pa.Array, groups: npt.NDArray[Any], at: npt.NDArray[Any], size: int
    ) -> None:
        """Keeps the first or the last of the values at these positions."""
        rows = self._row_of.reach(size)
        if self._is_first:
            at = at[rows[groups[at]] < 0][::-1]
        chosen = np.full(size, -1, np.int64)
        chosen[groups[at]] = at  # the last assignment wins
        kept = np.flatnonzero(chosen >= 0)
        if not len(kept):
            return
        self._chunks.append(column.take(pa.array(chosen[kept])))
        rows[kept] = self._rows + np.arange(len(kept))
        self._rows += len(kept)
        if self._rows > 2 * size + _DEAD:
            values, is_kept = self._values(size), rows[:size] >= 0
            self._chunks, self._rows = [values], size
            rows[:size] = np.where(is_kept, np.arange(size), -1)

    def _values(self, size: int) -> pa.Array:
        rows = self._row_of.reach(size)[:size]
        if not self._chunks:
            return pa.nulls(size, self._result)
        return pa.concat_arrays(self._chunks).take(pa.array(rows, mask=rows < 0))

    def results(self, size: int) -> pa.Array:
        return self._values(size).cast(self._result)

    def partial(self, size: int) -> list[pa.Array]:
        return [self.results(size)]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self.add(columns, groups, size)


class OnlyRow(KeptRow):
    """The value of the only row of each group, null or not. A second row is an error: a sub-query
    in the place of a value gave several."""

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(site)
        self.partial_types = ()
        self._counts = Grown(np.int64, 0)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        counts = self._counts.reach(size)
        np.add.at(counts, groups, 1)
        if counts.max(initial=0) > 1:
            raise ProgramError(
                "a sub-query in the place of a value gave more than one row; let it give one, with "
                "LIMIT 1 or an aggregate such as MAX"
            )
        self._keep(plain(columns[0]), groups, np.arange(len(groups)), size)
