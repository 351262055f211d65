"""The shuffle environment of one TaskExecutor: its segments, partitions, gates and connections,
behind the interface that tasks use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.errors import (
    EngineError,
    PartitionNotFoundError,
    ResourceUnavailableError,
    TaskExecutorLostError,
)
from flinkpy.core.ids import ExecutionAttemptId, JobId
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor
from flinkpy.graph.deployment import (
    InputGateDescriptor,
    ResultPartitionDescriptor,
    TaskManagerLocation,
)
from flinkpy.network.data_plane_reactor import DataPlaneReactor
from flinkpy.network.flow.credits import ReceiverCredits
from flinkpy.network.flow.segments import NetworkBufferPool
from flinkpy.network.gate import LocalInputChannel, SingleInputGate, most_rows_put_together
from flinkpy.network.port import InputGate, RecordWriter, ShuffleStatistics
from flinkpy.network.result_partitions import ResultPartitions
from flinkpy.network.wire.data_port import Sockets
from flinkpy.network.wire.peer_connections import PeerConnections
from flinkpy.network.wire.remote_channel import (
    OutboundChannel,
    PartitionRequest,
    RemoteInputChannel,
)
from flinkpy.network.wire.transport import Transport

# beyond what they must have, a new gate's channels take at most a quarter of the segments that are
# not reserved
EXCLUSIVE_SHARE = 4
# and leave half of the pool to gates and partitions that come later: these fail without what they
# must have
KEPT_FOR_LATER = 2


class ShuffleService:
    """The ShuffleEnvironment (see ``flinkpy.network.port``) of the TaskExecutor ``resource_id``;
    ``secret`` is the cluster's secret. Connections are sockets, unless another ``transport`` is
    given. Raises ConfigurationError for certificates that cannot be used."""

    def __init__(
        self,
        config: NetworkConfig,
        secret: bytes,
        resource_id: str,
        transport: Transport | None = None,
    ) -> None:
        self._config = config
        self._secret = secret
        self._resource_id = resource_id
        self._transport = _transport(transport or Sockets(), config)
        self._pool = NetworkBufferPool(config.total_segments)
        self._lock = self._pool.lock
        self._segments_per_batch = max(1, config.batch_bytes // config.segment_size)
        self.partitions = ResultPartitions(config, self._pool)
        self._gates: dict[ExecutionAttemptId, list[SingleInputGate]] = {}
        self._connections: PeerConnections | None = None
        self._running: DataPlaneReactor | None = None
        self._loop: Reactor | None = None  # that of the tasks which name no other thread

    @property
    def data_address(self) -> tuple[str, int]:
        if self._connections is None:
            raise EngineError("the data port is known after start()")
        return self._connections.address

    def start(self, reactor: Reactor, acceptor: Reactor) -> None:
        """Opens the data port; raises ResourceUnavailableError if that fails."""
        host, port = self._config.bind_host, self._config.data_port
        self._loop, self._running = reactor, DataPlaneReactor(reactor, self._lock)
        try:
            self._connections = PeerConnections(
                self._config,
                self._secret,
                self._resource_id,
                self._transport,
                self._running,
                acceptor,
                self._serve_request,
            )
        except OSError as error:
            raise ResourceUnavailableError(
                f"the data port cannot be opened at {host}:{port}: "
                f"{error.strerror or error}; see taskmanager.bind-host and "
                "taskmanager.data.port "
                "(0 picks a free port; several TaskExecutors on one host need that, or a "
                "range such as 50100-50200)"
            ) from error

    @property
    def _reactor(self) -> Reactor:
        if self._running is None:
            raise EngineError("the shuffle service was not started")
        return self._running

    def _thread_of(self, task: Reactor | None) -> Reactor:
        """The reactor in whose thread a task runs."""
        found = task or self._loop
        if found is None:
            raise EngineError("the shuffle service was not started")
        return found

    def _serve_request(self, request: PartitionRequest, channel: OutboundChannel) -> None:
        self.partitions.request_subpartition(request, channel, self._reactor)

    # -- writers and gates -------------------------------------------------------------------------

    def create_writers(
        self,
        owner: ExecutionAttemptId,
        descriptors: Sequence[ResultPartitionDescriptor],
        partitioners: Sequence[Any],
        buffer_timeouts_ms: Sequence[int],
        on_error: Callable[[BaseException], None],
        reactor: Reactor | None = None,
    ) -> list[RecordWriter]:
        """Each of ``partitioners`` is a ``Partitioning`` of the graph or a ready
        ``ChannelSelector``."""
        with self._lock:
            try:
                return [
                    *self.partitions.create_writers(
                        owner,
                        descriptors,
                        partitioners,
                        buffer_timeouts_ms,
                        on_error,
                        self._thread_of(reactor),
                    )
                ]
            except BaseException as error:
                self.release(owner, error)
                raise

    def create_gates(
        self,
        owner: ExecutionAttemptId,
        descriptors: Sequence[InputGateDescriptor],
        on_error: Callable[[BaseException], None],
        reactor: Reactor | None = None,
    ) -> list[InputGate]:
        with self._lock:
            gates = self._gates.setdefault(owner, [])
            created: list[InputGate] = []
            try:
                for descriptor in descriptors:
                    name = (
                        f"input {descriptor.input_index} of {owner.vertex_id:.8} subtask "
                        f"{owner.subtask_index}"
                    )
                    gate = SingleInputGate(
                        name,
                        on_error,
                        self._lock,
                        self._thread_of(reactor),
                        most_rows_put_together(self._config),
                    )
                    gates.append(gate)
                    self._fill_gate(gate, descriptor, owner.job_id)
                    created.append(gate)
            except BaseException as error:
                self.release(owner, error)
                raise
            return created

    def _fill_gate(
        self, gate: SingleInputGate, descriptor: InputGateDescriptor, job_id: JobId
    ) -> None:
        """Adds all channels before it requests any subpartition, because a request may be answered
        at once."""
        remote = [
            producer
            for producer in descriptor.producers
            if producer.location.resource_id != self._resource_id
        ]
        credits = self._create_credits(gate, len(remote), job_id) if remote else None
        remote_channels: list[tuple[RemoteInputChannel, TaskManagerLocation]] = []
        local_channels: list[tuple[PartitionRequest, LocalInputChannel]] = []
        for index, producer in enumerate(descriptor.producers):
            request = PartitionRequest(producer.partition_id, descriptor.subpartition_index)
            if credits is not None and producer.location.resource_id != self._resource_id:
                remote_channel = RemoteInputChannel(gate, index, request, credits)
                gate.add_channel(remote_channel)
                remote_channels.append((remote_channel, producer.location))
            else:
                local_channel = LocalInputChannel(gate, index, request.key)
                gate.add_channel(local_channel)
                local_channels.append((request, local_channel))
        for request, local_channel in local_channels:
            self.partitions.request_subpartition(request, local_channel, self._reactor)
        for remote_channel, location in remote_channels:
            assert self._connections is not None  # set with the reactor
            self._connections.connection_to(location).open_channel(remote_channel)

    def _create_credits(self, gate: SingleInputGate, remote: int, job_id: JobId) -> ReceiverCredits:
        """Reserves the channels' exclusive segments for the gate. Those of a channel hold whole
        batches if memory allows, and are at least ``buffers_per_channel``."""
        config, batch, free = self._config, self._segments_per_batch, self._pool.unreserved
        spare = max(0, min(free // EXCLUSIVE_SHARE, free - self._pool.total // KEPT_FOR_LATER))
        exclusive = max(
            config.buffers_per_channel, 1, min(config.buffers_per_channel * batch, spare // remote)
        )
        floating = config.floating_buffers * batch
        gate.pool = pool = self._pool.create_pool(
            gate.name, remote * exclusive, remote * exclusive + floating, job_id
        )

        def grant(channel: int, segments: int) -> None:
            member = gate.members[channel]
            assert isinstance(member, RemoteInputChannel)
            member.grant_credit(segments)

        credits = ReceiverCredits(remote, exclusive, floating, pool, grant)
        pool.on_room = credits.grant_waiting
        return credits

    # -- the end -----------------------------------------------------------------------------------

    def finish_partitions(self, owner: ExecutionAttemptId) -> None:
        """Also releases the gates, because a task that has ended well has read them."""
        with self._lock:
            self.partitions.finish_writers(owner)
            self._release_gates(owner)

    def release(self, owner: ExecutionAttemptId, cause: BaseException | None = None) -> None:
        """Partitions that were finished stay until they have been read, unless there is a cause."""
        with self._lock:
            self.partitions.release_writers(owner, cause)
            self._release_gates(owner)

    def release_partitions(self, owner: ExecutionAttemptId) -> None:
        with self._lock:
            self.partitions.drop_partitions(
                owner, PartitionNotFoundError(f"the results of {owner} were released")
            )

    def _release_gates(self, owner: ExecutionAttemptId) -> None:
        gates = self._gates.pop(owner, ())
        for gate in gates:
            gate.release_gate()
        if gates:
            self.partitions.drop_released_requests()

    def stop(self) -> None:
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        cause = TaskExecutorLostError(f"TaskExecutor {self._resource_id} stops")
        # before the partitions, so that local consumers do not hear of the stop
        for owner in list(self._gates):
            self._release_gates(owner)
        for owner in self.partitions.owners:
            self.release(owner, cause)
        self.partitions.drop_requests()
        if self._connections is not None:
            self._connections.stop(cause)

    def statistics(self) -> ShuffleStatistics:
        pool, peers = self._pool.statistics(), self._connections
        return ShuffleStatistics(
            pool.total,
            pool.in_use,
            len(self.partitions),
            sum(map(len, list(self._gates.values()))),
            0 if peers is None else peers.count,
            0 if peers is None else peers.bytes_sent,
            0 if peers is None else peers.bytes_received,
        )

    def __repr__(self) -> str:
        return f"ShuffleService({self._resource_id}, {self.statistics()})"


def _transport(carrier: Transport, config: NetworkConfig) -> Transport:
    if config.tls is None:
        return carrier
    from flinkpy.network.wire.tls_transport import TlsTransport

    return TlsTransport(carrier, config.tls)
