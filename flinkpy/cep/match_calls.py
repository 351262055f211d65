"""Calls the program's function with what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from flinkpy.cep.automaton.partial_matches import Found
from flinkpy.cep.guarded_match import MatchCall, guarded_match
from flinkpy.cep.match_functions import (
    MatchContext,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
)
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.output.output_isolation import all_private


class MatchCalls:
    """The calls of one subtask. Events of a match stay in the state of others, so the function gets
    copies of those that could be changed in place."""

    def __init__(
        self, function: PatternProcessFunction, policy: ErrorPolicy, context: OperatorContext
    ) -> None:
        self.context = MatchContext(context.timers.now_ms)
        self.matches = 0  # so far
        self.handles_timeouts = isinstance(function, TimedOutPartialMatchHandler)
        self._function = function
        self._process: MatchCall = function.process_match
        if not policy.fails_at_once:
            self._process = guarded_match(self._process, policy, context)
        self.copies = not context.object_reuse

    def with_own_events(self, found: Sequence[Found]) -> Sequence[Found]:
        """The same matches, in whose lists events stand that the function may change."""
        if self.copies:
            lists = [events for match, _, _ in found for events in match.values()]
            events = list(chain.from_iterable(lists))
            own = all_private(events)
            if own is not events:
                upcoming = iter(own)
                for each in lists:
                    each[:] = islice(upcoming, len(each))
        return found

    def call(self, found: Found, at: MatchContext) -> Iterable[Any] | None:
        """What the function gives, with what it sent to side outputs."""
        match, at._timestamp, timed_out = found
        given: Iterable[Any] | None = None
        if not timed_out:
            self.matches += 1
            given = self._process(match, at)
            if type(given) is list and not at._outputs:
                return given
        elif isinstance(self._function, TimedOutPartialMatchHandler):
            self._function.process_timed_out_match(match, at)
        return _with_outputs(given, at)


def _with_outputs(given: Iterable[Any] | None, at: MatchContext) -> Iterable[Any] | None:
    if given is not None and type(given) not in (list, tuple):
        return _outputs_between(given, at)
    if not at._outputs:
        return given
    outputs, at._outputs = at._outputs, []
    return [*outputs, *(given or ())]


def _outputs_between(given: Iterable[Any], at: MatchContext) -> Iterator[Any]:
    for each in given:
        outputs, at._outputs = at._outputs, []
        yield from outputs
        yield each
    outputs, at._outputs = at._outputs, []
    yield from outputs
