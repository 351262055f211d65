"""How splits and custom events travel between enumerator and readers: as data, since ten thousand splits should not each take the way of the user's
code, which looks through all loaded modules."""

from __future__ import annotations

from typing import Any

from flinkpy.core.program.code import dumps_data, loads


def pack(value: Any, what: str) -> bytes:
    """Pickles ``value``; ProgramError naming ``what`` if it cannot be."""
    return dumps_data(value, what)


def unpack(data: bytes) -> Any:
    return loads(data)
