"""Rows of columns, held by slice until no window needs them any more: for operators that look at
all rows of a window when it closes.

A batch that spans several slices is cut at their borders. In a snapshot the rows lie by key group,
under a key of the group. With a backend that has a disk, rows beyond their share of memory lie in a
log (``state.slice_log``), and a window that needs some of them is put together key group by key
group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.keys import key_group
from flinkpy.operators.columnar.column_operators import one_batch
from flinkpy.operators.columnar.tables_by_group import (
    by_group,
    from_bytes,
    group_numbers,
    key_of_group,
)
from flinkpy.operators.spilling.spilled_slices import SpilledSlices
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.heap.sampled_sizes import bytes_of_parts
from flinkpy.state.slice_log import RestoredLog, SliceLog, restored_log, to_leave
from flinkpy.state.snapshots.arrow_streams import to_bytes
from flinkpy.windowing.joins.aligned_windows import AlignedWindows
from flinkpy.windowing.joins.spilled_columns import ColumnsForm, OneSide
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt

    from flinkpy.operators.spilling.operator_memory import OperatorMemory

_FEW = 8  # up to this many slices are tried one by one, which is cheaper than sorting
# the watermark up to which its windows were fired before a restore; a record batch
Kept: TypeAlias = "tuple[int, Any]"
# start of the slice, side, watermark, batch as bytes
SavedRows: TypeAlias = "tuple[int, int, int, bytes]"


class RowsBySlice:
    """The rows of one or more inputs (sides). ``keys`` has the key columns of each side, none for
    windows over all rows.

    >>> held = RowsBySlice(Slicing(10, 10, 0), [("k",)], max_parallelism=128)
    >>> held.add(0, pa.record_batch({"k": ["a", "b", "c"]}), np.array([1, 12, 3]))
    0
    >>> [(window.start, sides[0][0].num_rows) for window, sides in held.closed(until=9)]
    [(0, 2)]
    >>> held.rows, held.add(0, pa.record_batch({"k": ["d"]}), np.array([2]))
    (1, 1)
    """

    def __init__(
        self, slicing: Slicing, keys: Sequence[Sequence[str]], max_parallelism: int
    ) -> None:
        self.windows = AlignedWindows(slicing)
        self._keys = tuple(map(tuple, keys))
        self._max_parallelism = max_parallelism
        self._slices: dict[int, tuple[list[Kept], ...]] = {}
        self._counts: dict[int, int] = {}  # rows of each slice
        self._most: dict[int, int] = {}  # rows that a slice may have before it is thinned again
        self._spilled: SpilledSlices[OneSide] | None = None  # in a batch job
        self._log: SliceLog | None = None
        self._bytes: dict[int, int] = {}  # of each slice's rows in memory, where there is a log
        # Restored: up to which watermark the windows of a key group's rows on disk were fired
        self._fired: Mapping[int, int] = {}
        self._caught_up = MIN_TIMESTAMP

    @property
    def rows(self) -> int:
        """How many are held."""
        return sum(self._counts.values())

    @property
    def nbytes(self) -> int:
        """How much memory they take, by estimate."""
        batches = [data for sides in self._slices.values() for side in sides for _, data in side]
        return bytes_of_parts(batches, len, attrgetter("nbytes"))

    @property
    def starts(self) -> Collection[int]:
        """The slices that hold rows."""
        return self._slices.keys()

    # -- rows --------------------------------------------------------------------------------------

    def add(self, side: int, data: pa.RecordBatch, moments: npt.NDArray[np.int64]) -> int:
        """Takes the rows of a batch, which is not empty; gives how many came too late, or lie
        between two windows where time has been already."""
        slicing = self.windows.slicing
        start, latest = slicing.slice_of(int(moments.min())), int(moments.max())
        if latest < start + slicing.width:
            return self._add_part(side, start, data, moments)
        starts, late = slicing.slices_of_all(moments), 0
        last = int(starts.max())
        few = last - start <= _FEW * slicing.width
        for each in range(start, last + 1, slicing.width) if few else np.unique(starts).tolist():
            at = np.nonzero(starts == each)[0]
            if not len(at):
                continue
            first, count = int(at[0]), len(at)
            in_a_row = int(at[-1]) - first + 1 == count
            part = data.slice(first, count) if in_a_row else data.take(pa.array(at))
            late += self._add_part(side, each, part, moments[at])
        return late

    def _add_part(
        self, side: int, start: int, data: pa.RecordBatch, moments: npt.NDArray[np.int64]
    ) -> int:
        end = self.windows.slicing.last_window_end(start)
        if end is None or end - 1 <= self.windows.watermark:  # between two windows, or late
            return int((moments <= self.windows.watermark).sum())
        self._put(side, start, data)
        return 0

    def _put(
        self, side: int, start: int, data: pa.RecordBatch, fired_until: int = MIN_TIMESTAMP
    ) -> None:
        held = self._slices.get(start)
        if held is None:
            held = self._slices[start] = self._no_rows()
            self._counts[start] = 0
            self.windows.open_slice(start)
        held[side].append((fired_until, data))
        self._counts[start] += data.num_rows
        if self._log is not None:
            self._bytes[start] = self._bytes.get(start, 0) + data.nbytes
        if self._spilled is not None:
            self._spilled.note(start, OneSide(side, data))

    def thin(
        self, beyond: int, thinned: Callable[[int, list[pa.RecordBatch]], pa.RecordBatch]
    ) -> None:
        """Keeps of a slice with more rows than this only what ``thinned`` gives for the batches of
        each side; and again when it has grown so much behind twice of that."""
        for start, count in self._counts.items():
            if count <= self._most.get(start, beyond):
                continue
            # the old lists stay as they are, for a snapshot that is being written
            self._slices[start] = tuple(
                [(until, thinned(side, batches)) for until, batches in _by_watermark(kept).items()]
                for side, kept in enumerate(self._slices[start])
            )
            left = sum(data.num_rows for kept in self._slices[start] for _, data in kept)
            self._counts[start] = left
            self._most[start] = 2 * left + beyond

    def spill_to(self, memory: OperatorMemory) -> None:
        """In a batch job: rows that have no room in this memory lie in a file."""
        self._form = ColumnsForm(self._keys)
        self._spilled = SpilledSlices(self._form, memory)

    def relieve(self, room: int | None = None) -> None:
        """Has rows leave memory if they take more than their share of it; in a batch job, more than
        ``room``."""
        if self._spilled is not None:
            self._spilled.spill(self._taken, room)
        log = self._log
        if log is None or self.windows.watermark < self._caught_up:
            return
        for start in to_leave(self._bytes, log.memory()):
            for side, kept in enumerate(self._slices[start]):
                if kept:
                    data = one_batch(pa.Table.from_batches([data for _, data in kept]))
                    log.write(
                        start,
                        {
                            group: (side, to_bytes(part))
                            for group, part in self._by_group(side, data)
                        },
                    )
            self._slices[start] = self._no_rows()
            self._counts[start] = 0
            del self._bytes[start]

    def _taken(self, start: int) -> Iterator[OneSide]:
        """Gives the rows of a slice away."""
        slice_, self._slices[start], self._counts[start] = self._slices[start], self._no_rows(), 0
        for side, kept in enumerate(slice_):
            yield from self._form.cut(side, (data for _, data in kept))

    def _no_rows(self) -> tuple[list[Kept], ...]:
        return tuple([] for _ in self._keys)

    # -- windows -----------------------------------------------------------------------------------

    def closed(self, until: int) -> Iterator[tuple[TimeWindow, list[list[pa.RecordBatch]]]]:
        """Lets time go on. Gives the windows that close, the earliest first, and the batches of
        each side, perhaps in several parts with the rows of other keys; then lets go of what no
        window needs."""
        for window in self.windows.advance(until):
            starts = [
                start for start in self.windows.slicing.slices_in(window) if start in self._slices
            ]
            if self._spilled is not None:
                yield from self._by_portions(self._spilled, starts, window)
            elif self._log is None or self._log.starts.isdisjoint(starts):
                yield window, self._in_memory(starts, window)
            else:
                yield from self._by_groups(self._log, starts, window)
        for start in self.windows.ended_slices():
            for each in (self._slices, self._counts, self._most, self._bytes):
                each.pop(start, None)
            if self._log is not None:
                self._log.forget(start)

    def _in_memory(self, starts: Iterable[int], window: TimeWindow) -> list[list[pa.RecordBatch]]:
        last = window.max_timestamp()
        return [
            [
                data
                for start in starts
                for fired_until, data in self._slices[start][side]
                if fired_until < last
            ]
            for side in range(len(self._keys))
        ]

    def _by_portions(
        self, spilled: SpilledSlices[OneSide], starts: list[int], window: TimeWindow
    ) -> Iterator[tuple[TimeWindow, list[list[pa.RecordBatch]]]]:
        held = {
            start: [
                OneSide(side, data)
                for side, kept in enumerate(self._slices[start])
                for _, data in kept
            ]
            for start in starts
        }
        for pieces in spilled.portions(starts, held):
            sides: list[list[pa.RecordBatch]] = [[] for _ in self._keys]
            for side, data in pieces:
                sides[side].append(data)
            yield window, sides

    def _by_groups(
        self, log: SliceLog, starts: list[int], window: TimeWindow
    ) -> Iterator[tuple[TimeWindow, list[list[pa.RecordBatch]]]]:
        """The rows of one key group at a time, slice by slice."""
        here = [
            [
                dict(self._by_group(side, one_batch(pa.Table.from_batches(batches))))
                if batches
                else {}
                for side, batches in enumerate(self._in_memory([start], window))
            ]
            for start in starts
        ]
        for group in log.groups:
            sides: list[list[pa.RecordBatch]] = [[] for _ in self._keys]
            had_fired = self._fired.get(group, MIN_TIMESTAMP) >= window.max_timestamp()
            for start, held in zip(starts, here):
                for side, data in () if had_fired else log.pieces(start, group):
                    sides[side].append(from_bytes(data))
                for side, parts in enumerate(held):
                    if group in parts:
                        sides[side].append(parts[group])
            if any(sides):
                yield window, sides

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(self) -> Callable[[Turns], dict[int, list[SavedRows]]]:
        """Batches are only added, and nobody changes one: so the lists and their lengths are the
        state of now."""
        held = [
            (start, side, batches, len(batches))
            for start, sides in self._slices.items()
            for side, batches in enumerate(sides)
        ]
        watermark = self.windows.watermark

        def saved(turns: Turns) -> dict[int, list[SavedRows]]:
            found: dict[int, list[SavedRows]] = {}
            for start, side, batches, count in held:
                for until, data in _concatenated(batches[:count], watermark):
                    for group, part in self._by_group(side, data):
                        found.setdefault(key_of_group(group, self._max_parallelism), []).append(
                            (start, side, until, to_bytes(part))
                        )
                        turns.give_way()
            return found

        return saved

    def _by_group(self, side: int, data: pa.RecordBatch) -> Iterator[tuple[int, Any]]:
        keys = self._keys[side]
        if not keys:
            yield key_group(None, self._max_parallelism), data
            return
        yield from by_group(data, group_numbers(data, keys, self._max_parallelism))

    def restore(
        self, saved: Mapping[Any, Iterable[SavedRows]], on_disk: RestoredLog | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Takes back what was saved; gives each batch with its side, and one of each side on
        disk."""
        untils = [until for parts in saved.values() for _, _, until, _ in parts]
        if on_disk is not None:
            self._log, self._fired = on_disk.log, on_disk.notes
            untils += self._fired.values()
            yield from self._restore_log(on_disk)
        for parts in saved.values():
            for start, side, fired_until, data in parts:
                batch = from_bytes(data)
                self._put(side, start, batch, fired_until)
                yield side, batch
        # keys may come from several subtasks: time goes on from where the last of them was
        self.windows.watermark = min(untils, default=MIN_TIMESTAMP)
        self._caught_up = max(untils, default=MIN_TIMESTAMP)

    def _restore_log(self, on_disk: RestoredLog) -> Iterator[tuple[int, pa.RecordBatch]]:
        for group, pieces in on_disk.pieces.items():
            for start, (side, data) in pieces:
                batch = from_bytes(data)
                self._put(side, start, batch, self._fired[group])
                yield side, batch
        if (log := on_disk.log) is None:
            return
        for start in log.starts:
            self._slices[start], self._counts[start] = self._no_rows(), 0
            self.windows.open_slice(start)
        sides = set(range(len(self._keys)))
        for start, group in product(sorted(log.starts), log.groups):
            if not sides:
                return
            for side, data in log.pieces(start, group):
                if side in sides:
                    sides.discard(side)
                    yield side, from_bytes(data)

    def log_of(self, backend: KeyedStateBackend, name: str) -> RestoredLog:
        """What lies on disk of the state of this name."""
        most = self._max_parallelism
        return restored_log(
            backend, name, lambda group: key_of_group(group, most), self._frozen_groups
        )

    def _frozen_groups(self) -> Callable[[int], int]:
        now, fired = self.windows.watermark, self._fired
        return lambda group: max(now, fired.get(group, now))


def _concatenated(held: list[Kept], watermark: int) -> list[Kept]:
    """The same rows in few batches, because each batch is then cut into many key groups."""
    return [
        (until, one_batch(pa.Table.from_batches(batches)))
        for until, batches in _by_watermark(held, watermark).items()
    ]


def _by_watermark(held: list[Kept], least: int = MIN_TIMESTAMP) -> dict[int, list[Any]]:
    """The batches by the watermark up to which their windows were fired, which is this one at
    least."""
    found: dict[int, list[Any]] = {}
    for fired_until, data in held:
        found.setdefault(max(fired_until, least), []).append(data)
    return found
