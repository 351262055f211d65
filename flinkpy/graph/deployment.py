"""The deployment descriptor of one subtask: its code, its partitions, its gates and the locations
of their producers."""

from __future__ import annotations

import pickle
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    FencingToken,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    OperatorId,
    ResourceId,
    ResultPartitionId,
)
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.core.program.code import OutOfBand
from flinkpy.graph.checkpoints import TaskRestore
from flinkpy.graph.job_graph import ResultPartitionType
from flinkpy.graph.resources import ANY, ManagedMemoryUse, ResourceProfile
from flinkpy.metrics.readings import TaskReading

FAST = 1  # of zlib's levels


@dataclass(frozen=True)
class TaskManagerLocation:
    """Where a TaskExecutor is: its RPC address, and the host and port of its data connection."""

    resource_id: ResourceId
    address: str
    host: str = ""
    data_port: int = 0


@dataclass(frozen=True)
class ShuffleDescriptor:
    """Where a result partition is produced."""

    partition_id: ResultPartitionId
    location: TaskManagerLocation


class ShuffleDescriptors(tuple[ShuffleDescriptor, ...]):
    """The producers of an edge with many of them, shared by all consumers and packed once: a
    thousand TaskExecutors get the same thousands of producers, and each message contains the same
    bytes. They are packed by column, some bytes for each: the producers are subtasks of one vertex,
    and ten of them may be at one place."""

    _packed: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:
            self._packed = zlib.compress(pickle.dumps(_columns_of(self), protocol=5), FAST)
        return _unpack_shuffle_descriptors, (self._packed,)


_Columns: TypeAlias = tuple[
    dict[tuple[IntermediateDataSetId, JobId, JobVertexId], None],
    dict[TaskManagerLocation, None],
    tuple["array[int]", ...],
]


def _columns_of(descriptors: Iterable[ShuffleDescriptor]) -> _Columns:
    """The partitions and places that occur; then of each descriptor which of these, the subtask and
    the attempt: each as the difference to the one before, which mostly is the same for all."""
    partitions: dict[tuple[IntermediateDataSetId, JobId, JobVertexId], int] = {}
    places: dict[TaskManagerLocation, int] = {}
    columns, last = tuple(array("i") for _ in range(4)), [0] * 4
    for descriptor in descriptors:
        data_set, producer = descriptor.partition_id
        partition = data_set, producer.job_id, producer.vertex_id
        numbers = [
            partitions.setdefault(partition, len(partitions)),
            places.setdefault(descriptor.location, len(places)),
            producer.subtask_index,
            producer.attempt,
        ]
        for column, number, before in zip(columns, numbers, last):
            column.append(number - before)
        last = numbers
    return dict.fromkeys(partitions), dict.fromkeys(places), columns


def _unpack_shuffle_descriptors(packed: bytes) -> ShuffleDescriptors:
    columns: _Columns = pickle.loads(zlib.decompress(packed))
    partitions, places, numbers = list(columns[0]), list(columns[1]), map(accumulate, columns[2])
    return ShuffleDescriptors(
        ShuffleDescriptor(
            ResultPartitionId(
                partitions[partition][0],
                ExecutionAttemptId(
                    partitions[partition][1], partitions[partition][2], subtask, attempt
                ),
            ),
            places[place],
        )
        for partition, place, subtask, attempt in zip(*numbers)
    )


@dataclass(frozen=True)
class ResultPartitionDescriptor:
    """One partition that this subtask writes: a subpartition per consumer."""

    partition_id: ResultPartitionId
    output_index: int
    subpartitions: int
    partition_type: ResultPartitionType = ResultPartitionType.PIPELINED
    key_groups: int | None = None  # of the consumer: its max parallelism


@dataclass(frozen=True)
class InputGateDescriptor:
    """One gate that this subtask reads: subpartition ``subpartition_index`` of each listed
    producer, with one channel each.

    All consumers that read the same producers share one tuple of them, so a wide job costs
    producers + consumers, not their product."""

    data_set_id: IntermediateDataSetId
    input_index: int
    subpartition_index: int
    producers: tuple[ShuffleDescriptor, ...]
    partition_type: ResultPartitionType = ResultPartitionType.PIPELINED


@dataclass(frozen=True)
class TaskDeploymentDescriptor:
    """Everything a TaskExecutor needs to run one attempt of one subtask."""

    attempt_id: ExecutionAttemptId
    allocation_id: AllocationId
    job_name: str
    task_name: str
    parallelism: int
    max_parallelism: int
    chain: bytes
    partitions: tuple[ResultPartitionDescriptor, ...] = ()
    gates: tuple[InputGateDescriptor, ...] = ()
    configuration: dict[str, Any] = field(default_factory=dict)
    restore: TaskRestore | None = None  # the checkpoint to start from
    out_of_band: tuple[OutOfBand, ...] = ()  # the program's data that the chain names
    managed_memory: ManagedMemoryUse = field(default_factory=ManagedMemoryUse)  # of its slot

    @property
    def subtask_name(self) -> str:
        """``Map (2/4)#0``: name, subtask from 1, parallelism, attempt."""
        attempt = self.attempt_id
        return (
            f"{self.task_name} ({attempt.subtask_index + 1}/{self.parallelism})#{attempt.attempt}"
        )


@dataclass(frozen=True)
class TaskExecutionState:
    """A task's report of its new state."""

    attempt_id: ExecutionAttemptId
    state: ExecutionState
    error: BaseException | None = None
    accumulators: dict[str, Any] = field(default_factory=dict)
    # With a terminal state: the final counters, as a short task ends before its first heartbeat
    metrics: TaskMetrics | None = None


@dataclass(frozen=True)
class TaskMetrics:
    """Counters of one task since its start, carried by heartbeats.

    ``read_ms`` is the monotonic time at which the task's process read them; it orders two readings
    of one attempt. ``accumulators`` comes from :class:`flinkpy.metrics.live.LiveAccumulators`."""

    attempt_id: ExecutionAttemptId
    records_in: int = 0
    records_out: int = 0
    busy_ms: int = 0
    back_pressured_ms: int = 0
    idle_ms: int = 0
    operators: tuple[tuple[OperatorId, int, int], ...] = ()  # operator, records in, records out
    read_ms: int = 0
    accumulators: bytes = b""
    reading: TaskReading | None = None  # all metrics of the engine; None before the task runs


@dataclass(frozen=True)
class SlotOffer:
    """A slot that a TaskExecutor offers to a JobMaster."""

    allocation_id: AllocationId
    slot_index: int
    profile: ResourceProfile = ANY


@dataclass(frozen=True)
class SlotStatus:
    """One line of a TaskExecutor's slot report: which job, if any, holds the slot."""

    slot_index: int
    profile: ResourceProfile = ANY
    job_id: JobId | None = None
    allocation_id: AllocationId | None = None


@dataclass(frozen=True)
class JobMasterRegistration:
    """What a JobMaster says about itself when it registers with the ResourceManager and the
    TaskExecutors."""

    job_id: JobId
    resource_id: ResourceId
    address: str
    token: FencingToken
