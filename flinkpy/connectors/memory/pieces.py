"""Records in the program's memory, in pieces: the tables and collections that a program hands over.

Their sources read by index. In embedded mode they read the program's own objects without copying.
On Ray the pieces are put once into the object store (``flinkpy.connectors.ray.stored_pieces``);
small ones travel with the job.

A piece is a ``pyarrow.Table``, a list of values that cannot be changed in place, or the pickle of a
list. Values that could be changed are pickled when the program hands them over. So a job reads them
as they were then, and if it changes its records, it changes neither the program's nor those of the
next job."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import Any

from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.core.program.code import OutOfBand, dumps_data, loads

PIECE_ROWS = 1 << 14  # of a pickled collection: the first record has to wait for its whole piece


class Pieces(OutOfBand):
    """Pieces of data; ``rows`` says how many records each has."""

    is_asked_for_by_subtasks = False  # whenever one starts; else a source of the job keeps them

    def __init__(self, pieces: Sequence[Any], rows: Iterable[int]) -> None:
        self.pieces, self._ends = tuple(pieces), tuple(accumulate(rows))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def span(self, index: int) -> tuple[int, int, int]:
        """The number of the piece that contains the record of that index, and the indices where the
        piece begins and ends."""
        number = bisect_right(self._ends, index)
        return number, self._ends[number - 1] if number else 0, self._ends[number]

    @property
    def rows(self) -> list[int]:
        """The number of records in each piece."""
        return [end - start for start, end in zip((0, *self._ends), self._ends)]

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]:
        """The piece. If it is not here yet, ``on_done`` is called in another thread when it is."""
        fetched: Future[Any] = Future()
        fetched.set_result(self.pieces[number])
        return fetched

    def job_started(self) -> None:
        """A job is going to read the pieces."""

    def job_ended(self) -> None:
        """The job has ended."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Pieces, (pickled(self).pieces, self.rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} records in {len(self._ends)}>"


def opened(piece: Any) -> Any:
    """The piece as a list or table; unpickles it if needed."""
    return piece if isinstance(piece, list) or hasattr(piece, "schema") else loads(piece)


def pieces_of(values: list[Any]) -> Pieces:
    """The values of a collection as pieces; ``values`` must be a list that nobody else has. Raises
    ProgramError for values that could be changed and cannot be pickled."""
    if not could_be_mutated(values):
        return Pieces([values], [len(values)])
    parts = cut_list(values)
    return Pieces(
        [dumps_data(_each_its_own(part), "the collection") for part in parts], map(len, parts)
    )


def pickled(pieces: Pieces) -> Pieces:
    """The same records, with each piece as bytes."""
    parts: list[tuple[bytes, int]] = []
    for piece, rows in zip(pieces.pieces, pieces.rows):
        if isinstance(piece, bytes):
            parts.append((piece, rows))
        else:
            parts += [
                (dumps_data(part, "the collection"), len(part))
                for part in (cut_list(piece) if isinstance(piece, list) else [piece])
            ]
    return Pieces([part for part, _ in parts], [rows for _, rows in parts])


def cut_list(values: list[Any]) -> list[list[Any]]:
    """The values in lists of at most ``PIECE_ROWS``."""
    return [values[start : start + PIECE_ROWS] for start in range(0, len(values), PIECE_ROWS)]


def _each_its_own(values: list[Any]) -> list[Any]:
    """The values as separate objects: ``[[0]] * 3`` becomes three lists, as in Flink, which
    serializes records one by one. So changing one record changes no other."""
    if len(set(map(id, values))) == len(values):
        return values
    first_at = {id(value): at for at, value in reversed(list(enumerate(values)))}
    return [
        value if first_at[id(value)] == at else private_copy(value)
        for at, value in enumerate(values)
    ]
