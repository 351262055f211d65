"""The accumulators of all keys for one aggregate over columns, as arrays indexed by key number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.algebra import Runs
from flinkpy.aggregates.builtin import BUILT_IN
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch


class KeyedAccumulators:
    """For each key, the count of its values and their aggregate. ``keys`` is the number of known keys."""

    def __init__(self, of: ColumnAggregate) -> None:
        self.of = of
        self._counts, self._values = Grown(np.int64, 0), Grown(of.dtype, of.identity)

    def take(self, column: Any, ids: Any, keys: int) -> None:
        """Accumulates the values; ``ids`` are their key numbers. Every key is visited, so there should be more values
        than keys."""
        column, ids = self.of.few(column, ids)
        counts, values = self.of.values_of(column)
        everyone = np.arange(keys)
        total = self._counts.reach(keys)[:keys] + self.of.counted(counts, len(column), ids, keys)
        self.put(everyone, total, None if values is None else self._grouped(values, ids, everyone, keys), keys)

    def add(self, column: Any, keyed: KeyedBatch, keys: int) -> Any:
        """Accumulates a batch's values; returns the aggregates of the batch's keys as an Arrow array."""
        column, codes = self.of.few(column, keyed.codes)
        counts, values = self.of.values_of(column)
        return self.of.results(*self._added(counts, values, len(column), codes, keyed.ids, keys))

    def merge(self, counts: Any, values: Any, keyed: KeyedBatch, keys: int) -> tuple[Any, Any]:
        """Accumulates what others have accumulated: the counts and values of the batch's records. Returns those of the
        batch's keys."""
        return self._added(counts, values, len(counts), keyed.codes, keyed.ids, keys)

    def _added(self, counts: Any, values: Any, size: int, codes: Any, ids: Any, keys: int) -> tuple[Any, Any]:
        """The new counts and values of these keys."""
        total = self._counts.reach(keys)[ids] + self.of.counted(counts, size, codes, len(ids))
        grouped = None if values is None else self._grouped(values, codes, ids, keys)
        self.put(ids, total, grouped, keys)
        return total, grouped

    def _grouped(self, values: Any, codes: Any, ids: Any, keys: int) -> Any:
        """The new aggregates of these keys. Earlier values go first, so that sums of floats are rounded as if values
        were added one by one."""
        joint = np.concatenate((self._values.reach(keys)[ids], values)), np.concatenate((np.arange(len(ids)), codes))
        return self.of.grouped(*joint, len(ids))

    def run(self, column: Any, keyed: KeyedBatch, keys: int) -> Any:
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

    def put(self, ids: Any, counts: Any, values: Any, keys: int) -> None:
        """Sets the accumulators of these keys."""
        self._counts.put(ids, np.asarray(counts), keys)
        if values is not None:
            self._values.put(ids, values, keys)

    def results(self, keys: int) -> Any:
        """The aggregates of all keys."""
        return self.of.results(self._counts.reach(keys)[:keys], self._values.reach(keys)[:keys])

    def freeze(self, keys: int) -> Callable[[Turns], tuple[Any, Any]]:
        """What gives counts and values of now as Arrow arrays, by key number; None for the values if the aggregate only counts."""
        self._counts.reach(keys)
        self._values.reach(keys)
        counts, values = self._counts.freeze(), None if self.of.only_counts else self._values.freeze()

        def saved(turns: Turns) -> tuple[Any, Any]:
            counted = counts.read(turns)[:keys]
            return pa.array(counted), None if values is None else self.of.accumulators(counted, values.read(turns)[:keys])

        return saved


def _by_key(keyed: KeyedBatch) -> tuple[Any, Any]:
    """The positions of the records sorted by key, with records of one key in order; and where each key begins."""
    codes = keyed.codes
    if len(keyed.ids) <= 1 << 16:
        codes = codes.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(keyed.codes, minlength=len(keyed.ids))
    return order, np.concatenate(([0], np.cumsum(counts[:-1])))


def _back(values: Any, order: Any) -> Any:
    """The sorted values, back at the positions of their records."""
    results = np.empty_like(values)
    results[order] = values
    return results
