"""Rows in a file, to be read in their order as often as wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from flinkpy.operators.spilling.batch_file import BatchFile, Place


class SpilledRows:
    """Rows of one schema. Their file may have other rows too."""

    def __init__(self, file: BatchFile) -> None:
        self._file = file
        self._places: list[Place] = []
        self.rows = 0
        self.nbytes = 0
        """Their size in memory."""

    def append(self, data: pa.RecordBatch) -> None:
        """Writes more rows."""
        place = self._file.append(data)
        self._places.append(place)
        self.rows += place.rows
        self.nbytes += place.nbytes

    @property
    def rows_of_block(self) -> int:
        """The most rows that were written at once."""
        return max((place.rows for place in self._places), default=0)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time, in the order in which they were written."""
        return (self._file.read(place) for place in self._places)
