"""The versions of the rows of keys: which row a key had at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import KeyedBatch
from flinkpy.operators.context import OperatorContext
from flinkpy.relational.ranks.keeps_last_rows import last_positions
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.state.rows_by_key import RowsByKey
from flinkpy.state.backend import KeyedStateBackend

Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NewVersions:
    """Rows in the order of time, and else as they came. Those that are not ``there`` end the
    version before them."""

    data: pa.RecordBatch
    times: Numbers
    there: npt.NDArray[np.bool_]


class VersionsOfKeys:
    """Of each key the version that stands now; those before it are met by nobody any more, and what
    comes later waits elsewhere. ``time`` is the column that says from when on a row stands. A key
    whose row was deleted is forgotten; with ``ttl_ms`` (0: none) also one that nobody wrote to or
    asked for so long."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[int],
        time: int,
        ttl_ms: int,
        context: OperatorContext,
    ) -> None:
        self._schema = schema
        self._time = time
        self._rows = RowsByKey(schema, keys, ttl_ms, context)

    def __len__(self) -> int:
        return len(self._rows)

    def touch(self, keys: pa.RecordBatch) -> None:
        """Rows came that will ask for these keys."""
        self._rows.touch(keys)

    def at(
        self, keys: pa.RecordBatch, times: Numbers, new: NewVersions
    ) -> tuple[pa.RecordBatch, Numbers]:
        """The version of each key at its time: rows, and where in them it is (-1: there is none).
        ``new`` are versions that have come since; they stand from now on."""
        keyed = self._rows.of(new.data)
        asked = self._rows.find(keys)
        places = _last_before(keyed.ids[keyed.codes], new.times, asked, times)
        rows, places = self._or_standing(asked, times, places, new)
        self._stand(keyed, new)
        self._rows.relieve(len(times) + len(new.times))
        return rows, places

    def _or_standing(
        self, asked: Numbers, times: Numbers, places: Numbers, new: NewVersions
    ) -> tuple[pa.RecordBatch, Numbers]:
        """The versions that stood before, where the new ones have none that is as late."""
        known = np.flatnonzero(asked >= 0)
        known = known[self._rows.have(asked[known])]
        since, found = self._since(asked[known]), places[known]
        is_met = since <= times[known]
        if len(new.times):
            is_met &= (found < 0) | (since > new.times[found])
            places = np.where((places >= 0) & new.there[places], places, -1)
        met = known[is_met]
        places[met] = len(new.times) + np.arange(len(met))
        return one_record_batch([new.data, self._rows.take(asked[met])], self._schema), places

    def _since(self, numbers: Numbers) -> Numbers:
        column = self._rows.column(numbers, self._time)
        since: Numbers = milliseconds(column, self._schema.names[self._time])
        return since

    def _stand(self, keyed: KeyedBatch, new: NewVersions) -> None:
        """The last of the new versions of each key stands, if it is not older than the one that
        does."""
        numbers = keyed.ids
        last = last_positions(keyed.codes, len(numbers))  # they are in the order of time
        had = np.flatnonzero(self._rows.have(numbers))
        is_older = np.zeros(len(numbers), np.bool_)
        is_older[had] = self._since(numbers[had]) > new.times[last[had]]
        stands = new.there[last] & ~is_older
        self._rows.put(numbers[stands], new.data.take(pa.array(last[stands])))
        self._rows.forget(numbers[~new.there[last] & ~is_older])

    # -- snapshots ---------------------------------------------------------------------------------

    def open(self, backend: KeyedStateBackend, name: str) -> None:
        """Takes back what was saved under this name. From now on what is here is saved there."""
        self._rows.open(backend, name)


def _last_before(numbers: Any, times: Any, asked: Any, at: Any) -> Numbers:
    """For each of the keys ``asked`` the place of the last version that is not later than its time
    ``at``; -1 if there is none. Versions are in the order of time."""
    count = len(numbers)
    keys = np.concatenate([numbers, asked])
    is_asked = np.arange(len(keys)) >= count
    order = np.lexsort((is_asked, np.concatenate([times, at]), keys))
    seen = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    questions = np.flatnonzero(order >= count)
    before = seen[questions]
    found = np.where(before >= 0, order[before], -1)
    found[(found >= 0) & (keys[found] != keys[order[questions]])] = -1
    places = np.empty(len(asked), np.int64)
    places[order[questions] - count] = found
    return places
