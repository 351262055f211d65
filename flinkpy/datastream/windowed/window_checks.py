"""Checks the arguments of ``window``, ``window_all`` and the count windows."""

from __future__ import annotations

from typing import Any

from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.datastream.verbs.event_time import lacks_timestamps


def checked_assigner(stream: RecordedStream, assigner: object, call: str) -> Any:
    """The assigner; refuses an object that is none, and an event-time assigner for records without
    timestamps."""
    from flinkpy.windowing.assigners import WindowAssigner

    if isinstance(assigner, type):
        raise refuse(
            f"{call} takes an assigner object, not a class: write {assigner.__name__}.of(...) "
            "or the like"
        )
    if not isinstance(assigner, WindowAssigner):
        raise refuse(
            f"{call} takes a window assigner, such as "
            f"TumblingEventTimeWindows.of(Time.seconds(10)), this is {assigner!r:.80}"
        )
    if assigner.is_event_time() and lacks_timestamps(stream.transformation):
        raise refuse(
            f"{call}: {assigner!r} needs records with timestamps, and these have none: call "
            "assign_timestamps_and_watermarks(...) before, "
            "or use windows of processing time"
        )
    return assigner


def count_windows(size: int, slide: int, call: str) -> tuple[Any, Any]:
    """The assigner and the trigger of count windows."""
    from flinkpy.windowing.assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
    from flinkpy.windowing.triggers import CountTrigger, PurgingTrigger

    if isinstance(slide, bool) or not isinstance(slide, int) or slide < 0:
        raise refuse(
            f"{call}: the slide is a whole number of records, 0 for none, this is {slide!r:.80}"
        )
    with located():
        assigner = (
            CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)
        )
        # PyFlink's default trigger; a window that fired is emptied, because a full window never
        # gets another record.
        return assigner, PurgingTrigger(CountTrigger(size))
