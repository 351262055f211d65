"""Aggregates of all keys of a batch job: records are put aside, and grouped when many wait, so that nothing is computed for a key per batch.

Those grouped before go first, so sums of floats are rounded as if the records had been added one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.core.elements import MIN_TIMESTAMP

_WAITING = 1 << 18  # so many records are put aside before they are grouped; more if there are more keys than that


class Groups:
    """``stamp(stamps, ids, new)`` changes the timestamps of keys for new records."""

    def __init__(self, aggregates: Sequence[ColumnAggregate], stamp: Callable[[Any, Any, Any], None]) -> None:
        self._aggregates, self._stamp = aggregates, stamp
        self._held: list[tuple[Any, Any]] = [(np.empty(0, np.int64), np.empty(0, each.dtype)) for each in aggregates]
        self._waiting: list[tuple[list[Any], Any]] = []
        self._waiting_records = self._known = 0
        self._stamps: Any = None

    def add(self, columns: list[Any], ids: Any, stamps: Any, known: int) -> None:
        """Records with the numbers of their keys, all below ``known``."""
        self._waiting.append((columns, ids))
        self._waiting_records += len(ids)
        self._known = known
        if stamps is not None:
            self._stamps = _reaching(np.empty(0, np.int64) if self._stamps is None else self._stamps, known)
            self._stamp(self._stamps, ids, stamps)
        if self._waiting_records > max(_WAITING, 2 * known):
            self._group()

    def results(self) -> tuple[list[Any], Any]:
        """The aggregates of all keys as Arrow arrays, and the keys' timestamps, if they have some."""
        self._group()
        stamps = None if self._stamps is None else self._stamps[: self._known]
        return [each.results(*held) for each, held in zip(self._aggregates, self._held)], stamps

    def _group(self) -> None:
        if not self._waiting:
            return
        ids = np.concatenate([ids for _, ids in self._waiting])
        for at, aggregate in enumerate(self._aggregates):
            column = pa.concat_arrays([columns[at] for columns, _ in self._waiting])
            self._held[at] = self._grouped(aggregate, column, ids, *self._held[at])
        self._waiting, self._waiting_records = [], 0

    def _grouped(self, aggregate: ColumnAggregate, column: Any, ids: Any, held_counts: Any, held_values: Any) -> tuple[Any, Any]:
        column, ids = aggregate.few(column, ids)
        counts, values = aggregate.values_of(column)
        total = aggregate.counted(counts, len(column), ids, self._known)
        total[: len(held_counts)] += held_counts
        if values is None:
            return total, held_values
        joint = np.concatenate((held_values, values)), np.concatenate((np.arange(len(held_values)), ids))
        return total, aggregate.grouped(*joint, self._known)


def _reaching(stamps: Any, known: int) -> Any:
    """With room for so many keys."""
    if known <= len(stamps):
        return stamps
    return np.concatenate((stamps, np.full(max(known, 2 * len(stamps)) - len(stamps), MIN_TIMESTAMP, np.int64)))
