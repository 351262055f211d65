"""Windows over rows in two phases: between them go pairs of a key and an accumulator.

The key travels along because the selector may look at fields that were aggregated away.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from flinkpy.aggregates.fields import field_of
from flinkpy.aggregates.of_records import OF_RECORDS, FieldAggregate, built_in
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, RowBatch
from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import could_be_mutated
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.user_errors import user_code_error
from flinkpy.windowing.slices.accumulation import States
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slices.store import LocalSlices

PAIR_KEY = KeySpec(itemgetter(0))


class LocalRowSlices(RowSlices, LocalSlices):
    """Before the exchange."""

    def can_hold(self, records: list[Any]) -> bool:
        """Counts always; else where nobody can change the records, and the aggregate is exact
        whatever the parts."""
        if self.kind == "count":
            return True
        if could_be_mutated(records):
            return False
        try:
            kinds = set(map(type, self._fields(records)))
        except Exception:  # the merging phase says what is wrong with a record
            return False
        return built_in(self.kind).merges_exactly(kinds)

    def _fields(self, records: list[Any]) -> Any:
        """What is aggregated, of each record."""
        assert self.kind in OF_RECORDS
        kinds = set(map(type, records))
        if kinds == {tuple} and isinstance(self.position, int):
            return map(itemgetter(self.position), records)
        position_in = FieldAggregate(self.kind, self.position).position_in
        return [field_of(record, position_in(record)) for record in records]

    def taken_out(self, start: int) -> list[Batch]:
        pairs = list(self._slices[start].items())
        self.forget([start], lambda window: False)
        stamp, limit = max(start, MIN_TIMESTAMP + 1), self._context.batch_records
        pieces = [pairs[at : at + limit] for at in range(0, len(pairs), limit)]
        return [RowBatch(piece, [stamp] * len(piece)) for piece in pieces]

    def alone(self, batch: Batch, records: list[Any], positions: list[int] | None = None) -> Batch:
        stamps, pairs = self.stamps(batch), []
        if positions is not None:
            records, stamps = [records[at] for at in positions], [stamps[at] for at in positions]
        for record in records:
            try:
                key = canonical_key(self._select(record))
            except BaseException as error:
                raise user_code_error(error, self._context, record) from error
            pairs.append((key, 1 if self.kind == "count" else record))
        return RowBatch(pairs, stamps)


class MergingRowSlices(RowSlices):
    """Behind the exchange. Its state is that of one phase."""

    def _add(self, records: list[Any], states: States) -> None:
        self._loops.add_pairs(records, states)

    def _keys(self, records: list[Any]) -> list[Any]:
        return [key for key, _ in records]
