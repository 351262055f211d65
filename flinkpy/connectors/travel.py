"""How splits and custom events travel between enumerator and readers.

Plain pickle where everything in them is a plain value or a class of flinkpy's own, the way of the user's code otherwise: that one looks
through all loaded modules, which is too slow to do for each of ten thousand splits.
"""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass
from typing import Any

from flinkpy.core.code import dumps, loads

_PLAIN = (str, int, float, bool, bytes, type(None))


def pack(value: Any, what: str) -> bytes:
    """Pickles ``value``; ProgramError naming ``what`` if it cannot be."""
    return pickle.dumps(value, protocol=5) if _is_plain(value) else dumps(value, what)


def unpack(data: bytes) -> Any:
    return loads(data)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind in (list, tuple):
        return all(map(_is_plain, value))
    if kind is dict:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return kind.__module__.startswith("flinkpy.") and is_dataclass(value) and all(_is_plain(getattr(value, field.name)) for field in fields(value))
