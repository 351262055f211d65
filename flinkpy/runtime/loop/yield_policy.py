"""Lets the receiver of a message run at once.

A kernel may wake the receiver up on the sender's own core. There it waits until the sender sleeps, and the sender has yet to find out that it has
nothing more to do. So the sender yields, once, in a quiet stream where it has slept before. On a busy machine others run meanwhile, and the
processor comes back late: then it is kept the next times, the more often the more often that happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from flinkpy.core.clock import SYSTEM_CLOCK, Clock

LONG_S = 0.001
KEPT_AT_FIRST = 8
KEPT_AT_MOST = 1024  # then one message of so many goes late, which no p99 shows

sched_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)


class Courtesy:
    """``yield_`` gives the processor to whoever waits for it, and returns when it is back. Whoever sends says when it ``has_slept``.

    >>> Courtesy().give_way()
    """

    __slots__ = ("_clock", "_keeping", "_times_left", "_yield", "has_slept")

    def __init__(self, clock: Clock = SYSTEM_CLOCK, yield_: Callable[[], object] = sched_yield) -> None:
        self._clock, self._yield = clock, yield_
        self._keeping, self._times_left = KEPT_AT_FIRST, 0
        self.has_slept = False  # before this round of the loop

    def give_way(self) -> None:
        """Yields, unless that took long lately."""
        if not self.has_slept:
            return
        self.has_slept = False
        if self._times_left:
            self._times_left -= 1
            return
        began = self._clock.monotonic()
        self._yield()
        if self._clock.monotonic() - began > LONG_S:
            self._times_left = self._keeping
            self._keeping = min(2 * self._keeping, KEPT_AT_MOST)
        elif self._keeping > KEPT_AT_FIRST:
            self._keeping //= 2
