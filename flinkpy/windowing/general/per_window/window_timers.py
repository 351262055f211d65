"""Timers of windows, grouped by moment, because all keys of a window have theirs at the same
moment.

A heap has each moment once, and a dict the (key, window) pairs of each moment in the order in which
they were registered. ``due`` removes the pairs of the earliest moment first, including pairs that
are added meanwhile."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.operators.base import Work
from flinkpy.operators.context import ProcessingTimeService
from flinkpy.operators.wake_up import WakeUp
from flinkpy.state.layers.layers import Layers
from flinkpy.state.layers.overlay import parts_of_entries
from flinkpy.state.snapshots.frozen_tables import parts_of

if TYPE_CHECKING:
    pass

_AT_ONCE = 1 << 10  # timers, or moments, between two turns
_SLACK = 64  # the heap may have this many more moments without timers than with timers

Timer: TypeAlias = "tuple[Any, Any]"  # key, window
# of one moment, in the order in which they were registered
Waiting: TypeAlias = "dict[Timer, None]"
Frozen: TypeAlias = "Mapping[int, Mapping[Timer, None]]"  # by moment
SavedTimers: TypeAlias = "dict[Any, dict[Any, list[int]]]"  # key -> window -> moments


class WindowTimers:
    """The timers of one time domain."""

    few_moments: int = 1 << 10
    few_timers: int = 1 << 6  # of one moment, up to which a freeze copies them

    def __init__(self) -> None:
        self._moments: list[int] = []
        self.fired = 0
        self._waiting: dict[int, Waiting] = {}
        self._layers = Layers("timers", self._waiting, self._rebind, dict.copy, 0)
        # of moments that were frozen by themselves, and are not settled yet
        self._crowded: dict[int, Layers] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, moment: int, key: object, window: object) -> None:
        waiting = self._waiting.get(moment)
        if waiting is None:
            self._waiting[moment] = {(key, window): None}
            heapq.heappush(self._moments, moment)
        else:
            waiting[(key, window)] = None

    def remove(self, moment: int, key: object, window: object) -> None:
        waiting = self._waiting.get(moment)
        if waiting is None:
            return
        waiting.pop((key, window), None)
        # what stands for a frozen one would have to look for a timer that is left
        if type(waiting) is dict and not waiting:
            del self._waiting[moment]
            if self._layers.is_settled and len(self._moments) > 2 * len(self._waiting) + _SLACK:
                self._moments[:] = self._waiting
                heapq.heapify(self._moments)

    def clear(self) -> None:
        self._moments.clear()
        self._waiting.clear()
        self._crowded.clear()

    def next_moment(self) -> int | None:
        """The moment of the earliest timer; None without timers."""
        return self._next_in_memory()

    def _next_in_memory(self) -> int | None:
        moments, waiting = self._moments, self._waiting
        while moments:
            if waiting.get(moments[0]):
                return moments[0]
            waiting.pop(heapq.heappop(moments), None)
        return None

    def due(self, now: int) -> Iterator[tuple[int, Timer]]:
        """Removes and yields the timers up to ``now``, earliest first, including those that are
        added meanwhile."""
        moments = self._moments
        while (moment := self._next_in_memory()) is not None and moment <= now:
            waiting = self._waiting[moment]
            for timer in list(waiting):
                if timer in waiting:  # it was not deleted meanwhile
                    del waiting[timer]
                    self.fired += 1
                    yield moment, timer
                    if not moments or moments[0] != moment:
                        break  # an earlier timer was added

    def all_there_are(self) -> Iterator[tuple[int, Timer]]:
        """Removes and yields all timers, earliest first; those that are added meanwhile are
        dropped."""
        known = {(moment, timer) for moment, waiting in self._waiting.items() for timer in waiting}
        for each in self.due(MAX_TIMESTAMP):
            if each in known:
                known.discard(each)
                yield each

    # -- checkpoints -------------------------------------------------------------------------------

    def freeze(self) -> Callable[[Turns], SavedTimers]:
        """What gives the timers of now as state of their keys. Where there are many moments, the
        dict of all of them is frozen, and a moment's timers are copied when it is touched; else
        each moment with many timers is frozen by itself."""
        if self._crowded or (self._layers.is_settled and len(self._waiting) <= self.few_moments):
            frozen: Frozen = {
                moment: self._frozen_at(moment, waiting)
                for moment, waiting in self._waiting.items()
            }
        else:
            frozen = self._layers.freeze()
        return partial(_by_key, frozen)

    def _frozen_at(self, moment: int, waiting: Waiting) -> Mapping[Timer, None]:
        layers = self._crowded.get(moment)
        if layers is None or layers.entries is not waiting:
            if len(waiting) <= self.few_timers:
                return waiting.copy()
            layers = self._crowded[moment] = Layers(
                "timers", waiting, partial(self._rebind_at, moment), None, 0
            )
        return layers.freeze()

    def _rebind(self, waiting: dict[int, Waiting]) -> None:
        self._waiting = waiting

    def _rebind_at(self, moment: int, waiting: Waiting) -> None:
        self._waiting[moment] = waiting

    def after_batch(self) -> None:
        """Some of what a freeze has left to do."""
        if not self._layers.is_settled:
            self._layers.after_batch()
        for moment, layers in list(self._crowded.items()):
            if self._waiting.get(moment) is layers.entries:  # else it has fired
                layers.after_batch()
                if not layers.is_settled:
                    continue
            del self._crowded[moment]

    def restore(self, saved: Mapping[Any, Mapping[Any, list[int]]]) -> None:
        """Adds the timers that were saved."""
        for key, windows in saved.items():
            for window, moments in windows.items():
                for moment in moments:
                    self.add(moment, key, window)


class WindowTimerService:
    """The timers of an operator's windows, its watermark and its clock. ``on_processing_time`` is
    called with an iterator over the due timers.

    As in Flink, a processing-time timer is due when its millisecond is over, because records of
    that millisecond still belong to a window that ends with it."""

    def __init__(
        self,
        processing_time: ProcessingTimeService,
        on_processing_time: Callable[[Iterator[tuple[int, Timer]]], None],
        event: WindowTimers,
        processing: WindowTimers,
    ) -> None:
        self._time, self._on_processing_time = processing_time, on_processing_time
        self.event, self.processing = event, processing
        self.watermark = MIN_TIMESTAMP
        self._wake_up = WakeUp(processing_time, self._due)
        self._firing = False

    def now_ms(self) -> int:
        return self._time.now_ms()

    def add_processing(self, moment: int, key: object, window: object) -> None:
        self.processing.add(moment, key, window)
        if not self._firing:
            self._wake_up.at(moment)

    def arm(self) -> None:
        """Sets the task's one timer for the earliest timer of all windows."""
        if not self._firing:
            self._wake_up.at(self.processing.next_moment())

    def after_batch(self) -> None:
        """Some of what a freeze has left to do."""
        self.event.after_batch()
        self.processing.after_batch()

    def firing(self, work: Work) -> Work:
        """Does the work of the due timers, then sets the task's timer for the next one."""
        yield from work
        self._firing = False
        self.arm()

    def _due(self, moment: int) -> None:
        self._firing = True
        self._on_processing_time(self.processing.due(moment))

    @property
    def fired_timers(self) -> int:
        """How many have fired so far."""
        return self.event.fired + self.processing.fired

    def disarm(self) -> None:
        """Cancels the task's timer."""
        self._wake_up.cancel()


def _by_key(frozen: Frozen, turns: Turns) -> SavedTimers:
    found: SavedTimers = {}
    for moments, of_moments in parts_of_entries(frozen, _AT_ONCE):
        for moment, waiting in zip(moments, of_moments):
            for timers, _ in parts_of_entries(waiting, _AT_ONCE):
                for key, window in timers:
                    found.setdefault(key, {}).setdefault(window, []).append(moment)
                turns.give_way()
        turns.give_way()
    for keys in parts_of(found, turns):
        for key in keys:
            for moments in found[key].values():
                moments.sort()
    return found
