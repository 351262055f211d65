"""Matches events of many keys, in the order of time. The runs of each key lie in a mapping of the
state backend; a key without runs has no entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any

from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import (
    CELL,
    FIRST,
    NO_RUNS,
    NUMBER,
    STATE,
    TIME,
    Found,
    Run,
    Runs,
    match_of,
)
from flinkpy.cep.automaton.pattern_states import END
from flinkpy.cep.matching.calendar import Calendar
from flinkpy.cep.matching.generated_loop import TOGETHER, GeneratedLoop
from flinkpy.core.codegen.generated import failure_in, forget_source
from flinkpy.core.codegen.inlining import raised_by
from flinkpy.core.errors import ProgramError
from flinkpy.core.secrets.engine_logs import engine_logger

logger = engine_logger(__name__)

MANY = 10_000  # partial matches of a key, from which on there is a warning


class TooManyPartialMatchesError(ProgramError):
    """A key has more partial matches than the program allows."""


@dataclass(frozen=True)
class Fault:
    """A condition's error, as it raised it; the event at which it did, if that is known; and what a
    message says of the pattern that has the condition."""

    error: BaseException
    event: Any = None
    of_pattern: str = ""


class RowMatcher:
    """``most``: how many partial matches a key may have. A key with runs stands in the calendar
    for the first of their timeouts, or an earlier time."""

    def __init__(
        self,
        interpreter: Interpreter,
        calendar: Calendar,
        most: int | None = None,
        generated: bool = True,
    ) -> None:
        self.interpreter = interpreter
        self.calendar = calendar
        self.runs: MutableMapping[Any, Runs] = {}
        self.number = 0  # of the next event
        self.partial_matches = 0  # of all keys
        self.most_of_a_key = 0
        self._automaton = interpreter.automaton
        self._event: Any = None
        self._most, self._warned = most, False
        self._gaps = bool(self._automaton.within_previous_ms)
        self._within_of_quiet = interpreter.within_of_quiet
        self._loop = GeneratedLoop(interpreter) if generated else None

    @property
    def is_generated(self) -> bool:
        """Whether there is a loop for the pattern, so that it is not interpreted."""
        return self._loop is not None and self._loop.take is not None

    def restore(self, runs: MutableMapping[Any, Runs]) -> None:
        """Goes on with the runs of a snapshot."""
        self.runs = runs
        for key, kept in runs.items():
            self.partial_matches += len(kept)
            self.number = max(self.number, *(run[CELL][NUMBER] + 1 for run in kept))
            self._enter(key, kept)

    def take(
        self,
        keys: Iterable[Any],
        times: Iterable[int],
        events: Iterable[Any],
        truths: Sequence[Iterable[bool | None]] = (),
    ) -> Iterator[list[Found]]:
        """What is found in events that come in the order of their time, some of it at once.
        ``truths``: for each of ``expressions_of(automaton)``, if it was computed before, whether it
        holds."""
        loop = self._loop
        if loop is None or loop.take is None:
            return some_at_once(self._interpreted(keys, times, events))
        if not truths:
            truths = [repeat(None)] * loop.expressions
        return loop.take(self, keys, times, events, *truths)

    def _interpreted(
        self, keys: Iterable[Any], times: Iterable[int], events: Iterable[Any]
    ) -> Iterator[list[Found]]:
        advance, process = self.interpreter.advance, self.interpreter.process
        last: dict[Any, int] = {}  # a partial match that is too late already ends with the moment
        for key, time, event in zip(keys, times, events):
            self._event = event
            before = self.runs.get(key)
            if before is not None and (not self._gaps or last.get(key) != time):
                runs, found = advance(before, time)
                if runs is not before:
                    self.put(key, before, runs, time)
                    before = runs or None
                    yield found
            last[key] = time
            runs, found = process(before or NO_RUNS, event, time, self.number)
            self.number += 1
            self.put(key, before, runs, time)
            yield found

    def advance(self, now: int) -> Iterator[list[Found]]:
        """What is found because time has come to ``now``, some of it at once."""
        return some_at_once(self._timed_out(now))

    def _timed_out(self, now: int) -> Iterator[list[Found]]:
        self._event = None
        within, calendar = self._within_of_quiet, self.calendar
        for key in calendar.until(now):
            before = self.runs.get(key)
            if before is None:
                continue
            if within and before[-1][STATE] != END:
                due = before[0][FIRST][TIME] + within
                if due > now:  # mostly there is nothing to do yet
                    calendar.add(due, key)
                    continue
                left = [run for run in before if run[FIRST][TIME] + within > now]
                self.put(key, before, left, now)
                if left:
                    calendar.add(left[0][FIRST][TIME] + within, key)
                continue
            runs, found = self.interpreter.advance(before, now)
            self.put(key, before, runs, now)
            self._enter(key, runs)
            yield found

    def forget_all(self) -> None:
        """Drops all runs: of a batch job, when a key has ended."""
        for key in list(self.runs):
            self.put(key, self.runs[key], NO_RUNS, 0)

    def at_fault(self, error: BaseException) -> Fault:
        """Where an exception was raised."""
        loop = self._loop
        failure = None
        if loop is not None and loop.take is not None:
            failure = failure_in(loop.take, error.__traceback__)
        if failure is None or loop is None:
            return Fault(error, self._event)
        event = failure.variables.get("event")
        context = self.interpreter.context
        context.cell = failure.variables.get("cell")
        for function, takes_context in loop.inlined.items():
            again = raised_by(function, [event, context] if takes_context else [event], error)
            if again is not error:
                return Fault(again, event)
        return Fault(error, event)

    def close(self) -> None:
        """Forgets the source of the generated loop."""
        if self._loop is not None and self._loop.take is not None:
            forget_source(self._loop.take)

    def put(self, key: Any, before: Runs | None, kept: Sequence[Run], time: int) -> None:
        """Keeps what is left of a key's runs after an event or a moment at ``time``."""
        count = len(kept)
        if before is None:
            if not count:
                return
            self.partial_matches += count
            if self._automaton.within_ms and not self._gaps:  # all of them begin with this event
                self.calendar.add(time + self._automaton.within_ms, key)
        else:
            if count == len(before) and all(map(is_, kept, before)):
                return
            self.partial_matches += count - len(before)
            if not count:
                del self.runs[key]
                return
        runs = self.runs[key] = kept if type(kept) is Runs else Runs(kept)
        if self._gaps:
            self._enter(key, runs)
        if count > self.most_of_a_key:
            self.check(key, runs)

    def _enter(self, key: object, runs: Runs) -> None:
        due = self.interpreter.next_timeout(runs)
        if due is not None:
            self.calendar.add(due, key)

    def check(self, key: object, runs: Runs) -> int:
        """Takes note of a key that has more runs than any before, and returns how many."""
        self.most_of_a_key = len(runs)
        if self._most is not None and len(runs) > self._most:
            raise TooManyPartialMatchesError(
                f"cep.max-partial-matches-per-key: the key {key!r:.80} has {len(runs)} partial "
                f"matches of the pattern {list(self._automaton.names)}; one of them: "
                f"{match_of(runs[-1][CELL])!r:.400}. Bound the pattern with within(...) or "
                "until(...), or leave allow_combinations() out"
            )
        if len(runs) >= MANY and not self._warned:
            self._warned = True
            logger.warning(
                "the key %.80r has %d partial matches of the pattern %s; bound the pattern with "
                "within(...) or until(...), or leave allow_combinations() out",
                key,
                len(runs),
                list(self._automaton.names),
            )
        return self.most_of_a_key


def some_at_once(found: Iterable[Sequence[Found]], most: int = TOGETHER) -> Iterator[list[Found]]:
    """The same in lists of about ``most``; also what was found before an error."""
    together: list[Found] = []
    try:
        for each in found:
            together += each
            if len(together) >= most:
                yield together
                together = []
    except Exception:
        if together:
            yield together
        raise
    if together:
        yield together
