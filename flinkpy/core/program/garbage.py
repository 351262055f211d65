"""How often Python searches for garbage in processes that are flinkpy's own: rarely.

Its default is after 700 new objects. A worker's batch has thousands of tuples, none of which is
garbage before the batch is done: collections took a tenth of its time. What a command imports stays
as well; and at its end Python would look twice at all of it, which took a quarter of ``flinkpy sql
-e "SELECT 1"``. The process of a user's program is left alone, as its cycles may hold much."""

from __future__ import annotations

import atexit
import gc

_THRESHOLDS = 50_000, 20, 20  # new objects, then collections of the young and of the middle ones


def collect_rarely() -> None:
    """Has Python collect after 50,000 new objects, and not at the end of the process."""
    gc.set_threshold(*_THRESHOLDS)
    atexit.register(gc.freeze)
