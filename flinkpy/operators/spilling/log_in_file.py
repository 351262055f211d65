"""Slices that a batch job has no room for in memory: a log (``state.slice_log``) in a file. Keys
are parted by a prime, so that each subtask has some of every part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flinkpy.core.files.spill_file import SpillFile
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

PARTS = 61


class LogInFile:
    """Pieces are bytes."""

    def __init__(self, memory: OperatorMemory) -> None:
        self._memory = memory
        self._file: SpillFile | None = None
        self._places: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.groups = range(PARTS)
        self.starts: set[int] = set()
        self.is_read = False  # windows close: slices must stay as they are

    def memory(self) -> int:
        """How many bytes the operator may keep in memory. What is written, or put together, takes
        three times its size for a moment."""
        return (self._memory.limit or 0) // 4

    def write(self, start: int, pieces: Mapping[int, Any]) -> None:
        """Appends a piece to each of these parts."""
        if self._file is None:
            self._file = self._memory.raw_file()
        for group, data in pieces.items():
            place = self._file.append([data]), len(data)
            self._places.setdefault((start, group), []).append(place)
        self.starts.add(start)
        self._memory.freed(sum(map(len, pieces.values())))

    def pieces(self, start: int, group: int) -> list[Any]:
        """What a slice has of a part, in the order in which it was written."""
        self.is_read = True
        if self._file is None:
            return []
        return [self._file.read(*place) for place in self._places.get((start, group), ())]

    def forget(self, start: int) -> None:
        """The slice is gone."""
        self.starts.discard(start)
        for group in self.groups:
            self._places.pop((start, group), None)
