"""When windows by slices are aggregated in two phases, and by which stores: where every result is
the same as in one."""

from __future__ import annotations

import copy

from flinkpy.graph.operator_port import TwoPhases
from flinkpy.graph.partitioning import KeySpec
from flinkpy.windowing.slices.column_phases import (
    LocalAggregates,
    LocalFields,
    MergingAggregates,
    MergingFields,
    key_of,
)
from flinkpy.windowing.slices.column_slices import AggregateSlices, ColumnSlices, FieldSlices
from flinkpy.windowing.slices.local_operator import LocalSliceOperator
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slices.row_phases import PAIR_KEY, LocalRowSlices, MergingRowSlices
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slices.store import LocalSlices, SliceStore


def in_two_phases(operator: object) -> TwoPhases | None:
    """On the client. None where late records are given out, as they must arrive as they are; for
    windows of processing time, where a record's slice is when it arrives; without a key; for
    ``reduce``, whose function may give something else when it is called in another order; and for
    columns whose types are known here, and whose sums are rounded."""
    if (
        not isinstance(operator, SliceOperator)
        or not operator.event_time
        or operator.late_tag is not None
    ):
        return None
    stores = _stores(operator.store)
    if stores is None:
        return None
    local, merging_store, key = stores
    merging = copy.copy(operator)  # with all that the program said of it
    merging.store = merging_store
    # others look for what could be changed, in each record
    pays_within_process = not isinstance(local, LocalRowSlices) or local.kind == "count"
    return TwoPhases(
        LocalSliceOperator(local, operator.slicing, operator.allowed_lateness),
        merging,
        key,
        pays_within_process,
    )


def _stores(store: SliceStore) -> tuple[LocalSlices, SliceStore, KeySpec] | None:
    """Before and behind the exchange, and where the key is in between."""
    if isinstance(store, RowSlices) and store.key is not None and store.kind != "reduce":
        merging = MergingRowSlices(
            PAIR_KEY, store.kind, store.position, None, store.window_function
        )
        return LocalRowSlices(store.key, store.kind, store.position), merging, PAIR_KEY
    if isinstance(store, ColumnSlices) and not (store.keys and store.is_exact):
        return None
    if isinstance(store, AggregateSlices):
        calls = store.keys, store.calls, store.zone, store.results
        return LocalAggregates(*calls), MergingAggregates(*calls), key_of(store.keys)
    if isinstance(store, FieldSlices):
        field = store.keys, store.kind, store.position
        return LocalFields(*field), MergingFields(*field), key_of(store.keys)
    return None
