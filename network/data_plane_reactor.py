"""The slot loop as connections and waiting requests see it: what it calls holds the lock of the
data plane, and any thread that holds the lock may call it.

Segments, partitions, gates and connections of one TaskExecutor are one data structure, and its
rules are those of a single thread. Most tasks run in the slot loop's thread. A task that waits has
a thread of its own, and polls its gate, or writes into its partition, from there. So there is one
lock for all of it (``NetworkBufferPool.lock``), held for microseconds and never while a user's
function runs. What such a call brings about for another task is handed over to that task's thread
(``Reactor.bind``)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from flinkpy.core.clock import Clock
from flinkpy.core.reactor import P, Pollable, Reactor, ReactorTimer

Action = Callable[[], None]


class DataPlaneReactor:
    """Implements ``flinkpy.core.reactor.Reactor`` on top of the slot loop's."""

    def __init__(self, loop: Reactor, lock: threading.RLock) -> None:
        self._loop, self._lock = loop, lock
        self.clock: Clock = loop.clock
        self._readers: dict[Pollable, Action] = {}
        self._writers: dict[Pollable, Action] = {}

    @property
    def thread_id(self) -> int | None:
        return self._loop.thread_id

    # -- sockets: all calls hold the lock; the loop may have found out that one is ready just before
    # it was removed ----------

    def add_reader(self, stream: Pollable, callback: Action) -> None:
        self._readers[stream] = callback
        self._loop.add_reader(stream, partial(self._ready, self._readers, stream))

    def remove_reader(self, stream: Pollable) -> None:
        if self._readers.pop(stream, None) is not None:
            self._loop.remove_reader(stream)

    def add_writer(self, stream: Pollable, callback: Action) -> None:
        self._writers[stream] = callback
        self._loop.add_writer(stream, partial(self._ready, self._writers, stream))

    def remove_writer(self, stream: Pollable) -> None:
        if self._writers.pop(stream, None) is not None:
            self._loop.remove_writer(stream)

    def _ready(self, callbacks: dict[Pollable, Action], stream: Pollable) -> None:
        with self._lock:
            callback = callbacks.get(stream)
            if callback is not None:
                callback()

    # -- calls to come -----------------------------------------------------------------------------

    def call_later(self, delay_s: float, action: Action) -> ReactorTimer:
        if self._is_here():
            return self._loop.call_later(delay_s, partial(self._locked, action))
        return HandedOverTimer(self._loop, delay_s, partial(self._locked, action))

    def call_soon(self, action: Action) -> None:
        if self._is_here():
            self._loop.call_soon(partial(self._locked, action))
        else:
            self.call_soon_threadsafe(action)

    def call_soon_threadsafe(self, action: Action) -> None:
        self._loop.call_soon_threadsafe(partial(self._locked, action))

    def bind(self, callback: Callable[P, None]) -> Callable[P, None]:
        """The callback itself: whoever calls it holds the lock, and may be in any thread."""
        return callback

    def maybe_yield(self) -> None:
        if self._is_here():
            self._loop.maybe_yield()

    def _is_here(self) -> bool:
        return self._loop.thread_id is None or self._loop.thread_id == threading.get_ident()

    def _locked(self, action: Action) -> None:
        with self._lock:
            action()


class HandedOverTimer:
    """A timer of a loop, set from another thread. Cancelling it from there is enough: then it does
    nothing."""

    def __init__(self, loop: Reactor, delay_s: float, action: Action) -> None:
        self._action: Action | None = action
        due = loop.clock.monotonic() + delay_s
        loop.call_soon_threadsafe(lambda: self._start(loop, due))

    def _start(self, loop: Reactor, due: float) -> None:
        if self._action is not None:
            loop.call_later(max(0.0, due - loop.clock.monotonic()), self._fire)

    def _fire(self) -> None:
        action, self._action = self._action, None
        if action is not None:
            action()

    def cancel(self) -> None:
        self._action = None
