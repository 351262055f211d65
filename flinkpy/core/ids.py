"""Identifiers. Each kind has its own type, so that a slot's id is never taken for a job's. All are
short hex strings, and travel as such.

Ids are drawn from an :class:`IdFactory`, never from the global random state: the simulation seeds
its factory, and so can be replayed exactly."""

from __future__ import annotations

import random
from typing import NamedTuple, NewType

JobId = NewType("JobId", str)
JobVertexId = NewType("JobVertexId", str)
OperatorId = NewType("OperatorId", str)
IntermediateDataSetId = NewType("IntermediateDataSetId", str)
AllocationId = NewType("AllocationId", str)
ResourceId = NewType("ResourceId", str)  # names one process: a TaskExecutor or a JobMaster
# names one registration of a TaskExecutor at the ResourceManager
InstanceId = NewType("InstanceId", str)
SlotRequestId = NewType("SlotRequestId", str)
# a leader's term: DispatcherId, ResourceManagerId, JobMasterId
FencingToken = NewType("FencingToken", str)


class SlotId(NamedTuple):
    """One slot of one TaskExecutor."""

    resource_id: ResourceId
    slot_index: int


class ExecutionVertexId(NamedTuple):
    """One subtask of a job vertex, whatever attempt runs it."""

    vertex_id: JobVertexId
    subtask_index: int


class ExecutionAttemptId(NamedTuple):
    """One attempt to run one subtask of one job."""

    job_id: JobId
    vertex_id: JobVertexId
    subtask_index: int
    attempt: int

    @property
    def vertex(self) -> ExecutionVertexId:
        return ExecutionVertexId(self.vertex_id, self.subtask_index)


class ResultPartitionId(NamedTuple):
    """The data that one attempt produced for one data set."""

    data_set_id: IntermediateDataSetId
    producer: ExecutionAttemptId


class IdFactory:
    """Draws ids. With a seed, it draws the same ids in the same order.

    >>> IdFactory(7).hex() == IdFactory(7).hex()
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed) if seed is not None else random.SystemRandom()

    def hex(self, digits: int = 32) -> str:
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def job_id(self) -> JobId:
        return JobId(self.hex())

    def allocation_id(self) -> AllocationId:
        return AllocationId(self.hex())

    def slot_request_id(self) -> SlotRequestId:
        return SlotRequestId(self.hex())

    def instance_id(self) -> InstanceId:
        return InstanceId(self.hex())

    def fencing_token(self) -> FencingToken:
        return FencingToken(self.hex())

    def resource_id(self, prefix: str) -> ResourceId:
        return ResourceId(f"{prefix}-{self.hex(8)}")
