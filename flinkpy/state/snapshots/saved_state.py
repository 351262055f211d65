"""The state of one operator in one subtask: frozen at a barrier, and as the bytes that are stored
and restored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from flinkpy.core.files.large_bytes import Data
from flinkpy.core.keys import key_group_range
from flinkpy.graph.checkpoints import KeyedPieces
from flinkpy.state.checkpoints.state_writer import StateWriter
from flinkpy.state.snapshots.keyed_snapshots import KeyedEntries, KeyedSnapshot, redistribute
from flinkpy.state.snapshots.operator_snapshots import nothing_saved, redistribute_operator_state

if TYPE_CHECKING:  # it imports Arrow
    from flinkpy.state.snapshots.chunked_regions import SavedChunks


class FrozenKeyedState(Protocol):
    """Keyed state as it was at a barrier, whatever happens to the state from then on."""

    def write(self) -> bytes:
        """Its bytes (``flinkpy.state.snapshots.keyed_snapshots``). May be called in another thread,
        and after the backend was closed."""
        ...

    def chunks(self) -> Iterable[Data]:
        """The same bytes, in place of ``write``, of some keys at a time: all of it may be more than
        memory holds."""
        ...

    def entries(self) -> KeyedEntries:
        """What is in it, in place of ``write``: each of the two may be called once."""
        ...


class FrozenInPieces(FrozenKeyedState, ABC):
    """Keyed state of a backend that can also save it in pieces, of which later checkpoints write
    only those that are new."""

    def entries(self) -> KeyedEntries:
        return KeyedSnapshot.from_bytes(self.write()).entries()

    @abstractmethod
    def write_pieces(
        self, base: KeyedPieces | None, writer: StateWriter
    ) -> tuple[bytes | None, KeyedPieces]:
        """Writes the pieces that ``base`` does not have, and gives all of them, with the bytes of
        what is in no piece. ``base`` is what this backend, or the one that it was restored as,
        saved for an earlier checkpoint. May be called as ``write`` may."""


class PreparedPieces(ABC):
    """Saved pieces that were read back, off the slot loop, and made into what a backend takes over
    (``restore_pieces``). Whatever holds resources gives them back when nobody refers to it any
    more. ``is_as_saved``: the backend that takes it over goes on as the one that saved the pieces,
    so the next checkpoint may have pieces in common with that one."""

    is_as_saved: bool


class SavedState(NamedTuple):
    """The two kinds of state as bytes, each None where the operator has none. ``keyed`` may be a
    view of a mapped file. ``pieces`` and ``chunks``: keyed state that is not in ``keyed``."""

    keyed: Data | None = None
    operator: bytes | None = None
    pieces: PreparedPieces | None = None
    chunks: Sequence[SavedChunks] = ()


@dataclass(frozen=True)
class FrozenState:
    """All state of an operator as it was at a barrier. Operator state is small, so it is bytes
    already."""

    keyed: FrozenKeyedState | None = None
    operator: bytes | None = None
    operator_name: str = ""

    @property
    def is_empty(self) -> bool:
        return self.keyed is None and self.operator is None

    def write(self) -> SavedState:
        """May be called in another thread, and after the operator was closed."""
        return SavedState(None if self.keyed is None else self.keyed.write(), self.operator)


def share_of(
    saved: Sequence[SavedState],
    max_parallelism: int,
    parallelism: int,
    subtask: int,
    folders: Sequence[str] = (),
) -> SavedState:
    """What one new subtask of so many starts from, made of what the old subtasks saved, in their
    order. Keyed state moves by key group, operator state as its kind says. Nothing is unpickled.
    Keyed state of subtasks that had none of its groups may be left out. What is large lies in files
    under ``folders``."""
    keyed = [each.keyed for each in saved if each.keyed is not None]
    operator = None
    if any(each.operator is not None for each in saved):
        found = [nothing_saved() if each.operator is None else each.operator for each in saved]
        operator = redistribute_operator_state(found, parallelism)[subtask]
    groups = key_group_range(subtask, max_parallelism, parallelism)
    return SavedState(
        redistribute(keyed, groups, folders) if keyed else None,
        operator,
        chunks=tuple(each.within(groups) for state in saved for each in state.chunks),
    )


def redistribute_all(
    saved: Sequence[SavedState], max_parallelism: int, new_parallelism: int
) -> list[SavedState]:
    """``share_of`` each new subtask."""
    return [
        share_of(saved, max_parallelism, new_parallelism, subtask)
        for subtask in range(new_parallelism)
    ]
