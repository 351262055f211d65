"""What has not been written to for some time is forgotten: Flink's TTL of state."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.state.heap.frozen_numbers import FrozenArray

_NEVER = np.iinfo(np.int64).min  # of numbers that were not written to, or were swept


class Expiry:
    """When each number (of a key, or a row) was last written to. It lives for ``ttl_ms`` from then
    on, whether it was read or not: Flink's OnCreateAndWrite, NeverReturnExpired.

    Times are whole milliseconds of 64 bits: seconds in 32 bits would save four bytes a number, and
    make a short TTL differ from Flink's by up to a second.

    >>> expiry = Expiry(1000)
    >>> expiry.touch(np.array([0, 1]), 5000)
    >>> expiry.touch(np.array([1]), 5500)
    >>> expiry.is_alive(np.array([0, 1]), 6000).tolist()
    [False, True]
    >>> expiry.expired(6000, 10).tolist()
    [0]
    """

    def __init__(self, ttl_ms: int, empty: Empty = np.empty) -> None:
        """``empty`` gives arrays."""
        self.ttl_ms = ttl_ms
        self._written = Grown(np.int64, _NEVER, empty)
        self._size = 0  # every number is below
        self._next = 0  # where sweeping goes on

    def touch(self, numbers: npt.NDArray[np.int64], now_ms: int) -> None:
        """These were written to now."""
        self.set_written(numbers, np.full(len(numbers), now_ms))

    def set_written(
        self, numbers: npt.NDArray[np.int64], written_ms: npt.NDArray[np.int64]
    ) -> None:
        """These were written to then, as a snapshot says."""
        if len(numbers):
            self._size = max(self._size, int(numbers.max()) + 1)
            self._written.put(numbers, written_ms, self._size)

    def written(self, numbers: npt.NDArray[np.int64]) -> Any:
        """When these were last written to."""
        return self._written.reach(self._size)[numbers]

    def is_alive(self, numbers: npt.NDArray[np.int64], now_ms: int) -> Any:
        """Which of these are there still."""
        if len(numbers):
            self._written.reach(int(numbers.max()) + 1)
        return self._written.values[numbers] > now_ms - self.ttl_ms

    def forget(self, numbers: npt.NDArray[np.int64]) -> None:
        """These are gone, whenever they were written to."""
        self._set_never(numbers[numbers < self._size])

    def expired(self, now_ms: int, at_most: int) -> Any:
        """Looks at so many numbers, going on where it was, and gives those that have expired since
        it came by; it forgets them. Called with each batch for a share of a few times the batch, so
        the work is bounded and each number's turn comes: behind the last number it goes on with the
        first one in the same call, as it would else follow numbers that grow with each batch."""
        last = min(self._next + at_most, self._size)
        found = self._expired_in(self._next, last, now_ms)
        left = min(at_most - (last - self._next), self._next)
        if last == self._size and left > 0:
            found = np.concatenate([found, self._expired_in(0, left, now_ms)])
            last = left
        self._next = 0 if last >= self._size else last
        return found

    def _expired_in(self, first: int, last: int, now_ms: int) -> Any:
        written = self._written.values[first:last]
        found = first + np.flatnonzero((written <= now_ms - self.ttl_ms) & (written != _NEVER))
        self._set_never(found)
        return found

    def _set_never(self, numbers: npt.NDArray[np.int64]) -> None:
        self._written.put(numbers, np.full(len(numbers), _NEVER), self._size)

    def freeze(self) -> FrozenArray:
        """When each number was last written to, as of now."""
        self._written.reach(self._size)
        return self._written.freeze()
