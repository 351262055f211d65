"""What a checkpoint consists of, as it travels: from the tasks to the JobMaster, into the
checkpoint's manifest, and to the tasks that start from it.

The bytes of state themselves are elsewhere, or within a :class:`StateHandle` while they are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flinkpy.core.ids import IntermediateDataSetId, JobVertexId, OperatorId

# what the path of a file begins with that several checkpoints of a job may use
SHARED = "../shared/"


@dataclass(frozen=True)
class StateHandle:
    """Where some bytes of state are: in the handle itself (``data``), or in a file (``path``) from
    ``offset`` on. Who reads them checks ``length`` and ``checksum`` (CRC-32). They may be
    compressed: ``codec`` says how."""

    length: int
    checksum: int
    data: bytes | None = None
    path: str | None = None  # relative to the checkpoint's own folder
    offset: int = 0
    codec: str | None = None

    @property
    def shared_file(self) -> str | None:
        """The name of its file, if that is one which later checkpoints may use too.

        >>> (
        ...     StateHandle(3, 0, path="../shared/17-c0ffee").shared_file,
        ...     StateHandle(3, 0, path="0a-1-0").shared_file,
        ... )
        ('17-c0ffee', None)
        """
        return (
            self.path.removeprefix(SHARED)
            if self.path is not None and self.path.startswith(SHARED)
            else None
        )


@dataclass(frozen=True)
class KeyedPieces:
    """Keyed state that was saved in pieces, so that a later checkpoint writes only those which the
    one before does not have. ``form`` says how state is made of them. The name of a piece stands
    for its bytes: if a subtask's state still has a piece of that name, it is the same."""

    form: str
    pieces: Mapping[str, StateHandle]


@dataclass(frozen=True)
class StateTable:
    """One state of one subtask in the canonical form: a Parquet file, or no file for a state
    without entries. ``kind``, ``type`` and ``expires`` are those of its meta (``flinkpy.state``);
    ``rows`` is how many keys, elements or entries it has."""

    name: str
    keyed: bool
    kind: str
    type: str
    expires: bool = False
    rows: int = 0
    handle: StateHandle | None = None


@dataclass(frozen=True)
class OperatorSubtaskState:
    """What one operator of one subtask saved: keyed state, operator state, or both; each in its own
    format (``flinkpy.state``). Where there are ``pieces``, ``keyed`` has the keyed state that is
    not in them. In the canonical form all is in ``tables``, and there is nothing else."""

    keyed: StateHandle | None = None
    operator: StateHandle | None = None
    pieces: KeyedPieces | None = None
    tables: tuple[StateTable, ...] = ()

    @property
    def has_keys(self) -> bool:
        """Whether there is keyed state."""
        return (
            self.keyed is not None
            or self.pieces is not None
            or any(table.keyed for table in self.tables)
        )

    def handles(self) -> Iterator[StateHandle]:
        """Those there are."""
        yield from (handle for handle in (self.keyed, self.operator) if handle is not None)
        if self.pieces is not None:
            yield from self.pieces.pieces.values()
        yield from (table.handle for table in self.tables if table.handle is not None)


class ChannelKey(NamedTuple):
    """One channel: a subpartition of what one subtask produces for a data set."""

    data_set_id: IntermediateDataSetId
    producer: int
    subpartition: int


@dataclass(frozen=True)
class ChannelState:
    """What was in flight in one channel when a barrier overtook it: at its consumer's end
    (``is_input``), or behind that at its producer's."""

    channel: ChannelKey
    is_input: bool
    handle: StateHandle


@dataclass(frozen=True)
class DataSetState:
    """What was in flight between two vertices that had so many subtasks. ``ship_strategy`` is the
    partitioner's name; ``is_partial`` as in ``JobEdge``, None where an older checkpoint does not
    say it."""

    producers: int
    consumers: int
    consumer: JobVertexId
    input_index: int
    ship_strategy: str
    channels: tuple[ChannelState, ...]
    is_partial: bool | None = None


