"""The threads in which the tasks of a process write their state, and read it back: no task waits
for files.

Each subtask has a lane: its files are written one after the other, in the order of its checkpoints.
The lanes share a few threads, so that subtasks do not wait for each other's files. With an object
store most of that time is waiting."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

from flinkpy.core.elements import CheckpointBarrier, SavepointFormatType
from flinkpy.core.ids import OperatorId
from flinkpy.core.keys import key_group_range
from flinkpy.core.options.engine import spill_folders
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.checkpoints import (
    ChannelState,
    KeyedPieces,
    OperatorRestore,
    OperatorSubtaskState,
    SubtaskSnapshot,
    TaskRestore,
)
from flinkpy.operators.context import TaskInfo
from flinkpy.runtime.checkpointing.channel_recording import RecordedChannel
from flinkpy.runtime.checkpointing.saved_pieces import with_pieces
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.state_writer import StateWriter
from flinkpy.state.snapshots.keyed_pieces import is_by_groups, read_chunks, read_keyed
from flinkpy.state.snapshots.saved_state import FrozenInPieces, FrozenState, SavedState, share_of

# what a subtask's operators saved for a checkpoint that another may build on
Base: TypeAlias = Mapping[OperatorId, KeyedPieces]


LOG = engine_logger(__name__)

THREADS_PER_SLOT = 4
MOST_THREADS = 32


class FileLane(Protocol):
    """Runs actions one after the other, beside the tasks' own threads."""

    def run(self, action: Callable[[], None]) -> None:
        """From any thread. After the threads have stopped the action is dropped."""
        ...


class FileThreads(Protocol):
    """The threads for files of one TaskExecutor."""

    def lane(self) -> FileLane:
        """A new lane: its actions keep their order, and those of several lanes run at the same
        time."""
        ...

    def stop(self, last: Callable[[], None] = lambda: None) -> None:
        """What has not begun is dropped; ``last`` is run behind what has."""
        ...


class StateIO:
    """Implements FileThreads, with as many threads as files are moved at a time, at most
    ``threads``.

    >>> files = StateIO("an example", 2)
    >>> files.lane().run(lambda: None)
    >>> files.stop()
    """

    def __init__(self, name: str, threads: int = THREADS_PER_SLOT) -> None:
        self._name, self._threads = name, threads
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._running = 0
        # what is left to do when nothing runs any more
        self._last: Callable[[], None] | None = None

    @staticmethod
    def for_slots(name: str, slots: int) -> StateIO:
        """For a TaskExecutor with so many slots."""
        return StateIO(name, min(MOST_THREADS, THREADS_PER_SLOT * slots))

    def lane(self) -> FileLane:
        return _Lane(self)

    def submit(self, action: Callable[[], None]) -> None:
        """Runs it in one of the threads; drops it once they have stopped. For lanes."""
        with self._lock:
            if self._stopped:
                return
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    self._threads, thread_name_prefix=f"state of {self._name}"
                )
            try:
                self._executor.submit(self._unless_stopped, action)
            except RuntimeError:  # the program ends, and the threads have ended before
                self._stopped = True

    def _unless_stopped(self, action: Callable[[], None]) -> None:
        with self._lock:
            if self._stopped:
                return
            self._running += 1
        try:
            action()
        except Exception:
            LOG.exception("state of %s: an action raised", self._name)
        finally:
            with self._lock:
                self._running -= 1
                last = None
                if not self._running:
                    last, self._last = self._last, None
            if last is not None:
                last()

    def stop(self, last: Callable[[], None] = lambda: None) -> None:
        with self._lock:
            self._stopped = True
            is_idle = not self._running
            if not is_idle:
                self._last = last
        if is_idle:
            last()
        if self._executor is not None:
            self._executor.shutdown(wait=False)


