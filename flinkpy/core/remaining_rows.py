"""A batch of rows that is handed out in parts, first to last."""

from __future__ import annotations

from flinkpy.core.elements import RowBatch


class RemainingRows:
    """The part of a batch that is left to take; false when nothing is left.

    >>> left = RemainingRows(RowBatch([1, 2, 3]))
    >>> left.take(2).values, bool(left), left.take(2).values, bool(left)
    ([1, 2], True, [3], False)
    """

    __slots__ = ("_at", "_batch")

    def __init__(self, batch: RowBatch) -> None:
        self._batch, self._at = batch, 0

    def __bool__(self) -> bool:
        return self._at < len(self._batch.values)

    @property
    def rest(self) -> RowBatch:
        """What is left, without taking it."""
        at = self._at
        rest = self.take()
        self._at = at
        return rest

    def take(self, rows: int | None = None) -> RowBatch:
        """The next ``rows`` records, or all that are left."""
        start, values, stamps = self._at, self._batch.values, self._batch.timestamps
        end = self._at = len(values) if rows is None else start + rows
        return RowBatch(values[start:end], None if stamps is None else stamps[start:end])
