"""The transport over sockets: those on which a TaskExecutor listens, and those with which it
connects to another one. TCP and, between processes of one host, a Unix socket, which takes half the
time of TCP's loopback.

The Unix socket has a name in Linux's abstract namespace, made from the data port's address. Like
TCP ports, that namespace belongs to the network namespace: if the name answers, the address is on
this host; otherwise TCP is used. A port with another host than one's own (on Ray the node's
address) is on another node, and its name is not even tried. The handshake follows in either case.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial

from flinkpy.core.reactor import Reactor
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.network.wire.transport import ByteStream

log = engine_logger(__name__)

SOCKET_BUFFER = 4 << 20
ACCEPTS_PER_ROUND = 16


class DataPort:
    """The listening sockets. ``on_accepted`` gets each new connection, and a name for its other
    side. Raises OSError if the port cannot be opened."""

    def __init__(
        self, host: str, port: int, reactor: Reactor, on_accepted: Callable[[ByteStream, str], None]
    ) -> None:
        self._reactor, self._on_accepted = reactor, on_accepted
        self._sockets = [_listening(_family_of(host), (host, port))]
        name, number = self._sockets[0].getsockname()[:2]
        self.address = str(name), int(number)
        near = near_name(self.address)
        if near is not None:
            try:
                self._sockets.append(_listening(socket.AF_UNIX, near))
            except OSError as error:
                log.info("no Unix socket beside data port %s:%d: %s", *self.address, error)
        for listening in self._sockets:
            reactor.add_reader(listening, partial(self._accept, listening))

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_ROUND):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("cannot accept a data connection: %s", error)
                return
            _tune(accepted)
            self._on_accepted(
                accepted,
                f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "this host",
            )

    def close(self) -> None:
        """Stops accepting connections."""
        for listening in self._sockets:
            self._reactor.remove_reader(listening)
            listening.close()


class Sockets:
    """Implements ``flinkpy.network.wire.transport.Transport``. To a data port of another host than
    its own it connects by TCP."""

    def __init__(self) -> None:
        self._host: str | None = None

    def listen(
        self, host: str, port: int, reactor: Reactor, on_accepted: Callable[[ByteStream, str], None]
    ) -> DataPort:
        opened = DataPort(host, port, reactor, on_accepted)
        self._host = opened.address[0]
        return opened

    def connect(self, address: tuple[str, int]) -> tuple[ByteStream, bool]:
        sock, is_connected = reach(address, self._host)
        if is_connected:
            return sock, True
        try:
            sock.connect(address)
        except BlockingIOError:
            return sock, False
        except OSError:
            sock.close()
            raise
        return sock, True

    def connect_error(self, stream: ByteStream) -> OSError | None:
        assert isinstance(stream, socket.socket)
        code = stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(code, "cannot connect") if code else None


def reach(address: tuple[str, int], own_host: str | None = None) -> tuple[socket.socket, bool]:
    """A socket for that data port, and whether it is connected; a TCP socket is not connected yet.
    From ``own_host``, if that is known, only a port with the same host is tried by its Unix
    socket."""
    near = near_name(address) if own_host in (None, address[0]) else None
    if near is not None:
        sock = _tuned_socket(socket.AF_UNIX)
        try:
            sock.connect(near)
            if _is_own(sock):
                return sock, True
        except OSError:  # no such name on this host, or its queue is full
            pass
        sock.close()
    return _tuned_socket(_family_of(address[0])), False


def _is_own(sock: socket.socket) -> bool:
    """Whether a process of this user listens there: every user may take a name of that namespace
    before it."""
    if sys.platform != "linux":
        return False
    _, user, _ = struct.unpack(
        "3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return bool(user == os.getuid())


def near_name(address: tuple[str, int]) -> str | None:
    """The name of the Unix socket; None on systems without an abstract namespace."""
    return f"\0flinkpy-data-port/{address[0]}:{address[1]}" if sys.platform == "linux" else None


def _listening(family: int, address: tuple[str, int] | str) -> socket.socket:
    sock = _tuned_socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    return sock


def _tuned_socket(family: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    _tune(sock)
    return sock


def _tune(sock: socket.socket) -> None:
    """Non-blocking, with large buffers and no delay."""
    sock.setblocking(False)
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, name, SOCKET_BUFFER)


def _family_of(host: str) -> int:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
