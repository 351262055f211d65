"""Rows in a file, to be read in their order as often as wanted."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pyarrow as pa

from flinkpy.operators.spilling.batch_file import BatchFile, Place


class SpilledRows:
    """Rows of one schema. Their file may have other rows too."""

    def __init__(self, file: BatchFile) -> None:
        self._file = file
        # of each block what a Place has: as objects the places of 10 GB took a fifth of 64 MB
        self._places = array("q")
        self.rows = 0
        self.nbytes = 0
        """Their size in memory."""

    def append(self, data: pa.RecordBatch) -> None:
        """Writes more rows."""
        place = self._file.append(data)
        self._places.extend(place)
        self.rows += place.rows
        self.nbytes += place.nbytes

    @property
    def rows_of_block(self) -> int:
        """The most rows that were written at once."""
        return max((place.rows for place in self._each()), default=0)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time, in the order in which they were written."""
        return map(self._file.read, self._each())

    def _each(self) -> Iterator[Place]:
        size = len(Place._fields)
        return (Place(*self._places[at : at + size]) for at in range(0, len(self._places), size))
