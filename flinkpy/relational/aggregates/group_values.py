"""FIRST_VALUE, LAST_VALUE and SINGLE_VALUE: one row of each group is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import (
    AggregateSite,
    ChangingAccumulator,
    Groups,
)
from flinkpy.relational.aggregates.present_values import all_present
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.state.numbered_rows import NumberedRows


class KeptRow(ChangingAccumulator):
    """The first or the last value of each group that is not null."""

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._is_first = site.function.upper() == "FIRST_VALUE"
        self.partial_types = (site.result,)
        self._rows = NumberedRows(pa.schema([("value", site.arguments[0])]))
        self._has, self._place = Grown(np.bool_, False), Grown(np.int64, 0)

    def reach(self, size: int) -> None:
        self._has.reach(size)

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        column = plain(columns[0])
        present = all_present([column])
        at = np.arange(len(groups)) if present is None else np.flatnonzero(present)
        self._keep(column, groups, at, size)

    def _keep(
        self, column: pa.Array, groups: npt.NDArray[Any], at: npt.NDArray[Any], size: int
    ) -> None:
        """Keeps the first or the last of the values at these positions."""
        has, place = self._has.reach(size), self._place.reach(size)
        if self._is_first:
            at = at[~has[groups[at]]][::-1]
        owners = groups[at]
        place[owners] = at  # the last assignment wins
        kept = at[place[owners] == at]
        if len(kept):
            values = pa.RecordBatch.from_arrays([column.take(pa.array(kept))], names=["value"])
            self._rows.put(groups[kept], values)
            has[groups[kept]] = True

    def results_of(self, groups: Groups) -> pa.Array:
        if isinstance(groups, slice):
            groups = np.arange(groups.stop)
        has = self._has.values[groups]
        values = self._rows.take(groups[has]).column(0)
        if not has.all():
            values = values.take(pa.array(np.cumsum(has) - 1, mask=~has))
        return values.cast(self._result)

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        return [self.results_of(groups)]

    def clear(self, groups: npt.NDArray[np.int64]) -> None:
        self._rows.remove(groups[self._has.values[groups]])
        self._has.values[groups] = False

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self.add(columns, groups, size)


class OnlyRow(KeptRow):
    """The value of the only row of each group, null or not. A second row is an error: a sub-query
    in the place of a value gave several."""

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(site)
        self.partial_types = ()
        self._counts = Grown(np.int64, 0)

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        counts = self._counts.reach(size)
        np.add.at(counts, groups, 1)
        if counts.max(initial=0) > 1:
            raise ProgramError(
                "a sub-query in the place of a value gave more than one row; let it give one, with "
                "LIMIT 1 or an aggregate such as MAX"
            )
        self._keep(plain(columns[0]), groups, np.arange(len(groups)), size)
