"""Reads the states of a savepoint, or of any completed checkpoint."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from flinkpy.common.type_texts import type_of_text
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import key_group_range
from flinkpy.graph.checkpoints import OperatorCheckpoint, StateTable
from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore
from flinkpy.operators.functions import Function
from flinkpy.operators.process.process_operators import EVENT_TIMERS, PROCESSING_TIMERS
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.canonical.rewriting import saved_by
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.stores_of_locations import file_store_of
from flinkpy.state.descriptors import StateDescriptor, StateKind
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.inspection.checkpoint_contents import manifest_at
from flinkpy.state.snapshots.keyed_snapshots import KeyedSnapshot, StateMeta
from flinkpy.state.snapshots.operator_snapshots import OperatorSnapshot, Sharing, load_piece
from flinkpy.state.snapshots.saved_state import SavedState
from flinkpy.state_processor.operator_identifier import OperatorIdentifier
from flinkpy.state_processor.read_state import KeyedEntry, ReadState


class BackendStates(KeyedStateStore):
    """Gives a function access to the states of a backend, at its current key."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend

    def _state(
        self, descriptor: StateDescriptor, wanted: type[StateDescriptor], kind: type[Any], call: str
    ) -> Any:
        if not isinstance(descriptor, wanted):
            raise ProgramError(f"{call} takes a {wanted.__name__}, this is {descriptor!r:.80}")
        return self._backend.state(descriptor)


class KeyedStateReaderContext:
    """What ``read_key`` gets: the timers of the current key."""

    def __init__(self, event_timers: list[int], processing_timers: list[int]) -> None:
        self._event_timers, self._processing_timers = event_timers, processing_timers

    def registered_event_time_timers(self) -> list[int]:
        """Their timestamps in milliseconds, in order. Those of process functions, not of
        windows."""
        return list(self._event_timers)

    def registered_processing_time_timers(self) -> list[int]:
        """As for event time."""
        return list(self._processing_timers)


class KeyedStateReaderFunction(Function):
    """Reads several states together, key by key: ``open`` asks for them as the job's function does.

    >>> from flinkpy.common import Types
    >>> from flinkpy.datastream.state import ValueStateDescriptor
    >>> class Totals(KeyedStateReaderFunction):
    ...     def open(self, runtime_context):
    ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
    ...     def read_key(self, key, ctx):
    ...         yield key, self.total.value(), ctx.registered_event_time_timers()
    """

    def open(self, runtime_context: Any) -> None:
        """Asks for the states: ``get_state`` and the others."""

    @abstractmethod
    def read_key(self, key: Any, ctx: KeyedStateReaderContext) -> Iterable[Any]:
        """Called for each key that has something in one of the states; what it gives is what is
        read."""


