"""The figures of this process: threads, memory, processor time, garbage collections."""

from __future__ import annotations

import gc
import os
import threading

from flinkpy.actors.inspector.inspector_gateway import ProcessFigures


def process_figures(at_ms: int) -> ProcessFigures:
    times, collector = os.times(), gc.get_stats()
    return ProcessFigures(
        at_ms,
        threading.active_count(),
        _resident_bytes(),
        times.user + times.system,
        tuple(generation["collections"] for generation in collector),
        tuple(generation["collected"] for generation in collector),
    )


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0  # not Linux
