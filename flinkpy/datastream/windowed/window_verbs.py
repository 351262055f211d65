"""``window``, ``window_all`` and the count windows: how a stream becomes a windowed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.streams.event_time import lacks_timestamps

if TYPE_CHECKING:
    from flinkpy.datastream.data_stream import DataStream
    from flinkpy.datastream.streams.keyed_verbs import KeyedStream
    from flinkpy.datastream.windowed.windowed_stream import AllWindowedStream, Windowed, WindowedStream
    from flinkpy.windowing.assigners import WindowAssigner


class AllWindows:
    """For every DataStream."""

    def window_all(self: DataStream, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:  # type: ignore[misc]  # mixed into it
        """All records in windows, whatever their keys: one subtask does the work.

        >>> stream.window_all(TumblingEventTimeWindows.of(Time.seconds(10))).sum(1)  # doctest: +SKIP
        """
        from flinkpy.datastream.windowed.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, _checked(self, window_assigner, "window_all()"))

    def count_window_all(self: DataStream, size: int, slide: int = 0) -> AllWindowedStream:  # type: ignore[misc]  # mixed into it
        """Windows of ``size`` records, one beginning with every ``slide``-th; 0: one behind the other. A window is evaluated once, when full."""
        from flinkpy.datastream.windowed.windowed_stream import AllWindowedStream

        return _of_count(AllWindowedStream, self, size, slide, "count_window_all()")  # type: ignore[return-value]


class KeyedWindows:
    """For keyed streams."""

    def window(self: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:  # type: ignore[misc]  # mixed into it
        """The records of each key in windows.

        >>> stream.key_by(lambda bid: bid[0]).window(SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))).max(1)  # doctest: +SKIP
        """
        from flinkpy.datastream.windowed.windowed_stream import WindowedStream

        return WindowedStream(self, _checked(self, window_assigner, "window()"))

    def count_window(self: KeyedStream, size: int, slide: int = 0) -> WindowedStream:  # type: ignore[misc]  # mixed into it
        """Windows of ``size`` records of a key, one beginning with every ``slide``-th; 0: one behind the other. Each is evaluated once, when full.

        Flink's Java API also evaluates sliding windows that are not full yet: ``window(GlobalWindows.create())`` with ``CountEvictor.of(size)`` and
        ``CountTrigger.of(slide)`` does so.
        """
        from flinkpy.datastream.windowed.windowed_stream import WindowedStream

        return _of_count(WindowedStream, self, size, slide, "count_window()")  # type: ignore[return-value]


def _checked(stream: DataStream, assigner: Any, call: str) -> Any:
    from flinkpy.windowing.assigners import WindowAssigner

    if isinstance(assigner, type):
        raise refuse(f"{call} takes an assigner object, not a class: write {assigner.__name__}.of(...) or the like")
    if not isinstance(assigner, WindowAssigner):
        raise refuse(f"{call} takes a window assigner, such as TumblingEventTimeWindows.of(Time.seconds(10)), this is {assigner!r:.80}")
    if assigner.is_event_time() and lacks_timestamps(stream._transformation):
        raise refuse(f"{call}: {assigner!r} needs records with timestamps, and these have none: call assign_timestamps_and_watermarks(...) before, "
                     "or use windows of processing time")
    return assigner


def _of_count(kind: type[Windowed], stream: DataStream, size: int, slide: int, call: str) -> Windowed:
    from flinkpy.windowing.assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
    from flinkpy.windowing.triggers import CountTrigger, PurgingTrigger

    if isinstance(slide, bool) or not isinstance(slide, int) or slide < 0:
        raise refuse(f"{call}: the slide is a whole number of records, 0 for none, this is {slide!r:.80}")
    with located():
        assigner: Any = CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)
        # PyFlink's default trigger, and what it fired goes: a full window never gets another record.
        windowed: Any = kind(stream, assigner)  # type: ignore[call-arg]
        return windowed.trigger(PurgingTrigger(CountTrigger(size)))  # type: ignore[no-any-return]
