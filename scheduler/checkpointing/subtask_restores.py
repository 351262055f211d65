"""What each subtask of a vertex starts from: of what all subtasks saved only what it needs.
Otherwise what a job of n subtasks has to send would grow with the square of n."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.core.ids import OperatorId
from flinkpy.core.keys import channel_of_key_group, key_group_range
from flinkpy.graph.checkpoints import (
    ChannelState,
    OperatorRestore,
    OperatorSubtaskState,
    TaskRestore,
)
from flinkpy.graph.job_graph import JobVertex

_NOTHING = OperatorSubtaskState()  # one for all: it is pickled once


class SubtaskRestores:
    """The restores of one vertex's subtasks. ``whole`` is the checkpoint's part for all its
    subtasks."""

    def __init__(self, whole: TaskRestore, vertex: JobVertex) -> None:
        self._whole = whole
        self._parallelism = vertex.parallelism
        self._max_parallelism = vertex.max_parallelism
        self._without_keys = {
            operator_id: tuple(map(_without_keys, found.subtasks))
            for operator_id, found in whole.operators.items()
        }
        self._channels = [self._by_sender(output.channels) for output in whole.outputs]

    def _by_sender(self, channels: tuple[ChannelState, ...]) -> list[list[ChannelState]]:
        shares: list[list[ChannelState]] = [[] for _ in range(self._parallelism)]
        for state in channels:
            shares[state.channel.producer % self._parallelism].append(state)
        return shares

    def of(self, subtask: int) -> TaskRestore:
        """Keyed state of those that had some of its key groups; operator state, which is shared out
        by its kind, of all; what it sends first."""
        operators = {
            operator_id: self._states(operator_id, subtask) for operator_id in self._whole.operators
        }
        outputs = tuple(
            replace(output, channels=tuple(shares[subtask]))
            for output, shares in zip(self._whole.outputs, self._channels)
        )
        return replace(self._whole, operators=operators, outputs=outputs)

    def _states(self, operator_id: OperatorId, subtask: int) -> OperatorRestore:
        all_of_it = self._whole.operators[operator_id].subtasks
        without_keys = self._without_keys[operator_id]
        groups = key_group_range(subtask, self._max_parallelism, self._parallelism)
        first, last = (
            channel_of_key_group(group, self._max_parallelism, len(all_of_it))
            for group in (groups[0], groups[-1])
        )
        return OperatorRestore(
            (*without_keys[:first], *all_of_it[first : last + 1], *without_keys[last + 1 :])
        )


def _without_keys(state: OperatorSubtaskState) -> OperatorSubtaskState:
    tables = tuple(table for table in state.tables if not table.keyed)
    return (
        OperatorSubtaskState(operator=state.operator, tables=tables)
        if state.operator is not None or tables
        else _NOTHING
    )
