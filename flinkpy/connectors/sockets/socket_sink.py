"""A sink that sends records as bytes to a TCP server; every subtask has its own connection."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from flinkpy.connectors.rows import rows_of
from flinkpy.connectors.sockets.outbox import Outbox
from flinkpy.core.elements import Batch
from flinkpy.core.errors import RecipientUnreachableError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter

CONNECT_TIMEOUT_S = 10.0


class SocketSink(Sink):
    """Sends ``serialize(value)`` for every record; by default its ``str`` and a line end, in utf-8.
    A slow server causes back-pressure. If the server cannot be reached or goes away, the job fails
    with RecipientUnreachableError."""

    def __init__(
        self, host: str, port: int, serialize: Callable[[Any], bytes] | None = None
    ) -> None:
        self._host = host
        self._port = port
        self._serialize = serialize

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        peer = f"the server at {self._host}:{self._port}"
        try:
            sock = socket.create_connection((self._host, self._port), timeout=CONNECT_TIMEOUT_S)
        except OSError as error:
            raise RecipientUnreachableError(f"{peer} cannot be reached: {error}") from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _SocketWriter(Outbox(sock, context.timers, peer), self._serialize)

    def __repr__(self) -> str:
        return f"SocketSink({self._host}:{self._port})"


class _SocketWriter(SinkWriter):
    def __init__(self, outbox: Outbox, serialize: Callable[[Any], bytes] | None) -> None:
        self._outbox, self._serialize = outbox, serialize

    def write_batch(self, batch: Batch) -> None:
        rows = rows_of(batch)
        if self._serialize is not None:
            serialize = self._serialize
            self._outbox.send(b"".join([serialize(value) for value in rows]))
        else:
            self._outbox.send("".join([f"{value}\n" for value in rows]).encode())

    @property
    def available(self) -> bool:
        return self._outbox.available

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._outbox.set_listener(on_available)

    def flush(self) -> None:
        self._outbox.begin_flush()

    @property
    def flushed(self) -> bool:
        return self._outbox.flushed

    def close(self) -> None:
        self._outbox.close()
