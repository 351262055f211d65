"""The threads of a local service beside its endpoints': one for its timers, a few for slow
functions. They start when first needed.

All are daemons: a function that blocks for ever must not keep the interpreter from ending
(``concurrent.futures`` joins its workers at exit)."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable

from flinkpy.core.clock import Clock


class Timer:
    """One scheduled action; ``action`` is None once it has run or was cancelled."""

    __slots__ = ("__weakref__", "_owner", "action")

    def __init__(self, owner: TimerThread, action: Callable[[], object]) -> None:
        self._owner = owner
        self.action: Callable[[], object] | None = action

    def cancel(self) -> None:
        if self.action is not None:
            self.action = None
            self._owner.one_cancelled()


class TimerThread:
    """Runs actions at their times. They must be short: a long action must hand its work to another
    thread."""

    SWEEP_FROM = 256  # with fewer cancelled timers than this in the heap, they are not swept out

    def __init__(self, name: str, clock: Clock, on_error: Callable[[BaseException], None]) -> None:
        self._name = name
        self._clock = clock
        self._on_error = on_error
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._cancelled = 0
        self._stopped = False

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, delay_s: float, action: Callable[[], object]) -> Timer:
        timer = Timer(self, action)
        with self._changed:
            if self._stopped:
                timer.action = None
                return timer
            entry = (self._clock.monotonic() + delay_s, next(self._order), timer)
            heapq.heappush(self._heap, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            elif self._heap[0] is entry:
                self._changed.notify()
        return timer

    def one_cancelled(self) -> None:
        with self._changed:
            self._cancelled += 1
            if self._cancelled > self.SWEEP_FROM and self._cancelled > len(self._heap) // 2:
                self._heap = [entry for entry in self._heap if entry[2].action is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._heap.clear()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            timer = self._next_due()
            if timer is None:
                return
            action, timer.action = timer.action, None
            if action is not None:
                try:
                    action()
                except BaseException as error:
                    self._on_error(error)

    def _next_due(self) -> Timer | None:
        with self._changed:
            while not self._stopped:
                if not self._heap:
                    self._changed.wait()
                    continue
                wait_s = self._heap[0][0] - self._clock.monotonic()
                if wait_s <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(wait_s)
        return None


class BackgroundThreads:
    """Runs slow functions, a few at a time; it adds a thread while all are busy and there are fewer
    than ``limit``."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._work: deque[Callable[[], None]] = deque()
        self._arrived = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._stopped = False

    def submit(self, function: Callable[[], None]) -> bool:
        """Queues the function, which must handle its own errors. Returns False when stopped."""
        with self._arrived:
            if self._stopped:
                return False
            self._work.append(function)
            if self._idle >= len(self._work):
                self._arrived.notify()
            elif self._threads < self._limit:
                self._threads += 1
                threading.Thread(
                    target=self._run, name=f"{self._name}-{self._threads}", daemon=True
                ).start()
            return True

    def stop(self) -> None:
        """Drops the waiting functions; running ones end by themselves."""
        with self._arrived:
            self._stopped = True
            self._work.clear()
            self._arrived.notify_all()

    def _run(self) -> None:
        while True:
            with self._arrived:
                self._idle += 1
                while not self._work and not self._stopped:
                    self._arrived.wait()
                self._idle -= 1
                if self._stopped:
                    return
                function = self._work.popleft()
            function()
