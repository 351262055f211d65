"""Within which limits coroutine functions are called: ``table.exec.async-scalar.*``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class AsyncLimits:
    """How many calls may be under way, how long one may take with all its attempts, how many
    attempts there are, and the pause between them."""

    most_at_once: int = 10
    timeout: timedelta = timedelta(minutes=3)
    most_attempts: int = 3
    retry_delay: timedelta = timedelta(milliseconds=100)
