"""Keys of several whole numbers as one number of 64 bits: each column has some of the bits. How
many is decided by the first keys, with what is left over shared; a key that does not fit is no
packed key, whatever else its batch has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.key_words import words_of

_BITS = 63  # so no packed key is below zero


@dataclass(frozen=True)
class _Place:
    """The bits of a column: a number n times ``unit``, where ``bits`` can hold n and its sign."""

    bits: int
    unit: int

    @property
    def reach(self) -> int:
        return 1 << self.bits - 1

    def holds(self, numbers: Any) -> Any:
        """Which of these numbers fit."""
        return (numbers >= -self.reach) & (numbers < self.reach)


class PackedKeys:
    """Packs the keys of some columns."""

    def __init__(self, places: Sequence[_Place]) -> None:
        self._places = tuple(places)

    @staticmethod
    def for_keys_like(parts: Sequence[tuple[pa.Array, int]]) -> PackedKeys | None:
        """Bits for keys such as these; beside each column the nanoseconds in its unit. None if not
        all columns are whole numbers, or they are too large together."""
        needed = []
        for column, _ in parts:
            if not _is_whole(column) or not len(column):
                return None
            values = column.to_numpy()
            most = max(abs(int(values.min())), abs(int(values.max())))
            needed.append(most.bit_length() + 1)
        spare = (_BITS - sum(needed)) // len(needed)
        if spare < 0:
            return None
        return PackedKeys([_Place(n + spare, unit) for n, (_, unit) in zip(needed, parts)])

    def all(self, parts: Sequence[tuple[pa.Array, int]]) -> Any:
        """The packed keys; None if not all of them can be packed in the quick way."""
        packed: Any = None
        for place, (column, unit) in zip(self._places, parts):
            if unit != place.unit or not _is_whole(column):
                return None
            numbers = column.to_numpy()
            if len(numbers) and not (
                int(numbers.min()) >= -place.reach and int(numbers.max()) < place.reach
            ):
                return None
            packed = _with(packed, place, numbers.astype(np.int64, copy=False))
        return packed

    def of_any(self, parts: Sequence[tuple[pa.Array, int]]) -> tuple[Any, Any]:
        """Which keys are packed keys, by their values whatever the types are, and these keys (at
        the others anything)."""
        rows = len(parts[0][0])
        is_packed, packed = np.ones(rows, np.bool_), None
        for place, part in zip(self._places, parts):
            words = words_of([part])
            if not words.may_be_whole or not rows:
                return np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
            is_whole, numbers = words.whole()
            counted = numbers // place.unit
            is_packed &= is_whole & (counted * place.unit == numbers) & place.holds(counted)
            packed = _with(packed, place, counted)
        return is_packed, packed


def _is_whole(column: pa.Array) -> bool:
    return bool(pa.types.is_integer(column.type)) and not column.null_count


def _with(packed: Any, place: _Place, numbers: Any) -> Any:
    """The keys so far, with the bits of one more column."""
    shifted = numbers + np.int64(place.reach)
    return shifted if packed is None else (packed << np.int64(place.bits)) + shifted
