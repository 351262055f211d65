"""Chooses the operator that runs a call on a windowed stream. The results do not depend on the
choice, with one exception: in overlapping windows, slices order records by time if they came out of
order (``flinkpy.windowing.slices.operator``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flinkpy.aggregates.of_records import OF_RECORDS, FieldAggregate, RecordCount
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator
from flinkpy.windowing.windowing_strategy import WindowingStrategy


@dataclass(frozen=True)
class WindowCall:
    """A call on a windowed stream. ``kind`` is one of OF_RECORDS, or "count", "reduce",
    "aggregate"; "all" if the window function gets all records."""

    key: KeySpec | None  # None: all records share their windows
    windows: WindowingStrategy
    kind: str
    position: int | str | None = None  # the field of a built-in aggregate
    function: Any = None  # of reduce and aggregate
    window_function: Any = None


def choose_operator(call: WindowCall) -> OneInputOperator:
    """The operator for the call. Raises ProgramError for parts that do not fit together."""
    from flinkpy.windowing.general.window_operator import WindowOperator

    by_slices = _slice_operator(call)
    if by_slices is not None:
        return by_slices
    return WindowOperator(call.key, call.windows, _contents(call), call.window_function)


def _slice_operator(call: WindowCall) -> OneInputOperator | None:
    """The operator with slices, for built-in aggregates and reduce over aligned windows with their
    default trigger and no evictor; else None."""
    from flinkpy.windowing.general.loops.aligned_loop import default_slicing
    from flinkpy.windowing.slices.operator import SliceOperator
    from flinkpy.windowing.slices.row_slices import RowSlices
    from flinkpy.windowing.slices.window_calls import can_follow_slices

    windows = call.windows
    slicing = (
        default_slicing(windows.assigner, windows.effective_trigger)
        if windows.evictor is None
        else None
    )
    if (
        slicing is None
        or call.kind not in (*OF_RECORDS, "count", "reduce")
        or not can_follow_slices(call.window_function)
    ):
        return None
    store = RowSlices(call.key, call.kind, call.position, call.function, call.window_function)
    return SliceOperator(
        store, slicing, windows.assigner.is_event_time(), windows.allowed_lateness, windows.late_tag
    )


def _contents(call: WindowCall) -> Any:
    from flinkpy.windowing.general.contents import AggregateContents, ListContents, ReduceContents

    if call.kind == "all":
        return ListContents()
    if call.kind == "aggregate":
        return AggregateContents(call.function)
    if call.kind == "count":
        return AggregateContents(RecordCount())
    return ReduceContents(
        call.function if call.kind == "reduce" else FieldAggregate(call.kind, call.position).update
    )
