"""Watches the memory of a worker whose size is given: measures it four times a second, and has
done what the table of levels says."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Protocol

from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.runtime.loop.loop_port import Loop
from flinkpy.runtime.memory.memory_levels import MemoryAction, MemoryLevel, MemoryPressure

LOG = engine_logger(__name__)

EACH_S = 0.25


class MemoryMeter:
    """Tells what this process has of the machine's memory: all that is resident, but for files that
    were mapped since the meter was made, such as rows that joins keep on disk. The system takes
    their memory back when it is short. 0 where the system tells nothing."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._page = os.sysconf("SC_PAGE_SIZE")
        with suppress(OSError):
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._shared_before = self._read()[1]

    def __call__(self) -> int:
        resident, shared = self._read()
        return (resident - max(0, shared - self._shared_before)) * self._page

    def _read(self) -> tuple[int, int]:
        if self._file is None:
            return 0, 0
        fields = os.pread(self._file, 128, 0).split()
        return int(fields[1]), int(fields[2])


@cache
def _meter() -> MemoryMeter:
    return MemoryMeter()


def measure_memory() -> int:
    """What this process has, by a meter that is made with the first call."""
    return _meter()()


class RelievesMemory(Protocol):
    """What can be done about a process's memory. Called in the thread of the watch."""

    def looked(self, now_s: float, level: MemoryLevel) -> None:
        """After each look, whatever it found."""
        ...

    def relieve(self, action: MemoryAction, used: int) -> None: ...


class MemoryWatch:
    """Runs in the thread of ``loop``, where no function of the user's runs. ``measure`` gives the
    bytes that the process has."""

    def __init__(
        self,
        loop: Loop,
        measure: Callable[[], int],
        pressure: MemoryPressure,
        relief: RelievesMemory,
    ) -> None:
        self._loop = loop
        self._measure = measure
        self._pressure = pressure
        self._relief = relief
        self._stopped = False

    def start(self) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self.look)

    def stop(self) -> None:
        """From any thread: looks no more."""
        self._stopped = True

    def look(self) -> None:
        """Measures, acts, and looks again soon."""
        if self._stopped:
            return
        used, now_s = self._measure(), self._loop.clock.monotonic()
        try:
            for action in self._pressure.measured(now_s, used):
                self._relief.relieve(action, used)
            self._relief.looked(now_s, self._pressure.level)
        except Exception:  # the next look may succeed
            LOG.exception("the worker's memory cannot be watched")
        self._loop.call_later(EACH_S, self.look)
