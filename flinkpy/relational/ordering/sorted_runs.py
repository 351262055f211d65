"""Rows in an order, in bounded memory. What does not fit is written as runs, each of which is
sorted; in the end the runs are merged.

The merge works on windows, the next rows of each run. All windows are sorted together as one batch,
so a step of it costs some operations on arrays, whatever the types, and no work per row. Those rows
go out that are not behind the last row of a window, since only rows behind it can still be read.

At most 64 runs are merged at once; of more, each 64 are merged to one first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.operators.spilling.batch_file import BatchFile
from flinkpy.operators.spilling.key_partitions import RowWeight
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.spilled_rows import SpilledRows
from flinkpy.relational.relational_operator import ROWS_AT_ONCE, one_record_batch
from flinkpy.relational.sort_codes import codes_of, sorted_positions
from flinkpy.sql.rex.rex_nodes import SortKey

RUNS_AT_ONCE = 64
_BLOCK_ROWS = 8192
_MERGED = RowWeight(copies=3, each=40)  # the windows, one of all, those in order; codes, positions
_WAITING_ROWS = 1 << 17  # before those behind the limit are dropped


class SortedRuns:
    """``add`` all rows, then read ``batches``, which are in the order of ``keys``. Equal rows stay
    in their order. Rows behind the first ``wanted`` are dropped."""

    def __init__(
        self,
        keys: Sequence[SortKey],
        schema: pa.Schema,
        memory: OperatorMemory,
        wanted: int | None = None,
    ) -> None:
        self._keys = tuple(keys)
        self._schema = schema
        self._memory = memory
        self._wanted = wanted
        # the batches and one of all, later that one and its texts; codes, positions
        self._weight = RowWeight(copies=2, each=24 + 16 * len(keys))
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._size = 0
        self._levels: list[_Level] = []  # of each the runs are older than those of the one before

    # -- rows come ---------------------------------------------------------------------------------

    def add(self, data: pa.RecordBatch) -> None:
        """Takes rows. Raises ResourceUnavailableError if the disk fails."""
        self._wait(data)
        if self._wanted is not None and self._rows > 2 * self._wanted + _WAITING_ROWS:
            data = self._taken()
            order = self._order_of(data)
            self._wait(data.take(pa.array(np.sort(order))))  # equal rows stay in their order
        if not self._memory.fits(self._size):
            self._write()

    def _wait(self, data: pa.RecordBatch) -> None:
        self._waiting.append(data)
        self._rows += data.num_rows
        if self._memory.is_limited:
            self._size += self._weight.of(data.nbytes, data.num_rows)

    def _taken(self) -> pa.RecordBatch:
        """The rows in memory, which are not kept any longer."""
        waiting, self._waiting, self._rows, self._size = self._waiting, [], 0, 0
        data = one_record_batch(waiting, self._schema)
        del waiting
        self._memory.freed(data.nbytes)
        return data

    def _order_of(self, data: pa.RecordBatch) -> Any:
        """The positions of the wanted rows in their order."""
        codes = codes_of(data.columns, self._keys)
        wanted = self._wanted
        if wanted is None or not codes or wanted * 8 > data.num_rows:
            return sorted_positions(codes, data.num_rows)[:wanted]
        # Only rows that are not behind the last wanted value of the first key can be wanted
        first = codes[0]
        last = np.partition(first, wanted)[wanted]
        near = np.flatnonzero(first <= last)
        order = sorted_positions([code[near] for code in codes], len(near))
        return near[order[:wanted]]

    # -- runs --------------------------------------------------------------------------------------

    def _write(self) -> None:
        data = self._taken()
        order = self._order_of(data)
        self._memory.freed(data.nbytes)
        rows = self._rows_of_block(data)
        blocks = (
            data.take(pa.array(order[start : start + rows])) for start in range(0, len(order), rows)
        )
        self._add_run(0, blocks)
        size = data.nbytes
        del data, order, blocks  # not held beside what a merge takes
        self._memory.freed(size)
        level = 0
        while len(self._levels[level].runs) == RUNS_AT_ONCE:
            self._merge_level(level)
            level += 1

    def spill(self) -> None:
        """Writes what is in memory as another run; nothing once ``batches`` are read."""
        if self._waiting and self._memory.is_limited:
            self._write()

    def _rows_of_block(self, data: pa.RecordBatch) -> int:
        """How many rows a block of a run has, so that two of each run can be merged at once."""
        assert self._memory.limit is not None
        size = self._memory.limit // (2 * RUNS_AT_ONCE)
        of_row: int = _MERGED.of(data.nbytes, data.num_rows) // max(1, data.num_rows)
        return max(1, min(_BLOCK_ROWS, size // of_row))

    def _add_run(self, level: int, blocks: Iterator[pa.RecordBatch]) -> None:
        if level == len(self._levels):
            self._levels.append(_Level(self._memory))
        self._levels[level].add(blocks)

    def _merge_level(self, level: int) -> None:
        """Makes one run of the next level of all these."""
        merged = self._levels[level]
        self._levels[level] = _Level(self._memory)
        # in blocks no larger than theirs, as this run will be merged with as many others
        rows = max(run.rows_of_block for run in merged.runs)
        self._add_run(level + 1, self._merged(merged.runs, rows))
        merged.drop()

    def _merged(
        self, runs: Sequence[SpilledRows], at_once: int = ROWS_AT_ONCE
    ) -> Iterator[pa.RecordBatch]:
        """The rows of sorted runs in order; equal rows in the order of their runs."""
        for data in merged_runs(runs, self._keys, self._schema, self._wanted, at_once):
            yield data
            self._memory.freed(data.nbytes)

    # -- all rows have come ------------------------------------------------------------------------

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order, up to the wanted ones."""
        if not self._levels:
            if not self._waiting:
                return
            data = self._taken()
            order = self._order_of(data)
            for start in range(0, len(order), ROWS_AT_ONCE):
                yield data.take(pa.array(order[start : start + ROWS_AT_ONCE]))
            return
        if self._waiting:
            self._write()
        level = 0
        while sum(len(each.runs) for each in self._levels) > RUNS_AT_ONCE:
            if self._levels[level].runs:
                self._merge_level(level)
            level += 1
        yield from self._merged([run for each in reversed(self._levels) for run in each.runs])
        for each in self._levels:
            each.drop()


