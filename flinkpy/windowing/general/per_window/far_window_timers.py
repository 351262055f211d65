"""Timers of windows of which memory has those that are due first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from flinkpy.core.clock import Turns
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.far_timers import FarTimer, FarTimers, cut
from flinkpy.windowing.general.per_window.window_timers import SavedTimers, Timer, WindowTimers
from flinkpy.windowing.windows import TimeWindow, time_window


class FarWindowTimers(WindowTimers):
    """Timers from the horizon on are those of ``far``."""

    def __init__(self, far: FarTimers) -> None:
        super().__init__()
        self._far = far
        self._added = 0

    def add(self, moment: int, key: object, window: object) -> None:
        far = self._far
        if moment >= far.horizon:
            far.add((moment, key, _name(window)))
            return
        if moment == far.draining:
            far.remove((moment, key, _name(window)))
        super().add(moment, key, window)
        self._added += 1

    def remove(self, moment: int, key: object, window: object) -> None:
        far = self._far
        if moment >= far.horizon or moment == far.draining:
            far.remove((moment, key, _name(window)))
        super().remove(moment, key, window)

    def next_moment(self) -> int | None:
        moments = (self._next_in_memory(), self._far.next_moment)
        return min((moment for moment in moments if moment is not None), default=None)

    def due(self, now: int) -> Iterator[tuple[int, Timer]]:
        while True:
            yield from super().due(min(now, self._far.horizon - 1))
            first = self._far.next_moment
            if first is None or first > now:
                return
            for moment, key, name in self._far.nearest():
                super().add(moment, key, _window(name))

    def all_there_are(self) -> Iterator[tuple[int, Timer]]:
        while self._far.next_moment is not None:
            for moment, key, name in self._far.nearest():
                super().add(moment, key, _window(name))
        yield from super().all_there_are()

    def after_batch(self) -> None:
        super().after_batch()
        added, self._added = self._added, 0
        if self._far.is_due(added):
            self._relieve()
        self._far.after_batch()

    def _relieve(self) -> None:
        """Has the latest timers leave memory, if there are too many."""
        waiting = self._waiting
        key = next((timer[0] for timers in waiting.values() for timer in timers), None)
        stay = self._far.limit(len(self), key)
        if stay is None:
            return
        if leaving := cut(waiting, stay):
            self._far.take(leaving[0], _flat((each, waiting.pop(each)) for each in leaving))
            self._moments[:] = waiting
            heapq.heapify(self._moments)

    def freeze(self) -> Callable[[Turns], SavedTimers]:
        held, unwritten = super().freeze(), self._far.unwritten()
        return partial(_with_far, held, unwritten)


def _flat(leaving: Iterable[tuple[int, Any]]) -> Iterator[FarTimer]:
    for moment, timers in leaving:
        for key, window in timers:
            yield moment, key, _name(window)


def _with_far(
    held: Callable[[Turns], SavedTimers], unwritten: list[FarTimer], turns: Turns
) -> SavedTimers:
    found = held(turns)
    for moment, key, name in unwritten:
        moments = found.setdefault(key, {}).setdefault(_window(name), [])
        if moment not in moments:
            moments.append(moment)
            moments.sort()
    return found


def _name(window: Any) -> Any:
    """The window as a plain tuple, which takes fewer bytes."""
    return tuple(window) if type(window) is TimeWindow else window


def _window(name: Any) -> Any:
    return time_window(name) if type(name) is tuple else name


def window_timers(backend: KeyedStateBackend, name: str) -> WindowTimers:
    """The timers that are saved under this name."""
    on_disk = f"{name} on disk"
    entries = backend.timed_entries(on_disk)
    timers = WindowTimers() if entries is None else FarWindowTimers(FarTimers(entries))
    timers.restore(backend.register_region(name, timers.freeze))
    saved: Mapping[Any, Any] = backend.take_timed(on_disk) if entries is None else {}
    for key, at in saved.items():
        for moment, window in at:
            timers.add(moment, key, _window(window))
    return timers
