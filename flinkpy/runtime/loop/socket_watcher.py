"""What a slot loop waits for: sockets with their callbacks, and an interruption from another
thread.

``poll`` and ``dispatch`` belong to the loop's thread. Sockets may be added and removed from other
threads, by one at a time: the lock of the data plane sees to that."""

from __future__ import annotations

import socket
from collections.abc import Callable

from flinkpy.core.reactor import Pollable
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.runtime.loop.poller import READABLE, WRITABLE, Poller

LOG = engine_logger(__name__)

Action = Callable[[], None]


class _Watched:
    """A socket's callbacks."""

    __slots__ = ("fd", "reader", "writer")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.reader: Action | None = None
        self.writer: Action | None = None

    @property
    def events(self) -> int:
        return (READABLE if self.reader is not None else 0) | (
            WRITABLE if self.writer is not None else 0
        )


class SocketWatcher:
    """Calls back for sockets that can be read or written. A callback that raises is logged under
    ``name``."""

    def __init__(self, name: str, poller: Poller) -> None:
        self._name, self._poller = name, poller
        self.poll = poller.poll  # waits so many seconds; its result is for ``dispatch``
        self._sockets: dict[Pollable, _Watched] = {}
        self._by_fd: dict[int, _Watched] = {}
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self.waiting = False  # the loop's thread is in ``poll``, or about to be
        self._closed = False
        self.add_reader(self._receiver, self._drain_interruptions)

    def add_reader(self, stream: Pollable, callback: Action) -> None:
        self._watch(stream, callback, self._watched(stream).writer)

    def remove_reader(self, stream: Pollable) -> None:
        if stream in self._sockets:
            self._watch(stream, None, self._sockets[stream].writer)

    def add_writer(self, stream: Pollable, callback: Action) -> None:
        self._watch(stream, self._watched(stream).reader, callback)

    def remove_writer(self, stream: Pollable) -> None:
        if stream in self._sockets:
            self._watch(stream, self._sockets[stream].reader, None)

    def _watched(self, stream: Pollable) -> _Watched:
        return self._sockets.get(stream) or _Watched(stream.fileno())

    def _watch(self, stream: Pollable, reader: Action | None, writer: Action | None) -> None:
        """Brings the poller in line with the callbacks of one socket."""
        watched = self._watched(stream)
        known = watched.events
        watched.reader, watched.writer = reader, writer
        wanted = watched.events
        if not known:
            self._poller.register(watched.fd, wanted)
            self._sockets[stream] = self._by_fd[watched.fd] = watched
        elif not wanted:
            self._poller.unregister(watched.fd)
            del self._sockets[stream], self._by_fd[watched.fd]
        elif known != wanted:
            self._poller.modify(watched.fd, wanted)

    def dispatch(self, events: list[tuple[int, int]]) -> None:
        """Calls back for what ``poll`` found."""
        for fd, mask in events:
            watched = self._by_fd.get(fd)
            if watched is None:
                continue  # another callback of this round closed it
            reader = watched.reader
            try:
                # an error or a hang-up is for both callbacks
                if reader is not None and mask & ~WRITABLE:
                    reader()
            except Exception:
                LOG.exception("%s: a callback raised", self._name)
            writer = watched.writer
            try:
                if writer is not None and mask & ~READABLE:
                    writer()
            except Exception:
                LOG.exception("%s: a callback raised", self._name)

    def interrupt(self) -> None:
        """From any thread: ``poll`` returns, if the loop's thread waits there."""
        if not self.waiting:
            return
        try:
            self._sender.send(b"\0")
        except BlockingIOError:
            pass  # so many interruptions are under way that this one is not needed
        except OSError:
            pass  # closed

    def _drain_interruptions(self) -> None:
        try:
            while len(self._receiver.recv(4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    @property
    def sockets(self) -> int:
        """How many sockets are watched, not counting its own."""
        return len(self._sockets) - 1

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._poller.close()
            self._receiver.close()
            self._sender.close()
