"""What a checkpoint consists of, as it travels: from the tasks to the JobMaster, into the checkpoint's manifest, and to the tasks that start from it.

The bytes of state themselves are elsewhere, or within a :class:`StateHandle` while they are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from flinkpy.core.ids import OperatorId


@dataclass(frozen=True)
class StateHandle:
    """Where some bytes of state are: in the handle itself (``data``), or in a file (``path``) from ``offset`` on. Who reads them checks
    ``length`` and ``checksum`` (CRC-32)."""

    length: int
    checksum: int
    data: bytes | None = None
    path: str | None = None  # relative to the checkpoint's own folder
    offset: int = 0


@dataclass(frozen=True)
class OperatorSubtaskState:
    """What one operator of one subtask saved: keyed state, operator state, or both; each in its own format (``flinkpy.state``)."""

    keyed: StateHandle | None = None
    operator: StateHandle | None = None

    def handles(self) -> Iterator[StateHandle]:
        """Those there are."""
        return (handle for handle in (self.keyed, self.operator) if handle is not None)


@dataclass(frozen=True)
class SubtaskSnapshot:
    """What a subtask acknowledges a checkpoint with: the state of each operator of its chain that has some."""

    operators: Mapping[OperatorId, OperatorSubtaskState] = field(default_factory=dict)


@dataclass(frozen=True)
class OperatorCheckpoint:
    """One operator in a completed checkpoint: what each subtask saved, by its index (those without state are not there), the state of a
    source's enumerator, and the subtasks that had finished before, which have no state any more."""

    name: str
    parallelism: int
    max_parallelism: int
    subtasks: Mapping[int, OperatorSubtaskState] = field(default_factory=dict)
    coordinator: StateHandle | None = None
    finished: frozenset[int] = frozenset()

    @property
    def is_fully_finished(self) -> bool:
        return len(self.finished) == self.parallelism

    def handles(self) -> Iterator[StateHandle]:
        """All its state: that of its subtasks, and its enumerator's."""
        for state in self.subtasks.values():
            yield from state.handles()
        if self.coordinator is not None:
            yield self.coordinator


@dataclass(frozen=True)
class CompletedCheckpoint:
    """A checkpoint that every subtask has acknowledged and whose manifest is stored. ``location`` is its folder, None in memory."""

    checkpoint_id: int
    timestamp_ms: int
    operators: Mapping[OperatorId, OperatorCheckpoint]
    location: str | None = None

    def handles(self) -> Iterator[StateHandle]:
        """All its state."""
        return (handle for operator in self.operators.values() for handle in operator.handles())

    @property
    def size(self) -> int:
        """Bytes of state."""
        return sum(handle.length for handle in self.handles())


@dataclass(frozen=True)
class OperatorRestore:
    """What one subtask's operator starts from: the state of all old subtasks, in their order. The subtask takes its share of it."""

    subtasks: tuple[OperatorSubtaskState, ...]


@dataclass(frozen=True)
class TaskRestore:
    """The checkpoint a task starts from, and what its operators find there. ``finished``: every subtask of all its operators had finished, so the
    task ends as soon as it has started."""

    checkpoint_id: int
    location: str | None
    operators: Mapping[OperatorId, OperatorRestore] = field(default_factory=dict)
    finished: bool = False
