"""The accumulators and metrics of a running task: read on the task's own thread and pickled there, so that a reading does not change afterwards."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from typing import Any, cast

from flinkpy.core.clock import Clock
from flinkpy.metrics.reported import reported

LOG = logging.getLogger(__name__)

APART_S = 0.2  # between two readings
SHARE = 0.05  # of the thread's time: reading takes no more, however large the accumulators are


class LiveAccumulators:
    """Those of one task. ``last_reading``: pickled; empty if there was no reading, or nothing to read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_s = 0.0
        self._warned = False
        self.last_reading = b""

    def read(self, accumulators: Mapping[str, Any]) -> bool:
        """On the task's thread: reads them, unless the last reading is recent. True if anything has changed. What cannot be pickled is left out, and
        logged once."""
        began = self._clock.monotonic()
        if not accumulators or began < self._next_s:
            return False
        before, self.last_reading = self.last_reading, self._pickled(reported(accumulators))
        now = self._clock.monotonic()
        self._next_s = now + max(APART_S, (now - began) / SHARE)
        return self.last_reading != before

    def _pickled(self, values: dict[str, Any]) -> bytes:
        import cloudpickle  # classes of accumulators may be the program's own

        try:
            return cast(bytes, cloudpickle.dumps(values, protocol=5))
        except Exception:  # whatever a foreign __reduce__ raises
            return cast(bytes, cloudpickle.dumps({name: value for name, value in values.items() if self._travels(name, value)}, protocol=5))

    def _travels(self, name: str, value: Any) -> bool:
        import cloudpickle

        try:
            cloudpickle.dumps(value, protocol=5)
        except Exception as error:
            if not self._warned:
                self._warned = True
                LOG.warning("accumulator %s is not told while the task runs: %s: %s", name, type(error).__name__, error)
            return False
        return True


def opened(reading: bytes) -> dict[str, Any]:
    """The values of a reading; none, with a warning, when their classes cannot be loaded here."""
    if not reading:
        return {}
    try:
        return cast("dict[str, Any]", pickle.loads(reading))
    except Exception as error:
        LOG.warning("accumulators of a running task cannot be read: %s: %s", type(error).__name__, error)
        return {}
