"""What programs make of matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from flinkpy.cep.automaton.partial_matches import Match
from flinkpy.common.side_outputs import OutputTag
from flinkpy.operators.functions import Function


class MatchContext:
    """What a pattern's function can ask. One object serves all matches: do not keep it."""

    __slots__ = ("_outputs", "_processing_time", "_timestamp")

    def __init__(self, processing_time: Callable[[], int]) -> None:
        self._processing_time = processing_time
        self._timestamp: int | None = None
        self._outputs: list[tuple[OutputTag, Any]] = []

    def timestamp(self) -> int | None:
        """The timestamp of the match, which is that of its last event; of one that timed out, and
        of one that was complete because its time was up: that moment."""
        return self._timestamp

    def current_processing_time(self) -> int:
        """The machine's time in milliseconds."""
        return self._processing_time()

    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Sends a value to a side output."""
        self._outputs.append((output_tag, value))


class PatternProcessFunction(Function):
    """Called with each match: ``{name: [events]}``, in the pattern's order. Results are yielded;
    ``yield output_tag, value`` sends to a side output, as ``ctx.output(output_tag, value)``
    does."""

    Context: TypeAlias = MatchContext

    @abstractmethod
    def process_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None: ...


class TimedOutPartialMatchHandler(ABC):
    """A PatternProcessFunction that is also one of these is called with partial matches that took
    too long. It gives no results but those of ``ctx.output(output_tag, value)``."""

    @abstractmethod
    def process_timed_out_match(self, match: Match, ctx: MatchContext) -> None: ...


class Selecting(PatternProcessFunction):
    """The function of ``select`` and ``flat_select``."""

    def __init__(self, function: Callable[[Match], Any], many: bool) -> None:
        self.function, self.many = function, many

    def process_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        given: Any = self.function(match)
        return given if self.many else [given]


class SelectingTimedOut(Selecting, TimedOutPartialMatchHandler):
    """The same, with a function for what timed out."""

    def __init__(
        self,
        function: Callable[[Match], Any],
        many: bool,
        tag: OutputTag,
        timeout_function: Callable[[Match, int], Any],
    ) -> None:
        super().__init__(function, many)
        self.tag, self.timeout_function = tag, timeout_function

    def process_timed_out_match(self, match: Match, ctx: MatchContext) -> None:
        moment = ctx.timestamp()
        assert moment is not None
        given = self.timeout_function(match, moment)
        for each in (given or ()) if self.many else (given,):
            ctx.output(self.tag, each)
