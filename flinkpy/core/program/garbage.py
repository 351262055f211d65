"""How often Python searches for garbage in processes that are flinkpy's own: rarely.

Its default is after 700 new objects. A worker's batch has thousands of tuples, none of which is
garbage before the batch is done: collections took a tenth of its time. What a command imports stays
as well; and at its end Python would look twice at all of it, which took a quarter of ``flinkpy sql
-e "SELECT 1"``. The process of a user's program is left alone, as its cycles may hold much."""

from __future__ import annotations

import atexit
import gc

_NEW_OBJECTS = 50_000
_OLDER = 20, 20  # collections of the young and of the middle ones, before their elders are searched


def collect_rarely(new_objects: int = _NEW_OBJECTS) -> None:
    """Has Python collect after so many new objects, and not at the end of the process."""
    gc.set_threshold(new_objects, *_OLDER)
    atexit.register(gc.freeze)
