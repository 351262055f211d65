"""The deployment descriptor of one subtask: its code, its partitions, its gates and the locations
of their producers."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    FencingToken,
    IntermediateDataSetId,
    JobId,
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
    """The producers of an edge with many of them, shared by all consumers and pickled once: a
    thousand TaskExecutors get the same thousands of producers, and each message contains the same
    bytes."""

    _pickled: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._pickled is None:
            self._pickled = pickle.dumps(tuple(self), protocol=5)
        return _open_shuffle_descriptors, (self._pickled,)


def _open_shuffle_descriptors(pickled: bytes) -> ShuffleDescriptors:
    return ShuffleDescriptors(pickle.loads(pickled))


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
