"""Events that wait for the watermark and have no room in memory: a log in slices of time
(``state.slice_log``). The latest leave memory first, and a slice comes back when its turn is near.

A piece has the numbers of its events, which ascend in the order in which they came, their times,
and the events, as objects or, of a stream of columns, as an Arrow stream. Whole slices leave, so of
one slice what is on disk came before what is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from flinkpy.core.keys import key_group, key_groups
from flinkpy.operators.context import TaskInfo
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.slice_log import SliceLog, restored_log, to_leave

WIDTH = 1 << 13  # milliseconds of events that leave memory and come back together

# numbers, times, events
Piece: TypeAlias = "tuple[list[int], list[int], list[Any] | bytes]"


class EventsOnDisk:
    """``name`` is that of the state of the events in memory."""

    def __init__(self, backend: KeyedStateBackend, name: str, task: TaskInfo) -> None:
        self.max_parallelism = task.max_parallelism
        self._written = 0  # the number of the next event
        found = restored_log(backend, f"{name} far", self._key_of, self._note)
        self._log: SliceLog | None = found.log
        self._written = max(found.notes.values(), default=0)
        self.restored = [piece for pieces in found.pieces.values() for _, piece in pieces]
        """Pieces of another backend's disk, which belong into memory. Of a slice they came before
        what was in memory."""

    def _key_of(self, group: int) -> int:
        from flinkpy.operators.columnar.tables_by_group import key_of_group  # imports Arrow

        return key_of_group(group, self.max_parallelism)

    def _note(self) -> Callable[[int], int]:
        written = self._written
        return lambda group: written

    @property
    def memory(self) -> int | None:
        """How many bytes of events may be in memory, by estimate; None: any number."""
        return None if self._log is None else self._log.memory()

    def moments(self, watermark: int) -> list[int]:
        """For which moments events are taken on the way to this watermark, so that they come back a
        slice at a time."""
        starts = () if self._log is None else self._log.starts
        ends = sorted(start + WIDTH - 1 for start in starts)
        return [*(end for end in ends if end < watermark), watermark]

    # -- events that leave -------------------------------------------------------------------------

    def leaving(self, events: Mapping[int, int], most: int, watermark: int) -> set[int]:
        """The slices to write, of which there are so many events in memory, so that half of the
        most is free; but for those that the watermark has come to."""
        return {start for start in to_leave(events, most) if start > watermark}

    def write_rows(self, start: int, keys: list[Any], times: list[int], events: list[Any]) -> None:
        """Writes events of a slice, in the order in which they came."""
        pieces: dict[int, tuple[list[int], list[int], list[Any]]] = {}
        numbers = range(self._written, self._written + len(events))
        groups = key_groups(keys, self.max_parallelism)
        for group, number, time, event in zip(groups, numbers, times, events):
            piece = pieces.get(group)
            if piece is None:
                piece = pieces[group] = [], [], []
            piece[0].append(number)
            piece[1].append(time)
            piece[2].append(event)
        self._write(start, pieces, len(events))

    def write_columns(self, start: int, data: Any, times: Any, key: Sequence[str]) -> None:
        """The same of a record batch with these key columns; without, all have one key."""
        import numpy as np
        import pyarrow as pa

        from flinkpy.operators.columnar.tables_by_group import group_numbers
        from flinkpy.state.snapshots.arrow_streams import to_bytes

        most = self.max_parallelism
        groups = group_numbers(data, key, most) if key else np.full(len(times), key_group(0, most))
        numbers = np.arange(self._written, self._written + len(times))
        pieces: dict[int, Piece] = {
            group: (numbers[at].tolist(), times[at].tolist(), to_bytes(data.take(pa.array(at))))
            for group, at in positions_by(groups)
        }
        self._write(start, pieces, len(times))

    def _write(self, start: int, pieces: Mapping[int, Piece], count: int) -> None:
        assert self._log is not None
        self._log.write(start, pieces)
        self._written += count

    # -- events whose turn is near -----------------------------------------------------------------

    def slices_until(self, moment: int) -> Iterator[list[Piece]]:
        """The pieces of the slices that begin until then, which are not here any more."""
        log = self._log
        for start in sorted(each for each in (() if log is None else log.starts) if each <= moment):
            assert log is not None
            yield [piece for group in log.groups for piece in log.pieces(start, group)]
            log.forget(start)


def rows_of(pieces: Iterable[Piece]) -> tuple[list[int], list[Any]]:
    """The times and events of a slice, in the order in which they came."""
    found: list[tuple[int, int, Any]] = []
    for numbers, times, events in pieces:
        if isinstance(events, bytes):
            events = _rows_of_stream(events)
        found += zip(numbers, times, events)
    found.sort(key=itemgetter(0))
    return [time for _, time, _ in found], [event for _, _, event in found]


def positions_by(numbers: Any) -> Iterator[tuple[int, Any]]:
    """The positions of each of these numbers, ascending."""
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    found, begins = np.unique(numbers[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, begins[1:]))


def _rows_of_stream(stream: bytes) -> list[Any]:
    from flinkpy.columns.values.conversion import rows_of_batch
    from flinkpy.operators.columnar.tables_by_group import from_bytes

    return rows_of_batch(from_bytes(stream))
