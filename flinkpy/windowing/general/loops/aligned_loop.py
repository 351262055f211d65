"""The loop for aligned windows (tumbling and sliding) with their default trigger: one look-up per
record and window.

It does what the window operator's general way does, without the cases that cannot occur. If all
windows of a record end after the watermark (or the clock), the record is not late and no default
trigger fires. The loop then adds the record, and registers the timers of new windows. It gives all
other records to ``hand_back``, which takes the general way. The windows of a slice are computed
once per slice and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.keys import canonical_key
from flinkpy.windowing.assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from flinkpy.windowing.general.contents import Contents
from flinkpy.windowing.general.per_window.namespaces import MISSING
from flinkpy.windowing.slicing import Slicing, slicing_of
from flinkpy.windowing.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger

_LOOP = """\
def aligned_loop(values, stamps, select, state, placed, place, hand_back, opened):
    last = windows = None
    for record, stamp in zip(values, stamps):
        start = stamp - (stamp - offset) % width
        if start != last:
            windows = placed.get(start, placed)
            if windows is placed:
                windows = placed[start] = place(start)
            last = start
        key = select(record)
        if windows is None:
            hand_back(key, record, stamp)
            continue
        by_window = state.get(key)
        if by_window is None:
            key = canonical(key)
            by_window = state.get(key)
            if by_window is None:
                by_window = state[key] = {{}}
        for window in windows:
            contents = by_window.get(window, missing)
            if contents is missing:
                by_window[window] = {first}
                opened(key, window)
            else:
                by_window[window] = {add}
"""

AlignedLoop = Callable[..., None]
_ALIGNED = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingProcessingTimeWindows,
)


def default_slicing(
    assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any]
) -> Slicing | None:
    """The slicing of the assigner's windows, if they are aligned and have their default trigger;
    else None."""
    wanted = EventTimeTrigger if assigner.is_event_time() else ProcessingTimeTrigger
    return slicing_of(assigner) if type(assigner) in _ALIGNED and type(trigger) is wanted else None


def aligned_loop(slicing: Slicing, contents: Contents, names: dict[str, Any]) -> AlignedLoop:
    """The loop for these windows and contents; ``names`` are those of the bound contents."""
    source = _LOOP.format(first=contents.first_expression, add=contents.add_expression)
    more = {
        "canonical": canonical_key,
        "missing": MISSING,
        "offset": slicing.offset,
        "width": slicing.width,
    }
    return compile_function("aligned_loop", source, {**names, **more})


def windows_ahead(slicing: Slicing, start: int, time: int) -> Sequence[Any] | None:
    """The windows of a slice, if it has any and all of them end after ``time``; else None."""
    windows = tuple(slicing.windows_of(start))
    return windows if windows and windows[0].max_timestamp() > time else None
