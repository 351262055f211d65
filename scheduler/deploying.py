"""From an attempt to the descriptor its TaskExecutor gets, and many of them to one message per
TaskExecutor."""

from __future__ import annotations

from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ResourceId, ResultPartitionId
from flinkpy.graph.deployment import (
    InputGateDescriptor,
    ResultPartitionDescriptor,
    TaskDeploymentDescriptor,
    TaskManagerLocation,
)
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.state_assignment import StateAssignment
from flinkpy.scheduler.execution_model import Execution
from flinkpy.scheduler.protocol import DeployTasks


def deploy_commands(
    executions: list[Execution], job_graph: JobGraph, states: StateAssignment
) -> list[DeployTasks]:
    """One message per TaskExecutor, in the order in which the attempts name them."""
    by_resource: dict[ResourceId, tuple[TaskManagerLocation, list[TaskDeploymentDescriptor]]] = {}
    for execution in executions:
        location = execution.location
        if location is None:
            raise EngineError(f"{execution} is deployed without a slot")
        by_resource.setdefault(location.resource_id, (location, []))[1].append(
            deployment_descriptor(execution, job_graph, states)
        )
    return [
        DeployTasks(location, tuple(descriptors)) for location, descriptors in by_resource.values()
    ]


def deployment_descriptor(
    execution: Execution, job_graph: JobGraph, states: StateAssignment
) -> TaskDeploymentDescriptor:
    """What the attempt's TaskExecutor gets. The attempt's slot and the locations of all its
    producers must be known."""
    vertex = execution.vertex.job_vertex.vertex
    slot = execution.slot
    if slot is None or slot.allocation_id is None:
        raise EngineError(f"{execution} is deployed without a slot")
    return TaskDeploymentDescriptor(
        execution.attempt_id,
        slot.allocation_id,
        job_graph.name,
        vertex.name,
        vertex.parallelism,
        vertex.max_parallelism,
        vertex.chain,
        _partitions(execution),
        _gates(execution),
        job_graph.configuration,
        states.restore_of(vertex, execution.vertex.index),
        vertex.out_of_band,
        vertex.managed_memory,
    )


def _partitions(execution: Execution) -> tuple[ResultPartitionDescriptor, ...]:
    found = []
    for group in execution.vertex.output_groups:
        data_set = group.result.edge.data_set
        partition_id = ResultPartitionId(data_set.id, execution.attempt_id)
        found.append(
            ResultPartitionDescriptor(
                partition_id,
                data_set.output_index,
                len(group.consumers),
                data_set.partition_type,
                group.result.consumer.vertex.max_parallelism,
            )
        )
    return tuple(found)


def _gates(execution: Execution) -> tuple[InputGateDescriptor, ...]:
    found = []
    for group in execution.vertex.input_groups:
        edge, subpartition = group.result.edge, execution.vertex.index - group.consumers.start
        found.append(
            InputGateDescriptor(
                edge.data_set.id,
                edge.input_index,
                subpartition,
                group.descriptors(),
                edge.data_set.partition_type,
            )
        )
    return tuple(found)
