"""Arrays that grow with the number of keys or rows, in the memory that they may take; those for
which it has no room lie in mapped files.

What works on an array sees no difference. The system reads and writes the pages of a mapped file as
they are asked for, and takes their memory back when it is short."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from flinkpy.core.files.spill_file import SpillFile

Empty: TypeAlias = "Callable[[Any, Any], npt.NDArray[Any]]"
"""Gives an array of this shape and type, of any content, as ``np.empty`` does."""


class ArrayMemory:
    """``limit``: how many bytes of arrays are in memory; None: all are. Files lie in ``folders``,
    without names, so each is gone with its array, however the process ends.

    >>> memory = ArrayMemory(limit=1 << 20)
    >>> small, large = memory.empty(1 << 16, np.int64), memory.empty((1 << 16, 2), np.int64)
    >>> memory.used, large.shape
    (524288, (65536, 2))
    >>> del small
    >>> memory.used
    0
    """

    worth_counting: ClassVar[int] = 1 << 16  # bytes of an array

    def __init__(self, limit: int | None = None, folders: Sequence[str] = ()) -> None:
        self._limit = limit
        self._folders = tuple(folders)
        self._sizes: dict[int, int] = {}  # of the arrays that are in memory, by their ids

    @property
    def used(self) -> int:
        """Bytes of the arrays that are in memory; small ones do not count. Checkpoints ask for
        arrays in another thread."""
        return sum(list(self._sizes.values()))

    def empty(self, shape: Any, dtype: Any) -> npt.NDArray[Any]:
        """An array of this shape and type, of any content. Raises ResourceUnavailableError if it
        lies in a file and the disk has no room for it."""
        size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
        if self._limit is None or size < self.worth_counting:
            return np.empty(shape, dtype)
        found: npt.NDArray[Any]
        if self.used + size > self._limit:
            found = np.ndarray(shape, dtype, SpillFile(self._folders).reserved(size))
            return found
        found = np.empty(shape, dtype)
        self._sizes[id(found)] = size
        weakref.finalize(found, self._sizes.pop, id(found)).atexit = False
        return found
