"""Writes a completed checkpoint anew: in the canonical form, for others to read, or in flinkpy's
own.

One operator of one subtask is in memory at a time. The values are unpickled, so the program's
classes must be importable, unless they were saved by value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from flinkpy.core.elements import SavepointFormatType
from flinkpy.core.errors import ProgramError
from flinkpy.core.files.large_bytes import Data
from flinkpy.core.ids import IntermediateDataSetId, OperatorId
from flinkpy.core.options.checkpointing import CHECKPOINT_FILE_THRESHOLD
from flinkpy.graph.checkpoints import (
    CompletedCheckpoint,
    DataSetState,
    OperatorCheckpoint,
    OperatorSubtaskState,
    StateHandle,
    StateTable,
)
from flinkpy.state.canonical.canonical_reader import read_canonical
from flinkpy.state.canonical.canonical_writer import Place, file_name, write_canonical
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import absolute, is_file, join
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.state_writer import FileStateWriter, StateWriter
from flinkpy.state.checkpoints.stored_checkpoints import METADATA, load_manifest
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.state.snapshots.keyed_pieces import is_by_groups, read_all_keyed
from flinkpy.state.snapshots.keyed_snapshots import KeyedEntries, KeyedSnapshot
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState

_IN_PIECES = (
    "the state was saved in pieces of {}, which only a job can put together: let a job start "
    "from the checkpoint and take a "
    "savepoint"
)


@dataclass(frozen=True)
class SavedEntries:
    """A FrozenKeyedState: what was saved."""

    saved: Data

    def write(self) -> bytes:
        """As it is."""
        return bytes(self.saved)

    def chunks(self) -> list[Data]:
        """In one piece, as it is there already."""
        return [self.saved]

    def entries(self) -> KeyedEntries:
        """Unpickled group by group."""
        return KeyedSnapshot.from_bytes(self.saved).entries()


def saved_by(state: OperatorSubtaskState, reader: StateReader, max_parallelism: int) -> SavedState:
    """All that an operator of one subtask saved, in whichever form."""
    if state.tables:
        return read_canonical(state.tables, reader.view, max_parallelism, range(max_parallelism))
    return SavedState(
        _keyed_by(state, reader, max_parallelism),
        None if state.operator is None else reader.read(state.operator),
    )


def _keyed_by(
    state: OperatorSubtaskState, reader: StateReader, max_parallelism: int
) -> Data | None:
    if state.pieces is not None and not is_by_groups(state.pieces):
        raise ProgramError(_IN_PIECES.format(state.pieces.form))
    return read_all_keyed(state, reader, max_parallelism, range(max_parallelism))


def write_state(
    writer: StateWriter, place: Place, frozen: FrozenState, format_type: SavepointFormatType
) -> OperatorSubtaskState:
    """Writes the state of one operator of one subtask in this form."""
    if format_type is SavepointFormatType.CANONICAL:
        return write_canonical(writer, frozen, place)
    keyed = None if frozen.keyed is None else writer.write(frozen.keyed.chunks())
    return OperatorSubtaskState(
        keyed, None if frozen.operator is None else writer.write(frozen.operator)
    )


def rewrite(
    source: str,
    target: str,
    format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    stores: Callable[[str], FileStore] = file_store_of,
) -> CompletedCheckpoint:
    """Writes the checkpoint in the folder ``source`` to the folder ``target``, which has none yet,
    in this form. The source stays as it is. ProgramError if there is none, or if the target is not
    empty; CheckpointDamagedError if a file is damaged; OSError if the target cannot be written,
    which is then left as it was."""
    manifest = load_manifest(stores(source), absolute(source))
    target, store = absolute(target), stores(target)
    reader = StateReader(stores(source), manifest.checkpoint.location)
    return store_savepoint(
        manifest,
        target,
        store,
        (
            (operator_id, _rewritten(operator_id, operator, reader, store, target, format_type))
            for operator_id, operator in manifest.checkpoint.operators.items()
        ),
        reader,
    )


def store_savepoint(
    manifest: Manifest,
    target: str,
    store: FileStore,
    operators: Iterable[tuple[OperatorId, OperatorCheckpoint]],
    reader: StateReader | None = None,
) -> CompletedCheckpoint:
    """Writes the manifest with these operators instead of its own. The state of each is written
    when the iterator comes to it, so that nothing stays in the target if anything fails; therefore
    ProgramError if something is there already. What was in flight is copied with ``reader``."""
    if is_file(target):
        raise ProgramError(f"{target} is a file: name a new folder for the savepoint")
    if store.list(target):
        raise ProgramError(f"{target} is not empty: name a new folder for the savepoint")
    try:
        in_flight = {
            data_set_id: _copied_in_flight(data_set_id, state, reader, store, target)
            for data_set_id, state in manifest.checkpoint.in_flight.items()
            if reader is not None
        }
        checkpoint = replace(manifest.checkpoint, operators=dict(operators), in_flight=in_flight)
        store.write_atomically(
            join(target, METADATA), [replace(manifest, checkpoint=checkpoint).to_bytes()]
        )
    except BaseException:
        store.delete_dir(target)
        raise
    return replace(checkpoint, location=target)


def _rewritten(
    operator_id: OperatorId,
    operator: OperatorCheckpoint,
    reader: StateReader,
    store: FileStore,
    target: str,
    format_type: SavepointFormatType,
) -> OperatorCheckpoint:
    subtasks = {}
    for subtask, state in operator.subtasks.items():
        saved = saved_by(state, reader, operator.max_parallelism)
        frozen = FrozenState(
            None if saved.keyed is None else SavedEntries(saved.keyed), saved.operator
        )
        with savepoint_writer(store, target, operator_id, str(subtask)) as writer:
            subtasks[subtask] = write_state(
                writer, Place(operator_id, operator.name, f"{subtask}-0"), frozen, format_type
            )
    coordinator = (
        None
        if operator.coordinator is None
        else _copied(operator.coordinator, operator_id, reader, store, target)
    )
    return replace(operator, subtasks=subtasks, coordinator=coordinator)


def copied_operator(
    operator_id: OperatorId,
    operator: OperatorCheckpoint,
    reader: StateReader,
    store: FileStore,
    target: str,
) -> OperatorCheckpoint:
    """Copies the state of an operator to the folder of another savepoint, in the form that it has,
    as that of the operator with this id. Nothing is unpickled."""
    subtasks = {}
    for subtask, state in operator.subtasks.items():
        saved = (
            _keyed_by(state, reader, operator.max_parallelism),
            None if state.operator is None else reader.read(state.operator),
        )
        with savepoint_writer(store, target, operator_id, str(subtask)) as writer:
            keyed, listed = (None if data is None else writer.write(data) for data in saved)
            place = Place(operator_id, operator.name, f"{subtask}-0")
            tables = tuple(
                replace(table, handle=_copied_file(table, place, reader, writer))
                for table in state.tables
            )
            subtasks[subtask] = OperatorSubtaskState(keyed, listed, tables=tables)
    coordinator = (
        None
        if operator.coordinator is None
        else _copied(operator.coordinator, operator_id, reader, store, target)
    )
    return replace(operator, subtasks=subtasks, coordinator=coordinator)


def _copied_file(
    table: StateTable, place: Place, reader: StateReader, writer: StateWriter
) -> StateHandle | None:
    if table.handle is None:
        return None
    file = writer.create_file(file_name(table, place))
    file.write(reader.read(table.handle))
    return replace(table.handle, path=file.name)


def _copied_in_flight(
    data_set_id: IntermediateDataSetId,
    state: DataSetState,
    reader: StateReader,
    store: FileStore,
    target: str,
) -> DataSetState:
    with savepoint_writer(store, target, data_set_id, "in-flight") as writer:
        channels = tuple(
            replace(channel, handle=writer.write(reader.read(channel.handle)))
            for channel in state.channels
        )
    return replace(state, channels=channels)


def _copied(
    handle: StateHandle, operator_id: OperatorId, reader: StateReader, store: FileStore, target: str
) -> StateHandle:
    with savepoint_writer(store, target, operator_id, "coordinator") as writer:
        return writer.write(reader.read(handle))


def savepoint_writer(
    store: FileStore, target: str, owner: OperatorId | IntermediateDataSetId, part: str
) -> StateWriter:
    """For what one part of an operator, or of what was in flight, saves in a savepoint's folder."""
    return FileStateWriter(store, target, f"{owner}-{part}", CHECKPOINT_FILE_THRESHOLD.default)
