"""Windows over columns in two phases: between them go Arrow batches of keys, counts and
accumulators, as in snapshots (``column_snapshots``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ColumnBatch
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.tables_by_group import input_schema_of, with_input
from flinkpy.windowing.slices.column_slices import (
    LARGEST,
    AggregateSlices,
    ColumnSlices,
    FieldSlices,
)
from flinkpy.windowing.slices.column_snapshots import KEY, columns_of, part_of, selected
from flinkpy.windowing.slices.grouped_parts import Part
from flinkpy.windowing.slices.store import LocalSlices


def key_of(keys: Sequence[str]) -> KeySpec:
    """Where the batches between the phases have the key."""
    return KeySpec(columns=tuple(KEY + name for name in keys))


class _Local(ColumnSlices, LocalSlices):
    """Before the exchange."""

    def can_hold(self, records: Part) -> bool:
        return self.is_exact

    def taken_out(self, start: int) -> list[Batch]:
        part = self._slices[start].grouped(self._aggregates, self.known_keys.size)
        stamps = np.full(part.size, max(start, MIN_TIMESTAMP + 1), np.int64)
        data = self._between(part)
        self.forget([start], lambda window: False)
        return [ColumnBatch(data, stamps).slice(at, LARGEST) for at in range(0, part.size, LARGEST)]

    def alone(self, batch: Batch, records: Part, positions: list[int] | None = None) -> Batch:
        stamps = columns(batch, self._context).timestamps
        assert stamps is not None
        if positions is None:
            return ColumnBatch(self._between(records), stamps)
        at = np.array(positions)
        return ColumnBatch(self._between(records.taken(at)), stamps[at])

    def _between(self, part: Part) -> Any:
        data = pa.RecordBatch.from_pydict(
            columns_of(self.known_keys.batch(part.ids), part, self._aggregates)
        )
        return data.replace_schema_metadata(with_input(data.schema, self._schema).metadata)


class _Merging(ColumnSlices):
    """Behind the exchange. Its state is that of one phase."""

    _metadata: Any = None  # of the batch before: it has the schema of the records

    def records_of(self, batch: Batch) -> Part:
        data = columns(batch, self._context).data
        with explained(data, self._context):
            if data.schema.metadata != self._metadata:
                schema = input_schema_of(data.schema)
                self.prepare(schema)
                self._schema, self._metadata = schema, data.schema.metadata
            return replace(
                part_of(data, self._aggregates), ids=self.known_keys.numbers(selected(data, KEY))
            )


class LocalAggregates(_Local, AggregateSlices):
    """``aggregate(...)``."""


class LocalFields(_Local, FieldSlices):
    """``sum``, ``min`` and ``max``."""


class MergingAggregates(_Merging, AggregateSlices):
    """``aggregate(...)``."""


class MergingFields(_Merging, FieldSlices):
    """``sum``, ``min`` and ``max``."""
