"""Rows split by the hash of their key, so that what has to be together in memory, the rows of one
key, can be read from disk together.

All operators that work by key spill through this: joins, aggregates, DISTINCT, ranks and OVER. Each
level takes the next bits of the hash, so the rows of a partition that is still too large are split
again. Three levels tell 32,768 partitions apart; what is too large after these has few keys, and
only its operator knows what to do with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import words_of_rows
from flinkpy.operators.spilling.batch_file import BatchFile
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.spilled_rows import SpilledRows

LEVELS = 3
_BITS = 5
PARTITIONS = 1 << _BITS


def partition_numbers(data: pa.RecordBatch, keys: Sequence[int], level: int) -> Any:
    """The partition of each row. Equal keys have one, also if their types differ: whatever Python
    calls equal, all NaNs, the zeros of both signs, and null as a key like others."""
    hashes = words_of_rows([data.column(at) for at in keys]).hashes().view(np.uint64)
    shift = np.uint64(64 - _BITS * (level + 1))
    return ((hashes >> shift) & np.uint64(PARTITIONS - 1)).astype(np.uint8)


def parts_by_number(
    data: pa.RecordBatch, numbers: npt.NDArray[Any]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in their order, in memory of their own."""
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=PARTITIONS)).tolist()
    start = 0
    for number, end in enumerate(ends):
        if end > start:
            yield number, data.take(pa.array(order[start:end]))
        start = end


@dataclass(frozen=True)
class RowWeight:
    """What rows take in memory when they are worked on: ``copies`` of their data, and ``each``
    bytes of every row, of what finds or sorts it."""

    copies: int = 1
    each: int = 0

    def of(self, nbytes: int, rows: int) -> int:
        """What so many rows of so many bytes take."""
        return self.copies * nbytes + self.each * rows


class KeyPartitions:
    """Rows by these key columns. As many of them stay in memory as take ``keeps`` bytes by their
    ``weight`` (None: all); if more come, the largest partition is written, and so is what comes of
    it later. Rows of one key stay in their order. Batches must not have dictionaries."""

    def __init__(
        self,
        keys: Sequence[int],
        memory: OperatorMemory,
        level: int = 0,
        *,
        keeps: int | None = 0,
        weight: RowWeight = RowWeight(),
    ) -> None:
        self._keys = tuple(keys)
        self._memory = memory
        self._keeps = keeps
        self._weight = weight
        self.level = level
        self.rows = 0
        self._waiting: deque[pa.RecordBatch] = deque()
        self._waiting_bytes = 0
        self._resident: list[list[pa.RecordBatch]] = [[] for _ in range(PARTITIONS)]
        self._sizes = [0] * PARTITIONS  # of what is resident
        self._file: BatchFile | None = None
        self.spilled: dict[int, SpilledRows] = {}
        """The partitions in files, by number."""

    def deeper(self) -> KeyPartitions:
        """The same by the next bits, without rows."""
        return KeyPartitions(
            self._keys, self._memory, self.level + 1, keeps=self._keeps, weight=self._weight
        )

    # -- rows come ---------------------------------------------------------------------------------

    def add(self, data: pa.RecordBatch) -> None:
        """Takes rows. Raises ResourceUnavailableError if the disk fails."""
        self._waiting.append(data)
        self._waiting_bytes += self._size(data)
        self.rows += data.num_rows
        if self._keeps is not None and self._held > self._keeps + self._memory.block:
            self._split()

    def _size(self, data: pa.RecordBatch) -> int:
        return self._weight.of(data.nbytes, data.num_rows)

    @property
    def _held(self) -> int:
        return self._waiting_bytes + sum(self._sizes)

    def _split(self) -> None:
        """Splits the rows that wait, a block at a time; what is too much goes to the file."""
        while self._waiting:
            parts = self._next_block()
            # hashed one by one: what that takes beside a batch is several times its key
            numbers = np.concatenate(
                [partition_numbers(part, self._keys, self.level) for part in parts]
            )
            data = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
            del parts
            for number, part in parts_by_number(data, numbers):
                found = self.spilled.get(number)
                if found is not None:
                    found.append(part)
                else:
                    self._resident[number].append(part)
                    self._sizes[number] += self._size(part)
            while self._keeps is not None and self._held > self._keeps and any(self._sizes):
                self._spill(max(range(PARTITIONS), key=self._sizes.__getitem__))
            self._memory.freed(data.nbytes)

    def _next_block(self) -> list[pa.RecordBatch]:
        parts: list[pa.RecordBatch] = []
        size = 0
        while self._waiting and size < self._memory.block:
            parts.append(self._waiting.popleft())
            size += self._size(parts[-1])
        self._waiting_bytes -= size
        return parts

    def _spill(self, number: int) -> None:
        if self._file is None:
            self._file = self._memory.file()
        written = self.spilled[number] = SpilledRows(self._file)
        for part in self._resident[number]:
            written.append(part)
        self._resident[number], self._sizes[number] = [], 0

    # -- all rows have come ------------------------------------------------------------------------

    def seal(self) -> list[pa.RecordBatch]:
        """All rows are there: gives those in memory away. The others are in ``spilled``."""
        if self.spilled:
            self._split()
        found = [*(part for parts in self._resident for part in parts), *self._waiting]
        self._resident = [[] for _ in range(PARTITIONS)]
        self._sizes = [0] * PARTITIONS
        self._waiting.clear()
        self._waiting_bytes = 0
        return found

    def write(self) -> None:
        """All rows are there: those in memory go to the file too."""
        self._split()
        for number, size in enumerate(self._sizes):
            if size:
                self._spill(number)

    @property
    def is_resident(self) -> npt.NDArray[np.bool_]:
        """For each partition: whether none of it lies in the file."""
        found = np.ones(PARTITIONS, np.bool_)
        found[list(self.spilled)] = False
        return found

    def fits(self, rows: SpilledRows) -> bool:
        """Whether these rows may be in memory at once."""
        return self._keeps is None or self._weight.of(rows.nbytes, rows.rows) <= self._keeps

    @property
    def splits_further(self) -> bool:
        """Whether the next bits of the hash can help: not if the last level is reached, or if all
        rows fell into one partition."""
        if self.level + 1 >= LEVELS:
            return False
        return all(part.rows < self.rows for part in self.spilled.values())

    def drop(self) -> None:
        """Nothing more is read of the file."""
        if self._file is not None:
            self._memory.drop(self._file)
            self._file, self.spilled = None, {}
