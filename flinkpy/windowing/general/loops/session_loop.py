"""The loop for sessions with their default trigger. It handles what nearly all records do: begin a
session, fall into one, or extend one.

It does what the window operator's general way does, without the cases that cannot occur. A record
whose own window ends after the watermark (or the clock) is not late, and no default trigger fires
for it. If it meets at most one open session, only an interval changes: the contents stay where they
are, and the timers move to the new end. The loop gives all other records to ``hand_back``, which
takes the general way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.keys import canonical_key
from flinkpy.windowing.assigners import WindowAssigner
from flinkpy.windowing.general.contents import Contents
from flinkpy.windowing.general.per_window.namespaces import MISSING
from flinkpy.windowing.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from flinkpy.windowing.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from flinkpy.windowing.windows import time_window

_LOOP = """\
def session_loop(values, stamps, select, state, sessions, time, hand_back, opened, moved):
    for record, stamp in zip(values, stamps):
        key = select(record)
        end = stamp + {gap}
        if end - 1 <= time:
            hand_back(key, record, stamp)
            continue
        open_ones = sessions.get(key)
        if open_ones is None:
            key = canonical(key)
            open_ones = sessions.get(key)
            if open_ones is None:
                open_ones = sessions[key] = {{}}
        met = None
        for window in open_ones:
            if window[0] <= end and window[1] >= stamp:
                if met is not None:
                    break
                met = window
        else:
            by_window = state.get(key)
            if by_window is None:
                by_window = state[key] = {{}}
            if met is None:
                home = window = time_window((stamp, end))
                open_ones[window] = window
                opened(key, window)
            else:
                start, last = met
                if start <= stamp and end <= last:
                    home = open_ones[met]
                else:
                    window = time_window(
                        (start if start < stamp else stamp, last if last > end else end)
                    )
                    home = open_ones[window] = open_ones.pop(met)
                    moved(key, met, window)
            contents = by_window.get(home, missing)
            by_window[home] = {first} if contents is missing else {add}
            continue
        hand_back(key, record, stamp)
"""

SessionLoop = Callable[..., None]
_STATIC = (EventTimeSessionWindows, ProcessingTimeSessionWindows)
_DYNAMIC = (DynamicEventTimeSessionWindows, DynamicProcessingTimeSessionWindows)


def are_default_sessions(assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any]) -> bool:
    """Whether the loop serves this assigner and trigger."""
    wanted = EventTimeTrigger if assigner.is_event_time() else ProcessingTimeTrigger
    return type(assigner) in (*_STATIC, *_DYNAMIC) and type(trigger) is wanted


def session_loop(assigner: Any, contents: Contents, names: dict[str, Any]) -> SessionLoop:
    """The loop for these sessions and contents; ``names`` are those of the bound contents."""
    static = type(assigner) in _STATIC
    source = _LOOP.format(
        gap=assigner.session_gap if static else "gap_of(record)",
        first=contents.first_expression,
        add=contents.add_expression,
    )
    more = {} if static else {"gap_of": assigner.gap}
    return compile_function(
        "session_loop",
        source,
        {
            **names,
            **more,
            "canonical": canonical_key,
            "missing": MISSING,
            "time_window": time_window,
        },
    )
