"""A reactor that a test steps: real sockets, one thread, bounded steps.

>>> with ManualReactor() as reactor:
...     reactor.call_soon(lambda: print("ran"))
...     reactor.step()
ran
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType

from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.reactor import P, Pollable


class ManualTimer:
    def __init__(self, due: float, action: Callable[[], None]) -> None:
        self.due = due
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualReactor:
    """Implements ``flinkpy.core.reactor.Reactor``. With a ManualClock, timers run once the test has
    advanced the clock."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self.thread_id: int | None = None
        self._selector = selectors.DefaultSelector()
        self._callbacks: dict[Pollable, dict[int, Callable[[], None]]] = {}
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()
        self._soon: deque[Callable[[], None]] = deque()
        self._foreign: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._waker, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self.add_reader(self._woken, self._wake)

    def add_reader(self, stream: Pollable, callback: Callable[[], None]) -> None:
        self._set(stream, selectors.EVENT_READ, callback)

    def remove_reader(self, stream: Pollable) -> None:
        self._set(stream, selectors.EVENT_READ, None)

    def add_writer(self, stream: Pollable, callback: Callable[[], None]) -> None:
        self._set(stream, selectors.EVENT_WRITE, callback)

    def remove_writer(self, stream: Pollable) -> None:
        self._set(stream, selectors.EVENT_WRITE, None)

    def call_later(self, delay_s: float, action: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self.clock.monotonic() + delay_s, action)
        heapq.heappush(self._timers, (timer.due, next(self._order), timer))
        return timer

    def call_soon(self, action: Callable[[], None]) -> None:
        self._soon.append(action)

    def bind(self, callback: Callable[P, None]) -> Callable[P, None]:
        return callback

    def maybe_yield(self) -> None:
        """Does nothing: no other task waits."""

    def call_soon_threadsafe(self, action: Callable[[], None]) -> None:
        with self._lock:
            self._foreign.append(action)
        self._waker.send(b"w")

    def step(self, timeout_s: float = 0.0) -> None:
        """Runs one round: the actions of ``call_soon``, due timers, then sockets, for which it
        waits at most ``timeout_s``."""
        for _ in range(len(self._soon)):
            self._soon.popleft()()
        while self._timers and self._timers[0][0] <= self.clock.monotonic():
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled:
                timer.action()
        for key, events in self._selector.select(timeout_s):
            for event in (selectors.EVENT_READ, selectors.EVENT_WRITE):
                callback = self._callbacks.get(key.fileobj, {}).get(event)  # type: ignore[arg-type]
                if events & event and callback is not None:
                    callback()

    def run_until(
        self, condition: Callable[[], bool], timeout_s: float = 10.0, what: str = "the condition"
    ) -> None:
        """Steps until the condition holds. Raises AssertionError after ``timeout_s`` of real
        time."""
        deadline = SYSTEM_CLOCK.monotonic() + timeout_s
        while not condition():
            self.step(0.001)
            if SYSTEM_CLOCK.monotonic() > deadline:
                raise AssertionError(f"{what} did not come true within {timeout_s:g} s")

    def settle(self, quiet_rounds: int = 5) -> None:
        """Steps until nothing happens on the sockets for some rounds."""
        quiet = 0
        while quiet < quiet_rounds:
            busy = bool(self._soon) or bool(self._selector.select(0.001))
            quiet = 0 if busy else quiet + 1
            self.step()

    @property
    def sockets(self) -> int:
        """How many sockets are registered, not counting its own."""
        return len(self._callbacks) - 1

    def close(self) -> None:
        self._selector.close()
        self._waker.close()
        self._woken.close()

    def __enter__(self) -> ManualReactor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _set(self, stream: Pollable, event: int, callback: Callable[[], None] | None) -> None:
        wanted = self._callbacks.setdefault(stream, {})
        known = bool(wanted)
        if callback is None:
            wanted.pop(event, None)
        else:
            wanted[event] = callback
        events = 0
        for each in wanted:
            events |= each
        if not events:
            del self._callbacks[stream]
            if known:
                self._selector.unregister(stream)
        elif known:
            self._selector.modify(stream, events)
        else:
            self._selector.register(stream, events)

    def _wake(self) -> None:
        try:
            self._woken.recv(4096)
        except BlockingIOError:
            pass
        with self._lock:
            foreign, self._foreign = self._foreign, deque()
        for action in foreign:
            action()
