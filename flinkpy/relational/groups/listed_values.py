"""Aggregates that are made of all values of a group: these are kept, and the result is made anew
by the accumulator that groups of BATCH have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import encoded
from flinkpy.relational.aggregates.accumulator_port import (
    AggregateSite,
    ChangingAccumulator,
    Groups,
)
from flinkpy.relational.aggregates.group_functions import accumulator_of
from flinkpy.relational.groups.listed_parts import list_type, listed, unlisted
from flinkpy.relational.groups.value_counts import Entries, Numbers
from flinkpy.relational.relational_operator import one_record_batch, plain
from flinkpy.relational.state.multi_map import MultiMap
from flinkpy.relational.state.row_store import RowStore


class ListedValues(ChangingAccumulator):
    """The arguments of all rows of a group, with the turn of each: the order in which they came. A
    row that is taken back is the first one with the same arguments, as in Flink."""

    retracts = True

    def __init__(self, site: AggregateSite) -> None:
        self._site = site
        values = [pa.field(f"value {at}", kind) for at, kind in enumerate(site.arguments)]
        self.entries_schema = pa.schema([*values, pa.field("turn", pa.int64())])
        self._store = RowStore(
            pa.schema([pa.field("group", pa.int64()), *values, pa.field("turn", pa.int64())])
        )
        self._part_type = list_type(site.arguments, 1)
        self._of_groups = MultiMap()
        self._next_turn = 0

    def reach(self, size: int) -> None:
        """Groups without rows take no room."""

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        columns = list(map(plain, columns))
        if signs is None:
            self._take(columns, groups)
            return
        is_taken = signs > 0
        if is_taken.any():
            self._take([each.filter(pa.array(is_taken)) for each in columns], groups[is_taken])
        if not is_taken.all():
            gone = ~is_taken
            self._take_back([each.filter(pa.array(gone)) for each in columns], groups[gone])

    def _take(self, columns: Sequence[pa.Array], groups: Numbers) -> None:
        turns = np.arange(self._next_turn, self._next_turn + len(groups))
        self._next_turn += len(groups)
        self._put([pa.array(groups, pa.int64()), *columns, pa.array(turns)], groups)

    def _put(self, columns: Sequence[pa.Array], groups: Numbers) -> None:
        rows = pa.RecordBatch.from_arrays(list(columns), schema=self._store.schema)
        self._of_groups.add(groups, self._store.add(rows))

    def _take_back(self, columns: Sequence[pa.Array], groups: Numbers) -> None:
        _, numbers = self._of_groups.pairs(np.unique(groups))
        rows, in_turn = self._in_turn(numbers)
        numbers = numbers[in_turn]
        # what is kept, then what is taken back: equal rows of a group have one code
        both = [
            pa.concat_arrays([kept, given])
            for kept, given in zip(rows.columns, [pa.array(groups, pa.int64()), *columns])
        ]
        codes = encoded(both).codes
        kept_codes, wanted = codes[: len(numbers)], codes[len(numbers) :]
        times = np.bincount(wanted, minlength=int(codes.max()) + 1)
        order = np.argsort(kept_codes, kind="stable")
        ordered = kept_codes[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
        lengths = np.diff(np.append(starts, len(ordered)))
        nth = np.arange(len(ordered)) - np.repeat(starts, lengths)
        gone = order[nth < times[ordered]]
        self._forget(rows.column(0).to_numpy()[gone], numbers[gone])

    def _forget(self, groups: Numbers, numbers: Numbers) -> None:
        self._of_groups.remove(groups, numbers)
        self._store.delete(numbers)

    def _in_turn(self, numbers: Numbers) -> tuple[pa.RecordBatch, Numbers]:
        """These rows in the order in which they came, and their positions in this order."""
        rows = self._store.take(numbers)
        order = np.argsort(rows.column(rows.num_columns - 1).to_numpy(), kind="stable")
        return rows.take(pa.array(order)), order

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
        added = pa.array(np.ones(len(groups), np.int64) if signs is None else signs)
        return [listed(groups, [*columns, added], self._part_type, size)]

    def take_part(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        owners, rows = unlisted(columns[0], groups)
        self.change(rows[:-1], owners, rows[-1].to_numpy(), size)

    def results_of(self, groups: Groups) -> pa.Array:
        if isinstance(groups, slice):
            groups = np.arange(groups.stop)
        accumulator = accumulator_of(self._site)
        positions, numbers = self._of_groups.pairs(groups)
        if len(numbers):
            rows, order = self._in_turn(numbers)
            accumulator.add(rows.columns[1:-1], positions[order], len(groups))
        return accumulator.results(len(groups))

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        return []

    def clear(self, groups: Numbers) -> None:
        positions, numbers = self._of_groups.pairs(groups)
        self._forget(groups[positions], numbers)

    def freeze_entries(self) -> Callable[[], Entries]:
        """What gives the rows of now."""
        frozen, schema = self._store.freeze(), self._store.schema

        def entries() -> Entries:
            rows = one_record_batch([data for data, _ in frozen.batches()], schema)
            return rows.column(0).to_numpy(), rows.select(self.entries_schema.names)

        return entries

    def restore_entries(self, entries: Entries, size: int) -> None:
        """Takes back what ``freeze_entries`` has given."""
        groups, rows = entries
        self._put([pa.array(groups, pa.int64()), *rows.columns], groups)
        turns = rows.column(rows.num_columns - 1).to_numpy()
        self._next_turn = max(self._next_turn, int(turns.max(initial=-1)) + 1)
