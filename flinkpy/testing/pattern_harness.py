"""Runs a pattern over events that a test gives, without a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.match_picture import MatchPicture, Taken
from flinkpy.cep.automaton.partial_matches import (
    NAME,
    NO_RUNS,
    NUMBER,
    STATE,
    Cell,
    Found,
    Match,
    Runs,
    cells_of,
)
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.automaton.pattern_states import END, Automaton
from flinkpy.cep.pattern import Pattern
from flinkpy.cep.skip import AfterMatchSkipStrategy


class _Remembering(Interpreter):
    """Remembers which events matches have."""

    def __init__(self, automaton: Automaton, processing_time: Callable[[], int]) -> None:
        super().__init__(automaton, processing_time)
        self.taken: list[Taken] = []

    def complete(self, last: Cell, time: int) -> Found:
        cells = reversed(list(cells_of(last)))
        self.taken.append({cell[NUMBER]: cell[NAME] for cell in cells})
        return super().complete(last, time)


class PatternHarness:
    """What a pattern finds in the events of one key.

    >>> from flinkpy.cep import Pattern
    >>> pattern = Pattern.begin("small").where(lambda amount: amount < 1)
    >>> harness = PatternHarness(pattern.next("big").where(lambda amount: amount > 500))
    >>> harness.process(0.5, 1_000), harness.process(900, 2_000)
    ([], [{'small': [0.5], 'big': [900]}])

    ``matches`` has all matches so far; ``timed_out`` the partial matches that timed out, each with
    its time. ``skip`` replaces the pattern's own strategy. Conditions see ``processing_time_ms`` as
    the machine's time."""

    def __init__(self, pattern: Pattern, skip: AfterMatchSkipStrategy | None = None) -> None:
        self.processing_time_ms = 0
        self.matches: list[Match] = []
        self.timed_out: list[tuple[Match, int]] = []
        self._interpreter = _Remembering(
            compiled(pattern if skip is None else pattern.with_skip(skip)),
            lambda: self.processing_time_ms,
        )
        self._events: list[Any] = []
        self._runs: Runs = NO_RUNS
        self._last_time: int | None = None

    def process(self, event: Any, time: int = 0) -> list[Match]:
        """Takes one event, and gives the matches that are complete then. Events come in order."""
        before = self.advance(time) if time != self._last_time else []
        self._last_time = time
        number = len(self._events)
        self._events.append(event)
        self._runs, found = self._interpreter.process(self._runs, event, time, number)
        return before + self._keep(found)

    def advance(self, time: int) -> list[Match]:
        """No event before ``time`` comes any more; gives the matches that are complete then."""
        self._runs, found = self._interpreter.advance(self._runs, time)
        return self._keep(found)

    @property
    def partial_matches(self) -> int:
        """How many partial matches are kept."""
        return sum(run[STATE] != END for run in self._runs)

    def draw(self) -> MatchPicture:
        """The events so far, and which of them each match has: as text, and as a picture in a
        notebook.

        >>> from flinkpy.cep import Pattern
        >>> harness = PatternHarness(Pattern.begin("a").followed_by("b").where(lambda e: e == "B"))
        >>> for event in ("A1", "A2", "B"):
        ...     _ = harness.process(event)
        >>> harness.draw()
        A1  A2  B
        a       b
            a   b
        """
        return MatchPicture(self._events, self._interpreter.taken)

    def _keep(self, found: list[Found]) -> list[Match]:
        self.timed_out += [(each.match, each.timestamp) for each in found if each.timed_out]
        matches = [each.match for each in found if not each.timed_out]
        self.matches += matches
        return matches
