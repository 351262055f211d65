"""What a checkpoint holds: its operators, their states, how many entries these have and how large
they are.

All of it is read, so that what is damaged is found. State is unpickled without the program's
classes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.core.ids import OperatorId
from flinkpy.graph.checkpoints import (
    CompletedCheckpoint,
    OperatorCheckpoint,
    StateHandle,
    StateTable,
)
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import absolute, name_of
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.stored_checkpoints import (
    METADATA,
    checkpoint_folder,
    checkpoint_ids,
    load_manifest,
)
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.state.inspection.lenient_unpickler import load_leniently
from flinkpy.state.snapshots.chunked_regions import is_of_chunks, with_chunks
from flinkpy.state.snapshots.keyed_pieces import is_by_groups
from flinkpy.state.snapshots.keyed_snapshots import KeyedSnapshot
from flinkpy.state.snapshots.operator_snapshots import OperatorSnapshot, Sharing

LONGEST = 200  # characters of an entry that is shown


@dataclass
class StateContents:
    """One state of an operator, in all subtasks. ``entries``: how many ``unit`` it has: keys of
    keyed state, elements of a list; entries of broadcast state, in the first subtask that has some.
    ``size``: bytes, pickled alone; in the canonical form those of its files."""

    name: str
    kind: str
    type: str
    unit: str = "keys"
    expires: bool = False
    entries: int = 0
    size: int = 0
    first: list[str] = field(default_factory=list)


@dataclass
class OperatorContents:
    """One operator. ``size``: bytes of all its state, ``coordinator_size`` those of a source's
    enumerator. ``damaged`` says what could not be read."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    finished: list[int]
    size: int
    coordinator_size: int | None
    states: list[StateContents]
    damaged: list[str]


@dataclass
class InFlightContents:
    """The records that the barriers of an unaligned checkpoint overtook. ``damaged`` says what
    could not be read."""

    channels: int
    size: int
    damaged: list[str]


@dataclass
class CheckpointContents:
    """One checkpoint. ``others``: the numbers of further checkpoints of the job, if the folder of
    the job was named."""

    location: str
    job_id: str
    checkpoint_id: int
    timestamp_ms: int
    size: int
    others: list[int]
    operators: list[OperatorContents]
    in_flight: InFlightContents

    @property
    def damaged(self) -> list[str]:
        """What could not be read, one sentence each."""
        return [
            each for operator in self.operators for each in operator.damaged
        ] + self.in_flight.damaged


def contents_of(
    location: str,
    show: int = 0,
    state: str | None = None,
    stores: Callable[[str], FileStore] = file_store_of,
) -> CheckpointContents:
    """The contents of the checkpoint or savepoint in this folder, or of the newest one in this
    folder of a job; ``show`` entries of each state, or of the state of this name. ProgramError if
    there is none; CheckpointDamagedError if its manifest is damaged."""
    folder, others = _folder(location, stores)
    store = stores(folder)
    manifest = load_manifest(store, folder)
    checkpoint = manifest.checkpoint
    reader = StateReader(store, checkpoint.location)
    operators = [
        _operator(*each, reader, _Shown(show, state)) for each in checkpoint.operators.items()
    ]
    if state is not None and all(
        each.name != state for operator in operators for each in operator.states
    ):
        raise ProgramError(f"no operator of {folder} has a state {state!r}: {_names(operators)}")
    return CheckpointContents(
        folder,
        manifest.job_id,
        checkpoint.checkpoint_id,
        checkpoint.timestamp_ms,
        checkpoint.size,
        others,
        operators,
        _in_flight(checkpoint, reader),
    )


def folder_at(location: str, stores: Callable[[str], FileStore] = file_store_of) -> str:
    """The folder of the checkpoint that ``contents_of`` describes."""
    return _folder(location, stores)[0]


def manifest_at(location: str, stores: Callable[[str], FileStore] = file_store_of) -> Manifest:
    """The manifest of the checkpoint in this folder, or of the newest of this folder of a job."""
    folder, _ = _folder(location, stores)
    return load_manifest(stores(folder), folder)


def _folder(location: str, stores: Callable[[str], FileStore]) -> tuple[str, list[int]]:
    """The checkpoint's folder. Of the folder of a job, the newest that was completed, with the
    numbers of the others."""
    location = absolute(location)
    store = stores(location)
    if name_of(location) == METADATA:
        return location, []
    complete = [
        number
        for number in checkpoint_ids(store, location)
        if METADATA in store.list(checkpoint_folder(location, number))
    ]
    if not complete or METADATA in store.list(location):
        return location, []
    return checkpoint_folder(location, complete[0]), complete[1:]


class _Shown(NamedTuple):
    """How many entries are shown, and of which state; None: of all."""

    entries: int
    state: str | None

    def missing(self, contents: StateContents) -> int:
        """How many more are to be shown of this state."""
        return (
            max(self.entries - len(contents.first), 0) if self.state in (None, contents.name) else 0
        )


def _in_flight(checkpoint: CompletedCheckpoint, reader: StateReader) -> InFlightContents:
    handles = [
        channel.handle
        for data_set in checkpoint.in_flight.values()
        for channel in data_set.channels
    ]
    damaged = []
    for handle in handles:
        try:
            reader.read(handle)
        except CheckpointDamagedError as error:
            damaged.append(f"records in flight: {error}")
    return InFlightContents(len(handles), sum(handle.length for handle in handles), damaged)


