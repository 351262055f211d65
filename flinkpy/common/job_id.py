"""A job's id, under PyFlink's name."""

from __future__ import annotations


class JobID(str):
    """A job's id: 32 hex digits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"JobID({self!s})"
