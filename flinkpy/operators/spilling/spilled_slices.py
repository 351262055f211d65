"""What window joins of a batch job have no room for in memory: records of slices, in a file.

No window closes before the input ends, so all records of a job may wait. Nothing is sorted and
nothing is split when it is written: a slice has pieces, in their order. A window that fits into
memory is read as a whole; the records of one that does not are split by their keys first, again and
again until each part fits or has few keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from flinkpy.core.files.spill_file import SpillFile
from flinkpy.state.slice_log import to_leave

if TYPE_CHECKING:  # it imports Arrow, and rows need none
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

P = TypeVar("P")  # a piece: some records of a slice

# Primes: what is left of a hash by one says nothing of what is left by another, nor of the subtask
_PARTS = (31, 37, 41)


class PieceForm(ABC, Generic[P]):
    """What pieces are."""

    @abstractmethod
    def size(self, piece: P) -> int:
        """The bytes that it takes while its window is joined."""

    @abstractmethod
    def dumps(self, piece: P) -> bytes: ...

    @abstractmethod
    def loads(self, data: bytes) -> P: ...

    @abstractmethod
    def by_key(self, piece: P, parts: int) -> Iterable[tuple[int, P]]:
        """The records by the hash of their key, modulo ``parts``."""

    @abstractmethod
    def together(self, pieces: list[P]) -> Iterable[P]:
        """The same records, in their order, in few pieces."""


class _Place(NamedTuple):
    """Where a piece lies, and its size in memory."""

    offset: int
    length: int
    size: int


@dataclass
class _Parts(Generic[P]):
    """Records on their way to files by key."""

    waiting: list[P]
    places: list[_Place]


class SpilledSlices(Generic[P]):
    """``note`` what comes, have it ``spill`` while it is full; in the end take the ``portions`` of
    windows."""

    def __init__(self, form: PieceForm[P], memory: OperatorMemory) -> None:
        self._form, self._memory = form, memory
        self._file: SpillFile | None = None
        self._slices: dict[int, list[_Place]] = {}
        self._held: dict[int, int] = {}  # bytes in memory of each slice
        self._total = 0
        self._is_closing = False

    @property
    def room(self) -> int:
        """How many bytes may be held; as many may be read beside them."""
        return (self._memory.limit or 0) // 2

    # -- records come ------------------------------------------------------------------------------

    def note(self, start: int, piece: P) -> None:
        """This came into the slice."""
        size = self._form.size(piece)
        self._held[start] = self._held.get(start, 0) + size
        self._total += size

    def spill(self, take: Callable[[int], Iterable[P]], room: int | None = None) -> None:
        """Writes slices if more than ``room`` is held. ``take`` gives away the records of a slice,
        in pieces. Nothing once a window has been read: its slices must stay as they are."""
        most = self.room if room is None else room
        if self._total <= most or self._is_closing:
            return
        if self._file is None:
            self._file = self._memory.raw_file()
        for start in list(to_leave(self._held, most)):
            places = self._slices.setdefault(start, [])
            for piece in take(start):
                places.append(self._written(self._file, piece))
            size = self._held.pop(start)
            self._total -= size
            self._memory.freed(size)

    def _written(self, file: SpillFile, piece: P) -> _Place:
        data = self._form.dumps(piece)
        return _Place(file.append([data]), len(data), self._form.size(piece))

    # -- windows -----------------------------------------------------------------------------------

    def close_windows(self) -> None:
        """The input has ended: nothing is written from now on."""
        self._is_closing = True

    def portions(self, starts: Iterable[int], held: Mapping[int, list[P]]) -> Iterator[list[P]]:
        """The records of a window, in parts that fit into memory: all records of a key are in one
        of them, in order of slice and of arrival. ``held`` has those that were not written."""
        self.close_windows()
        starts = list(starts)
        size = sum(place.size for start in starts for place in self._slices.get(start, ()))
        size += sum(self._form.size(piece) for start in starts for piece in held[start])
        return self._fitting(self._pieces(starts, held), size, 0)

    def _pieces(self, starts: Iterable[int], held: Mapping[int, list[P]]) -> Iterator[P]:
        for start in starts:
            if self._file is not None:
                yield from self._read(self._file, self._slices.get(start, ()))
            yield from held[start]

    def _read(self, file: SpillFile, places: Iterable[_Place]) -> Iterator[P]:
        return (self._form.loads(file.read(place.offset, place.length)) for place in places)

    def _fitting(self, pieces: Iterator[P], size: int, level: int) -> Iterator[list[P]]:
        if size <= self.room or level == len(_PARTS):
            yield list(pieces)
            if self._file is not None:
                self._memory.freed(size)
            return
        file = self._memory.raw_file()
        for places in self._split(pieces, file, _PARTS[level]):
            of_part = sum(place.size for place in places)
            # what this level does not split has few keys: the next ones may tell them apart
            yield from self._fitting(self._read(file, places), of_part, level + 1)
        self._memory.drop(file)

    def _split(self, pieces: Iterator[P], file: SpillFile, count: int) -> Iterator[list[_Place]]:
        """Writes records by key."""
        form = self._form
        parts: dict[int, _Parts[P]] = {}
        waiting = 0
        for piece in pieces:
            for number, some in form.by_key(piece, count):
                parts.setdefault(number, _Parts([], [])).waiting.append(some)
            waiting += form.size(piece)
            if waiting > self._memory.block:
                self._write(parts, file)
                waiting = 0
        self._write(parts, file)
        return (part.places for part in parts.values())

    def _write(self, parts: Mapping[int, _Parts[P]], file: SpillFile) -> None:
        for part in parts.values():
            waiting, part.waiting = part.waiting, []
            if waiting:
                part.places += (
                    self._written(file, piece) for piece in self._form.together(waiting)
                )
