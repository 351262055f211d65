"""How many rows a task takes at a time: as many as its functions process in a moment.

A batch is processed in one go, and meanwhile nothing else happens in its slot: no timer, no barrier, no cancellation, and nobody sees a result. For
usual functions that is a millisecond. For one that takes 100 ms a record, asking a service perhaps, batches of thousands would be minutes. So a task
begins with single rows, takes more after each step that was short, and as many as would have been right after one that was long.

Columns are taken as they come: what works on whole batches, a model perhaps, wants them whole.
"""

from __future__ import annotations

SHORT_S = 0.01
GOOD_S = 0.02
LONG_S = 0.05
GROWTH = 4  # so even a step that was just short enough is no long one the next time


class Portion:
    """``rows`` at a time, and never more than ``at_most``. ``taken`` counts the rows the task took so far.

    >>> portion = Portion(4096)
    >>> for _ in range(3):
    ...     portion.step_took(portion.rows, 0.001)
    >>> portion.rows
    64
    >>> portion.step_took(64, 6.4)
    >>> portion.rows
    1
    """

    __slots__ = ("at_most", "is_full", "rows", "taken")

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most
        self.rows = 1
        self.taken = 0
        self.is_full = at_most == 1

    def step_took(self, rows: int, seconds: float) -> None:
        """A step processed so many rows in so long. Fewer than it could have say nothing of how long more would take."""
        if rows and seconds > LONG_S:
            self.rows = max(1, min(self.at_most, int(rows * GOOD_S / seconds)))
        elif rows >= self.rows and seconds < SHORT_S:
            self.rows = min(self.at_most, GROWTH * self.rows)
        self.is_full = self.rows == self.at_most
