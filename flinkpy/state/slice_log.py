"""Records of slices that an operator has no room for in memory, and that it needs only when a
window closes: a log. Each slice has for each key group pieces, in the order in which they were
written. Nothing is read to write one, and a window is put together key group by key group.

What a piece is, is the operator's matter: some records of rows, or a batch of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.timed_entries import TimedEntries

# the key group, the number of the next piece, and what the operator notes of the group
SavedGroup: TypeAlias = "tuple[int, int, Any]"


class PiecesOfSlices(Protocol):
    """What an operator writes and reads of a log. ``groups`` are the parts of the keys; ``starts``
    the slices that have pieces."""

    groups: range
    starts: set[int]

    def memory(self) -> int: ...

    def write(self, start: int, pieces: Mapping[int, Any]) -> None: ...

    def pieces(self, start: int, group: int) -> list[Any]: ...

    def forget(self, start: int) -> None: ...


class SliceLog:
    """``key_of`` gives a key of each of these key groups, under which its pieces lie.
    ``restored`` are the key groups as they were saved."""

    def __init__(
        self,
        entries: TimedEntries,
        groups: range,
        key_of: Callable[[int], Any],
        restored: Iterable[SavedGroup],
    ) -> None:
        self._entries, self.groups, self._key_of = entries, groups, key_of
        self.starts = entries.moments()
        self._number = max((number for _, number, _ in restored), default=0)

    def memory(self) -> int:
        """How many bytes the operator may keep in memory, by estimate."""
        return self._entries.memory()

    def write(self, start: int, pieces: Mapping[int, Any]) -> None:
        """Appends a piece to each of these key groups."""
        key_of = self._key_of
        self._entries.append(
            start, self._number, ((key_of(group), piece) for group, piece in pieces.items())
        )
        self._number += 1
        self.starts.add(start)

    def pieces(self, start: int, group: int) -> list[Any]:
        """What a slice has of a key group, in the order in which it was written."""
        if start not in self.starts:
            return []
        return [piece for _, piece in self._entries.pieces(start, self._key_of(group))]

    def forget(self, start: int) -> None:
        """The slice is gone."""
        if start in self.starts:
            self.starts.discard(start)
            self._entries.drop(start)

    def saved(self, note_of: Callable[[int], Any]) -> dict[Any, SavedGroup]:
        """What is saved beside the pieces, with the operator's note of each key group. Without
        pieces, nothing."""
        if not self.starts:
            return {}
        return {self._key_of(group): (group, self._number, note_of(group)) for group in self.groups}


@dataclass(frozen=True)
class RestoredLog:
    """What an operator gets back. ``log`` is None with a backend that has only memory. ``notes``
    are what the operator noted of the key groups. ``pieces`` lay in another backend's log, and are
    the operator's own from now on: slices and pieces by key group, in the order in which they were
    written."""

    log: SliceLog | None
    notes: Mapping[int, Any]
    pieces: Mapping[int, list[tuple[int, Any]]]


def restored_log(
    backend: KeyedStateBackend,
    name: str,
    key_of: Callable[[int], Any],
    notes: Callable[[], Callable[[int], Any]],
) -> RestoredLog:
    """The log that is saved under this name. ``notes`` is called at each freeze; it returns the
    function that makes the note of a key group."""
    log: SliceLog | None = None
    saved = backend.register_region(
        f"{name} groups", lambda: {} if log is None else log.saved(notes())
    ).values()
    by_group = {group: note for group, _, note in saved}
    on_disk = f"{name} on disk"
    entries = backend.timed_entries(on_disk)
    if entries is not None:
        log = SliceLog(entries, backend.statistics.groups, key_of, saved)
        return RestoredLog(log, by_group, {})
    taken = backend.take_timed(on_disk)
    return RestoredLog(
        None, by_group, {group: _in_order(taken.get(key_of(group), {})) for group in by_group}
    )


def _in_order(pieces: Mapping[tuple[int, Any], Any]) -> list[tuple[int, Any]]:
    return [(start, pieces[start, number]) for start, number in sorted(pieces)]


def to_leave(held: Mapping[int, int], most: int) -> Iterator[int]:
    """The slices to write, of these sizes, so that half of what fits is free; none while all of
    them fit. Those that are needed last come first: to add to them, nothing has to be read."""
    total = sum(held.values())
    if total <= most:
        return
    for start in sorted(held, reverse=True):
        if total <= most // 2:
            return
        if held[start]:
            total -= held[start]
            yield start
