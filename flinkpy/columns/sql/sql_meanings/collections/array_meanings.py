"""Functions of arrays. Elements are equal as comparisons say, and null equals null here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.columns.sql.call_site import MeaningOf
from flinkpy.columns.sql.sql_meanings.comparison_meanings import equal, less
from flinkpy.columns.sql.sql_meanings.null_rules import always, strictly


def contains(array: Iterable[Any], wanted: Any) -> bool:
    """Whether an element equals the value."""
    return any(equal(each, wanted) for each in array)


def array_position(array: list[Any], wanted: Any) -> int:
    """The first place of the value, from 1; 0 if there is none."""
    return next((at for at, each in enumerate(array, 1) if equal(each, wanted)), 0)


def array_remove(array: list[Any], unwanted: Any) -> list[Any]:
    """The elements that do not equal the value."""
    return [each for each in array if not equal(each, unwanted)]


def array_distinct(array: Iterable[Any]) -> list[Any]:
    """Each value once, where it stands first."""
    found: list[Any] = []
    for each in array:
        if not contains(found, each):
            found.append(each)
    return found


def array_except(array: list[Any], other: list[Any]) -> list[Any]:
    """What is in the first array only, each value once."""
    return array_distinct(each for each in array if not contains(other, each))


def array_intersect(array: list[Any], other: list[Any]) -> list[Any]:
    """What is in both arrays, each value once."""
    return array_distinct(each for each in array if contains(other, each))


def array_slice(array: list[Any], start: int, end: int | None = None) -> list[Any]:
    """From one place to another, both included; negative places count from the end. As in Flink 0
    is the first place."""
    size = len(array)
    last = size if end is None else end
    first = max(start + size + 1 if start < 0 else start, 1)
    last = min(last + size + 1, size) if last < 0 else min(last or 1, size)
    return array[first - 1 : max(last, 0)]


def _order(one: Any, other: Any) -> int:
    """Below 0 if the first comes first. NaN comes behind all numbers."""
    if equal(one, other):
        return 0
    if one != one or other != other:
        return 1 if one != one else -1
    return -1 if less(one, other) else 1


_BY_ORDER = functools.cmp_to_key(_order)


def array_sort(
    array: list[Any], is_ascending: bool = True, nulls_first: bool | None = None
) -> list[Any]:
    """In order; null stands first in ascending order and last in the other, unless the call says
    something else."""
    values = sorted((each for each in array if each is not None), key=_BY_ORDER)
    if not is_ascending:
        values.reverse()
    nulls: list[Any] = [None] * (len(array) - len(values))
    is_first = is_ascending if nulls_first is None else nulls_first
    return nulls + values if is_first else values + nulls


def _extreme(choose: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def of_array(array: list[Any]) -> Any:
        return choose((each for each in array if each is not None), key=_BY_ORDER, default=None)

    return of_array


def array_join(array: list[str | None], separator: str, null: str | None = None) -> str:
    """The texts with the separator between them; null is left out, or replaced."""
    texts = (null if each is None else each for each in array)
    return separator.join(each for each in texts if each is not None)


def element(array: list[Any]) -> Any:
    """The only element; null if there is none. Raises ValueError if there are more."""
    if len(array) > 1:
        raise ValueError(f"ELEMENT takes an array of one element, not of {len(array)}")
    return array[0] if array else None


def _unless_no_array(function: Callable[[list[Any], Any], Any]) -> MeaningOf:
    """Null if the array is; the value may be null."""
    return always(lambda array, value: None if array is None else function(array, value))


ARRAY_MEANINGS: dict[str, MeaningOf] = {
    "ELEMENT": strictly(element),
    "ARRAY_APPEND": _unless_no_array(lambda array, value: [*array, value]),
    "ARRAY_PREPEND": _unless_no_array(lambda array, value: [value, *array]),
    "ARRAY_CONTAINS": _unless_no_array(contains),
    "ARRAY_REMOVE": _unless_no_array(array_remove),
    "ARRAY_POSITION": strictly(array_position),
    "ARRAY_DISTINCT": strictly(array_distinct),
    "ARRAY_REVERSE": strictly(lambda array: array[::-1]),
    "ARRAY_SLICE": strictly(array_slice),
    "ARRAY_SORT": strictly(array_sort),
    "ARRAY_UNION": strictly(lambda array, other: array_distinct([*array, *other])),
    "ARRAY_CONCAT": strictly(lambda *arrays: [each for array in arrays for each in array]),
    "ARRAY_EXCEPT": strictly(array_except),
    "ARRAY_INTERSECT": strictly(array_intersect),
    "ARRAY_MAX": strictly(_extreme(max)),
    "ARRAY_MIN": strictly(_extreme(min)),
    "ARRAY_JOIN": strictly(array_join),
}
