"""What a window join knows of the windows that had fired before it was restored. Keys may come from
several subtasks, not all at the same time, and windows that had fired are not fired again. Records
that come for them, while the operator catches up, have those fire again that still take some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.keys import key_group
from flinkpy.windowing.joins.aligned_windows import AlignedWindows
from flinkpy.windowing.joins.frozen_slices import FiredUntil
from flinkpy.windowing.windows import TimeWindow

Again: TypeAlias = "dict[Any, tuple[int, ...]]"  # key -> the starts of windows that fire again
# of records of a key group on disk: until when their windows had fired, and those that fire again
SavedGroup: TypeAlias = "tuple[int, Again]"


class FiredBefore:
    """Of keys in memory it is known window by window, of key groups on disk until when."""

    def __init__(self, windows: AlignedWindows, max_parallelism: int) -> None:
        self._windows, self._max_parallelism = windows, max_parallelism
        # window start -> key -> whether the window had ended
        self._by_window: dict[int, dict[Any, bool]] = {}
        # up to which moment the windows of the key, or the key group, had fired
        self._ahead: dict[Any, int] = {}
        self._groups_ahead: dict[int, int] = {}
        self._again: Again = {}
        self._caught_up = MIN_TIMESTAMP

    # -- restored ----------------------------------------------------------------------------------

    def key(self, key: object, until: int, starts: Iterable[int], again: Iterable[int]) -> None:
        """A key had records in the slices with these starts."""
        self._ahead[key] = until
        self._caught_up = max(self._caught_up, until)
        if again:
            self._again[key] = (*self._again.get(key, ()), *again)
        open_again = self._again.get(key, ())
        for start in starts:
            for window in self._windows.slicing.windows_of(start):
                if window.max_timestamp() <= until and window.start not in open_again:
                    self._by_window.setdefault(window.start, {})[key] = self._had_ended(
                        window, until
                    )

    def groups(self, told: Mapping[int, SavedGroup]) -> None:
        """These key groups have records on disk."""
        for group, (until, again) in told.items():
            self._groups_ahead[group] = until
            self._caught_up = max(self._caught_up, until)
            self._again.update(again)

    def _had_ended(self, window: TimeWindow, until: int) -> bool:
        return self._windows.cleanup_time(window.end) <= until

    # -- while it catches up -----------------------------------------------------------------------

    @property
    def is_catching_up(self) -> bool:
        return bool(self._ahead or self._groups_ahead)

    @property
    def holds_windows(self) -> bool:
        """Whether there are windows that had fired and are not complete again."""
        return bool(self._by_window or self._groups_ahead)

    def gets_record(self, window: TimeWindow, key: object, had: Callable[[], bool]) -> None:
        """A record of the key comes into the window. ``had``: whether one of its slices has records
        of the key on disk."""
        of_window = self._by_window.get(window.start)
        had_ended = None if of_window is None else of_window.get(key)
        if had_ended is False:
            assert of_window is not None
            del of_window[key]
            self._fire_again(window, key)
        elif had_ended is None and self._groups_ahead:
            until = self._groups_ahead.get(key_group(key, self._max_parallelism), MIN_TIMESTAMP)
            if window.max_timestamp() > until or window.start in self._again.get(key, ()):
                return
            if self._had_ended(window, until) and had():
                self._by_window.setdefault(window.start, {})[key] = True
            else:
                self._fire_again(window, key)

    def _fire_again(self, window: TimeWindow, key: object) -> None:
        self._again[key] = (*self._again.get(key, ()), window.start)

    def take(self, window: TimeWindow) -> dict[Any, bool]:
        """The keys in memory for which the window had fired; it is complete now."""
        return self._by_window.pop(window.start, {})

    def on_disk(self, window: TimeWindow, group: int) -> Callable[[Any], bool] | None:
        """Which keys of those on disk the window is still to fire for; None: for all."""
        if window.max_timestamp() > self._groups_ahead.get(group, MIN_TIMESTAMP):
            return None
        again, start = self._again, window.start
        return lambda key: start in again.get(key, ())

    def advanced(self, watermark: int) -> None:
        """Windows up to the watermark have fired."""
        if self.is_catching_up and watermark >= self._caught_up:
            self._ahead, self._groups_ahead, self._again = {}, {}, {}

    # -- saved -------------------------------------------------------------------------------------

    def frozen(self) -> FiredUntil:
        """Of keys in memory, as of now."""
        windows = self._windows
        return FiredUntil(windows.watermark, self._ahead, dict(self._again), windows.slicing.size)

    def frozen_groups(self) -> Callable[[int], SavedGroup]:
        """Of key groups with records on disk, as of now."""
        now, again = self._windows.watermark, dict[int, Again]()
        for key, starts in self._again.items():
            again.setdefault(key_group(key, self._max_parallelism), {})[key] = starts
        return lambda group: (max(now, self._groups_ahead.get(group, now)), again.get(group, {}))
