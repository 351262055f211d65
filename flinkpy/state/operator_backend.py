"""Operator state: state of a subtask and not of a key. There are lists, whose elements may move to
other subtasks, and broadcast state.

All of it is in this process's memory, as in Flink. Restored state that the program does not ask for
is kept, and saved again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.state.api import ListState, OperatorStateStore
from flinkpy.state.broadcast_state import HeapBroadcastState
from flinkpy.state.descriptors import (
    RESERVED,
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    StateKind,
)
from flinkpy.state.snapshots.operator_snapshots import (
    OperatorSnapshot,
    OperatorStateMeta,
    Sharing,
    dump_pieces,
    load_piece,
)
from flinkpy.state.state_isolation import adopt, protect, release, reveal
from flinkpy.state.states.entry_states import refuse_none
from flinkpy.state.type_changes import RULE, carried_out, changed_elements, changed_entries

SnapshotHook = Callable[[int, int], None]  # checkpoint id, its timestamp in milliseconds


class OperatorListState(ListState[Any]):
    """A list of one subtask. ``get`` returns an empty list if it is empty."""

    __slots__ = ("_stored",)

    def __init__(self, stored: list[Any]) -> None:
        self._stored = stored

    def get(self) -> list[Any]:
        return [release(each) for each in self._stored]

    def add(self, value: object) -> None:
        self._stored.append(protect(refuse_none(value)))

    def add_all(self, values: Iterable[Any]) -> None:
        self._stored.extend([protect(refuse_none(value)) for value in values])

    def update(self, values: Iterable[Any] | None) -> None:
        self._stored[:] = [protect(refuse_none(value)) for value in values or ()]

    def clear(self) -> None:
        self._stored.clear()

    def __repr__(self) -> str:
        return f"<OperatorListState: {len(self._stored)} elements>"


@dataclass
class _Table:
    """One state: ``elements`` of a list, or ``entries`` of a broadcast state."""

    meta: OperatorStateMeta
    elements: list[Any] = field(default_factory=list)
    entries: dict[Any, Any] = field(default_factory=dict)
    asked_for: bool = False


@dataclass(frozen=True)
class OperatorStateStatistics:
    """How many elements or entries each state holds."""

    sizes: Mapping[str, int]


class OperatorStateBackend(OperatorStateStore):
    """The operator state of one operator in one subtask, which ``get_operator_state_store()``
    returns.

    One name is one state, whatever its kind. The actions of ``before_snapshot`` run first when a
    snapshot is made, so that functions can bring their state up to date."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._hooks: list[SnapshotHook] = []
        self.restored = False

    # -- states ------------------------------------------------------------------------------------

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        table = self._table(
            state_descriptor, ListStateDescriptor, Sharing.SPLIT, "get_list_state()"
        )
        return OperatorListState(table.elements)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        table = self._table(
            state_descriptor, ListStateDescriptor, Sharing.UNION, "get_union_list_state()"
        )
        return OperatorListState(table.elements)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> HeapBroadcastState:
        table = self._table(
            state_descriptor, MapStateDescriptor, Sharing.BROADCAST, "get_broadcast_state()"
        )
        return HeapBroadcastState(table.entries)

    def engine_list(self, name: str, sharing: Sharing = Sharing.SPLIT) -> ListState[Any]:
        """A list of the operator itself, beside those of its function. Its name begins as no name
        of a program may."""
        return OperatorListState(self._engine_table(name, sharing).elements)

    def engine_broadcast(self, name: str) -> HeapBroadcastState:
        """Broadcast state of the operator itself."""
        return HeapBroadcastState(self._engine_table(name, Sharing.BROADCAST).entries)

    def _engine_table(self, name: str, sharing: Sharing) -> _Table:
        if not name.startswith(RESERVED):
            raise EngineError(
                f"operator state of the engine is called {RESERVED}something, not {name!r}"
            )
        return self._table_of(name, OperatorStateMeta(sharing, StateKind.ENGINE.value))

    def _table(
        self, descriptor: object, wanted: type[StateDescriptor], sharing: Sharing, call: str
    ) -> _Table:
        if not isinstance(descriptor, wanted):
            raise ProgramError(f"{call} takes a {wanted.__name__}, this is {descriptor!r:.80}")
        name = descriptor.name
        if descriptor.ttl is not None:
            raise ProgramError(
                f"state {name!r}: a time to live is for keyed state, {sharing.value} does not "
                "expire"
            )
        return self._table_of(name, OperatorStateMeta(sharing, repr(descriptor.type_info)))

    def _table_of(self, name: str, meta: OperatorStateMeta) -> _Table:
        table = self._tables.setdefault(name, _Table(meta))
        if table.meta != meta and not _takes_over(name, table, meta):
            origin = "is" if table.asked_for else "was saved as"
            raise ProgramError(
                f"state {name!r} {origin} a {table.meta}, and cannot be a {meta} too: give "
                "one of them another name"
            )
        table.asked_for = True
        return table

    # -- snapshots ---------------------------------------------------------------------------------

    def before_snapshot(self, hook: SnapshotHook) -> None:
        """Adds an action to run at the beginning of each snapshot."""
        self._hooks.append(hook)

    def snapshot(self, checkpoint_id: int, timestamp_ms: int) -> bytes | None:
        """All operator state; None if there are neither states nor actions."""
        for hook in self._hooks:
            hook(checkpoint_id, timestamp_ms)
        if not self._tables and not self._hooks:
            return None
        pieces: dict[str, list[bytes]] = {}
        for name, table in self._tables.items():
            if table.meta.sharing is Sharing.BROADCAST:
                pieces[name] = dump_pieces(
                    name, [{key: reveal(stored) for key, stored in table.entries.items()}]
                )
            else:
                pieces[name] = dump_pieces(name, map(reveal, table.elements))
        return OperatorSnapshot(
            {name: table.meta for name, table in self._tables.items()}, pieces
        ).to_bytes()

    def restore(self, snapshot: bytes | None) -> None:
        """Loads a snapshot, before the first state is asked for. None: the operator starts from a
        snapshot that has no operator state."""
        self.restored = True
        if snapshot is None:
            return
        opened = OperatorSnapshot.from_bytes(snapshot)
        for name, meta in opened.states.items():
            table = self._tables[name] = _Table(meta)
            loaded = [load_piece(piece) for piece in opened.pieces[name]]
            if meta.sharing is Sharing.BROADCAST:
                for entries in loaded:
                    table.entries.update(
                        (canonical_key(key), adopt(value)) for key, value in entries.items()
                    )
            else:
                table.elements.extend(map(adopt, loaded))

    # -- about -------------------------------------------------------------------------------------

    @property
    def statistics(self) -> OperatorStateStatistics:
        return OperatorStateStatistics(
            {name: len(table.elements) + len(table.entries) for name, table in self._tables.items()}
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {size}" for name, size in self.statistics.sizes.items())
        return f"<OperatorStateBackend: {sizes or 'empty'}>"


def _takes_over(name: str, table: _Table, meta: OperatorStateMeta) -> bool:
    """Brings what was saved into the type that the program declares now, if that is the only
    difference. ProgramError if it cannot be done."""
    if table.asked_for or table.meta.sharing is not meta.sharing:
        return False
    change = (changed_entries if meta.sharing is Sharing.BROADCAST else changed_elements)(
        table.meta.type, meta.type
    )
    if change is None:
        raise ProgramError(
            f"state {name!r} was saved as a {table.meta}, and the program declares a {meta}: {RULE}"
        )
    table.elements[:] = [adopt(carried_out(change, reveal(each), name)) for each in table.elements]
    table.entries.update(
        {key: adopt(carried_out(change, reveal(each), name)) for key, each in table.entries.items()}
    )
    table.meta = meta
    return True
