"""FrameSampler: looks at the stacks of the threads in which tasks run, several times a second, and
counts what it finds for each subtask.

It looks only while somebody asks. One look costs some 50 µs. Whether a thread was on the processor
follows from the processor time that it used since the last look: a thread that is looked at holds
no interpreter lock at that moment, so its state says nothing."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from flinkpy.actors.inspector.inspector_gateway import StackSample
from flinkpy.core.clock import Clock
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId

PAUSE_S = 0.02  # between two looks
WINDOW_S = 30.0  # what is told is between one and two windows old
PATIENCE_S = 15.0  # after the last question
DEEPEST = 100  # calls of a stack, counted from the innermost
MOST_STACKS = 5000  # different ones, in a window
# whose calls are around every step
LOOP_FILES = ("runtime/loop/slot_loop.py", "runtime/loop/task_home.py")

Glance = Callable[[], list[tuple[int, ExecutionAttemptId | None]]]


class _Found(NamedTuple):
    attempt_id: ExecutionAttemptId | None
    on_cpu: bool
    stack: tuple[str, ...]


class FrameSampler:
    """``glance`` tells the threads to look at, and whose turn it is there. Calls come from the
    inspector's thread."""

    def __init__(self, glance: Glance, clock: Clock) -> None:
        self._glance, self._clock = glance, clock
        self._now: Counter[_Found] = Counter()
        self._before: Counter[_Found] = Counter()  # of the last window
        self._window_ends = self._asked = 0.0
        # by thread: its processor time, and when that was read
        self._seen: dict[int, tuple[float, float]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def samples_of(self, job_id: JobId, vertex_id: JobVertexId) -> tuple[StackSample, ...]:
        """What was found for the subtasks of a vertex, and where the thread waited."""
        with self._lock:
            self._asked = self._clock.monotonic()
            if self._thread is None and not self._stopped.is_set():
                self._now, self._before = Counter(), Counter()
                self._thread = threading.Thread(target=self._run, name="frame-sampler", daemon=True)
                self._thread.start()
            found = self._now + self._before
        return tuple(
            StackSample(None if attempt is None else attempt.subtask_index, on_cpu, stack, count)
            for (attempt, on_cpu, stack), count in found.items()
            if (
                not on_cpu
                if attempt is None
                else (attempt.job_id, attempt.vertex_id) == (job_id, vertex_id)
            )
        )

    @property
    def is_looking(self) -> bool:
        return self._thread is not None

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        self._look()  # for the processor time until now
        while self._goes_on():
            self._stopped.wait(PAUSE_S)
            for found in self._look():
                self._count(found)

    def _goes_on(self) -> bool:
        with self._lock:
            if self._clock.monotonic() - self._asked < PATIENCE_S and not self._stopped.is_set():
                return True
            self._thread = None  # who asks from now on starts another one
            return False

    def _count(self, found: _Found) -> None:
        now = self._clock.monotonic()
        with self._lock:
            if now >= self._window_ends:
                self._now, self._before, self._window_ends = Counter(), self._now, now + WINDOW_S
            if found in self._now or len(self._now) < MOST_STACKS:
                self._now[found] += 1

    def _look(self) -> list[_Found]:
        """Nothing of a thread in which the turn passed to another task meanwhile."""
        glance, frames = self._glance(), sys._current_frames()
        still = set(self._glance())
        self._seen = {thread: seen for thread, seen in self._seen.items() if thread in frames}
        return [
            _Found(attempt_id, self._was_on_cpu(thread), _stack_of(frames[thread]))
            for thread, attempt_id in glance
            if thread in frames and (thread, attempt_id) in still
        ]

    def _was_on_cpu(self, thread: int) -> bool:
        """Whether the thread used the processor for most of the time since the last look."""
        now = self._clock.monotonic()
        used = _cpu_s(thread, otherwise=now)  # then every thread is on the processor
        used_before, looked = self._seen.get(thread, (0.0, 0.0))
        self._seen[thread] = used, now
        return used - used_before > (now - looked) / 2


def _cpu_s(thread: int, otherwise: float) -> float:
    """The time a thread was on a processor or waited for one; ``otherwise`` where the system tells
    none. (``time.pthread_getcpuclockid`` may crash the process if the thread ends at that
    moment.)"""
    native_id = next(
        (each.native_id for each in threading.enumerate() if each.ident == thread), None
    )
    try:
        with open(f"/proc/self/task/{native_id}/schedstat", "rb") as file:
            running, waiting = file.read().split()[:2]
            return (int(running) + int(waiting)) / 1e9
    except (OSError, ValueError):
        return otherwise


def _stack_of(frame: FrameType | None) -> tuple[str, ...]:
    """The calls within a step, the outermost first."""
    stack: list[str] = []
    while frame is not None and len(stack) < DEEPEST:
        code = frame.f_code
        if stack and code.co_filename.endswith(LOOP_FILES):
            break
        module = frame.f_globals.get("__name__", "?")
        function = getattr(code, "co_qualname", code.co_name)
        stack.append(f"{module}.{function}:{frame.f_lineno}")
        frame = frame.f_back
    return tuple(reversed(stack))
