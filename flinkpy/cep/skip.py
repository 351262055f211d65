"""What happens to other matches once a match was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from flinkpy.core.program.program_line import refuse


class SkipKind(Enum):
    """Where matching goes on after a match."""

    NO_SKIP = "no skip"
    TO_NEXT = "skip to next"
    PAST_LAST_EVENT = "skip past last event"
    TO_FIRST = "skip to first"
    TO_LAST = "skip to last"


@dataclass(frozen=True)
class AfterMatchSkipStrategy:
    """Which partial and complete matches are dropped when a match was found. Make one with the
    methods; ``Pattern.begin(name, skip)`` takes it.

    >>> AfterMatchSkipStrategy.skip_to_last("b").throw_exception_on_miss()
    skip to last 'b', with an exception on miss
    """

    kind: SkipKind
    pattern_name: str | None = None
    throws_on_miss: bool = False

    @staticmethod
    def no_skip() -> AfterMatchSkipStrategy:
        """Every match is given. This is the default."""
        return AfterMatchSkipStrategy(SkipKind.NO_SKIP)

    @staticmethod
    def skip_to_next() -> AfterMatchSkipStrategy:
        """Drops matches that begin with the same event."""
        return AfterMatchSkipStrategy(SkipKind.TO_NEXT)

    @staticmethod
    def skip_past_last_event() -> AfterMatchSkipStrategy:
        """Drops matches that begin before the match ended."""
        return AfterMatchSkipStrategy(SkipKind.PAST_LAST_EVENT)

    @staticmethod
    def skip_to_first(pattern_name: str) -> AfterMatchSkipStrategy:
        """Drops matches that begin before the match's first event of that name."""
        return AfterMatchSkipStrategy(SkipKind.TO_FIRST, pattern_name)

    @staticmethod
    def skip_to_last(pattern_name: str) -> AfterMatchSkipStrategy:
        """Drops matches that begin before the match's last event of that name."""
        return AfterMatchSkipStrategy(SkipKind.TO_LAST, pattern_name)

    def throw_exception_on_miss(self) -> AfterMatchSkipStrategy:
        """Of ``skip_to_first`` and ``skip_to_last``: the job fails if a match has no event of that
        name, or if that event is its first one. Otherwise nothing is dropped then."""
        if self.pattern_name is None:
            raise refuse(
                "throw_exception_on_miss() belongs to skip_to_first(name) and skip_to_last(name)"
            )
        return replace(self, throws_on_miss=True)

    @property
    def skips(self) -> bool:
        """Whether a match can drop others."""
        return self.kind is not SkipKind.NO_SKIP

    def __repr__(self) -> str:
        name = "" if self.pattern_name is None else f" {self.pattern_name!r}"
        return self.kind.value + name + (", with an exception on miss" * self.throws_on_miss)
