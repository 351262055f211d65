"""A job's identifier, as PyFlink spells it."""

from __future__ import annotations


class JobID(str):
    """32 hex digits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"JobID({self!s})"
