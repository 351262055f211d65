"""Functions of bitmaps. A bitmap is a frozenset of numbers from 0 to 2**32 - 1; where integers have
a sign, the numbers from 2**31 on are the negative ones."""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.bitmaps.roaring_format import (
    numbers_of_roaring,
    roaring_bytes,
)
from flinkpy.columns.sql.sql_meanings.null_rules import strictly

_NUMBERS = 1 << 32
_FIRST_NEGATIVE = 1 << 31


def bitmap_of(integers: Iterable[int | None]) -> frozenset[int]:
    """The set of these integers; null is left out."""
    return frozenset(each % _NUMBERS for each in integers if each is not None)


def bitmap_text(bitmap: frozenset[int]) -> str:
    """``{1,2,3}``: the numbers without a sign, in order."""
    return f"{{{','.join(map(str, sorted(bitmap)))}}}"


def _integers(bitmap: frozenset[int]) -> list[int]:
    return [each - _NUMBERS if each >= _FIRST_NEGATIVE else each for each in sorted(bitmap)]


BITMAP_MEANINGS: dict[str, MeaningOf] = {
    "BITMAP_BUILD": strictly(bitmap_of),
    "BITMAP_FROM_BYTES": strictly(numbers_of_roaring),
    "BITMAP_TO_BYTES": strictly(roaring_bytes),
    "BITMAP_TO_ARRAY": strictly(_integers),
    "BITMAP_TO_STRING": strictly(bitmap_text),
    "BITMAP_CARDINALITY": strictly(len),
    "BITMAP_AND": strictly(frozenset.intersection),
    "BITMAP_OR": strictly(frozenset.union),
    "BITMAP_XOR": strictly(frozenset.symmetric_difference),
    "BITMAP_ANDNOT": strictly(frozenset.difference),
}
