"""Timers that an operator has no room for in memory: those from a *horizon* on lie on disk, in the
order of key group and moment (``timed_entries``).

A queue has the timers before the horizon in its own form. When they are too many, the horizon comes
nearer, and the timers behind it go to disk, some with each batch. When time gets there, the nearest
ones are read, and it goes back. A timer behind the horizon is added and deleted without a look
whether it is there: equal timers have one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from itertools import islice
from typing import Any, ClassVar, TypeAlias

from flinkpy.core.memory import size_of
from flinkpy.state.timed_entries import TimedEntries

FarTimer: TypeAlias = "tuple[int, Any, Any]"  # moment, key, and what tells timers of a key apart
NEVER = 1 << 63
_TIMER = 300  # bytes that a timer takes beside its key


class FarTimers:
    """``horizon``: no timer before it is here. ``draining``: the moment whose timers have been read
    in part; new ones of it belong to the queue."""

    few: ClassVar[int] = 1 << 12  # timers that are written, or looked at, together

    def __init__(self, entries: TimedEntries) -> None:
        self._entries = entries
        first = entries.first_moment()
        self.horizon = NEVER if first is None else first
        self.draining: int | None = None
        self._unwritten: dict[FarTimer, None] = {}
        self._gone: dict[FarTimer, None] = {}  # deleted, and perhaps on disk
        self._room = 0  # so many timers may come into the queue until it is counted again

    # -- one timer ---------------------------------------------------------------------------------

    def add(self, timer: FarTimer) -> None:
        """A timer behind the horizon."""
        self._unwritten[timer] = None
        self._gone.pop(timer, None)

    def remove(self, timer: FarTimer) -> None:
        """A timer behind the horizon, or of the moment that is drained, is not on disk any more."""
        self._unwritten.pop(timer, None)
        self._gone[timer] = None

    # -- the queue's memory ------------------------------------------------------------------------

    def is_due(self, added: int) -> bool:
        """So many timers came into the queue. Whether it is time to count those that it has."""
        self._room -= added
        return self._room < 0

    def limit(self, count: int, key: Any) -> int | None:
        """How many of the queue's ``count`` timers, one with this key, are to stay; None if all of
        them fit."""
        most = self._entries.memory() // (_TIMER + size_of(key))
        self._room = max((most if count <= most else most - most // 2) - min(count, most), self.few)
        return None if count <= most else most // 2

    def take(self, horizon: int, timers: Iterable[FarTimer]) -> None:
        """The horizon comes nearer. These timers, all that the queue had behind it, are here from
        now on."""
        self.horizon, self.draining = horizon, None
        self._entries.rewind()
        self._unwritten.update(dict.fromkeys(timers))

    def after_batch(self) -> None:
        """Writes some timers."""
        if len(self._gone) >= self.few:
            self._delete()
        if len(self._unwritten) >= self.few:
            self._write(2 * self.few)

    def unwritten(self) -> list[FarTimer]:
        """What is here and not yet on disk, for a snapshot. Deletions are on disk from now on."""
        self._delete()
        return list(self._unwritten)

    # -- time --------------------------------------------------------------------------------------

    @property
    def next_moment(self) -> int | None:
        """No timer here is earlier; None without timers."""
        first = self.horizon if self.draining is None else self.draining
        return None if first == NEVER else first

    def nearest(self) -> list[FarTimer]:
        """Removes and gives the nearest timers, some thousand, of whole moments or of one moment.
        The queue has no timer behind the horizon."""
        self._delete()
        self._write(len(self._unwritten))
        found, next_moment, is_cut = self._entries.take_first(self.few)
        self.draining = next_moment if is_cut else None
        if next_moment is None:
            self.horizon = NEVER
        else:
            self.horizon = next_moment + 1 if is_cut else next_moment
        return found

    def _write(self, most: int) -> None:
        unwritten = self._unwritten
        timers = [unwritten.popitem()[0] for _ in range(min(most, len(unwritten)))]
        left = iter(timers)
        while part := list(islice(left, self.few)):
            self._entries.put_named(part)

    def _delete(self) -> None:
        if self._gone:
            self._entries.remove_named(list(self._gone))
            self._gone.clear()


def cut(waiting: Mapping[int, Sized], stay: int) -> list[int]:
    """The moments to take of these, the earliest first, so that no more than ``stay`` timers are
    left."""
    moments, count = sorted(waiting), 0
    for at, moment in enumerate(moments):
        count += len(waiting[moment])
        if count > stay:
            return moments[at:]
    return []
