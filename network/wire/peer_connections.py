"""The connections of one TaskExecutor with others: one per peer, opened by whichever side asks
first."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.network.wire.connection import Connection
from flinkpy.network.wire.connection_manager import ConnectionManager, Peer
from flinkpy.network.wire.remote_channel import OutboundChannel, PartitionRequest
from flinkpy.network.wire.transport import Transport


class PeerConnections:
    """Owns the data port and the connections. It belongs to the thread of ``reactor``; connections
    are made on ``acceptor``.

    ``on_request`` is called with a peer's partition request, and the channel that serves it.
    """

    def __init__(
        self,
        config: NetworkConfig,
        secret: bytes,
        resource_id: str,
        transport: Transport,
        reactor: Reactor,
        acceptor: Reactor,
        on_request: Callable[[PartitionRequest, OutboundChannel], None],
    ) -> None:
        """Opens the data port; raises OSError if that fails."""
        self._config = config
        self._reactor = reactor
        self._on_request = on_request
        self._connections: dict[Connection, None] = {}  # in the order in which they were made
        self._by_peer: dict[str, Connection] = {}
        self._closed_sent = self._closed_received = 0  # bytes of closed connections
        self._stopped = False
        self._manager = ConnectionManager(
            config,
            secret,
            resource_id,
            transport,
            acceptor,
            lambda peer: reactor.call_soon_threadsafe(lambda: self._accept_peer(peer)),
        )

    @property
    def address(self) -> tuple[str, int]:
        return self._manager.address

    @property
    def count(self) -> int:
        """The number of connections, including those whose other side has not proved who it is."""
        return len(self._connections) + (0 if self._stopped else self._manager.strangers)

    @property
    def bytes_sent(self) -> int:
        return self._closed_sent + sum(
            connection.bytes_sent for connection in list(self._connections)
        )

    @property
    def bytes_received(self) -> int:
        return self._closed_received + sum(
            connection.bytes_received for connection in list(self._connections)
        )

    def connection_to(self, location: TaskManagerLocation) -> Connection:
        """The connection with that TaskExecutor, whichever side opened it. There are two only if
        both sides open one at the same moment."""
        known = self._by_peer.get(location.resource_id)
        if known is not None:
            return known
        connection = self._add_connection(
            f"{location.resource_id} ({location.host}:{location.data_port})"
        )
        self._by_peer[location.resource_id] = connection
        reactor = self._reactor

        def ready(peer: Peer) -> None:
            reactor.call_soon_threadsafe(lambda: connection.use_stream(peer.stream, peer.rest))

        def failed(error: Exception) -> None:
            reactor.call_soon_threadsafe(lambda: connection.connecting_failed(error))

        self._manager.connect(location, ready, failed)
        return connection

    def _accept_peer(self, peer: Peer) -> None:
        if self._stopped:
            peer.stream.close()
            return
        connection = self._add_connection(f"{peer.resource_id} ({peer.name})")
        self._by_peer.setdefault(peer.resource_id, connection)
        connection.use_stream(peer.stream, peer.rest)

    def _add_connection(self, peer: str) -> Connection:
        connection = Connection(peer, self, self._reactor, self._config.max_frame)
        self._connections[connection] = None
        return connection

    def partition_requested(self, request: PartitionRequest, channel: OutboundChannel) -> None:
        self._on_request(request, channel)

    def connection_closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self._closed_sent += connection.bytes_sent
        self._closed_received += connection.bytes_received
        for peer in [peer for peer, known in self._by_peer.items() if known is connection]:
            del self._by_peer[peer]

    def stop(self, cause: BaseException) -> None:
        """Closes the port and all connections; their channels get the cause."""
        self._stopped = True
        for connection in list(self._connections):
            connection.close_connection(cause)
        self._manager.close()

    def __repr__(self) -> str:
        return f"<PeerConnections: {self.count}>"