class _Level:
    """Runs that lie in one file, in the order of their rows."""

    def __init__(self, memory: OperatorMemory) -> None:
        self._memory = memory
        self._file: BatchFile | None = None
        self.runs: list[SpilledRows] = []

    def add(self, blocks: Iterator[pa.RecordBatch]) -> None:
        if self._file is None:
            self._file = self._memory.file()
        run = SpilledRows(self._file)
        for block in blocks:
            run.append(block)
            self._memory.freed(block.nbytes)
        self.runs.append(run)

    def drop(self) -> None:
        if self._file is not None:
            self._memory.drop(self._file)
            self._file, self.runs = None, []


class _Window:
    """The next rows of a run."""

    def __init__(self, run: SpilledRows, schema: pa.Schema) -> None:
        self._blocks = iter(run)
        self.rows = one_record_batch([], schema)
        self.is_last = False
        """Whether there are no rows behind it."""

    def reach(self, rows: int) -> None:
        """Reads on until there are so many rows."""
        parts, count = [self.rows], self.rows.num_rows
        while count < rows and not self.is_last:
            block = next(self._blocks, None)
            if block is None:
                self.is_last = True
            else:
                parts.append(block)
                count += block.num_rows
        if len(parts) > 1:
            self.rows = pa.concat_batches(parts)


def merged_runs(
    runs: Sequence[SpilledRows],
    keys: Sequence[SortKey],
    schema: pa.Schema,
    wanted: int | None = None,
    at_once: int = ROWS_AT_ONCE,
) -> Iterator[pa.RecordBatch]:
    """The rows of sorted runs in order, so many at once; equal rows in the order of their runs."""
    windows = [_Window(run, schema) for run in runs]
    least = max(run.rows_of_block for run in runs) * max(1, RUNS_AT_ONCE // len(runs))
    while windows and wanted != 0:
        for window in windows:
            window.reach(least)
        windows = [window for window in windows if window.rows.num_rows]
        if not windows:
            return
        data = pa.concat_batches([window.rows for window in windows])
        order = sorted_positions(codes_of(data.columns, keys), data.num_rows)
        ends = np.cumsum([window.rows.num_rows for window in windows])
        done = _done(order, [end - 1 for end, window in zip(ends, windows) if not window.is_last])
        for window, taken in zip(windows, _taken(order[:done], ends)):
            window.rows = window.rows.slice(taken)
        if wanted is not None:
            done = min(done, wanted)
            wanted -= done
        for start in range(0, done, at_once):
            yield data.take(pa.array(order[start : min(done, start + at_once)]))


def _done(order: Any, lasts: Sequence[int]) -> int:
    """How many rows are not behind any of these, which rows of their runs may follow."""
    if not lasts:
        return len(order)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return int(places[lasts].min()) + 1


def _taken(taken: Any, ends: Any) -> list[int]:
    """How many of these positions are in each window."""
    of_window = np.searchsorted(ends, taken, side="right")
    counted: list[int] = np.bincount(of_window, minlength=len(ends)).tolist()
    return counted
