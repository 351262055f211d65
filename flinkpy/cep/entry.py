"""Flink's way to begin: ``CEP.pattern(stream, pattern)``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from flinkpy.cep.automaton.pattern_picture import picture_of
from flinkpy.cep.dynamic.pattern_updates import PatternUpdate
from flinkpy.cep.pattern import Pattern
from flinkpy.cep.pattern_json import pattern_from_json, pattern_to_json

Pattern.picture_of = staticmethod(picture_of)

P = TypeVar("P", covariant=True)
S = TypeVar("S", contravariant=True)


class Matchable(Protocol[P]):
    """A stream."""

    def match(self, pattern: Pattern, comparator: Any = None) -> P: ...


class DynamicallyMatchable(Protocol[S, P]):
    """A stream."""

    def match_dynamic(
        self, updates: S, initial: Iterable[PatternUpdate] = (), comparator: Any = None
    ) -> P: ...


class CEP:
    """``CEP.pattern(stream, pattern)`` is ``stream.match(pattern)``; ``CEP.draw(pattern)`` shows
    the pattern's automaton."""

    @staticmethod
    def pattern(stream: Matchable[P], pattern: Pattern, comparator: Any = None) -> P:
        """Looks for the pattern in the stream; ``comparator`` orders records of equal time."""
        return stream.match(pattern, comparator)

    @staticmethod
    def dynamic_patterns(
        stream: DynamicallyMatchable[S, P],
        updates: S,
        initial: Iterable[PatternUpdate] = (),
        comparator: Any = None,
    ) -> P:
        """Looks for patterns that come, change and go while the job runs: ``updates`` is a stream
        of PatternUpdates; ``initial`` are there from the beginning."""
        return stream.match_dynamic(updates, initial, comparator)

    @staticmethod
    def to_json(pattern: Pattern) -> str:
        """The pattern as a text. Raises ProgramError for conditions that are no expressions."""
        return pattern_to_json(pattern)

    @staticmethod
    def from_json(text: str) -> Pattern:
        """The pattern of a text that ``to_json`` gave. Nothing in it is executed. Raises
        ProgramError if it says no pattern.

        >>> CEP.from_json(CEP.to_json(Pattern.begin("a").times(2).next("b")))
        a {2,2} next b
        """
        return pattern_from_json(text)

    @staticmethod
    def draw(pattern: Pattern) -> str:
        """``pattern.draw()`` as text: the automaton that the pattern is compiled to.

        >>> print(CEP.draw(Pattern.begin("a").next("b")))
        a  (start)
          take     -> b
        b
          take     -> match
        """
        return str(pattern.draw())
