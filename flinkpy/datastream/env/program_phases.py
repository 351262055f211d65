"""In how many phases the operators of a program run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.errors import FlinkpyError
from flinkpy.core.ids import JobVertexId
from flinkpy.core.options.checkpointing import RECOVERY_PATH
from flinkpy.core.options.engine import AggregatePhases, Target
from flinkpy.core.options.schema import read
from flinkpy.datastream.checks import located
from flinkpy.graph.operator_port import Operator, PhaseRule, TwoPhases

if TYPE_CHECKING:
    from flinkpy.graph.stream_graph import StreamGraph
    from flinkpy.state.checkpoints.file_store import FileStore

InFlight: TypeAlias = "Mapping[JobVertexId, bool]"
"""Of vertices before which a checkpoint has something in flight: whether it is partial results."""


def split_operator(
    values: dict[str, Any], operator: Operator, strategy: AggregatePhases
) -> TwoPhases | None:
    """The two phases of an operator, if it can have two and, unless they are demanded, they pay."""
    from flinkpy.cluster.launch import choose_target
    from flinkpy.operators.base import StreamOperator

    assert isinstance(operator, StreamOperator)
    if operator.has_window_phases:
        from flinkpy.windowing.slices.phases import in_two_phases

        found = in_two_phases(operator)
    else:
        with located():
            found = operator.in_two_phases()
    if found is None or found.pays_within_process or strategy is AggregatePhases.TWO_PHASE:
        return found
    return None if choose_target(values) is Target.EMBEDDED else found


def kept_phases(
    rule: PhaseRule, build: Callable[[PhaseRule], StreamGraph], in_flight: Callable[[], InFlight]
) -> dict[int, AggregatePhases]:
    """By an operator's id in the graph, how it ran when a checkpoint was taken which has something
    in flight before it. ``in_flight`` is asked only for programs with such operators."""
    from flinkpy.graph.hashes import operator_ids

    graph = build(replace(rule, strategy=AggregatePhases.TWO_PHASE))
    senders = [node for node in graph.nodes.values() if node.sends_partials]
    found = in_flight() if senders else {}
    if not found:
        return {}
    ids = operator_ids(graph)
    kept = {}
    for sender in senders:
        [edge] = sender.out_edges
        is_partial = found.get(JobVertexId(ids[edge.target]))
        # not chained, as a program may want it, the first phase has something in flight before it
        if is_partial or (is_partial is None and JobVertexId(ids[sender.id]) in found):
            kept[edge.target] = AggregatePhases.TWO_PHASE
        elif is_partial is not None:
            kept[edge.target] = AggregatePhases.ONE_PHASE
    return kept


def found_in_flight(
    values: Mapping[str, Any], stores: Callable[[str], FileStore] | None = None
) -> InFlight:
    """What the checkpoint has in flight that the job starts from. Where that cannot be read, the
    JobMaster will say why; it also refuses a job that cannot read what was in flight."""
    location = read(values, RECOVERY_PATH)
    if location is None:
        return {}
    from flinkpy.state.checkpoints.checkpoint_storage import MemoryCheckpointStorage
    from flinkpy.state.checkpoints.stores_of_locations import file_store_of

    try:
        checkpoint = MemoryCheckpointStorage(stores=stores or file_store_of).find(location)
    except (FlinkpyError, OSError):
        return {}
    return {
        state.consumer: state.is_partial
        for state in checkpoint.in_flight.values()
        if state.is_partial is not None
    }
