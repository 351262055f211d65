"""What carries bytes between TaskExecutors: ports of which sockets are one implementation, the
simulation has another.

Nothing blocks. A stream raises BlockingIOError where it would wait; a reactor
(``flinkpy.core.reactor``) calls back when it can go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from flinkpy.core.reactor import Pollable, Reactor


class ByteStream(Pollable, Protocol):
    """One end of a connection. A non-blocking ``socket.socket`` is one, so sockets are used as they
    are. Each method but ``close`` raises BlockingIOError if it would have to wait, and another
    OSError if the connection is lost. What is sent next begins with the bytes that were not taken:
    they may be under way."""

    def send(self, data: bytes, /) -> int:
        """Sends the beginning of the data; returns how many bytes."""
        ...

    def sendmsg(self, buffers: Sequence[Any], /) -> int:
        """Sends the beginning of the buffers, one after the other; returns how many bytes."""
        ...

    def recv(self, count: int, /) -> bytes:
        """Some bytes, at most ``count``; none at the end of the stream."""
        ...

    def recv_into(self, buffer: Any, /) -> int:
        """Reads some bytes into the buffer; returns how many, 0 at the end of the stream."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class KeepsReceived(Protocol):
    """A stream that may hold received bytes in itself, which make it readable and are unknown to
    the selector. (A socket holds none.)"""

    def pending(self) -> bool: ...


class Listener(Protocol):
    """An open data port."""

    @property
    def address(self) -> tuple[str, int]:
        """Where others reach it."""
        ...

    def close(self) -> None:
        """Stops accepting connections."""
        ...


class Transport(Protocol):
    """Makes connections."""

    def listen(
        self, host: str, port: int, reactor: Reactor, on_accepted: Callable[[ByteStream, str], None]
    ) -> Listener:
        """Opens a data port; 0 picks a free one. ``on_accepted`` gets each new connection, and a
        name for its other side. Raises OSError."""
        ...

    def connect(self, address: tuple[str, int]) -> tuple[ByteStream, bool]:
        """Begins to connect; True if that is done. Otherwise the stream becomes writable when it is
        done or has failed. Raises OSError."""
        ...

    def connect_error(self, stream: ByteStream) -> OSError | None:
        """Why a stream that became writable is not connected; None if it is."""
        ...
