"""How arrays, maps and rows are made, and what maps hold. A map has no key that is null, where
Flink's may have one: columns cannot hold it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.collections.hashable_values import hashable
from flinkpy.columns.sql.sql_meanings.comparison_meanings import equal
from flinkpy.columns.sql.sql_meanings.null_rules import always, strict, strictly
from flinkpy.common.logical_types.logical_type import ArrayType


def map_of(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, Any]:
    """A map; of equal keys the last has its value. Raises ValueError for a key that is null."""
    found = {hashable(key): value for key, value in zip(keys, values)}
    if None in found:
        raise ValueError("a key of a map is null")
    return found


def map_from_arrays(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    """A map of keys and as many values."""
    if len(keys) != len(values):
        raise ValueError(f"MAP_FROM_ARRAYS has {len(keys)} keys and {len(values)} values")
    return map_of(keys, values)


def map_union(*maps: dict[Any, Any]) -> dict[Any, Any]:
    """The entries of all maps; of equal keys the last has its value."""
    return {key: value for each in maps for key, value in each.items()}


def value_of_key(map: dict[Any, Any], wanted: Any) -> Any:
    """The value of the key; null if there is none."""
    wanted = hashable(wanted)
    if wanted in map:
        return map[wanted]
    return next((value for key, value in map.items() if equal(key, wanted)), None)


def item(array: list[Any], place: int) -> Any:
    """The element at a place, from 1; null if there is none."""
    return array[place - 1] if 1 <= place <= len(array) else None


def _item(site: CallSite) -> Meaning:
    return strict(item if isinstance(site.arguments[0], ArrayType) else value_of_key)


MAP_MEANINGS: dict[str, MeaningOf] = {
    "ROW": always(lambda *values: values),
    "ARRAY": always(lambda *values: list(values)),
    "MAP": always(lambda *values: map_of(values[::2], values[1::2])),
    "CARDINALITY": strictly(len),
    "ITEM": _item,
    "MAP_KEYS": strictly(lambda map: list(map)),
    "MAP_VALUES": strictly(lambda map: list(map.values())),
    "MAP_ENTRIES": strictly(lambda map: list(map.items())),
    "MAP_UNION": strictly(map_union),
    "MAP_FROM_ARRAYS": strictly(map_from_arrays),
}
