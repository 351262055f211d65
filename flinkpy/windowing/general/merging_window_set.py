"""The open windows of one key whose windows merge, and the window under which the state of each is
kept.

State does not move when windows merge: the state of one of them stays where it is (under its state
window), and the state of the others is merged into it. So a session that grows record by record
keeps its state where its first record put it. This file only decides; the caller moves state,
triggers and timers accordingly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from flinkpy.core.errors import EngineError
from flinkpy.windowing.assigners import MergingWindowAssigner
from flinkpy.windowing.windows import MergeCallback, W


@dataclass(frozen=True)
class Merge(Generic[W]):
    """The windows ``merged`` have become ``result``; the state under ``absorbed`` is to be merged
    into that under ``state_window``."""

    result: W
    merged: tuple[W, ...]
    state_window: W
    absorbed: tuple[W, ...]


class _MergeRecorder(MergeCallback[W]):
    def __init__(self) -> None:
        self.groups: list[tuple[W, list[W]]] = []

    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        self.groups.append((merge_result, list(to_be_merged)))


class MergingWindowSet(Generic[W]):
    """The open windows of one key, each with its state window. ``state_windows`` comes from an
    earlier ``snapshot``."""

    def __init__(
        self, assigner: MergingWindowAssigner[Any, W], state_windows: Mapping[W, W] | None = None
    ) -> None:
        self._assigner = assigner
        self._state_windows: dict[W, W] = dict(state_windows or {})
        self.changed = False  # whether the set must be written back

    def state_window(self, window: W) -> W | None:
        """The window under which an open window's state is kept; None if the window is not open."""
        return self._state_windows.get(window)

    def retire(self, window: W) -> None:
        """Removes a window that has ended. Raises EngineError if it was not open."""
        if self._state_windows.pop(window, None) is None:
            raise EngineError(
                f"{window!r} is retired, but is not among {list(self._state_windows)}"
            )
        self.changed = True

    def add(self, window: W) -> tuple[W, list[Merge[W]]]:
        """Opens a record's window. Returns the window that the record is in after merging, and the
        merges to carry out, in order.

        There are no merges if the window lies within one that is open already.
        """
        recorder: _MergeRecorder[W] = _MergeRecorder()
        self._assigner.merge_windows([*self._state_windows, window], recorder)
        found, merges = window, []
        for result, group in recorder.groups:
            if window in group:
                found = result
            merge = self._merge(result, [each for each in group if each in self._state_windows])
            if merge is not None:
                merges.append(merge)
        if found not in self._state_windows:
            self._state_windows[found] = found
            self.changed = True
        return found, merges

    def _merge(self, result: W, merged: list[W]) -> Merge[W] | None:
        """Merges the open windows of a group, under the state window of the first."""
        if not merged or merged == [result]:
            return None
        state_window, *absorbed = [self._state_windows.pop(each) for each in merged]
        self._state_windows[result] = state_window
        self.changed = True
        return Merge(result, tuple(merged), state_window, tuple(absorbed))

    def snapshot(self) -> dict[W, W]:
        """A copy of the open windows and their state windows."""
        return dict(self._state_windows)

    def __len__(self) -> int:
        return len(self._state_windows)

    def __repr__(self) -> str:
        return f"<MergingWindowSet {self._state_windows}>"
