"""Which events a partial match waits for: all others would leave it as it is.

An event is *wanted* if it satisfies all conditions of one of some sets. ``wanted_by(state)`` gives
these sets for a state: of an event that satisfies none of them a partial match in that state would
only be ignored. The empty set is satisfied by every event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from flinkpy.cep.automaton.pattern_states import Action, State, StateKind, Transition
from flinkpy.cep.dynamic.shared_conditions import Comparison, Shared
from flinkpy.cep.event_conditions import Always, Both, Condition, Either, Not


@dataclass(frozen=True)
class Test:
    """A condition that only asking answers: a function, or what is made of such."""

    condition: Condition


Wanted: TypeAlias = "frozenset[Comparison | Test]"
WantedSets: TypeAlias = "frozenset[Wanted]"
EVERY: WantedSets = frozenset({frozenset()})
NONE: WantedSets = frozenset()

MOST = 16  # sets; of more, every event is wanted


def wanted_to_begin(start: State) -> WantedSets:
    """Which events may begin a match."""
    found: set[Wanted] = set()
    for state in _reached(start):
        for edge in state.transitions:
            if edge.action is Action.TAKE and edge.target.kind is not StateKind.STOP:
                found |= needed(edge.condition)
    return _few(found)


def only_first_step(start: State) -> Transition | None:
    """The only way to begin, if there is one, and if each event that is wanted does begin a match,
    which then waits for another event."""
    if len(start.transitions) != 1:
        takes = [edge for edge in start.transitions if edge.action is not Action.IGNORE]
    else:
        takes = start.transitions
    if len(takes) != 1 or takes[0].action is not Action.TAKE:
        return None
    edge = takes[0]
    waits = edge.target.kind is StateKind.NORMAL and not any(
        each.action is Action.PROCEED for each in edge.target.transitions
    )
    return edge if waits and _is_exact(edge.condition) else None


def _is_exact(condition: Condition) -> bool:
    """Whether the condition holds for each event that satisfies one of the sets it needs."""
    if isinstance(condition, Both | Either) and not _only_asks(condition):
        return (
            _is_exact(condition.first) and _is_exact(condition.second) and _compares_once(condition)
        )
    return isinstance(condition, Shared | Always | Both | Either)


def _compares_once(condition: Condition) -> bool:
    """Whether no set has two comparisons of a field with the same operator: the filter looks at one
    of them."""
    for each in needed(condition):
        compared = [(it.column, it.function) for it in each if isinstance(it, Comparison)]
        if len(set(compared)) < len(compared):
            return False
    return needed(condition) != EVERY


def wanted_by(state: State) -> WantedSets:
    """Which events do more to a partial match in this state than to be ignored."""
    found: set[Wanted] = set()
    for here in _reached(state):
        for edge in here.transitions:
            if not _stays(edge, state):
                needs = needed(edge.condition)
                if edge.action is not Action.PROCEED or needs != EVERY:
                    found |= needs
    sets = _few(found)
    return sets if sets == EVERY or _is_ignored_without(state, sets) else EVERY


def needed(condition: Condition) -> WantedSets:
    """Sets of which one must be satisfied for the condition to hold."""
    if isinstance(condition, Shared):
        comparison = condition.comparison
        return frozenset({frozenset({Test(condition) if comparison is None else comparison})})
    if isinstance(condition, Both | Either) and _only_asks(condition):
        return frozenset({frozenset({Test(condition)})})  # asked in the program's order
    if isinstance(condition, Both):
        first, second = needed(condition.first), needed(condition.second)
        return _few({one | other for one in first for other in second})
    if isinstance(condition, Either):
        return _few(needed(condition.first) | needed(condition.second))
    return EVERY


def _few(sets: set[Wanted] | WantedSets) -> WantedSets:
    if frozenset() in sets or len(sets) > MOST:
        return EVERY
    return frozenset(sets)


def _only_asks(condition: Condition) -> bool:
    """Whether it is made of functions of the event alone; or has one of them behind an ``or``,
    where it must be asked only if the other condition does not hold."""
    if isinstance(condition, Both):
        return _only_asks(condition.first) and _only_asks(condition.second)
    if isinstance(condition, Either):
        parts = (condition.first, condition.second)
        return not condition.asks_for_context and any(map(_asks, parts))
    return isinstance(condition, Shared) and condition.comparison is None


def _asks(condition: Condition) -> bool:
    if isinstance(condition, Both | Either):
        return _asks(condition.first) or _asks(condition.second)
    return isinstance(condition, Shared) and condition.comparison is None


def _is_ignored_without(origin: State, sets: WantedSets) -> bool:
    """Whether an event that satisfies none of the sets is ignored, and nothing else happens."""
    ignored = 0
    states = [origin]
    while states:
        for edge in states.pop().transitions:
            held = _value(edge.condition, sets)
            if held is False:
                continue
            if held is None:
                return False
            if edge.action is Action.PROCEED:
                states.append(edge.target)
            elif _stays(edge, origin):
                ignored += 1
            else:
                return False
    return ignored == 1


def _value(condition: Condition, sets: WantedSets) -> bool | None:
    """Whether the condition holds for an event that satisfies none of the sets; None if that is not
    known."""
    if isinstance(condition, Always):
        return True
    if isinstance(condition, Not):
        value = _value(condition.condition, sets)
        return None if value is None else not value
    needs = needed(condition)
    if needs != EVERY and all(any(known <= each for known in sets) for each in needs):
        return False
    if isinstance(condition, Both | Either):
        values = {_value(condition.first, sets), _value(condition.second, sets)}
        deciding = isinstance(condition, Either)
        if deciding in values:
            return deciding
        return None if None in values else not deciding
    return None


def _stays(edge: Transition, origin: State) -> bool:
    return edge.action is Action.IGNORE and edge.target is origin


def _reached(state: State) -> Iterator[State]:
    """The state, and those to which PROCEEDs lead."""
    states = [state]
    for here in states:
        yield here
        for edge in here.transitions:
            if edge.action is Action.PROCEED and edge.target not in states:
                states.append(edge.target)
