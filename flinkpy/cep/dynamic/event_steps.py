"""How an event is given to the partial matches of one key: interpreted, and for patterns that have
had some events by a generated loop, which is made for many events and takes one here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import FIRST, NO_RUNS, STATE, TIME, Found, Runs
from flinkpy.cep.automaton.pattern_states import END, Automaton
from flinkpy.cep.matching.calendar import PARTS
from flinkpy.cep.matching.generated_loop import GeneratedLoop, Take
from flinkpy.core.codegen.generated import forget_source

OFTEN = 30  # events, from which on a loop is worth being generated


class EventSteps:
    """The steps of one automaton."""

    def __init__(
        self, automaton: Automaton, now_ms: Callable[[], int], gives_timed_out: bool
    ) -> None:
        # whether the time between two events is bounded
        self.has_gaps = bool(automaton.within_previous_ms)
        self._within_ms = automaton.within_ms
        self._interpreter = Interpreter(automaton, now_ms, gives_timed_out)
        # whether partial matches that time out are only dropped, if no match waits behind them
        self._drops = self._interpreter.within_of_quiet > 0
        self._width = _width(automaton, gives_timed_out)
        # equal for automata whose partial matches of one event time out together
        self.timing: object = (self._within_ms, self._width) if self._drops else self
        self._events = 0
        self._take: Take | None = None
        self._hand = _Hand()

    def close(self) -> None:
        """Forgets the source of the generated loop."""
        if self._take is not None:
            forget_source(self._take)

    def process(
        self, before: Runs, key: Any, event: Any, time: int, number: int, same_moment: bool
    ) -> tuple[Runs, list[Found]]:
        """Gives an event to the runs. ``same_moment``: they had an event of this time before."""
        take = self._loop()
        if take is not None:
            hand = self._hand
            hand.number = number
            if before:
                hand[key] = before
            found = list(chain.from_iterable(take(hand, (key,), (time,), (event,))))
            return hand.pop(key, NO_RUNS), found
        timed_out: list[Found] = []
        runs = before
        if runs and not (same_moment and self.has_gaps):
            runs, timed_out = self.advance(runs, time)
        runs, found = self._interpreter.process(runs, event, time, number)
        return runs, timed_out + found

    def _loop(self) -> Take | None:
        """The generated loop: of patterns that have had some events, if it means the same for one
        event as for many."""
        self._events += 1
        if self._events == OFTEN and not self.has_gaps:
            self._take = GeneratedLoop(self._interpreter).take
        return self._take

    def advance(self, runs: Runs, time: int) -> tuple[Runs, list[Found]]:
        """Time has come to ``time``: gives what timed out, and what is complete because of it."""
        if not self._drops or runs[-1][STATE] == END:
            return self._interpreter.advance(runs, time)
        oldest = time - self._within_ms
        if runs[0][FIRST][TIME] > oldest:
            return runs, []
        return Runs([run for run in runs if run[FIRST][TIME] > oldest]), []

    def due(self, runs: Runs) -> int | None:
        """When to look at the runs because one of them may time out."""
        if self._drops and runs[-1][STATE] != END:
            due: int | None = runs[0][FIRST][TIME] + self._within_ms  # the earliest
        else:
            due = self._interpreter.next_timeout(runs)
        return None if due is None else -(-due // self._width) * self._width


class _Hand(dict[Any, Runs]):
    """What the generated loop takes for a matcher: with the runs of one key, for one event. When
    they time out is not its matter."""

    __slots__ = ("number", "partial_matches")
    most_of_a_key = sys.maxsize  # so it asks for no check

    def __init__(self) -> None:
        super().__init__()
        self.number = self.partial_matches = 0

    @property
    def runs(self) -> _Hand:
        return self

    @property
    def calendar(self) -> _Hand:
        return self

    def bucket(self, time: int) -> tuple[dict[Any, None], int]:
        return {}, time

    def put(self, key: Any, before: Runs | None, kept: Iterable[Any], time: int) -> None:
        runs = Runs(kept)
        if runs:
            self[key] = runs
        else:
            self.pop(key, None)


def _width(automaton: Automaton, gives_timed_out: bool) -> int:
    """How exactly timeouts are kept: to the millisecond where something is given then."""
    if gives_timed_out or automaton.gives_at_timeouts:
        return 1
    spans = (automaton.within_ms, *automaton.within_previous_ms.values())
    return max(1, min((ms for ms in spans if ms), default=1) // PARTS)
