"""What the network's tests share: services over real loopback sockets in one thread, and what a
task does with its writers and gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.elements import ColumnBatch, Element, RowBatch
from flinkpy.core.ids import (
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    ResourceId,
    ResultPartitionId,
)
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.graph.deployment import (
    InputGateDescriptor,
    ResultPartitionDescriptor,
    ShuffleDescriptor,
    TaskManagerLocation,
)
from flinkpy.graph.partitioning import FORWARD, Partitioning
from flinkpy.network.port import InputGate, RecordWriter
from flinkpy.network.shuffle import ShuffleService
from flinkpy.testing.manual_reactor import ManualReactor

SECRET = b"the cluster's secret"
SMALL = NetworkConfig(
    total_segments=256,
    segment_size=1024,
    batch_records=64,
    batch_bytes=8192,
    partition_request_timeout=timedelta(seconds=2),
)


def attempt(name: str, subtask: int = 0) -> ExecutionAttemptId:
    return ExecutionAttemptId(JobId("job"), JobVertexId(name), subtask, 0)


def partition_id(producer: ExecutionAttemptId, data_set: str = "data") -> ResultPartitionId:
    return ResultPartitionId(IntermediateDataSetId(data_set), producer)


class Cluster:
    """Some shuffle services on one reactor; but the loop of those ``held_up`` is another, which
    turns only when a gate is read to its end."""

    def __init__(
        self,
        names: Sequence[str],
        config: NetworkConfig = SMALL,
        clock: Clock = SYSTEM_CLOCK,
        held_up: str = "",
        configs: Mapping[str, NetworkConfig] | None = None,
    ) -> None:
        self.reactor, self.held_up = ManualReactor(clock), ManualReactor(clock)
        self.services = {
            name: ShuffleService((configs or {}).get(name, config), SECRET, name) for name in names
        }
        self.errors: list[BaseException] = []
        for name, service in self.services.items():
            service.start(self.held_up if name == held_up else self.reactor, self.reactor)

    def location(self, name: str) -> TaskManagerLocation:
        host, port = self.services[name].data_address
        return TaskManagerLocation(ResourceId(name), "", host, port)

    def writer(
        self,
        name: str,
        producer: ExecutionAttemptId,
        channels: int = 1,
        partitioning: Partitioning = FORWARD,
        timeout_ms: int = -1,
        errors: list[BaseException] | None = None,
    ) -> RecordWriter:
        descriptor = ResultPartitionDescriptor(partition_id(producer), 0, channels)
        told = self.errors if errors is None else errors
        return self.services[name].create_writers(
            producer, [descriptor], [partitioning], [timeout_ms], told.append
        )[0]

    def gate(
        self,
        name: str,
        consumer: ExecutionAttemptId,
        producers: Sequence[tuple[str, ExecutionAttemptId]],
        index: int = 0,
        errors: list[BaseException] | None = None,
    ) -> InputGate:
        told = self.errors if errors is None else errors
        shuffles = tuple(
            ShuffleDescriptor(partition_id(producer), self.location(where))
            for where, producer in producers
        )
        return self.services[name].create_gates(
            consumer,
            [InputGateDescriptor(IntermediateDataSetId("data"), 0, index, shuffles)],
            told.append,
        )[0]

    def in_use(self) -> dict[str, int]:
        return {
            name: service.statistics().segments_in_use for name, service in self.services.items()
        }

    def close(self) -> None:
        for service in self.services.values():
            service.stop()
        self.reactor.settle()
        self.reactor.close()
        self.held_up.close()


@contextmanager
def cluster(
    *names: str,
    config: NetworkConfig = SMALL,
    clock: Clock = SYSTEM_CLOCK,
    held_up: str = "",
    configs: Mapping[str, NetworkConfig] | None = None,
) -> Iterator[Cluster]:
    """``configs`` are those of services with another one than ``config``."""
    made = Cluster(names, config, clock, held_up, configs)
    try:
        yield made
    finally:
        made.close()


def has_room(writer: RecordWriter) -> bool:
    """``writer.available``, asked anew (mypy takes a property for a constant)."""
    return writer.available


def poll_all(gate: InputGate) -> list[tuple[int, Element]]:
    found = []
    while (polled := gate.poll()) is not None:
        found.append(polled)
    return found


def records(elements: Sequence[Element]) -> list[Any]:
    """The records of all batches, one after the other."""
    found: list[Any] = []
    for element in elements:
        if isinstance(element, RowBatch):
            found += element.values
        elif isinstance(element, ColumnBatch):
            found += element.data.to_pylist()
    return found
