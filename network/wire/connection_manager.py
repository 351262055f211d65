"""Makes and accepts the connections between TaskExecutors, and has both sides prove that they know
the cluster's secret.

This happens on a reactor whose thread runs no user code, so a slow function in one subtask does not
delay the answer to other processes. The slot loop gets only authenticated streams, ready for
frames."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Callable
from typing import NamedTuple

from flinkpy.core.errors import NetworkProtocolError
from flinkpy.core.options.engine import CONNECT_TIMEOUT, NetworkConfig
from flinkpy.core.options.ports import Ports
from flinkpy.core.reactor import Reactor
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.network.wire.handshake import Handshake
from flinkpy.network.wire.transport import ByteStream, Transport

log = engine_logger(__name__)

MAX_STRANGERS = 64  # accepted connections that have not proved yet that they know the secret
HANDSHAKE_READ = 1024


class Peer(NamedTuple):
    """An authenticated TaskExecutor: the stream to it, its id and address, and the bytes received
    after its proof."""

    stream: ByteStream
    resource_id: str
    name: str
    rest: bytes


class PendingConnection:
    """A stream during its handshake. At the end it calls either ``on_ready`` or, with the reason,
    ``on_failed``, in the reactor's thread."""

    def __init__(
        self,
        stream: ByteStream,
        handshake: Handshake,
        reactor: Reactor,
        timeout_s: float,
        on_ready: Callable[[PendingConnection, bytes], None],
        on_failed: Callable[[PendingConnection, Exception], None],
    ) -> None:
        self.stream = stream
        self._handshake = handshake
        self._reactor = reactor
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._over = self._reads = self._writes = False
        self._timeout_s = timeout_s
        # call_soon: bytes that arrived while this thread could not run are read before the timeout
        # takes effect
        self._timer = reactor.call_later(timeout_s, lambda: reactor.call_soon(self._expired))

    @property
    def peer_id(self) -> str:
        """The peer's id, once it has proved it."""
        return self._handshake.peer_id or ""

    def await_connected(self, connect_error: Callable[[ByteStream], OSError | None]) -> None:
        """Waits until the stream is connected, then begins the handshake."""

        def connected() -> None:
            self._reactor.remove_writer(self.stream)
            self._writes = False
            error = connect_error(self.stream)
            if error is not None:
                self._fail(error)
            else:
                self.shake_hands()

        self._writes = True
        self._reactor.add_writer(self.stream, connected)

    def shake_hands(self) -> None:
        """Begins the handshake on a connected stream."""
        self._reads = True
        self._reactor.add_reader(self.stream, self._readable)
        try:
            self._send(self._handshake.greeting())
        except (NetworkProtocolError, OSError) as error:
            self._fail(error)

    def _readable(self) -> None:
        try:
            while self._handshake.peer_id is None:  # over TLS, more may be there than is readable
                data = self.stream.recv(HANDSHAKE_READ)
                if not data:
                    raise NetworkProtocolError("the connection ended before the handshake did")
                self._send(self._handshake.receive(data))
        except BlockingIOError:
            return
        except (NetworkProtocolError, OSError) as error:
            self._fail(error)
            return
        self._end()
        self._on_ready(self, self._handshake.rest)

    def _send(self, data: bytes) -> None:
        """Sends a few bytes, which fit into a new stream's buffer; refuses a peer that does not
        take them."""
        if data and self.stream.send(data) != len(data):
            raise NetworkProtocolError("the peer does not read what the handshake says")

    def _expired(self) -> None:
        self._fail(
            NetworkProtocolError(
                f"no handshake within {self._timeout_s:g} s (see {CONNECT_TIMEOUT.key})"
            )
        )

    def _fail(self, error: Exception) -> None:
        if not self._over:
            self.close()
            self._on_failed(self, error)

    def _end(self) -> None:
        self._over = True
        self._timer.cancel()
        if self._reads:
            self._reactor.remove_reader(self.stream)
        if self._writes:
            self._reactor.remove_writer(self.stream)

    def close(self) -> None:
        """Closes the stream without calling ``on_failed``."""
        self._end()
        with contextlib.suppress(OSError):
            self.stream.close()


