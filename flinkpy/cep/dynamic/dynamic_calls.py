"""Calls the program's function with what patterns found that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.cep.automaton.partial_matches import Match
from flinkpy.cep.dynamic.dynamic_matcher import FoundByPattern
from flinkpy.cep.dynamic.pattern_versions import Version
from flinkpy.cep.match_calls import MatchCalls
from flinkpy.cep.match_functions import MatchContext, PatternProcessFunction
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.operators.context import OperatorContext

_NO_VERSION = Version("", 0)


class DynamicMatchContext(MatchContext):
    """What a function can ask that gets matches of patterns that come and go."""

    __slots__ = ("_version",)

    def __init__(self, processing_time: Callable[[], int]) -> None:
        super().__init__(processing_time)
        self._version = _NO_VERSION

    def pattern_id(self) -> str:
        """The id of the pattern that found the match."""
        return self._version.id

    def pattern_version(self) -> int:
        """The version of that pattern."""
        return self._version.number


class SelectingByPattern(PatternProcessFunction):
    """The function of ``select`` and ``flat_select``: it gets the pattern's id and the match."""

    def __init__(self, function: Callable[[str, Match], Any], many: bool) -> None:
        self.function, self.many = function, many

    def process_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        assert isinstance(ctx, DynamicMatchContext)
        given: Any = self.function(ctx.pattern_id(), match)
        return given if self.many else [given]


class DynamicMatchCalls(MatchCalls):
    """The calls of one subtask."""

    context: DynamicMatchContext

    def __init__(
        self, function: PatternProcessFunction, policy: ErrorPolicy, context: OperatorContext
    ) -> None:
        super().__init__(function, policy, context)
        self.context = DynamicMatchContext(context.timers.now_ms)

    def call_for(self, found: FoundByPattern, at: DynamicMatchContext) -> Iterable[Any] | None:
        """What the function gives."""
        at._version = found.version
        return self.call(found.found, at)
