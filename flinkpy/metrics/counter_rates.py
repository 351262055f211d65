"""Rates of counters, made where the counters are read: counting costs nothing more."""

from __future__ import annotations

from collections import deque

SPAN_S = 10.0  # a rate is over this time, or longer if nobody has read meanwhile
_MARKS = 10  # of earlier readings, within the span


class Rate:
    """The rate of one counter that began at 0.

    >>> rate = Rate(began_s=0.0)
    >>> rate.per_second(4.0, 100), rate.per_second(8.0, 100), rate.per_second(18.0, 200)
    (25.0, 12.5, 10.0)
    """

    __slots__ = ("_marks",)

    def __init__(self, began_s: float) -> None:
        self._marks: deque[tuple[float, float]] = deque([(began_s, 0.0)])

    def per_second(self, now_s: float, count: float) -> float:
        """How much the counter grows in a second, now that it stands at ``count``: since the latest
        reading that is ``SPAN_S`` old, or the oldest."""
        marks = self._marks
        while len(marks) > 1 and marks[1][0] <= now_s - SPAN_S:
            marks.popleft()
        since_s, before = marks[0]
        if now_s - marks[-1][0] >= SPAN_S / _MARKS:
            marks.append((now_s, count))
        return max(0.0, count - before) / (now_s - since_s) if now_s > since_s else 0.0