class ConnectionManager:
    """The data port of the TaskExecutor ``resource_id``, and the connections still in their
    handshake. ``on_accepted`` gets each authenticated peer, in the reactor's thread."""

    def __init__(
        self,
        config: NetworkConfig,
        secret: bytes,
        resource_id: str,
        transport: Transport,
        reactor: Reactor,
        on_accepted: Callable[[Peer], None],
    ) -> None:
        self._secret = secret
        self._resource_id = resource_id
        self._reactor = reactor
        self._on_accepted = on_accepted
        self._timeout_s, self._transport = config.connect_timeout.total_seconds(), transport
        self._pending: dict[PendingConnection, None] = {}
        # those of them that were accepted, with their addresses
        self._strangers: dict[PendingConnection, str] = {}
        self._closed = False
        self._data_port = Ports.of(config.data_port).first(
            lambda port: transport.listen(config.bind_host, port, reactor, self._accepted)
        )

    @property
    def address(self) -> tuple[str, int]:
        return self._data_port.address

    @property
    def strangers(self) -> int:
        """The number of accepted connections that are still in their handshake."""
        return len(self._strangers)

    def connect(
        self,
        location: TaskManagerLocation,
        on_ready: Callable[[Peer], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Connects to that TaskExecutor. May be called from any thread; the callbacks run in the
        reactor's thread."""
        self._reactor.call_soon_threadsafe(lambda: self._connect(location, on_ready, on_failed))

    def _connect(
        self,
        location: TaskManagerLocation,
        on_ready: Callable[[Peer], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        if self._closed:
            return

        def ready(pending: PendingConnection, rest: bytes) -> None:
            self._pending.pop(pending, None)
            on_ready(
                Peer(pending.stream, pending.peer_id, f"{location.host}:{location.data_port}", rest)
            )

        def failed(pending: PendingConnection, error: Exception) -> None:
            self._pending.pop(pending, None)
            on_failed(error)

        try:
            stream, is_connected = self._transport.connect((location.host, location.data_port))
        except OSError as error:
            on_failed(error)
            return
        handshake = Handshake(
            self._secret, self._resource_id, False, secrets.token_bytes, location.resource_id
        )
        pending = PendingConnection(
            stream, handshake, self._reactor, self._timeout_s, ready, failed
        )
        self._pending[pending] = None
        if is_connected:
            pending.shake_hands()
        else:
            pending.await_connected(self._transport.connect_error)

    def _accepted(self, stream: ByteStream, name: str) -> None:
        if len(self._strangers) >= MAX_STRANGERS:
            log.warning(
                (
                    "refused a data connection from %s: %d others have not proved yet to know the "
                    "secret"
                ),
                name,
                MAX_STRANGERS,
            )
            stream.close()
            return

        handshake = Handshake(self._secret, self._resource_id, True, secrets.token_bytes)
        pending = PendingConnection(
            stream, handshake, self._reactor, self._timeout_s, self._proved, self._refused
        )
        self._pending[pending] = None
        self._strangers[pending] = name
        pending.shake_hands()

    def _proved(self, pending: PendingConnection, rest: bytes) -> None:
        self._pending.pop(pending, None)
        self._on_accepted(Peer(pending.stream, pending.peer_id, self._strangers.pop(pending), rest))

    def _refused(self, pending: PendingConnection, error: Exception) -> None:
        self._pending.pop(pending, None)
        level = logging.WARNING if isinstance(error, NetworkProtocolError) else logging.INFO
        log.log(level, "data connection with %s closed: %s", self._strangers.pop(pending), error)

    def close(self) -> None:
        """Stops accepting and making connections. May be called from any thread; it takes effect in
        the reactor's thread."""
        self._reactor.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._data_port.close()
            for pending in list(self._pending):
                pending.close()
            self._pending.clear()
            self._strangers.clear()
