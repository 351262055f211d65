"""Accumulators as people may see them: each with its kind and its value as text."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from flinkpy.metrics.reported import without_metrics

LONGEST = 10_000  # characters of a value; what is longer is cut
_CONTAINERS = (list, tuple, set, frozenset, dict)
# of a container its beginning: one of a million elements costs no more than one of a hundred
_REPR = reprlib.Repr()
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxfrozenset = _REPR.maxdict = 100
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 1000


class ShownAccumulator(NamedTuple):
    name: str
    kind: str
    text: str


Shown = tuple[ShownAccumulator, ...]


def shown(accumulators: Mapping[str, Any]) -> Shown:
    """Those of the program; the metrics among them are left out.

    >>> for each in shown({"seen": 3, "words": ["a", "b"]}):
    ...     print(each)
    ShownAccumulator(name='seen', kind='int', text='3')
    ShownAccumulator(name='words', kind='list', text="['a', 'b']")
    """
    own, _ = without_metrics(accumulators)
    return tuple(
        ShownAccumulator(str(name), type(value).__name__, _text(value))
        for name, value in own.items()
    )


def _text(value: object) -> str:
    try:
        text = _REPR.repr(value) if type(value) in _CONTAINERS else str(value)
    except Exception as error:  # a class of the program may raise anything
        text = f"<{type(value).__name__} without text: {type(error).__name__}>"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
