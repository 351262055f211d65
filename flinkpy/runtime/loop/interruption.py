"""Interrupts a function that a cancelled task waits for: an exception is raised in the task's own
thread.

As Flink's canceler does, and then in intervals (``task.cancellation.interval``). Flink interrupts
at once, which in Java ends only waits; here it ends whatever the function does, so a function first
has a second to return by itself. Python raises the exception when the thread is back from what it
waits for in C, such as one ``time.sleep``; so loops of short waits end soon, and one long wait ends
when it ends. Only a thread of the task's own is interrupted, and only while it is in the program's
code: nothing of the engine is left half done."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import Protocol

from flinkpy.core.errors import TaskInterrupted
from flinkpy.core.reactor import Reactor
from flinkpy.operators.user_errors import is_engine, is_tool

GRACE_S = 1.0  # at most, from the cancellation until the first interruption
SOON_S = 0.01  # until the next look, while the thread is in the engine's code


class Interruptible(Protocol):
    """A task's home."""

    @property
    def blocked_thread_id(self) -> int | None:
        """The task's own thread, while a step runs there."""
        ...


def interrupt(thread_id: int) -> bool:
    """Raises TaskInterrupted in that thread, if it is in the program's code or a library's that
    this has called; says whether."""
    frame = sys._current_frames().get(thread_id)
    while frame is not None and is_tool(frame):
        frame = frame.f_back
    if frame is None or is_engine(frame):
        return False
    told: int = ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_id), ctypes.py_object(TaskInterrupted)
    )
    return told == 1


class Interruptions:
    """Interrupts the functions of one TaskExecutor, by timers of a thread that runs no function."""

    def __init__(self, timers: Reactor) -> None:
        self._timers = timers

    def begin(self, task: Interruptible, interval_s: float, goes_on: Callable[[], bool]) -> None:
        """From any thread: interrupts the task after a while and then in intervals, while
        ``goes_on`` says so."""

        def begin() -> None:
            self._timers.call_later(
                min(GRACE_S, interval_s), partial(self._try, task, interval_s, goes_on, SOON_S)
            )

        self._timers.call_soon_threadsafe(begin)

    def _try(
        self, task: Interruptible, interval_s: float, goes_on: Callable[[], bool], pause_s: float
    ) -> None:
        if not goes_on():
            return
        thread_id = task.blocked_thread_id
        if thread_id is not None and interrupt(thread_id):
            pause_s = interval_s
        pause_s = min(pause_s, interval_s)
        self._timers.call_later(
            pause_s, partial(self._try, task, interval_s, goes_on, min(2 * pause_s, interval_s))
        )
