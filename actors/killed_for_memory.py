"""Why a worker's process is gone, if it was for memory: Ray and the system tell so in many words or
in none, and never what had the memory."""

from __future__ import annotations

import re

from flinkpy.core.options.memory_sizes import PROCESS
from flinkpy.runtime.memory.memory_report import MemoryReport, shown

_NODE_WAS_FULL = re.compile(
    r"NODE_OUT_OF_MEMORY|running low on memory|OutOfMemoryError|exit code 137|memory monitor"
)
_WITHOUT_A_WORD = re.compile(r"SYSTEM_ERROR|no heartbeat")
NEARLY_FULL = 0.8
"""A process that ended without a word was probably killed for memory, if it had so much of its
size: of a worker that fills up, the last heartbeat may be seconds old."""


def why_lost(reason: str, memory: MemoryReport | None) -> str:
    """The reason for which a worker is lost, with what it had last told of its memory if that
    explains it."""
    if _NODE_WAS_FULL.search(reason):
        told = "the machine had no memory left, and its process was killed for memory"
    elif memory is not None and memory.share >= NEARLY_FULL and _WITHOUT_A_WORD.search(reason):
        told = "its process was killed for memory, as it seems"
    else:
        return reason
    if memory is None:
        return f"{told} ({reason})"
    return f"{told}{_last_figures(memory)} ({reason})"


def _last_figures(memory: MemoryReport) -> str:
    has = (
        f"{memory.share:.0%} of the {shown(memory.limit)} of {memory.limited_by}"
        if memory.limit
        else f"{shown(memory.used)}; {PROCESS.key} would limit it"
    )
    owners = "".join(f"\n  {each}" for each in memory.largest())
    return f". It had {has}, as it told last" + (f":{owners}\n" if owners else "")
