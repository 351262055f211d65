"""How many rows a task takes at a time: as many as its functions process in about 20 ms.

A batch is processed in one go. Meanwhile nothing else happens in its slot: no timer, no barrier, no
cancellation, and nobody sees a result. With usual functions that takes a millisecond. With a
function that needs 100 ms for a record, because it asks a service perhaps, a batch of thousands
would take minutes. So a task begins with single rows, takes more after each short step, and after a
long one as many as would have been right.

Columns are taken as they come: what works on whole batches, such as a model, wants them whole.
"""

from __future__ import annotations

SHORT_S = 0.01
GOOD_S = 0.02
LONG_S = 0.05
GROWTH = 4  # so that a step that was just short enough does not become a long one the next time


class AdaptiveBatchSize:
    """``rows`` at a time, never more than ``at_most``. ``rows_taken`` counts the rows the task has
    taken so far.

    >>> size = AdaptiveBatchSize(4096)
    >>> for _ in range(3):
    ...     size.step_took(size.rows, 0.001)
    >>> size.rows
    64
    >>> size.step_took(64, 6.4)
    >>> size.rows
    1
    """

    __slots__ = ("at_most", "is_full", "rows", "rows_taken")

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most
        self.rows = 1
        self.rows_taken = 0
        self.is_full = at_most == 1

    def step_took(self, rows: int, seconds: float) -> None:
        """A step processed that many rows in that time. If it had fewer than it could take, it does
        not show how long more would take."""
        if rows and seconds > LONG_S:
            self.rows = max(1, min(self.at_most, int(rows * GOOD_S / seconds)))
        elif rows >= self.rows and seconds < SHORT_S:
            self.rows = min(self.at_most, GROWTH * self.rows)
        self.is_full = self.rows == self.at_most
