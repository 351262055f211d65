"""The calls of a GROUP BY whose results change: FILTER and DISTINCT choose rows, accumulators take
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.aggregates.accumulator_port import AggregateSite, ChangingAccumulator
from flinkpy.relational.aggregates.calls_of_groups import columns_of, plain_type, sites_of
from flinkpy.relational.aggregates.group_counts import Sum
from flinkpy.relational.aggregates.group_functions import COUNTS_DISTINCT, accumulator_of
from flinkpy.relational.groups.best_values import BestValue, CountedExtreme
from flinkpy.relational.groups.listed_parts import list_type, net_values, unlisted
from flinkpy.relational.groups.listed_values import ListedValues
from flinkpy.relational.groups.value_counts import (
    CountedBatch,
    Entries,
    Numbers,
    ValueCounts,
    added_by,
)
from flinkpy.relational.relational_operator import plain
from flinkpy.sql.rex.rex_nodes import AggregateCall

_EXTREMES = ("MIN", "MAX")
_Signs = npt.NDArray[np.int64] | None


@runtime_checkable
class HasEntries(Protocol):
    """State that has any number of rows for a group: a region of its own."""

    entries_schema: pa.Schema

    def freeze_entries(self) -> Callable[[], Entries]: ...

    def restore_entries(self, entries: Entries, size: int) -> None: ...


def changing_accumulator(site: AggregateSite, *, takes_back: bool) -> ChangingAccumulator:
    """The accumulator of a call. ``takes_back``: rows are also taken back; then what cannot
    subtract keeps the values of each group."""
    found = accumulator_of(site)
    if isinstance(found, ChangingAccumulator) and (found.retracts or not takes_back):
        return found
    if site.function.upper() in _EXTREMES:
        return CountedExtreme(site) if takes_back else BestValue(site)
    return ListedValues(site)


@dataclass(frozen=True)
class BatchOfGroups:
    """Rows of a batch, the number of each row's group, 1 or -1 for a row that comes or is taken
    back (None: all come), and how many groups there are."""

    data: pa.RecordBatch
    groups: Numbers
    signs: _Signs
    size: int

    def filtered(self, mask: npt.NDArray[np.bool_]) -> BatchOfGroups:
        """The rows for which the mask is true."""
        signs = None if self.signs is None else self.signs[mask]
        return BatchOfGroups(self.data.filter(pa.array(mask)), self.groups[mask], signs, self.size)

    def chosen_by(self, column: int | None) -> npt.NDArray[np.bool_] | None:
        """The rows for which this column is true; None: all."""
        if column is None:
            return None
        found = plain(self.data.column(column)).fill_null(False)
        mask: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
        return mask


class _PlainCall:
    """A call that takes the rows that its FILTER chooses."""

    def __init__(self, call: AggregateCall, accumulator: ChangingAccumulator) -> None:
        self._columns = columns_of(call)
        self._filter = call.filter
        self._accumulator = accumulator

    def take(self, batch: BatchOfGroups) -> None:
        batch = self._chosen(batch)
        if len(batch.groups):
            columns = [batch.data.column(at) for at in self._columns]
            self._accumulator.change(columns, batch.groups, batch.signs, batch.size)

    def _chosen(self, batch: BatchOfGroups) -> BatchOfGroups:
        mask = batch.chosen_by(self._filter)
        return batch if mask is None else batch.filtered(mask)

    @property
    def part_types(self) -> tuple[pa.DataType, ...]:
        return self._accumulator.part_types

    def part(self, batch: BatchOfGroups) -> list[pa.Array]:
        batch = self._chosen(batch)
        columns = [batch.data.column(at) for at in self._columns]
        return self._accumulator.part(columns, batch.groups, batch.signs, batch.size)

    def take_part(self, columns: Sequence[pa.Array], groups: Numbers, size: int) -> None:
        self._accumulator.take_part(columns, groups, size)


class DistinctCalls:
    """Calls with DISTINCT over the same columns, which share the counts of values: a value comes
    when the first row has it, and goes with the last one, for each FILTER by itself."""

    def __init__(self, arguments: Sequence[int], kinds: Sequence[pa.DataType]) -> None:
        self._arguments = tuple(arguments)
        self._kinds = kinds
        self._filters: list[int | None] = []
        self._calls: list[tuple[int, AggregateCall, ChangingAccumulator]] = []

    def add(self, call: AggregateCall, accumulator: ChangingAccumulator) -> None:
        """One more call; before ``open``."""
        if call.filter not in self._filters:
            self._filters.append(call.filter)
        self._calls.append((self._filters.index(call.filter), call, accumulator))

    def open(self) -> None:
        """All calls are there."""
        self._counts = ValueCounts(self._kinds, len(self._filters))
        self.entries_schema = self._counts.schema

    def take(self, batch: BatchOfGroups) -> None:
        columns = [batch.data.column(at) for at in self._arguments]
        chosen = [batch.chosen_by(each) for each in self._filters]
        counted = self._counts.change(batch.groups, columns, batch.signs, chosen)
        self._pass_on(counted, batch.data.columns, batch.size)

    def _pass_on(
        self, counted: CountedBatch, columns: Mapping[int, pa.Array] | list[pa.Array], size: int
    ) -> None:
        """The calls take the values that have come, and take back those that have gone. ``columns``
        are those of the input."""
        for number, call, accumulator in self._calls:
            came, went = counted.came[number], counted.went[number]
            at = np.flatnonzero(came | went)
            if not len(at):
                continue
            signs = None if not went.any() else np.where(went[at], -1, 1)
            rows = pa.array(counted.firsts[at])
            values = [columns[each].take(rows) for each in columns_of(call)]
            accumulator.change(values, counted.groups[at], signs, size)

    @property
    def part_types(self) -> tuple[pa.DataType, ...]:
        return (list_type(self._kinds, len(self._filters)),)

    def part(self, batch: BatchOfGroups) -> list[pa.Array]:
        """The distinct values of each group, with how often each FILTER chooses them."""
        columns = [batch.data.column(at) for at in self._arguments]
        added = [
            added_by(batch.signs, batch.chosen_by(each), len(batch.groups))
            for each in self._filters
        ]
        return [net_values(batch.groups, columns, added, self.part_types[0], batch.size)]

    def take_part(self, columns: Sequence[pa.Array], groups: Numbers, size: int) -> None:
        """Takes what ``part`` has given."""
        owners, rows = unlisted(columns[0], groups)
        width = len(self._arguments)
        values, added = rows[:width], [each.to_numpy() for each in rows[width:]]
        counted = self._counts.add(owners, values, added)
        self._pass_on(counted, dict(zip(self._arguments, values)), size)

    def clear(self, groups: Numbers) -> None:
        """These groups have no rows."""
        self._counts.clear(groups)

    def freeze_entries(self) -> Callable[[], Entries]:
        """What gives the values of now."""
        return self._counts.freeze()

    def restore_entries(self, entries: Entries, size: int) -> None:
        """Takes back what ``freeze_entries`` has given."""
        self._counts.restore(entries)


class ChangingCalls:
    """All calls of an operator."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        inputs: pa.Schema,
        results: Sequence[pa.DataType],
        *,
        takes_back: bool,
    ) -> None:
        sites = sites_of(calls, inputs, results)
        self.accumulators = [changing_accumulator(site, takes_back=takes_back) for site in sites]
        self.kept: dict[int, ChangingAccumulator] = {}
        """Those with a state of their own, by the number of the call: SUM and AVG of the same rows
        share one."""
        self._takers: list[_PlainCall | DistinctCalls] = []
        sums: dict[object, Sum] = {}
        self._distinct: dict[tuple[int, ...], DistinctCalls] = {}
        for number, (call, accumulator) in enumerate(zip(calls, self.accumulators)):
            if isinstance(accumulator, Sum):
                rows = call.arguments, call.filter, call.distinct
                before = sums.setdefault(rows, accumulator)
                if before is not accumulator:
                    accumulator.shares(before)
                    continue
            self.kept[number] = accumulator
            is_distinct = call.distinct or call.function.upper() == COUNTS_DISTINCT
            if not (is_distinct and call.arguments):
                self._takers.append(_PlainCall(call, accumulator))
                continue
            shared = self._distinct.get(call.arguments)
            if shared is None:
                kinds = [plain_type(inputs.field(at).type) for at in call.arguments]
                shared = self._distinct[call.arguments] = DistinctCalls(call.arguments, kinds)
                self._takers.append(shared)
            shared.add(call, accumulator)
        for each in self._distinct.values():
            each.open()

    @property
    def with_entries(self) -> dict[str, HasEntries]:
        """What has a region of its own, by its name."""
        found: dict[str, HasEntries] = {
            f"distinct-{number}": each for number, each in enumerate(self._distinct.values())
        }
        for number, accumulator in self.kept.items():
            if isinstance(accumulator, HasEntries):
                found[f"values-{number}"] = accumulator
        return found

    def take(self, batch: BatchOfGroups) -> None:
        """Takes the rows of a batch, or takes them back."""
        for each in self._takers:
            each.take(batch)

    @property
    def part_types(self) -> list[pa.DataType]:
        """Of the columns that ``part`` gives."""
        return [kind for each in self._takers for kind in each.part_types]

    def part(self, batch: BatchOfGroups) -> list[pa.Array]:
        """What the rows of a batch make of each of its groups, for the calls where the groups lie.
        Nothing of it stays here."""
        return [column for each in self._takers for column in each.part(batch)]

    def take_part(self, columns: Sequence[pa.Array], groups: Numbers, size: int) -> None:
        """Takes what ``part`` has given for these groups."""
        at = 0
        for each in self._takers:
            width = len(each.part_types)
            each.take_part(columns[at : at + width], groups, size)
            at += width

    def reach(self, size: int) -> None:
        """There are so many groups."""
        for each in self.kept.values():
            each.reach(size)

    def results_of(self, groups: Numbers) -> list[pa.Array]:
        """A column for each call, of these groups."""
        return [each.results_of(groups) for each in self.accumulators]

    def clear(self, groups: Numbers) -> None:
        """These groups have no rows."""
        for accumulator in self.kept.values():
            accumulator.clear(groups)
        for each in self._distinct.values():
            each.clear(groups)
