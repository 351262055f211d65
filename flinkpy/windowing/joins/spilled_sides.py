"""Records of both sides of a window join of rows as pieces of a file (``spilled_slices``)."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar

from flinkpy.core.keys import canonical_keys
from flinkpy.core.memory import SizeEstimator
from flinkpy.operators.spilling.record_pickler import RecordPickler
from flinkpy.operators.spilling.spilled_slices import PieceForm
from flinkpy.windowing.joins.slices_on_disk import Sides, by_hash

_RECORD = 150  # bytes that a record takes beside itself: in the lists, and in a dict by its key


class SidesForm(PieceForm[Sides]):
    """Pickled, as what a batch job sorts."""

    at_once: ClassVar[int] = 1 << 12  # records of a side in a piece

    def __init__(self) -> None:
        self._sizes, self._pickler = SizeEstimator(), RecordPickler()

    def size(self, piece: Sides) -> int:
        return sum(
            int(self._sizes.bytes_of_rows(values)) + _RECORD * len(values)
            for _, values in piece
            if values
        )

    def dumps(self, piece: Sides) -> bytes:
        return self._pickler.dumps(piece)

    def loads(self, data: bytes) -> Sides:
        first, second = pickle.loads(data)
        return (canonical_keys(first[0]), first[1]), (canonical_keys(second[0]), second[1])

    def by_key(self, piece: Sides, parts: int) -> Iterable[tuple[int, Sides]]:
        return by_hash(piece, parts).items()

    def together(self, pieces: list[Sides]) -> Iterator[Sides]:
        first, second = (
            tuple(list(chain.from_iterable(sides[side][at] for sides in pieces)) for at in range(2))
            for side in range(2)
        )
        yield from self.cut((first[0], first[1]), (second[0], second[1]))

    def cut(self, *sides: tuple[list[object], list[object]]) -> Iterator[Sides]:
        """The records in pieces."""
        for begin in range(0, max(len(keys) for keys, _ in sides), self.at_once):
            end = begin + self.at_once
            first, second = ((keys[begin:end], values[begin:end]) for keys, values in sides)
            yield first, second
