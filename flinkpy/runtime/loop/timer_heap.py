"""The timers of a slot loop, earliest first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

Action = Callable[[], None]


class LoopTimer:
    """One call to come."""

    __slots__ = ("action", "when")

    def __init__(self, when: float, action: Action) -> None:
        self.when = when
        self.action: Action | None = action  # None: cancelled

    def cancel(self) -> None:
        self.action = None


class TimerHeap:
    """Timers by the time at which they are due. A cancelled one stays in the heap until it would be
    due.

    >>> timers, fired = TimerHeap(), []
    >>> late, early = (
    ...     timers.add(2.0, lambda: fired.append("late")),
    ...     timers.add(1.0, lambda: fired.append("early")),
    ... )
    >>> while (action := timers.take_due(1.5)) is not None:
    ...     action()
    >>> fired, timers.next_due(), timers.pending
    (['early'], 2.0, 1)
    """

    __slots__ = ("_order", "heap")

    def __init__(self) -> None:
        # the slot loop looks here, without a call, whether there is any timer
        self.heap: list[tuple[float, int, LoopTimer]] = []
        self._order = itertools.count()  # of timers that are due at the same time

    def add(self, when: float, action: Action) -> LoopTimer:
        timer = LoopTimer(when, action)
        heapq.heappush(self.heap, (when, next(self._order), timer))
        return timer

    def take_due(self, now: float) -> Action | None:
        """Removes the earliest timer that is due, and gives its action. One by one, because an
        action may cancel the timer behind it."""
        heap = self.heap
        while heap and (heap[0][0] <= now or heap[0][2].action is None):
            action = heapq.heappop(heap)[2].action
            if action is not None:
                return action
        return None

    def next_due(self) -> float | None:
        """When the next timer is due."""
        heap = self.heap
        while heap and heap[0][2].action is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    @property
    def pending(self) -> int:
        """How many timers have not been cancelled. From any thread."""
        return sum(timer.action is not None for _, _, timer in list(self.heap))
