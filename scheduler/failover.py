"""Failover: which subtasks a failure drags along, the restart that follows, and which of several failures is to blame.

A failed subtask takes its pipelined region with it. Downstream, every region that reads its results restarts too (it may have read results
the new attempt will not repeat); upstream, only those whose blocking results are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flinkpy.core.errors import PartitionNotFoundError, ProgramError, RemoteError
from flinkpy.scheduler.execution_model import Execution, ExecutionVertex, PipelinedRegion
from flinkpy.scheduler.regions import regions_of


def vertices_to_restart(failed: Iterable[ExecutionVertex]) -> list[ExecutionVertex]:
    """All subtasks that must start anew because these failed."""
    queue = list(dict.fromkeys(vertex.region for vertex in failed))
    found = dict.fromkeys(queue)
    while queue:
        for region in _dragged_along(queue.pop()):
            if region not in found:
                found[region] = None
                queue.append(region)
    return [vertex for region in found for vertex in region.vertices]


def mark_lost_results(execution: Execution, error: BaseException) -> None:
    """A consumer could not find a partition: the blocking results it reads count as lost, so their producers run again."""
    if any(isinstance(each, PartitionNotFoundError) for each in _chain(error)):
        for group in execution.vertex.input_groups:
            if group.is_blocking:
                for producer in group.producer_vertices():
                    producer.execution.result_lost = True


def is_symptom(error: BaseException) -> bool:
    """Whether the failure only says that somebody else failed: a lost connection, a partition that went away, a neighbour's error by hearsay."""
    return isinstance(error, (PartitionNotFoundError, ConnectionError, RemoteError))


def is_worth_a_restart(error: BaseException) -> bool:
    """A program that asks for what cannot be asks for it again."""
    return not isinstance(error, ProgramError)


class RootCause:
    """Of the failures that end a job, the one to show: the first, unless that was a mere symptom and a real one follows."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def offer(self, error: BaseException) -> None:
        if self.error is None or (is_symptom(self.error) and not is_symptom(error)):
            self.error = error


def _dragged_along(region: PipelinedRegion) -> Iterator[PipelinedRegion]:
    for group in region.inputs:
        yield from regions_of([vertex for vertex in group.producer_vertices() if vertex.execution.result_lost])
    for group in region.outputs:
        yield from regions_of(group.consumer_vertices())


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
