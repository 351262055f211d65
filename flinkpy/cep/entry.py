"""Flink's way to begin: ``CEP.pattern(stream, pattern)``."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from flinkpy.cep.automaton.drawing import drawn
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.pattern import Pattern

P = TypeVar("P", covariant=True)


class Matchable(Protocol[P]):
    """A stream."""

    def match(self, pattern: Pattern, comparator: Any = None) -> P: ...


class CEP:
    """``CEP.pattern(stream, pattern)`` is ``stream.match(pattern)``; ``CEP.draw(pattern)`` shows
    the pattern's automaton."""

    @staticmethod
    def pattern(stream: Matchable[P], pattern: Pattern, comparator: Any = None) -> P:
        """Looks for the pattern in the stream; ``comparator`` orders records of equal time."""
        return stream.match(pattern, comparator)

    @staticmethod
    def draw(pattern: Pattern) -> str:
        """The automaton that the pattern is compiled to, as text: a line for each transition.

        >>> print(CEP.draw(Pattern.begin("a").next("b")))
        a  (start)
          take     -> b
        b
          take     -> match
        """
        return drawn(compiled(pattern))
