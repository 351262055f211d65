"""Readings of the accumulators and metrics of a running task. They are read and pickled in the
task's own thread, so a reading does not change later."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, cast

from flinkpy.core.clock import Clock
from flinkpy.core.program.program_pickler import dumps_any
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.metrics.reported import reported

LOG = engine_logger(__name__)

APART_S = 0.2  # the least time between two readings
# the greatest share of the thread's time that reading takes, however large the accumulators are
SHARE = 0.05


class LiveAccumulators:
    """The accumulators of one task. ``last_reading`` is pickled; it is empty if there was no
    reading, or nothing to read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_s = 0.0
        self._warned = False
        self.last_reading = b""

    def read(self, accumulators: Mapping[str, Any]) -> bool:
        """Reads them, in the task's thread, unless the last reading is recent. True if anything has
        changed. Values that cannot be pickled are left out, and logged once."""
        began = self._clock.monotonic()
        if not accumulators or began < self._next_s:
            return False
        before, self.last_reading = self.last_reading, self._pickled(reported(accumulators))
        now = self._clock.monotonic()
        self._next_s = now + max(APART_S, (now - began) / SHARE)
        return self.last_reading != before

    def _pickled(self, values: dict[str, Any]) -> bytes:
        try:
            return dumps_any(values)  # accumulators may have classes of the program
        except Exception:  # a class's __reduce__ may raise anything
            return dumps_any(
                {name: value for name, value in values.items() if self._travels(name, value)}
            )

    def _travels(self, name: str, value: object) -> bool:
        try:
            dumps_any(value)
        except Exception as error:
            if not self._warned:
                self._warned = True
                LOG.warning(
                    "accumulator %s is not told while the task runs: %s: %s",
                    name,
                    type(error).__name__,
                    error,
                )
            return False
        return True


def opened(reading: bytes) -> dict[str, Any]:
    """The values of a reading; if their classes cannot be loaded here, none, with a warning."""
    if not reading:
        return {}
    try:
        return cast("dict[str, Any]", pickle.loads(reading))
    except Exception as error:
        LOG.warning(
            "accumulators of a running task cannot be read: %s: %s", type(error).__name__, error
        )
        return {}
