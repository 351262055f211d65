"""The shuffle environment of one TaskExecutor: its segments, partitions, gates, data port and connections.

A consumer may ask before its producer has begun: the request waits until the partition is registered, at most for the partition-request timeout.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.errors import EngineError, FlinkpyError, PartitionNotFoundError, ResourceUnavailableError, TaskExecutorLostError
from flinkpy.core.ids import ExecutionAttemptId, ResultPartitionId
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor, ReactorTimer
from flinkpy.graph.deployment import InputGateDescriptor, ResultPartitionDescriptor, TaskManagerLocation
from flinkpy.network.blocking import BatchShuffleMemory, BlockingPartition, BlockingWriter
from flinkpy.network.flow.credits import ReceiverCredits
from flinkpy.network.flow.segments import NetworkBufferPool
from flinkpy.network.gate import LocalInputChannel, SingleInputGate
from flinkpy.network.partition import ResultPartition
from flinkpy.network.partitioning.partitioners import ChannelSelector, make_selector
from flinkpy.network.port import InputGate, RecordWriter, ShuffleStatistics
from flinkpy.network.wire.connection import Connection
from flinkpy.network.wire.connection_manager import ConnectionManager, Peer
from flinkpy.network.wire.remote_channel import OutboundChannel, PartitionRequest, RemoteInputChannel, not_found
from flinkpy.network.writer import PartitionWriter

GUARANTEED_PARTITION_SEGMENTS = 4
TIMEOUT_TICKS = 10  # of a request for a partition that is not there
AnyPartition = ResultPartition | BlockingPartition
EXCLUSIVE_SHARE = 4  # a new gate's channels take at most a quarter of what nobody was promised


class ShuffleService:
    """The ShuffleEnvironment (see ``flinkpy.network.port``) of the TaskExecutor ``resource_id``; ``secret`` is the cluster's."""

    def __init__(self, config: NetworkConfig, secret: bytes, resource_id: str) -> None:
        self._config, self._secret, self._resource_id = config, secret, resource_id
        self._pool = NetworkBufferPool(config.total_segments)
        self._segments_per_batch = max(1, config.batch_bytes // config.segment_size)
        self._batch_memory = BatchShuffleMemory(config.batch_shuffle_memory, config.spill_folders)
        self._partitions: dict[ResultPartitionId, AnyPartition] = {}
        self._writers: dict[ExecutionAttemptId, list[tuple[AnyPartition, PartitionWriter]]] = {}
        self._gates: dict[ExecutionAttemptId, list[SingleInputGate]] = {}
        self._requests: dict[ResultPartitionId, list[_WaitingRequest]] = {}
        self._connections: set[Connection] = set()
        self._by_peer: dict[str, Connection] = {}
        self._bytes_sent = self._bytes_received = 0  # of closed connections
        self._manager: ConnectionManager | None = None
        self._running: Reactor | None = None

    # -- the port -----------------------------------------------------------------------------------------------------

    @property
    def data_address(self) -> tuple[str, int]:
        if self._manager is None:
            raise EngineError("the data port is known after start()")
        return self._manager.address

    def start(self, reactor: Reactor, acceptor: Reactor) -> None:
        """Opens the data port; ResourceUnavailableError where that cannot be had."""
        host, port = self._config.bind_host, self._config.data_port
        try:
            self._running = reactor
            self._manager = ConnectionManager(self._config, self._secret, self._resource_id, acceptor,
                                              lambda peer: reactor.call_soon_threadsafe(lambda: self._accepted(peer)))
        except OSError as error:
            raise ResourceUnavailableError(
                f"the data port cannot be opened at {host}:{port}: {error.strerror or error}; see taskmanager.bind-host and taskmanager.data.port "
                "(0 picks a free port, which several TaskExecutors on one host need)") from error

    def create_writers(
        self, owner: ExecutionAttemptId, descriptors: Sequence[ResultPartitionDescriptor], partitioners: Sequence[Any],
        buffer_timeouts_ms: Sequence[int], on_error: Callable[[BaseException], None],
    ) -> list[RecordWriter]:
        """``partitioners``: each a ``Partitioning`` of the graph or a ready ``ChannelSelector``."""
        writers = self._writers.setdefault(owner, [])
        created: list[RecordWriter] = []
        try:
            for descriptor, partitioner, timeout in zip(descriptors, partitioners, buffer_timeouts_ms):
                subtask, channels = owner.subtask_index, descriptor.subpartitions
                selector = partitioner if isinstance(partitioner, ChannelSelector) else make_selector(partitioner, channels, subtask)
                partition = self._create_partition(descriptor, on_error)
                if isinstance(partition, BlockingPartition):
                    writer: PartitionWriter = BlockingWriter(partition, selector, self._config, self._reactor)
                else:
                    writer = PartitionWriter(partition, selector, timeout, self._config, self._reactor)
                writers.append((partition, writer))
                created.append(writer)
        except BaseException as error:
            self.release(owner, error)
            raise
        for partition, _ in writers:
            if not isinstance(partition, BlockingPartition):
                self._serve_waiting(partition)
            else:  # they wait for its end now, however long that takes
                for waiting in self._requests.get(partition.partition_id, ()):
                    waiting.timer.cancel()
        return created

    def create_gates(
        self, owner: ExecutionAttemptId, descriptors: Sequence[InputGateDescriptor], on_error: Callable[[BaseException], None],
    ) -> list[InputGate]:
        gates = self._gates.setdefault(owner, [])
        created: list[InputGate] = []
        try:
            for descriptor in descriptors:
                gate = SingleInputGate(f"input {descriptor.input_index} of {owner.vertex_id:.8} subtask {owner.subtask_index}", on_error)
                gates.append(gate)
                self._fill_gate(gate, descriptor)
                created.append(gate)
        except BaseException as error:
            self.release(owner, error)
            raise
        return created

    def finish_partitions(self, owner: ExecutionAttemptId) -> None:
        """Also gives back the gates: who has ended well has read them."""
        for _, writer in self._writers.pop(owner, ()):
            writer.finish()
        self._release_gates(owner)

    def release(self, owner: ExecutionAttemptId, cause: BaseException | None = None) -> None:
        """Without a cause, partitions that were finished stay until they are read; with one, they go too."""
        for partition, writer in self._writers.pop(owner, ()):
            writer.close()
            partition.release(cause)
            self._partitions.pop(partition.partition_id, None)
            self._fail_waiting(partition, cause)
        if cause is not None:
            self._drop_partitions(owner, cause)
        self._release_gates(owner)

    def release_partitions(self, owner: ExecutionAttemptId) -> None:
        self._drop_partitions(owner, PartitionNotFoundError(f"the results of {owner} were released"))

    def _drop_partitions(self, owner: ExecutionAttemptId, cause: BaseException) -> None:
        for partition in [each for each in self._partitions.values() if each.partition_id.producer == owner]:
            partition.release(cause)
            self._partitions.pop(partition.partition_id, None)

    def statistics(self) -> ShuffleStatistics:
        pool = self._pool.statistics()
        return ShuffleStatistics(
            pool.total, pool.in_use, len(self._partitions), sum(map(len, self._gates.values())),
            len(self._connections) + (0 if self._manager is None else self._manager.strangers),
            self._bytes_sent + sum(connection.bytes_sent for connection in self._connections),
            self._bytes_received + sum(connection.bytes_received for connection in self._connections),
        )

    def stop(self) -> None:
        cause = TaskExecutorLostError(f"TaskExecutor {self._resource_id} stops")
        for owner in list(self._gates):  # before the partitions: nobody here is to be told
            self._release_gates(owner)
        for owner in {*self._writers, *(each.producer for each in self._partitions)}:
            self.release(owner, cause)
        for requests in list(self._requests.values()):
            for request in list(requests):
                request.timer.cancel()
        self._requests.clear()
        for connection in list(self._connections):
            connection.close(cause)
        manager, self._manager = self._manager, None
        if manager is not None:
            manager.close()

    def __repr__(self) -> str:
        return f"ShuffleService({self._resource_id}, {self.statistics()})"

    # -- partitions and gates -------------------------------------------------------------------------------------------

    @property
    def _reactor(self) -> Reactor:
        if self._running is None:
            raise EngineError("the shuffle service was not started")
        return self._running

    def _create_partition(self, descriptor: ResultPartitionDescriptor, on_error: Callable[[BaseException], None]) -> AnyPartition:
        count, config = descriptor.subpartitions, self._config
        maximum = (count * config.buffers_per_channel + config.floating_buffers) * self._segments_per_batch
        partition_id = descriptor.partition_id
        if partition_id in self._partitions:
            raise EngineError(f"partition {partition_id} was registered before")
        if descriptor.partition_type.is_blocking:
            self._partitions[partition_id] = blocking = BlockingPartition(partition_id, count, self._batch_memory, self._serve_waiting, on_error)
            return blocking
        pool = self._pool.create(f"partition {partition_id.data_set_id:.8}", min(count, GUARANTEED_PARTITION_SEGMENTS), maximum)
        rows_limit = config.max_buffers_per_channel * self._segments_per_batch
        partition = ResultPartition(partition_id, count, pool, rows_limit, self._partition_done, on_error)
        self._partitions[partition_id] = partition
        return partition

    def _partition_done(self, partition: ResultPartition) -> None:
        self._partitions.pop(partition.partition_id, None)
        for written, writer in self._writers.get(partition.partition_id.producer, ()):
            if written is partition:
                writer.partition_done()

    def _fill_gate(self, gate: SingleInputGate, descriptor: InputGateDescriptor) -> None:
        remote = [producer for producer in descriptor.producers if producer.location.resource_id != self._resource_id]
        credits = self._credits_of(gate, len(remote)) if remote else None
        opening: list[tuple[RemoteInputChannel, TaskManagerLocation]] = []
        asking: list[tuple[PartitionRequest, LocalInputChannel]] = []
        for index, producer in enumerate(descriptor.producers):
            request = PartitionRequest(producer.partition_id, descriptor.subpartition_index)
            if credits is not None and producer.location.resource_id != self._resource_id:
                remote_channel = RemoteInputChannel(gate, index, request, credits)
                gate.add(remote_channel)
                opening.append((remote_channel, producer.location))
            else:
                local_channel = LocalInputChannel(gate, index)
                gate.add(local_channel)
                asking.append((request, local_channel))
        for request, local_channel in asking:
            self._request(request, local_channel)
        for remote_channel, location in opening:
            self._connection_to(location).open_channel(remote_channel)

    def _credits_of(self, gate: SingleInputGate, remote: int) -> ReceiverCredits:
        """Exclusive segments: whole batches where memory allows, at the least ``buffers_per_channel`` segments; they are guaranteed to the gate."""
        config, batch = self._config, self._segments_per_batch
        exclusive = max(config.buffers_per_channel, 1, min(config.buffers_per_channel * batch, self._pool.unreserved // EXCLUSIVE_SHARE // remote))
        floating = config.floating_buffers * batch
        gate.pool = pool = self._pool.create(gate.name, remote * exclusive, remote * exclusive + floating)

        def grant(channel: int, segments: int) -> None:
            member = gate.members[channel]
            assert isinstance(member, RemoteInputChannel)
            member.grant(segments)

        credits = ReceiverCredits(remote, exclusive, floating, pool, grant)
        pool.on_room = credits.room
        return credits

    def _release_gates(self, owner: ExecutionAttemptId) -> None:
        for gate in self._gates.pop(owner, ()):
            gate.release()
            self._drop_requests_of(gate)

    # -- requests -------------------------------------------------------------------------------------------------------

    def partition_requested(self, request: PartitionRequest, channel: OutboundChannel) -> None:
        self._request(request, channel)

    def _request(self, request: PartitionRequest, requester: LocalInputChannel | OutboundChannel) -> None:
        partition = self._partitions.get(request.partition_id)
        is_being_written = isinstance(partition, BlockingPartition) and not partition.done
        if partition is not None and not is_being_written:
            self._attach(partition, request, requester)
            return
        waiting = _WaitingRequest(request, requester)
        self._requests.setdefault(request.partition_id, []).append(waiting)
        if is_being_written:
            return
        waiting.begin(self._reactor, self._config.partition_request_timeout.total_seconds(), self._request_timed_out)

    def _attach(self, partition: AnyPartition, request: PartitionRequest, requester: LocalInputChannel | OutboundChannel) -> None:
        index = request.subpartition_index
        if not 0 <= index < partition.subpartition_count:
            requester.producer_failed(EngineError(f"subpartition {index} was requested of {partition}, which has {partition.subpartition_count}"))
        elif isinstance(partition, BlockingPartition):
            try:
                view = partition.view(index)
            except FlinkpyError as error:
                requester.producer_failed(error)
            else:
                requester.attach(view)
        elif partition.subpartitions[index].reader is not None or partition.subpartitions[index].done:
            requester.producer_failed(EngineError(f"subpartition {index} of {partition} was requested twice"))
        else:
            requester.attach(partition.subpartitions[index])

    def _serve_waiting(self, partition: AnyPartition) -> None:
        for waiting in self._requests.pop(partition.partition_id, ()):
            waiting.timer.cancel()
            if not waiting.given_up:
                self._attach(partition, waiting.request, waiting.requester)

    def _fail_waiting(self, partition: AnyPartition, cause: BaseException | None) -> None:
        """Who waited for the end of a blocking result hears that it will not come."""
        for waiting in self._requests.pop(partition.partition_id, ()):
            waiting.timer.cancel()
            if not waiting.given_up:
                waiting.requester.producer_failed(cause or not_found(waiting.request))

    def _request_timed_out(self, waiting: _WaitingRequest) -> None:
        self._forget_request(waiting)
        if not waiting.given_up:
            waiting.requester.producer_failed(not_found(waiting.request))

    def _drop_requests_of(self, gate: SingleInputGate) -> None:
        for requests in list(self._requests.values()):
            for waiting in list(requests):
                if isinstance(waiting.requester, LocalInputChannel) and waiting.requester.gate is gate:
                    waiting.timer.cancel()
                    self._forget_request(waiting)

    def _forget_request(self, waiting: _WaitingRequest) -> None:
        requests = self._requests.get(waiting.request.partition_id, [])
        with contextlib.suppress(ValueError):
            requests.remove(waiting)
        if not requests:
            self._requests.pop(waiting.request.partition_id, None)

    # -- connections ------------------------------------------------------------------------------------------------------

    def _connection_to(self, location: TaskManagerLocation) -> Connection:
        """The one with that TaskExecutor, whoever opened it; only where both open one at the same moment there are two."""
        known = self._by_peer.get(location.resource_id)
        if known is not None:
            return known
        connection = self._connection(f"{location.resource_id} ({location.host}:{location.data_port})")
        self._by_peer[location.resource_id] = connection
        reactor, manager = self._reactor, self._manager
        assert manager is not None  # set with the reactor

        def ready(peer: Peer) -> None:
            reactor.call_soon_threadsafe(lambda: connection.opened(peer.sock, peer.rest))

        def failed(error: Exception) -> None:
            reactor.call_soon_threadsafe(lambda: connection.failed(error))

        manager.connect(location, ready, failed)
        return connection

    def _accepted(self, peer: Peer) -> None:
        if self._manager is None:  # stopped meanwhile
            peer.sock.close()
            return
        connection = self._connection(f"{peer.resource_id} ({peer.name})")
        self._by_peer.setdefault(peer.resource_id, connection)
        connection.opened(peer.sock, peer.rest)

    def _connection(self, peer: str) -> Connection:
        connection = Connection(peer, self, self._reactor, self._config.max_frame)
        self._connections.add(connection)
        return connection

    def connection_closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._bytes_sent += connection.bytes_sent
        self._bytes_received += connection.bytes_received
        for peer in [peer for peer, known in self._by_peer.items() if known is connection]:
            del self._by_peer[peer]


class _NoTimer:
    """Of a request that waits without a bound: its partition is being written."""

    def cancel(self) -> None: ...


class _WaitingRequest:
    """A request whose partition is not there yet, or is blocking and not all written."""

    def __init__(self, request: PartitionRequest, requester: LocalInputChannel | OutboundChannel) -> None:
        self.timer: ReactorTimer = _NoTimer()
        self.request, self.requester = request, requester

    def begin(self, reactor: Reactor, timeout_s: float, on_timeout: Callable[[_WaitingRequest], None]) -> None:
        """Counts the loop's own time, in ticks that are worth the same however late they come: a function that holds up the loop holds up the
        task that is waited for, too."""
        left = TIMEOUT_TICKS

        def tick() -> None:
            nonlocal left
            left -= 1
            if left:
                self.timer = reactor.call_later(timeout_s / TIMEOUT_TICKS, tick)
            else:
                on_timeout(self)

        self.timer = reactor.call_later(timeout_s / TIMEOUT_TICKS, tick)

    @property
    def given_up(self) -> bool:
        return self.requester.released if isinstance(self.requester, LocalInputChannel) else self.requester.closed