@dataclass(frozen=True)
class SubtaskSnapshot:
    """What a subtask acknowledges a checkpoint with: the state of each operator of its chain that
    has some, and what was in flight in its channels when the barrier overtook it. ``had_finished``:
    all its operators had finished in the checkpoint that it started from, so there is no state."""

    operators: Mapping[OperatorId, OperatorSubtaskState] = field(default_factory=dict)
    channels: tuple[ChannelState, ...] = ()
    had_finished: bool = False

    def handles(self) -> Iterator[StateHandle]:
        """All its state."""
        for state in self.operators.values():
            yield from state.handles()
        yield from (channel.handle for channel in self.channels)


@dataclass(frozen=True)
class OperatorCheckpoint:
    """One operator in a completed checkpoint: what each subtask saved, by its index (those without
    state are not there), the state of a source's enumerator, and the subtasks that had finished
    before, which have no state any more. ``uid`` is the one that the program gave it; ``key_kind``
    is that of ``OperatorInfo``."""

    name: str
    parallelism: int
    max_parallelism: int
    subtasks: Mapping[int, OperatorSubtaskState] = field(default_factory=dict)
    coordinator: StateHandle | None = None
    finished: frozenset[int] = frozenset()
    uid: str | None = None
    key_kind: str | None = None

    @property
    def label(self) -> str:
        """Its name, and its uid if it has one."""
        return f"{self.name!r}" if self.uid is None else f"{self.name!r} (uid {self.uid!r})"

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
    """A checkpoint that every subtask has acknowledged and whose manifest is stored. ``location``
    is its folder, None in memory."""

    checkpoint_id: int
    timestamp_ms: int
    operators: Mapping[OperatorId, OperatorCheckpoint]
    location: str | None = None
    in_flight: Mapping[IntermediateDataSetId, DataSetState] = field(default_factory=dict)

    def handles(self) -> Iterator[StateHandle]:
        """All its state."""
        for operator in self.operators.values():
            yield from operator.handles()
        for data_set in self.in_flight.values():
            yield from (channel.handle for channel in data_set.channels)

    def shared_files(self) -> frozenset[str]:
        """The names of its files that other checkpoints may use too."""
        return shared_files(self.handles())

    @property
    def size(self) -> int:
        """Bytes of state, also of that which it has in common with other checkpoints."""
        return sum(handle.length for handle in self.handles())


@dataclass(frozen=True)
class OperatorRestore:
    """What one subtask's operator starts from: the state of all old subtasks, in their order, but
    for keyed state of other key groups. The subtask takes its share of it."""

    subtasks: tuple[OperatorSubtaskState, ...]


@dataclass(frozen=True)
class OutputRestore:
    """What was in flight behind one output of a vertex, which its subtasks send first: each
    channel's state through the same channel, or, when the parallelism of either end or the
    partitioner has changed (``is_rescaled``), through the partitioner. Producers that are no more
    are shared out.

    ``is_barred``: a barrier with the id of the checkpoint follows, which the consumer aligns.
    Otherwise a newer record of a key might overtake an older one that was in flight, because
    another subtask sends that one now."""

    output_index: int
    channels: tuple[ChannelState, ...]
    is_rescaled: bool = False
    is_barred: bool = False

    def share_of(self, subtask: int, parallelism: int) -> list[ChannelState]:
        """Those that a subtask sends, in order: of each channel first what was further on its
        way."""
        own = [state for state in self.channels if state.channel.producer % parallelism == subtask]
        return sorted(own, key=lambda state: (state.channel, not state.is_input))


@dataclass(frozen=True)
class TaskRestore:
    """The checkpoint a task starts from, and what its operators find there, and its outputs.
    ``finished``: every subtask of all its operators had finished, so the task ends as soon as it
    has started. ``stops``: the job has stopped with this savepoint, so the task has its sinks
    commit what they had prepared, and ends."""

    checkpoint_id: int
    location: str | None
    operators: Mapping[OperatorId, OperatorRestore] = field(default_factory=dict)
    finished: bool = False
    outputs: tuple[OutputRestore, ...] = ()
    stops: bool = False


def shared_files(handles: Iterable[StateHandle]) -> frozenset[str]:
    """The names of the files among these that several checkpoints may use."""
    return frozenset(name for handle in handles if (name := handle.shared_file) is not None)
