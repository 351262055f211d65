"""MIN and MAX of values that numpy does not compare, and of values that are taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import (
    AggregateSite,
    ChangingAccumulator,
    Groups,
    present_rows,
)
from flinkpy.relational.aggregates.group_extremes import extreme
from flinkpy.relational.aggregates.present_values import all_present
from flinkpy.relational.groups.listed_parts import list_type, net_values, unlisted
from flinkpy.relational.groups.value_counts import Entries, Numbers, ValueCounts
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.sort_codes import codes_of, sorted_positions
from flinkpy.relational.state.numbered_rows import NumberedRows
from flinkpy.sql.rex.rex_nodes import SortKey


class ChoosesBest(ChangingAccumulator):
    """What these share: the least or the greatest value of each group."""

    def __init__(self, site: AggregateSite) -> None:
        extreme(site)  # refuses what cannot be compared
        self._result = site.result
        self._key = SortKey(0, descending=site.function.upper() == "MAX")

    def _firsts(self, groups: Numbers, values: pa.Array) -> Any:
        """The position of each group's best value."""
        order = sorted_positions([groups, *codes_of([values], [self._key])], len(groups))
        ordered = groups[order]
        return order[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]

    def _with_nulls(self, values: pa.Array, has: npt.NDArray[np.bool_]) -> pa.Array:
        if not has.all():
            values = values.take(pa.array(np.cumsum(has) - 1, mask=~has))
        return values.cast(self._result)


def present_values(
    columns: Sequence[pa.Array], groups: npt.NDArray[Any], signs: npt.NDArray[Any] | None
) -> tuple[list[pa.Array], npt.NDArray[Any], npt.NDArray[Any] | None]:
    """The rows whose first column is not null."""
    columns = [plain(column) for column in columns]
    return present_rows(columns, all_present(columns[:1]), groups, signs)


class BestValue(ChoosesBest):
    """Of values that only come: one is kept for each group."""

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(site)
        self.partial_types = (site.result,)
        self._rows = NumberedRows(pa.schema([("value", site.arguments[0])]))
        self._has = Grown(np.bool_, False)

    def reach(self, size: int) -> None:
        self._has.reach(size)

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        self.reach(size)
        [values], groups, _ = present_values(columns[:1], groups, signs)
        if not len(groups):
            return
        firsts = self._firsts(groups, values)
        values, groups = values.take(pa.array(firsts)), groups[firsts]
        known = groups[self._has.values[groups]]
        if len(known):
            values = pa.concat_arrays([values, self._rows.take(known).column(0)])
            together = np.concatenate([groups, known])
            firsts = self._firsts(together, values)
            firsts = firsts[firsts < len(groups)]  # the others are there already
            values, groups = values.take(pa.array(firsts)), groups[firsts]
        self._rows.put(groups, pa.RecordBatch.from_arrays([values], names=["value"]))
        self._has.values[groups] = True

    def results_of(self, groups: Groups) -> pa.Array:
        if isinstance(groups, slice):
            groups = np.arange(groups.stop)
        has = self._has.values[groups]
        return self._with_nulls(self._rows.take(groups[has]).column(0), has)

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        return [self.results_of(groups)]

    def clear(self, groups: Numbers) -> None:
        self._rows.remove(groups[self._has.values[groups]])
        self._has.values[groups] = False

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self.add(columns, groups, size)


class CountedExtreme(ChoosesBest):
    """Of values that come and go: all are kept with their counts. Only where the best value of a
    group has gone the others are looked at."""

    retracts = True

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(site)
        self._values = ValueCounts(site.arguments[:1])
        self._best = Grown(np.int64, -1)  # by group: the number of the value
        self.entries_schema = self._values.schema
        self._part_type = list_type(site.arguments[:1], 1)

    def reach(self, size: int) -> None:
        self._best.reach(size)

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        best = self._best.reach(size)
        columns, groups, signs = present_values(columns[:1], groups, signs)
        if not len(groups):
            return
        counted = self._values.change(groups, columns, signs, [None])
        [came], [went] = counted.came, counted.went
        is_lost = went & (best[counted.groups] == counted.numbers)
        lost = counted.groups[is_lost]
        best[lost] = -1
        of_lost, left = self._values.of_groups(lost)
        self._choose(
            np.concatenate([counted.groups[came], lost[of_lost]]),
            np.concatenate([counted.numbers[came], left]),
        )

    def _choose(self, groups: Numbers, numbers: Numbers) -> None:
        """The best of these values and of those that were the best before."""
        if not len(groups):
            return
        best = self._best.values
        known = np.unique(groups)
        known = known[best[known] >= 0]
        groups, numbers = np.concatenate([groups, known]), np.concatenate([numbers, best[known]])
        firsts = self._firsts(groups, self._values.value_of(numbers))
        best[groups[firsts]] = numbers[firsts]

    @property
    def part_types(self) -> tuple[pa.DataType, ...]:
        return (self._part_type,)

    def part(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> list[pa.Array]:
        columns, groups, signs = present_values(columns[:1], groups, signs)
        added = np.ones(len(groups), np.int64) if signs is None else signs
        return [net_values(groups, columns, [added], self._part_type, size)]

    def take_part(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        owners, [values, added] = unlisted(columns[0], groups)
        self.change([values], owners, added.to_numpy(), size)

    def results_of(self, groups: Groups) -> pa.Array:
        numbers = self._best.values[groups]
        has = numbers >= 0
        return self._with_nulls(self._values.value_of(numbers[has]), has)

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        return []

    def clear(self, groups: Numbers) -> None:
        self._values.clear(groups)
        self._best.values[groups] = -1

    def freeze_entries(self) -> Callable[[], Entries]:
        """What gives the values of now."""
        return self._values.freeze()

    def restore_entries(self, entries: Entries, size: int) -> None:
        """Takes back what ``freeze_entries`` has given, for the groups of so many."""
        self.reach(size)
        numbers = self._values.restore(entries)
        self._choose(entries[0], numbers)
