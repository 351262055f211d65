"""How tests wait for what another process or thread does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE_S = 110.0  # a bound on hanging, not a measure: other work may take the machine for a while


def eventually(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Waits for what another process or thread will bring about."""
    deadline = time.perf_counter() + timeout_s
    while not condition():
        assert time.perf_counter() < deadline, "it did not come about in time"
        threading.Event().wait(0.02)
