"""How many bytes the entries of a state take, from a few of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from flinkpy.core.memory import size_of
from flinkpy.state.heap.running_values import RunningValues
from flinkpy.state.layers.overlay import Overlay

SAMPLED = 8  # entries, from either end: the oldest and the newest
_PARTS = 16
T = TypeVar("T")


def bytes_of_entries(entries: Mapping[Any, Any]) -> int:
    """An estimate, in some 50 µs.

    >>> 1000 * 200 < bytes_of_entries({n: "x" * 100 for n in range(1000)}) < 1000 * 400
    True
    """
    if isinstance(entries, RunningValues):
        numbers = entries.number_bytes
        return numbers if numbers is not None else bytes_of_entries(entries.entries)
    if isinstance(entries, Overlay):
        return _bytes(entries.base, len(entries)) + sys.getsizeof(entries)
    return _bytes(entries, len(entries)) if isinstance(entries, dict) else 0


def bytes_of_parts(
    parts: Sequence[T], count: Callable[[T], int], bytes_of: Callable[[T], int]
) -> int:
    """An estimate for many parts of a state, such as the slices of windows, from some of them: each
    entry of the others takes as many.

    >>> bytes_of_parts([b"xy"] * 100, len, lambda part: 5)
    500
    """
    some = parts[:: max(1, len(parts) // _PARTS)]
    entries = sum(map(count, some))
    return sum(map(bytes_of, some)) * sum(map(count, parts)) // entries if entries else 0


def _bytes(sampled: dict[Any, Any], count: int) -> int:
    ends = [*_some(sampled.items()), *_some(reversed(sampled.items()))]
    if not ends:
        return sys.getsizeof(sampled)
    mean = sum(size_of(key) + size_of(value) for key, value in ends) / len(ends)
    return sys.getsizeof(sampled) + int(count * mean)


def _some(items: Iterable[tuple[Any, Any]]) -> Iterable[tuple[Any, Any]]:
    return islice(items, SAMPLED)
