"""AppendJoin of STREAMING: an inner or semi-join of inputs that only grow. A pair goes out when its
second row comes, and never has to be taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.state_tables import from_bytes, key_of_group
from flinkpy.relational.joins.unending_join import UnendingJoin
from flinkpy.relational.relational_operator import with_schema
from flinkpy.relational.state.rows_by_group import rows_by_group
from flinkpy.sql.rex.relational_terms import JoinKind

REGIONS = ("left", "right")


class AppendJoinOperator(UnendingJoin):
    """Of SEMI only left rows that wait for a partner are kept; each goes out once."""

    batch_form = BatchForm.AS_IN_STREAM

    def open(self) -> None:
        super().open()
        self._is_semi = self.spec.kind is JoinKind.SEMI
        for side, name in enumerate(REGIONS):
            saved = self.backend.register_region(name, self._frozen(side))
            for each in saved.values():
                data = with_schema(from_bytes(each), self._schemas[side])
                self._sides[side].add(data, self.numbers(data, side)[0])

    def _frozen(self, side: int) -> Callable[[], Callable[[Turns], dict[int, bytes]]]:
        return lambda: self._freeze(side)

    def _freeze(self, side: int) -> Callable[[Turns], dict[int, bytes]]:
        waits = self._is_semi and side == 0
        chunks = [
            (each.data, each.met.copy() if waits else None) for each in self._sides[side].chunks
        ]
        schema, keys = self._schemas[side], self._columns[side]
        max_parallelism = self.context.task.max_parallelism

        def saved(turns: Turns) -> dict[int, bytes]:
            parts = [data if met is None else data.filter(pa.array(~met)) for data, met in chunks]
            found = rows_by_group(parts, schema, keys, max_parallelism, turns)
            return {key_of_group(group, max_parallelism): data for group, data in found.items()}

        return saved

    def take(self, data: pa.RecordBatch, side: int) -> Iterator[pa.RecordBatch]:
        ids, mask = self.numbers(data, side)
        if mask is not None:
            data = data.filter(mask)
        pairs = self.met_pairs(data, side, self._sides[1 - side].pairs(ids))
        if self._is_semi:
            yield from self._semi(data, side, ids, pairs)
            return
        for _, _, _, left, right in pairs:
            yield self._joined.joined(left, right)
        self._sides[side].add(data, ids)

    def _semi(
        self, data: pa.RecordBatch, side: int, ids: Any, pairs: Iterator[Any]
    ) -> Iterator[pa.RecordBatch]:
        if side == 0:
            met = np.zeros(data.num_rows, np.bool_)
            for at, *_ in pairs:
                met[at] = True
            yield self._joined.alone(data.filter(pa.array(met)).columns)
            self._sides[0].add(data.filter(pa.array(~met)), ids[~met])
            return
        for _, chunk, rows, _, _ in pairs:
            new = np.unique(rows[~chunk.met[rows]])
            chunk.met[new] = True
            yield self._joined.alone(chunk.data.take(pa.array(new)).columns)
        self._sides[0].drop(lambda chunk: chunk.met)
        self._sides[1].add(data, ids)
