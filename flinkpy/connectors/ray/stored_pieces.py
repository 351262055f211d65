"""A program's tables and collections for jobs on Ray: large ones lie in the object store, where
readers fetch them; small ones travel with the job.

Data in the store ends with its program, so a job that outlives the program (``flinkpy run -d``)
takes all its data with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any
from weakref import WeakKeyDictionary

from flinkpy.connectors.memory.pieces import Pieces, pickled
from flinkpy.connectors.ray.object_store import Store, forget_with, is_own, keep, normalize_for_ray
from flinkpy.core.program.code import OutOfBand

SMALL_BYTES = 1 << 20  # data up to this size travels with the job, which is cheaper than a keeper
BLOCK_BYTES = 32 << 20  # size of a table's blocks in the store


class StoredPieces(Pieces):
    """Pieces in the object store, held by a keeper (``flinkpy.connectors.ray.block_keeper``)."""

    def __init__(self, keeper: str, rows: list[int]) -> None:
        super().__init__((), rows)
        self.keeper = keeper
        self._store: Store | None = None

    def _kept(self) -> Store:
        if self._store is None:
            self._store = Store(self.keeper)
        return self._store

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]:
        return self._kept().fetch(number, on_done)

    def job_started(self) -> None:
        self._kept().job_started()

    def job_ended(self) -> None:
        self._kept().job_ended()

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredPieces, (self.keeper, self.rows)


def handed_over(data: OutOfBand, *, outlives_program: bool) -> OutOfBand:
    """The data in the form in which a job on Ray takes it along."""
    if not isinstance(data, Pieces):
        return data
    tables = [piece for piece in data.pieces if hasattr(piece, "schema")]
    ready = (
        data
        if sum(table.nbytes for table in tables) > SMALL_BYTES and not outlives_program
        else pickled(data)
    )
    if (
        outlives_program
        or sum(len(piece) for piece in ready.pieces if isinstance(piece, bytes))
        + sum(t.nbytes for t in tables)
        <= SMALL_BYTES
    ):
        return ready
    return _stored(data, ready)


# this program's pieces that are in the store
_known: WeakKeyDictionary[Pieces, StoredPieces] = WeakKeyDictionary()


_kept: list[Pieces] = []  # what no source keeps for its job stays as long as the program


def _stored(data: Pieces, ready: Pieces) -> StoredPieces:
    stored = _known.get(data)
    # the program has since connected to another Ray
    if stored is None or not is_own(stored.keeper):
        blocks = list(_blocks(ready))
        stored = _known[data] = StoredPieces(
            keep(block for block, _ in blocks), [rows for _, rows in blocks]
        )
        forget_with(data, stored.keeper)
        if data.is_asked_for_by_subtasks:
            _kept.append(data)
    return stored


def _blocks(ready: Pieces) -> Iterator[tuple[Any, int]]:
    for piece, rows in zip(ready.pieces, ready.rows):
        if isinstance(piece, bytes):
            yield piece, rows
        else:
            step = max(1, rows * BLOCK_BYTES // piece.nbytes)
            for start in range(0, rows, step):
                part = piece.slice(start, step)
                yield normalize_for_ray(part), part.num_rows
