"""Records in the program's memory, in pieces: what a program hands over as tables and collections.

Their sources read by index. Embedded, they read the very objects of the program: nothing is copied. On Ray the pieces go into the object store, once
(``flinkpy.connectors.ray.stored_pieces``), or with the job where they are small.

A piece is a ``pyarrow.Table``, a list of values that cannot be changed in place, or the pickle of a list. What could be changed is pickled when the
program hands it over: so it is read as it was then, and a job that changes its records changes neither the program's nor those of the next job.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import Any

from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.core.program.code import OutOfBand, dumps_data, loads

PIECE_ROWS = 1 << 14  # of a collection that is pickled: the first record has to wait for the first piece


class Pieces(OutOfBand):
    """``rows`` says how many records each piece has."""

    def __init__(self, pieces: Sequence[Any], rows: Iterable[int]) -> None:
        self.pieces, self._ends = tuple(pieces), tuple(accumulate(rows))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def span(self, index: int) -> tuple[int, int, int]:
        """The number of the piece that has that record; the indices where it begins and ends."""
        number = bisect_right(self._ends, index)
        return number, self._ends[number - 1] if number else 0, self._ends[number]

    @property
    def rows(self) -> list[int]:
        """How many records each piece has."""
        return [end - start for start, end in zip((0, *self._ends), self._ends)]

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]:
        """A piece; where that takes time, ``on_done`` is called in another thread when it is here."""
        fetched: Future[Any] = Future()
        fetched.set_result(self.pieces[number])
        return fetched

    def job_started(self) -> None:
        """A job is going to read them."""

    def job_ended(self) -> None:
        """It has ended."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Pieces, (pickled(self).pieces, self.rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} records in {len(self._ends)}>"


def opened(piece: Any) -> Any:
    """A list or table; what has been pickled is unpickled."""
    return piece if isinstance(piece, list) or hasattr(piece, "schema") else loads(piece)


def pieces_of(values: list[Any]) -> Pieces:
    """The values of a collection, in a list nobody else has. ProgramError for one that could be changed and cannot be pickled."""
    if not could_be_mutated(values):
        return Pieces([values], [len(values)])
    parts = cut_list(values)
    return Pieces([dumps_data(_each_its_own(part), "the collection") for part in parts], map(len, parts))


def pickled(pieces: Pieces) -> Pieces:
    """The same, each piece as bytes."""
    parts: list[tuple[bytes, int]] = []
    for piece, rows in zip(pieces.pieces, pieces.rows):
        if isinstance(piece, bytes):
            parts.append((piece, rows))
        else:
            parts += [(dumps_data(part, "the collection"), len(part)) for part in (cut_list(piece) if isinstance(piece, list) else [piece])]
    return Pieces([part for part, _ in parts], [rows for _, rows in parts])


def cut_list(values: list[Any]) -> list[list[Any]]:
    """Lists of ``PIECE_ROWS`` values at most."""
    return [values[start:start + PIECE_ROWS] for start in range(0, len(values), PIECE_ROWS)]


def _each_its_own(values: list[Any]) -> list[Any]:
    """``[[0]] * 3`` becomes three lists, as in Flink, which serializes records one by one: who changes one of them changes no other."""
    if len(set(map(id, values))) == len(values):
        return values
    first_at = {id(value): at for at, value in reversed(list(enumerate(values)))}
    return [value if first_at[id(value)] == at else private_copy(value) for at, value in enumerate(values)]
