"""Flink's way to begin: ``CEP.pattern(stream, pattern)``."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from flinkpy.cep.pattern import Pattern

P = TypeVar("P", covariant=True)


class Matchable(Protocol[P]):
    """A stream."""

    def match(self, pattern: Pattern, comparator: Any = None) -> P: ...


class CEP:
    """``CEP.pattern(stream, pattern)`` is ``stream.match(pattern)``."""

    @staticmethod
    def pattern(stream: Matchable[P], pattern: Pattern, comparator: Any = None) -> P:
        """Looks for the pattern in the stream; ``comparator`` orders records of equal time."""
        return stream.match(pattern, comparator)
