"""The loops that pair the records of a window. They are generated, with the join function inlined
if it is a single expression.

If each key has one record on the right (such as persons by id), the generated loop has no inner
loop, and looks records up in a plain dict, which is faster to build than a dict of lists. The loops
are generators: between two batches of results the operator may park."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias

from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.codegen.inlining import call_or_inline

Part: TypeAlias = "tuple[list[Any], list[Any]]"  # keys, and a record for each
# (parts of the left; look-up of right records; what it returns for none; join function; current
# key; results per batch) -> batches of results
JoinLoop: TypeAlias = "Callable[[Iterable[Part], Any, object, Any, Any, int], Iterator[list[Any]]]"

_LOOP = """\
def join_loop(parts, find, missing, join, current, limit):
    results = []
    for keys, ones in parts:
        for key, one in zip(keys, ones):
            found = find(key, missing)
            if found is not missing:
                {set_key}
                {take}
        if len(results) >= limit:
            yield results
            results = []
    yield results
"""
_ONE = """\
other = found
                results.append({given})"""
_ALL = """\
for other in found:
                    results.append({given})
                    if len(results) >= limit:
                        yield results
                        results = []"""


def join_loop(join: object, *, unique: bool, set_key: bool) -> JoinLoop:
    """The loop for a join function; it yields results a batch at a time. ``set_key``: the function
    may ask for state of its key."""
    given = call_or_inline(join, "join", "one", "other")
    return compile_function(
        "join_loop",
        _LOOP.format(
            set_key="current.key = key" if set_key else "pass",
            take=(_ONE if unique else _ALL).format(given=given),
        ),
        {},
    )


def index_of(parts: list[Part]) -> tuple[dict[Any, Any], bool]:
    """The records by key, and whether each key has only one; if not, the dict has lists."""
    index: dict[Any, Any] = dict(
        zip(
            chain.from_iterable(keys for keys, _ in parts),
            chain.from_iterable(values for _, values in parts),
        )
    )
    if len(index) == sum(len(keys) for keys, _ in parts):
        return index, True
    return by_key(parts), False


def by_key(parts: list[Part]) -> dict[Any, list[Any]]:
    """All parts as one dict of lists."""
    index: dict[Any, list[Any]] = {}
    for keys, values in parts:
        add_by_key(index, keys, values)
    return index


def add_by_key(
    index: dict[Any, list[Any]], keys: list[Any], values: list[Any]
) -> dict[Any, list[Any]]:
    """Appends each value to those of its key."""
    find = index.get
    for key, value in zip(keys, values):
        found = find(key)
        if found is None:
            index[key] = [value]
        else:
            found.append(value)
    return index


def narrowed(parts: list[Part], partners: list[Part]) -> list[Part]:
    """The parts without records that cannot have a partner, if partners are few: looking up a key
    is cheaper than putting it into a dict."""
    if sum(len(part[0]) for part in parts) < 2 * sum(len(part[0]) for part in partners):
        return parts
    wanted = {key for keys, _ in partners for key in keys}
    pairs = [[(key, value) for key, value in zip(*part) if key in wanted] for part in parts]
    return [([key for key, _ in part], [value for _, value in part]) for part in pairs]


def in_chunks(parts: list[Part], size: int) -> Iterator[Part]:
    """The same records in parts of at most ``size`` records."""
    for keys, values in parts:
        for begin in range(0, len(keys), size):
            yield keys[begin : begin + size], values[begin : begin + size]