class SavepointReader:
    """A savepoint, or a checkpoint, to be read. The program's classes must be importable where it
    keeps values of them.

    >>> reader = SavepointReader.read("/data/savepoints/before-the-release")       # doctest: +SKIP
    >>> reader.read_keyed_state("totals", "total").to_pandas()                     # doctest: +SKIP
    """

    def __init__(self, path: str) -> None:
        manifest = manifest_at(path)
        self._operators = manifest.checkpoint.operators
        self.location = str(manifest.checkpoint.location)
        self._reader = StateReader(file_store_of(self.location), self.location)

    @staticmethod
    def read(path: str) -> SavepointReader:
        """The savepoint or checkpoint in this folder, or the newest of this folder of a job; a URL
        too. ProgramError if there is none."""
        return SavepointReader(str(path))

    def read_keyed_state(
        self, operator: str | OperatorIdentifier, state: str | KeyedStateReaderFunction
    ) -> ReadState[Any]:
        """Keyed state of the operator with this uid: the state of that name, as ``KeyedEntry``s; or
        what a ``KeyedStateReaderFunction`` gives. One old subtask's state is in memory at a time.
        ProgramError if there is no such operator or state."""
        found = self._operator(operator)
        if isinstance(state, KeyedStateReaderFunction):
            return ReadState(
                type(state).__name__, lambda: self._read_keys(found, state), {"value": None}
            )
        meta = self._meta(found, state)
        return ReadState(
            state,
            lambda: self._keyed_entries(found, state, meta),
            {"key": None, "value": type_of_text(meta.type)},
        )

    def read_list_state(self, operator: str | OperatorIdentifier, name: str) -> ReadState[Any]:
        """The elements of a list of all subtasks, in their order."""
        return self._elements(operator, name, Sharing.SPLIT)

    def read_union_state(self, operator: str | OperatorIdentifier, name: str) -> ReadState[Any]:
        """The elements of a union list of all subtasks, in their order."""
        return self._elements(operator, name, Sharing.UNION)

    def read_broadcast_state(
        self, operator: str | OperatorIdentifier, name: str
    ) -> ReadState[KeyedEntry]:
        """The entries of broadcast state, which is the same in all subtasks."""
        found = self._operator(operator)
        declared = self._operator_type(operator, name, Sharing.BROADCAST)

        def entries() -> Iterator[KeyedEntry]:
            for piece in next((pieces for pieces in self._pieces(found, name) if pieces), ()):
                yield from (KeyedEntry(*pair) for pair in load_piece(piece).items())

        return ReadState(
            name,
            entries,
            {
                "key": getattr(declared, "key_type", None),
                "value": getattr(declared, "value_type", None),
            },
        )

    # -- the parts ---------------------------------------------------------------------------------

    def _operator(self, operator: str | OperatorIdentifier) -> OperatorCheckpoint:
        wanted = OperatorIdentifier.of(operator)
        found = self._operators.get(wanted.operator_id)
        if found is None:
            names = ", ".join(f"{each.name!r} ({id_})" for id_, each in self._operators.items())
            raise ProgramError(
                f"{self.location} has no state of an operator with the uid {wanted.name!r}; "
                f"it has that of {names or 'none'}. "
                "An operator without a uid is named by "
                "OperatorIdentifier.for_uid_hash(id)"
            )
        return found

    def _saved(
        self, operator: OperatorCheckpoint, only: str | None = None
    ) -> Iterator[tuple[int, SavedState]]:
        """What each subtask saved; where states have files of their own, of those of this name."""
        for subtask, state in sorted(operator.subtasks.items()):
            if only is not None and state.tables:
                state = replace(
                    state, tables=tuple(table for table in state.tables if table.name == only)
                )
            yield subtask, saved_by(state, self._reader, operator.max_parallelism)

    def _states(self, operator: OperatorCheckpoint) -> Iterator[StateTable]:
        """What its states are, subtask by subtask. Those with files of their own stand in the
        manifest, so they are not read."""
        for _, state in sorted(operator.subtasks.items()):
            if state.tables:
                yield from state.tables
                continue
            saved = saved_by(state, self._reader, operator.max_parallelism)
            if saved.keyed is not None:
                for name, meta in KeyedSnapshot.from_bytes(saved.keyed).states.items():
                    yield StateTable(name, True, meta.kind, meta.type, meta.expires)
            if saved.operator is not None:
                for name, listed in OperatorSnapshot.from_bytes(saved.operator).states.items():
                    yield StateTable(name, False, listed.sharing.name, listed.type, False)

    def _meta(self, operator: OperatorCheckpoint, name: str) -> StateMeta:
        known: dict[str, None] = {}
        for state in self._states(operator):
            if state.keyed and state.name == name:
                return StateMeta(state.kind, state.type, state.expires)
            if state.keyed:
                known[state.name] = None
        raise ProgramError(
            f"operator {operator.name!r} has no keyed state {name!r}; it has "
            f"{', '.join(map(repr, known)) or 'none'}"
        )

    def _keyed_entries(
        self, operator: OperatorCheckpoint, name: str, meta: StateMeta
    ) -> Iterator[KeyedEntry]:
        plain = _without_stamps(meta)
        for _, saved in self._saved(operator, name):
            if saved.keyed is not None:
                for _, group in KeyedSnapshot.from_bytes(saved.keyed).entries().groups:
                    yield from (KeyedEntry(key, plain(value)) for key, value in group.get(name, ()))

    def _read_keys(
        self, operator: OperatorCheckpoint, function: KeyedStateReaderFunction
    ) -> Iterator[Any]:
        for subtask, saved in self._saved(operator):
            if saved.keyed is None:
                continue
            groups = key_group_range(subtask, operator.max_parallelism, operator.parallelism)
            backend = HeapKeyedStateBackend(operator.max_parallelism, groups, SYSTEM_CLOCK)
            backend.restore(saved.keyed)
            timers = [
                backend.register_region(name, dict) for name in (EVENT_TIMERS, PROCESSING_TIMERS)
            ]
            function.open(BackendStates(backend))
            for key in dict.fromkeys(
                key for name in backend.statistics.keys for key in backend.keys(name)
            ):
                backend.current.key = key
                yield from function.read_key(
                    key, KeyedStateReaderContext(*(each.get(key, []) for each in timers))
                )
            function.close()
            backend.close()

    def _pieces(self, operator: OperatorCheckpoint, name: str) -> Iterator[tuple[bytes, ...]]:
        for _, saved in self._saved(operator, name):
            if saved.operator is not None:
                yield tuple(OperatorSnapshot.from_bytes(saved.operator).pieces.get(name, ()))

    def _elements(
        self, operator: str | OperatorIdentifier, name: str, sharing: Sharing
    ) -> ReadState[Any]:
        found, declared = self._operator(operator), self._operator_type(operator, name, sharing)
        return ReadState(
            name,
            lambda: (load_piece(piece) for pieces in self._pieces(found, name) for piece in pieces),
            {"value": getattr(declared, "element_type", None)},
        )

    def _operator_type(
        self, operator: str | OperatorIdentifier, name: str, sharing: Sharing
    ) -> TypeInformation | None:
        found, known = self._operator(operator), dict[str, str]()
        for state in self._states(found):
            if not state.keyed and state.name == name and state.kind == sharing.name:
                return type_of_text(state.type)
            if not state.keyed:
                known[state.name] = Sharing[state.kind].value
        raise ProgramError(
            f"operator {found.name!r} has no {sharing.value} {name!r}; it has "
            + (", ".join(f"{each!r} ({kind})" for each, kind in known.items()) or "none")
        )


def _without_stamps(meta: StateMeta) -> Callable[[Any], Any]:
    """Takes the times off the values of a state that expires."""
    if not meta.expires:
        return lambda value: value
    if meta.kind == StateKind.LIST.value:
        return lambda values: [value for value, _ in values]
    if meta.kind == StateKind.MAP.value:
        return lambda entries: {key: value for key, (value, _) in entries.items()}
    return lambda stamped: stamped[0]
