"""The result partitions of one TaskExecutor: it creates them with their writers, registers them,
and hands them to the consumers that request them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.errors import EngineError, FlinkpyError
from flinkpy.core.ids import ExecutionAttemptId, ResultPartitionId
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor
from flinkpy.graph.deployment import ResultPartitionDescriptor
from flinkpy.network.blocking import BatchShuffleMemory, BlockingPartition, BlockingWriter
from flinkpy.network.flow.segments import NetworkBufferPool
from flinkpy.network.partition import ResultPartition
from flinkpy.network.partition_requests import PartitionRequests, Requester
from flinkpy.network.partitioning.partitioners import ChannelSelector, make_selector
from flinkpy.network.wire.remote_channel import PartitionRequest
from flinkpy.network.writer import PartitionWriter

GUARANTEED_PARTITION_SEGMENTS = 4
AnyPartition = ResultPartition | BlockingPartition


class ResultPartitions:
    """Owns the partitions and their writers. ``pool`` holds the segments of pipelined partitions;
    blocking ones use the batch shuffle memory."""

    def __init__(self, config: NetworkConfig, pool: NetworkBufferPool) -> None:
        self._config, self._pool = config, pool
        self._segments_per_batch = max(1, config.batch_bytes // config.segment_size)
        self.batch_memory = BatchShuffleMemory(
            config.batch_shuffle_memory, config.spill_folders, pool.lock
        )
        self._partitions: dict[ResultPartitionId, AnyPartition] = {}
        self._writers: dict[ExecutionAttemptId, list[tuple[AnyPartition, PartitionWriter]]] = {}
        self._requests = PartitionRequests(config.partition_request_timeout.total_seconds())

    def __len__(self) -> int:
        return len(self._partitions)

    def find_partition(self, partition_id: ResultPartitionId) -> AnyPartition | None:
        return self._partitions.get(partition_id)

    @property
    def owners(self) -> list[ExecutionAttemptId]:
        """The attempts that have writers or partitions here."""
        return list(dict.fromkeys([*self._writers, *(each.producer for each in self._partitions)]))

    # -- creating ----------------------------------------------------------------------------------

    def create_writers(
        self,
        owner: ExecutionAttemptId,
        descriptors: Sequence[ResultPartitionDescriptor],
        partitioners: Sequence[Any],
        buffer_timeouts_ms: Sequence[int],
        on_error: Callable[[BaseException], None],
        reactor: Reactor,
    ) -> list[PartitionWriter]:
        """Creates a writer for each partition. If one cannot be created, those created before stay,
        and the caller must release them."""
        writers = self._writers.setdefault(owner, [])
        created: list[PartitionWriter] = []
        for descriptor, partitioner, timeout in zip(descriptors, partitioners, buffer_timeouts_ms):
            subtask, channels = owner.subtask_index, descriptor.subpartitions
            selector = (
                partitioner
                if isinstance(partitioner, ChannelSelector)
                else make_selector(partitioner, channels, subtask)
            )
            partition = self._create_partition(descriptor, on_error)
            if isinstance(partition, BlockingPartition):
                writer: PartitionWriter = BlockingWriter(partition, selector, self._config, reactor)
            else:
                writer = PartitionWriter(partition, selector, timeout, self._config, reactor)
            writers.append((partition, writer))
            created.append(writer)
        for partition, _ in writers:
            if isinstance(partition, BlockingPartition):
                self._requests.stop_timeouts(partition.partition_id)
            else:
                self._serve_requests(partition)
        return created

    def _create_partition(
        self, descriptor: ResultPartitionDescriptor, on_error: Callable[[BaseException], None]
    ) -> AnyPartition:
        count, config = descriptor.subpartitions, self._config
        maximum = (
            count * config.buffers_per_channel + config.floating_buffers
        ) * self._segments_per_batch
        partition_id = descriptor.partition_id
        if partition_id in self._partitions:
            raise EngineError(f"partition {partition_id} was registered before")
        if descriptor.partition_type.is_blocking:
            self._partitions[partition_id] = blocking = BlockingPartition(
                partition_id, count, self.batch_memory, self._serve_requests, on_error
            )
            return blocking
        pool = self._pool.create_pool(
            f"partition {partition_id.data_set_id:.8}",
            min(count, GUARANTEED_PARTITION_SEGMENTS),
            maximum,
            partition_id.producer.job_id,
        )
        rows_limit = config.max_buffers_per_channel * self._segments_per_batch
        partition = ResultPartition(
            partition_id, count, pool, rows_limit, self._consumers_done, on_error
        )
        self._partitions[partition_id] = partition
        return partition

    def _consumers_done(self, partition: ResultPartition) -> None:
        self._partitions.pop(partition.partition_id, None)
        for written, writer in self._writers.get(partition.partition_id.producer, ()):
            if written is partition:
                writer.reactor.bind(writer.consumers_done)()

    # -- requests ----------------------------------------------------------------------------------

    def request_subpartition(
        self, request: PartitionRequest, requester: Requester, timers: Reactor
    ) -> None:
        """Attaches the requester to the subpartition now, or as soon as it can be read."""
        partition = self.find_partition(request.partition_id)
        if partition is None:
            self._requests.add_request(request, requester, timers)
        elif isinstance(partition, BlockingPartition) and not partition.done:
            self._requests.add_request(request, requester, None)
        else:
            _attach(partition, request.subpartition_index, requester)

    def drop_released_requests(self) -> None:
        """Forgets the waiting requests of consumers that were released."""
        self._requests.drop_released()

    def _serve_requests(self, partition: AnyPartition) -> None:
        for waiting in self._requests.take_requests(partition.partition_id):
            _attach(partition, waiting.request.subpartition_index, waiting.requester)

    # -- the end -----------------------------------------------------------------------------------

    def finish_writers(self, owner: ExecutionAttemptId) -> None:
        """Ends the attempt's partitions; they stay until they have been read."""
        for _, writer in self._writers.pop(owner, ()):
            writer.end_partition()

    def release_writers(self, owner: ExecutionAttemptId, cause: BaseException | None) -> None:
        """Drops the partitions that are not finished. Finished ones stay, unless there is a
        cause."""
        for partition, writer in self._writers.pop(owner, ()):
            writer.close_writer()
            partition.release_partition(cause)
            self._partitions.pop(partition.partition_id, None)
            self._requests.fail_requests(partition.partition_id, cause)
        if cause is not None:
            self.drop_partitions(owner, cause)

    def drop_partitions(self, owner: ExecutionAttemptId, cause: BaseException) -> None:
        for partition in [
            each for each in self._partitions.values() if each.partition_id.producer == owner
        ]:
            partition.release_partition(cause)
            self._partitions.pop(partition.partition_id, None)

    def drop_requests(self) -> None:
        self._requests.drop_all()

    def __repr__(self) -> str:
        return f"<ResultPartitions: {len(self._partitions)} of {len(self.owners)} attempts>"


def _attach(partition: AnyPartition, index: int, requester: Requester) -> None:
    if not 0 <= index < partition.subpartition_count:
        requester.producer_failed(
            EngineError(
                f"subpartition {index} was requested of {partition}, which has "
                f"{partition.subpartition_count}"
            )
        )
    elif isinstance(partition, BlockingPartition):
        try:
            view = partition.open_view(index)
        except FlinkpyError as error:
            requester.producer_failed(error)
        else:
            requester.attach(view)
    elif partition.subpartitions[index].reader is not None or partition.subpartitions[index].done:
        requester.producer_failed(
            EngineError(f"subpartition {index} of {partition} was requested twice")
        )
    else:
        requester.attach(partition.subpartitions[index])