class _Lane:
    """One action at a time, then the next lane's turn."""

    def __init__(self, files: StateIO) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_busy = False

    def run(self, action: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(action)
            if self._is_busy:
                return
            self._is_busy = True
        self._files.submit(self._run_next)

    def _run_next(self) -> None:
        try:
            self._waiting.popleft()()
        finally:
            with self._lock:
                goes_on = self._is_busy = bool(self._waiting)
            if goes_on:
                self._files.submit(self._run_next)


def write_snapshot(
    storage: CheckpointStorage,
    barrier: CheckpointBarrier,
    task: TaskInfo,
    frozen: Mapping[OperatorId, FrozenState],
    base: Base,
    channels: Sequence[RecordedChannel] = (),
) -> SubtaskSnapshot:
    """Writes the state of all operators of a subtask, in the form that the barrier names: what has
    pieces, without those that ``base`` has; and what is in flight in its channels. Raises what the
    store raises, and ProgramError if records in flight cannot be pickled; then nothing of it is
    left there."""
    name = f"{task.attempt_id.vertex_id}-{task.subtask_index}"
    attempt = task.attempt_id.attempt
    options = barrier.options
    write = partial(_write_native, base)
    if options.format_type is SavepointFormatType.CANONICAL:
        write = partial(_write_canonical, f"{task.subtask_index}-{attempt}")
    with storage.state_writer(barrier.checkpoint_id, name, attempt) as writer:
        operators = {
            operator_id: write(writer, operator_id, state) for operator_id, state in frozen.items()
        }
        handles = writer.write_together([channel.log.chunks() for channel in channels])
        return SubtaskSnapshot(
            operators,
            tuple(
                ChannelState(channel.channel, channel.is_input, handle)
                for channel, handle in zip(channels, handles)
            ),
        )


def _write_canonical(
    part: str, writer: StateWriter, operator_id: OperatorId, frozen: FrozenState
) -> OperatorSubtaskState:
    from flinkpy.state.canonical.canonical_writer import Place, write_canonical  # it imports Arrow

    return write_canonical(writer, frozen, Place(operator_id, frozen.operator_name, part))


def _write_native(
    base: Base, writer: StateWriter, operator_id: OperatorId, frozen: FrozenState
) -> OperatorSubtaskState:
    operator = None if frozen.operator is None else writer.write(frozen.operator)
    if not isinstance(frozen.keyed, FrozenInPieces):
        return OperatorSubtaskState(
            None if frozen.keyed is None else writer.write(frozen.keyed.chunks()), operator
        )
    rest, pieces = frozen.keyed.write_pieces(base.get(operator_id), writer)
    return OperatorSubtaskState(None if rest is None else writer.write(rest), operator, pieces)


class RestoredStates(NamedTuple):
    """What the operators of a subtask start from; and what it has saved for this checkpoint, if
    later ones may build on it."""

    states: Mapping[OperatorId, SavedState]
    base: Base


def read_states(
    storage: CheckpointStorage, restore: TaskRestore, task: TaskInfo, values: Mapping[str, Any]
) -> RestoredStates:
    """Reads the subtask's share of the checkpoint. Raises CheckpointDamagedError, and what the
    store raises."""
    reader = storage.reader(restore.location, spill_folders(values))
    states = {
        operator_id: _share(reader, found, task, values)
        for operator_id, found in restore.operators.items()
    }
    base: dict[OperatorId, KeyedPieces] = {}
    for operator_id, state in states.items():
        own = restore.operators[operator_id].subtasks
        pieces = own[task.subtask_index].pieces if task.subtask_index < len(own) else None
        is_as_saved = is_by_groups(pieces) or (
            state.pieces is not None and state.pieces.is_as_saved
        )
        if pieces is not None and is_as_saved and storage.is_own(restore.location):
            base[operator_id] = pieces
    return RestoredStates(states, base)


def _saved_by(
    state: OperatorSubtaskState,
    reader: StateReader,
    max_parallelism: int,
    groups: range,
    folders: Sequence[str],
) -> SavedState:
    """What one old subtask saved; of its keyed state all, or these groups, or nothing if there are
    none."""
    if state.tables:
        from flinkpy.state.canonical.canonical_reader import read_canonical

        return read_canonical(state.tables, reader.view, max_parallelism, groups, folders)
    return SavedState(
        read_keyed(state, reader, max_parallelism, groups, folders),
        None if state.operator is None else reader.read(state.operator),
        chunks=read_chunks(state, reader, groups, folders),
    )


def _share(
    reader: StateReader, found: OperatorRestore, task: TaskInfo, values: Mapping[str, Any]
) -> SavedState:
    """The subtask's share of what the operator's subtasks saved, however many there were. Keyed
    state is read only of those that had some of its key groups."""
    groups = key_group_range(task.subtask_index, task.max_parallelism, task.parallelism)
    before, folders = len(found.subtasks), spill_folders(values)
    saved, pieces = [], []
    for subtask, state in enumerate(found.subtasks):
        owned = key_group_range(subtask, task.max_parallelism, before)
        shared = range(max(owned.start, groups.start), min(owned.stop, groups.stop))
        saved.append(_saved_by(state, reader, task.max_parallelism, shared, folders))
        if state.pieces is not None and shared and not is_by_groups(state.pieces):
            pieces.append(state.pieces)
    share = share_of(saved, task.max_parallelism, task.parallelism, task.subtask_index, folders)
    return with_pieces(share, pieces, reader, task.max_parallelism, groups, values)