def _operator(
    operator_id: OperatorId, operator: OperatorCheckpoint, reader: StateReader, show: _Shown
) -> OperatorContents:
    states: dict[str, StateContents] = {}
    damaged: list[str] = []

    def bytes_of(handle: StateHandle | None) -> bytes | None:
        try:
            return None if handle is None else reader.read(handle)
        except CheckpointDamagedError as error:
            damaged.append(f"{operator.name}: {error}")
            return None

    for _, subtask in sorted(operator.subtasks.items()):
        for table in subtask.tables:
            contents = states.setdefault(table.name, _of_table(table))
            if bytes_of(table.handle) is not None:
                _add_table(contents, table, reader, show)
        chunks: dict[str, bytes] = {}
        for name, handle in {} if subtask.pieces is None else subtask.pieces.pieces.items():
            data = bytes_of(handle)
            # what is in others only their backend can tell
            if data is None or not is_by_groups(subtask.pieces):
                continue
            if is_of_chunks(name):
                chunks[name] = data
            else:
                _add_keyed(states, KeyedSnapshot.from_bytes(data), show)
        try:
            nothing = KeyedSnapshot(operator.max_parallelism, {}, {})
            groups = range(operator.max_parallelism)
            _add_keyed(states, with_chunks(nothing, chunks, groups), show)
        except CheckpointDamagedError as error:
            damaged.append(f"{operator.name}: {error}")
        keyed, listed = bytes_of(subtask.keyed), bytes_of(subtask.operator)
        if keyed is not None:
            _add_keyed(states, KeyedSnapshot.from_bytes(keyed), show)
        if listed is not None:
            _add_operator_state(states, OperatorSnapshot.from_bytes(listed), show)
    coordinator = bytes_of(operator.coordinator)
    return OperatorContents(
        operator_id,
        operator.name,
        operator.parallelism,
        operator.max_parallelism,
        sorted(operator.finished),
        sum(handle.length for handle in operator.handles()),
        None if coordinator is None else len(coordinator),
        list(states.values()),
        damaged,
    )


def _add_keyed(states: dict[str, StateContents], snapshot: KeyedSnapshot, show: _Shown) -> None:
    for name, meta in snapshot.states.items():
        states.setdefault(name, StateContents(name, meta.kind, meta.type, expires=meta.expires))
    for _, data in sorted(snapshot.groups.items()):
        for name, pairs in load_leniently(bytes(data)).items():
            _add(states[name], pairs, _pair, show)


def _add_operator_state(
    states: dict[str, StateContents], snapshot: OperatorSnapshot, show: _Shown
) -> None:
    for name, meta in snapshot.states.items():
        is_first = name not in states or not states[name].entries
        contents = states.setdefault(name, _of_operator_state(name, meta.sharing, meta.type))
        if meta.sharing is not Sharing.BROADCAST:
            _add(contents, [load_leniently(piece) for piece in snapshot.pieces[name]], _short, show)
        elif is_first:  # it is the same in all subtasks
            pairs = [
                pair for piece in snapshot.pieces[name] for pair in load_leniently(piece).items()
            ]
            _add(contents, pairs, _pair, show)


def _of_table(table: StateTable) -> StateContents:
    if table.keyed:
        return StateContents(table.name, table.kind, table.type, expires=table.expires)
    return _of_operator_state(table.name, Sharing[table.kind], table.type)


def _of_operator_state(name: str, sharing: Sharing, type_text: str) -> StateContents:
    return StateContents(
        name,
        f"operator {sharing.value}",
        type_text,
        "entries" if sharing is Sharing.BROADCAST else "elements",
    )


def _add_table(
    contents: StateContents, table: StateTable, reader: StateReader, show: _Shown
) -> None:
    """A state in the canonical form, whose rows were counted when it was written. Broadcast state
    is the same in all subtasks."""
    from flinkpy.state.canonical.canonical_reader import entries_of

    if table.handle is None or (contents.unit == "entries" and contents.entries):
        return
    contents.entries += table.rows
    contents.size += table.handle.length
    for entries in entries_of(table, reader.read, load_leniently) if show.missing(contents) else ():
        missing = show.missing(contents)
        if entries.keys is None:
            contents.first += map(_short, entries.values[:missing])
        else:
            contents.first += [_pair(pair) for pair in zip(entries.keys[:missing], entries.values)]


def _add(
    contents: StateContents, entries: Sequence[Any], shown: Callable[[Any], str], show: _Shown
) -> None:
    contents.entries += len(entries)
    contents.size += len(pickle.dumps(entries, 5)) if entries else 0
    contents.first += map(shown, entries[: show.missing(contents)])


def _pair(pair: tuple[Any, Any]) -> str:
    return f"{_short(pair[0])}: {_short(pair[1])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _names(operators: Iterable[OperatorContents]) -> str:
    def told() -> Iterator[str]:
        for operator in operators:
            if operator.states:
                yield (
                    f"{operator.name!r} has "
                    f"{', '.join(repr(each.name) for each in operator.states)}"
                )

    return "; ".join(told()) or "none has states"
