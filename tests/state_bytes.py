"""What a checkpoint would save, and what subtasks of another number start from, for tests of one
operator or one backend."""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.snapshots.keyed_snapshots import redistribute
from flinkpy.state.snapshots.saved_state import SavedState


def keyed_bytes(backend: KeyedStateBackend) -> bytes:
    """All state of the backend as it is now."""
    return backend.freeze().write()


def keyed_share(saved: Iterable[SavedState], groups: range) -> SavedState:
    """The keyed state of a subtask with these groups, out of that of all of them before."""
    saved = list(saved)
    keyed = [each.keyed for each in saved if each.keyed is not None]
    chunks = tuple(each.within(groups) for state in saved for each in state.chunks)
    return SavedState(redistribute(keyed, groups) if keyed else None, chunks=chunks)
