"""Gives up the processor after a message was sent, so that its receiver can run at once.

The kernel may wake the receiver up on the sender's own core. There it has to wait until the sender
sleeps, and the sender still has to find out that it has nothing more to do. So the sender yields,
once, if the stream is quiet (it has slept since the last message). On a busy machine other
processes run meanwhile and the sender gets the processor back late: then it does not yield for the
next messages, and for the more of them the more often that happens."""

from __future__ import annotations

import os
from collections.abc import Callable

from flinkpy.core.clock import SYSTEM_CLOCK, Clock

LONG_S = 0.001
SKIPPED_AT_FIRST = 8
SKIPPED_AT_MOST = 1024  # one message of so many goes late then, which does not show in a p99

sched_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)


class YieldPolicy:
    """``yield_`` gives the processor to a process that waits for it, and returns when it is back.
    The slot loop sets ``has_slept``.

    >>> YieldPolicy().maybe_yield()
    """

    __slots__ = ("_clock", "_left_to_skip", "_skipped", "_yield", "has_slept")

    def __init__(
        self, clock: Clock = SYSTEM_CLOCK, yield_: Callable[[], object] = sched_yield
    ) -> None:
        self._clock, self._yield = clock, yield_
        self._skipped, self._left_to_skip = SKIPPED_AT_FIRST, 0
        self.has_slept = False  # before this round of the loop

    def maybe_yield(self) -> None:
        """Yields if the loop has slept, unless yielding took long lately."""
        if not self.has_slept:
            return
        self.has_slept = False
        if self._left_to_skip:
            self._left_to_skip -= 1
            return
        began = self._clock.monotonic()
        self._yield()
        if self._clock.monotonic() - began > LONG_S:
            self._left_to_skip = self._skipped
            self._skipped = min(2 * self._skipped, SKIPPED_AT_MOST)
        elif self._skipped > SKIPPED_AT_FIRST:
            self._skipped //= 2
