"""The accumulators of all keys for one aggregate over columns: arrays, by the key's number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.algebra import Runs
from flinkpy.aggregates.builtin import BUILT_IN
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch


class KeyedAccumulators:
    """For each key how many values there were, and what they make together. ``keys``: how many keys are known."""

    def __init__(self, of: ColumnAggregate) -> None:
        self.of = of
        self._counts, self._values = Grown(np.int64, 0), Grown(of.dtype, of.identity)

    def take(self, column: Any, ids: Any, keys: int) -> None:
        """Takes values of these keys. All keys are gone through, so there should be more values than keys."""
        column, ids = self.of.few(column, ids)
        counts, values = self.of.values_of(column)
        everyone = np.arange(keys)
        total = self._counts.reach(keys)[:keys] + self.of.counted(counts, len(column), ids, keys)
        self.put(everyone, total, None if values is None else self._grouped(values, ids, everyone), keys)

    def add(self, column: Any, keyed: KeyedBatch, keys: int) -> Any:
        """Takes a batch's values, and gives the aggregate of each of the batch's keys as an Arrow array."""
        column, codes = self.of.few(column, keyed.codes)
        counts, values = self.of.values_of(column)
        total = self._counts.reach(keys)[keyed.ids] + self.of.counted(counts, len(column), codes, len(keyed.ids))
        grouped = None if values is None else self._grouped(values, codes, keyed.ids)
        self.put(keyed.ids, total, grouped, keys)
        return self.of.results(total, grouped)

    def _grouped(self, values: Any, codes: Any, ids: Any) -> Any:
        """What these keys come to; those before go first, so that sums of floats are rounded as if values had been added one by one."""
        joint = np.concatenate((self._values.reach(int(ids.max()) + 1)[ids], values)), np.concatenate((np.arange(len(ids)), codes))
        return self.of.grouped(*joint, len(ids))

    def run(self, column: Any, keyed: KeyedBatch, keys: int) -> Any:
        """Takes a batch's values, and gives what its key has come to at each record."""
        order, starts = _by_key(keyed)
        ids = keyed.ids[keyed.codes[order[starts]]]
        counts, values = self.of.values_of(column)
        running = self.of.running(Runs(values[order], starts, self._values.reach(keys)[ids]))
        if counts is None:
            present = np.ones(len(order), np.int64)
            total = self._counts.reach(keys)[ids] + np.diff(starts, append=len(order))
        else:
            present = BUILT_IN["sum"].running(Runs(counts[order], starts, self._counts.reach(keys)[ids]))
            total = present[_ends(starts, len(order))]
        self.put(ids, total, running[_ends(starts, len(order))], keys)
        results, places = np.empty_like(running), np.empty_like(present)
        results[order], places[order] = running, present
        return self.of.results(places, results)

    def put(self, ids: Any, counts: Any, values: Any, keys: int) -> None:
        """These are the accumulators of these keys."""
        self._counts.reach(keys)[ids] = counts
        if values is not None:
            if values.dtype == object:
                self._values.values = self._values.values.astype(object)
            self._values.reach(keys)[ids] = values

    def results(self, keys: int) -> Any:
        """The aggregate of every key."""
        return self.of.results(self._counts.reach(keys)[:keys], self._values.reach(keys)[:keys])

    def saved(self, keys: int) -> tuple[Any, Any]:
        """Counts and values as Arrow arrays, by key number; no values where there is only the count."""
        counts = self._counts.reach(keys)[:keys]
        return pa.array(counts), None if self.of.only_counts else self.of.accumulators(counts, self._values.reach(keys)[:keys])


def _by_key(keyed: KeyedBatch) -> tuple[Any, Any]:
    """Positions sorted by key, records of one key in their order; and where each key's begin."""
    codes = keyed.codes
    if len(keyed.ids) <= 1 << 16:
        codes = codes.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(keyed.codes, minlength=len(keyed.ids))
    return order, np.concatenate(([0], np.cumsum(counts[:-1])))


def _ends(starts: Any, size: int) -> Any:
    return np.append(starts[1:], size) - 1
