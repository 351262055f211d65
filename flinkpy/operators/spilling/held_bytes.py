"""How much memory the state of an operator takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

_ROOMS = (
    "flinkpy.relational",
    "flinkpy.operators.columnar",
    "flinkpy.operators.keyed_columns",
)  # of classes that hold state


def held_bytes(*parts: object, with_data: bool = True) -> int:
    """The bytes of all arrays that these hold, and with ``with_data`` of their Arrow data, also of
    what lies in mapped files. It follows the attributes of a few dozen objects, so that no class
    has to count along.

    >>> held_bytes({"a": [np.zeros(10), pa.array([1, 2])]})
    96
    """
    return sum(_sizes(parts, with_data, set()))


def _sizes(value: Any, with_data: bool, seen: set[int]) -> Iterator[int]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        if isinstance(value.base, np.ndarray):
            yield from _sizes(value.base, with_data, seen)
        else:
            yield value.nbytes
    elif isinstance(value, (pa.RecordBatch, pa.Table, pa.Array)):
        yield value.nbytes if with_data else 0
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _sizes(each, with_data, seen)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _sizes(each, with_data, seen)
    elif type(value).__module__.startswith(_ROOMS):
        for each in list(getattr(value, "__dict__", {}).values()):
            yield from _sizes(each, with_data, seen)
