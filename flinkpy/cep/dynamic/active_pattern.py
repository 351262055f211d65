"""A version of a pattern that is looked for: its automaton, and what its partial matches wait
for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from flinkpy.cep.automaton.partial_matches import STATE, Cell, Runs
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.automaton.pattern_states import END, Action, Automaton, State, StateKind
from flinkpy.cep.dynamic.event_steps import EventSteps
from flinkpy.cep.dynamic.pattern_updates import PatternUpdate
from flinkpy.cep.dynamic.pattern_versions import version_of
from flinkpy.cep.dynamic.shared_conditions import SharedConditions
from flinkpy.cep.dynamic.wanted_events import (
    WantedSets,
    only_first_step,
    wanted_by,
    wanted_to_begin,
)
from flinkpy.cep.dynamic.watches import Watches
from flinkpy.cep.pattern import Pattern


class Beginning(NamedTuple):
    """How a partial match begins, and when it times out: of patterns in which both are equal, an
    event begins the same partial match."""

    step: str
    state: str
    timing: object

    def runs(self, event: object, time: int, number: int) -> Runs:
        """The partial match that the event begins."""
        cell: Cell = (self.step, event, time, number, None)
        return Runs(((self.state, cell, cell),))


class FirstStep(NamedTuple):
    """What an event does that begins a match for sure. ``wants``: the bits of the watches for which
    the partial match waits then."""

    wants: int
    beginning: Beginning


class ActivePattern:
    """``begins`` are the bits of the watches for its first event; none once it only finishes what
    it has begun. ``first`` is what such an event does to a key without runs; None if that has to be
    asked. ``steps`` give events to its partial matches."""

    def __init__(
        self,
        update: PatternUpdate,
        watches: Watches[ActivePattern],
        now_ms: Callable[[], int],
        gives_timed_out: bool,
    ) -> None:
        assert update.pattern is not None
        self.update, self.version = update, version_of(update)
        self.partial_matches = 0  # of all keys
        shared, self._numbers = watches.conditions.shared(update.pattern)
        self._watches = watches
        self._automaton = automaton = compiled_of(shared, watches.conditions, self._numbers)
        self._now_ms, self._gives_timed_out = now_ms, gives_timed_out
        self.steps = EventSteps(automaton, now_ms, gives_timed_out)
        self.begins = watches.add(wanted_to_begin(automaton.start), self)
        self._bits_of_sets: dict[WantedSets, int] = {}
        self._waits = {END: 0, **{each.name: self._watch(each) for each in _waiting(automaton)}}
        self.first = self._first_step()

    def close(self) -> None:
        """It is looked for no more."""
        self._watches.remove(self.begins)
        for bits in self._bits_of_sets.values():
            self._watches.remove(bits)
        self._watches.conditions.release(self._numbers)
        self.steps.close()

    def finish(self) -> None:
        """From now on nothing begins; what has begun may end."""
        self._watches.remove(self.begins)
        self.begins, self.first = 0, None
        self.steps.close()
        nothing = replace(self._automaton, start=State("(none)", "(none)", StateKind.NORMAL))
        self.steps = EventSteps(nothing, self._now_ms, self._gives_timed_out)

    @property
    def functions(self) -> Iterator[object]:
        """The program's functions in its conditions."""
        assert self.update.pattern is not None
        return functions_of(self.update.pattern)

    def wants(self, runs: Runs) -> int:
        """The bits of the watches for which the runs wait."""
        waits = self._waits
        bits = 0
        for run in runs:
            bits |= waits[run[STATE]]
        return bits

    def _first_step(self) -> FirstStep | None:
        start = self._automaton.start
        edge = only_first_step(start)
        if edge is None:
            return None
        state = edge.target.name
        return FirstStep(self._waits[state], Beginning(start.step, state, self.steps.timing))

    def _watch(self, state: State) -> int:
        """The watches of one state; states that want the same have them together."""
        sets = wanted_by(state)
        if sets not in self._bits_of_sets:
            self._bits_of_sets[sets] = self._watches.add(sets, self)
        return self._bits_of_sets[sets]


def compiled_of(
    pattern: Pattern, conditions: SharedConditions, numbers: tuple[int, ...]
) -> Automaton:
    """The automaton of a pattern with shared conditions, which are given back if it is refused."""
    try:
        return compiled(pattern)
    except BaseException:
        conditions.release(numbers)
        raise


def functions_of(pattern: Pattern) -> Iterator[object]:
    """The program's functions in the conditions of a pattern."""
    for step in pattern.steps:
        for condition in (step.condition, step.until):
            yield from () if condition is None else condition.functions
        yield from () if step.group is None else functions_of(step.group)


def _waiting(automaton: Automaton) -> dict[State, None]:
    """The states in which a partial match may wait, in their order."""
    return dict.fromkeys(
        edge.target
        for state in automaton.states
        for edge in state.transitions
        if edge.action is not Action.PROCEED
        and edge.target.kind in (StateKind.NORMAL, StateKind.PENDING)
    )
