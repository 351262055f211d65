"""One end of a simulated connection: bytes go in, and arrive at the other end in order, in pieces,
some time later, or never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService

BUFFER_AT_LEAST = 512  # a system takes so many bytes at once, where nothing waits


class Cable(Protocol):
    """What lies between the two ends (``flinkpy.testing.simulation.machine.data_network``)."""

    @property
    def in_flight(self) -> int:
        """How many bytes it takes in one direction before they are read."""
        ...

    def share_of(self, count: int) -> int:
        """How many of so many bytes go through at once."""
        ...

    def carry(self, source: SimulatedStream, data: bytes) -> None: ...

    def carry_end(self, source: SimulatedStream, error: OSError | None) -> None:
        """The end of the stream travels behind what was sent before; an error overtakes it."""
        ...


class SimulatedStream:
    """Implements ``flinkpy.network.wire.transport.ByteStream``. Made by the network of streams,
    which links it with its ``peer``."""

    def __init__(self, number: int, process: SimulatedRpcService, cable: Cable) -> None:
        self._number = number
        self.process = process
        self._cable = cable
        self.peer: SimulatedStream | None = None
        self.last_arrival = 0.0  # of what this end has sent
        self.is_torn = False  # something that it sent is lost, and so is all behind that
        self._arrived = bytearray()
        self._unread = 0  # bytes that this end has sent, and the other has not read
        self._error: OSError | None = None
        self._peer_ended = False
        self.is_closed = False
        self._on_change: Callable[[SimulatedStream], None] | None = None

    def fileno(self) -> int:
        return self._number

    def set_listener(self, on_change: Callable[[SimulatedStream], None] | None) -> None:
        """Sets what to call when the stream may have become readable or writable."""
        self._on_change = on_change

    @property
    def is_readable(self) -> bool:
        return bool(self._arrived) or self._peer_ended or self._error is not None

    @property
    def is_writable(self) -> bool:
        return self._error is not None or (
            self.peer is not None and self._unread < self._cable.in_flight
        )

    @property
    def error(self) -> OSError | None:
        """Why the connection is lost, or could not be made."""
        return self._error

    # -- ByteStream --------------------------------------------------------------------------------

    def send(self, data: bytes, /) -> int:
        if not self.process.alive:  # it died in the middle of what it does
            return len(data)
        self._check()
        room = self._cable.in_flight - self._unread
        if room <= 0 or self.peer is None:
            raise BlockingIOError
        count = min(room, len(data))
        if self._unread or count > BUFFER_AT_LEAST:
            count = self._cable.share_of(count)
        self._unread += count
        self._cable.carry(self, data[:count])
        return count

    def sendmsg(self, buffers: Sequence[Any], /) -> int:
        return self.send(b"".join(buffers))

    def recv(self, count: int, /) -> bytes:
        self._check()
        if not self._arrived:
            if self._peer_ended:
                return b""
            raise BlockingIOError
        count = self._cable.share_of(min(count, len(self._arrived)))
        data = bytes(self._arrived[:count])
        del self._arrived[:count]
        if self.peer is not None:
            self.peer.was_read(count)
        return data

    def recv_into(self, buffer: Any, /) -> int:
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        error = (
            ConnectionResetError("the other side closed with bytes unread")
            if self._arrived
            else None
        )
        self._arrived.clear()
        self._cable.carry_end(self, error)

    def _check(self) -> None:
        if self.is_closed:
            raise OSError("the stream is closed")
        if self._error is not None:
            raise self._error

    # -- what the network says ---------------------------------------------------------------------

    def connected_to(self, peer: SimulatedStream) -> None:
        self.peer = peer
        self._changed()

    def arrive(self, data: bytes) -> None:
        """Bytes of the other end. If this one is closed, the other hears that."""
        if self.is_closed:
            self._cable.carry_end(self, ConnectionResetError("closed by the other side"))
        elif self._error is None:
            self._arrived += data
            self._changed()

    def was_read(self, count: int) -> None:
        """The other end has read so many bytes."""
        was_full = self._unread >= self._cable.in_flight
        self._unread -= count
        if was_full:
            self._changed()

    def end(self, error: OSError | None) -> None:
        """The other end was closed, or the connection is lost."""
        if self.is_closed or self._error is not None:
            return
        if error is None:
            self._peer_ended = True
        else:
            self._error = error
            self._arrived.clear()
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)

    def __repr__(self) -> str:
        other = self.peer.process.process if self.peer is not None else "nobody"
        return (
            f"<SimulatedStream {self.process.process} to "
            f"{other}{', closed' if self.is_closed else ''}>"
        )
