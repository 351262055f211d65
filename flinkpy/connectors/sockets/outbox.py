"""Sends on a socket from the task's thread without blocking it: what the peer does not take yet is
queued, up to a bound.

While something is queued, a timer tries again; the writer reports that it is not available, and the
task stops reading its input. A caller that writes nevertheless waits for room, for a bounded time.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable

from flinkpy.core.errors import RecipientUnreachableError
from flinkpy.operators.context import ProcessingTimeService, TimerHandle

ROOM_BYTES = 4 << 20  # queued here at most, apart from the batch that crosses the line
# the first pause before a full socket is tried again; doubled while nothing moves, up to
RETRY_S = 0.001
LONGEST_RETRY_S = 0.016
STALL_TIMEOUT_S = 600.0


class Outbox:
    """A bounded queue of bytes in front of a connected socket, which it makes non-blocking and
    owns.

    ``peer`` names the other side in errors. Its calls raise RecipientUnreachableError if the peer
    has gone away, or takes nothing for ``STALL_TIMEOUT_S`` while somebody waits for room."""

    def __init__(
        self,
        sock: socket.socket,
        timers: ProcessingTimeService,
        peer: str,
        room_bytes: int = ROOM_BYTES,
    ) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._timers = timers
        self._peer = peer
        self._room = room_bytes
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._timer: TimerHandle | None = None
        self._retry_s = RETRY_S
        self._on_available: Callable[[], None] | None = None
        self._error: RecipientUnreachableError | None = None
        self._flushing = False
        self.bytes_sent = 0

    @property
    def available(self) -> bool:
        return (self._queued < self._room and not self._flushing) or self._error is not None

    @property
    def queued_bytes(self) -> int:
        return self._queued

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def send(self, *parts: bytes) -> None:
        """Sends what the socket takes now and queues the rest; if there is no room, waits first."""
        self._raise_error()
        if not self.available:
            self._wait_until(lambda: self._queued < self._room)
        for part in parts:
            self._queue.append(memoryview(part))
            self._queued += len(part)
        self._push()
        self._raise_error()

    def begin_flush(self) -> None:
        """Takes no more until everything is sent; then calls the listener. ``flushed`` says whether
        it is."""
        self._flushing = bool(self._queue)

    @property
    def flushed(self) -> bool:
        """Whether a flush that was begun is done; raises what went wrong meanwhile."""
        self._raise_error()
        return not self._flushing

    def flush(self) -> None:
        """Waits until everything is sent."""
        self._wait_until(lambda: not self._queue)

    def close(self) -> None:
        """Closes the socket; what was not flushed is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._queue.clear()
        self._queued = 0
        self._socket.close()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _push(self) -> None:
        """Writes as much as the socket takes; sets the timer for the rest."""
        was_available, sent_before = self.available, self.bytes_sent
        try:
            while self._queue:
                sent = self._socket.send(self._queue[0])
                self.bytes_sent += sent
                self._queued -= sent
                if sent == len(self._queue[0]):
                    self._queue.popleft()
                else:
                    self._queue[0] = self._queue[0][sent:]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._error = RecipientUnreachableError(f"{self._peer} is gone: {error}")
            self._error.__cause__ = error
        self._retry_s = (
            RETRY_S if self.bytes_sent > sent_before else min(2 * self._retry_s, LONGEST_RETRY_S)
        )
        if self._queue and self._timer is None and self._error is None:
            self._timer = self._timers.call_later(self._retry_s, self._try_again)
        self._flushing = self._flushing and bool(self._queue)
        if not was_available and self.available and self._on_available is not None:
            self._on_available()

    def _try_again(self) -> None:
        self._timer = None
        self._push()

    def _wait_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._raise_error()
            sent = self.bytes_sent
            select.select([], [self._socket], [], STALL_TIMEOUT_S)
            self._push()
            if self.bytes_sent == sent and self._error is None:
                self._error = RecipientUnreachableError(
                    f"{self._peer} took nothing for {STALL_TIMEOUT_S:g} s"
                )
        self._raise_error()

    def __repr__(self) -> str:
        return f"<Outbox to {self._peer}: {self._queued} bytes waiting, {self.bytes_sent} sent>"
