"""The accumulators of all keys for one aggregate over columns, as arrays indexed by key number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.algebra import Runs
from flinkpy.aggregates.builtin import BUILT_IN
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch

if TYPE_CHECKING:
    import numpy.typing as npt


class KeyedAccumulators:
    """For each key, the count of its values and their aggregate. ``keys`` is the number of known
    keys."""

    def __init__(self, of: ColumnAggregate) -> None:
        self.of = of
        self._counts, self._values = Grown(np.int64, 0), Grown(of.dtype, of.identity)

    def take(self, column: pa.Array, ids: npt.NDArray[np.int64], records: Any) -> None:
        """Accumulates the values; ``ids`` are their key numbers, and ``records`` the number of
        records of each key. Every key is visited, so there should be more values than keys."""
        keys = len(records)
        everyone = np.arange(keys)
        self.put(everyone, *self._added(column, ids, everyone, records, keys), keys)

    def add(self, column: pa.Array, keyed: KeyedBatch, keys: int) -> Any:
        """Accumulates a batch's values; returns the aggregates of the batch's keys as an Arrow
        array."""
        added = self._added(column, keyed.codes, keyed.ids, keyed.records, keys)
        self.put(keyed.ids, *added, keys)
        return self.of.results(*added)

    def merge(
        self, counts: npt.NDArray[np.int64], values: Any, keyed: KeyedBatch, keys: int
    ) -> tuple[Any, Any]:
        """Accumulates what others have accumulated: the counts and values of the batch's records.
        Returns those of the batch's keys."""
        total = self._counts.reach(keys)[keyed.ids] + self.of.counted(
            counts, len(counts), keyed.codes, len(keyed.ids)
        )
        grouped = (
            None if values is None else self._values_with(values, keyed.codes, keyed.ids, keys)
        )
        self.put(keyed.ids, total, grouped, keys)
        return total, grouped

    def _added(
        self, column: pa.Array, codes: Any, ids: npt.NDArray[np.int64], records: object, keys: int
    ) -> tuple[Any, Any]:
        """The new counts and values of these keys; ``records`` is the number of records of each."""
        fewer, codes_of_fewer = self.of.few(column, codes)
        counts, values = self.of.values_of(fewer)
        counted = (
            records
            if counts is None and fewer is column
            else self.of.counted(counts, len(fewer), codes_of_fewer, len(ids))
        )
        return self._counts.reach(keys)[
            ids
        ] + counted, None if values is None else self._values_with(
            values, codes_of_fewer, ids, keys
        )

    def _values_with(self, values: object, codes: Any, ids: object, keys: int) -> Any:
        """The new aggregates of these keys. Earlier values go first, so that sums of floats are
        rounded as if values were added one by one."""
        return self.of.added_to(self._values.reach(keys).take(ids), values, codes)

    def run(self, column: pa.Array, keyed: KeyedBatch, keys: int) -> Any:
        """Accumulates a batch's values; returns for each record its key's aggregate so far."""
        order, starts = _by_key(keyed)
        ids = keyed.ids[keyed.codes[order[starts]]]
        counts, values = self.of.values_of(column)
        ends = np.append(starts[1:], len(order)) - 1
        running = self.of.running(Runs(values[order], starts, ends, self._values.reach(keys)[ids]))
        before, shown = self._counts.reach(keys)[ids], None
        if counts is None:
            total = before + (ends - starts + 1)
        else:
            present = BUILT_IN["sum"].running(Runs(counts[order], starts, ends, before))
            total, shown = present[ends], _back(present, order)
        self.put(ids, total, running[ends], keys)
        return self.of.results(shown, _back(running, order))

    def put(
        self, ids: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], values: Any, keys: int
    ) -> None:
        """Sets the accumulators of these keys."""
        self._counts.put(ids, np.asarray(counts), keys)
        if values is not None:
            self._values.put(ids, values, keys)

    @property
    def arrays(self) -> tuple[Grown, Grown]:
        """What it keeps by key number."""
        return self._counts, self._values

    def results(self, keys: int) -> Any:
        """The aggregates of all keys."""
        return self.of.results(self._counts.reach(keys)[:keys], self._values.reach(keys)[:keys])

    def freeze(self, keys: int) -> Callable[[Turns], tuple[Any, Any]]:
        """What gives counts and values of now as Arrow arrays, by key number; None for the values
        if the aggregate only counts."""
        self._counts.reach(keys)
        self._values.reach(keys)
        counts = self._counts.freeze()
        values = None if self.of.only_counts else self._values.freeze()

        def saved(turns: Turns) -> tuple[Any, Any]:
            counted = counts.read(turns)[:keys]
            return pa.array(counted), None if values is None else self.of.accumulators(
                counted, values.read(turns)[:keys]
            )

        return saved


def _by_key(keyed: KeyedBatch) -> tuple[Any, Any]:
    """The positions of the records sorted by key, with records of one key in order; and where each
    key begins."""
    codes = keyed.codes
    if len(keyed.ids) <= 1 << 16:
        codes = codes.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(codes, kind="stable")
    return order, np.concatenate(([0], np.cumsum(keyed.records[:-1])))


def _back(values: Any, order: object) -> Any:
    """The sorted values, back at the positions of their records."""
    results = np.empty_like(values)
    results[order] = values
    return results
