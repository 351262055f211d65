"""States and transitions, as Flink has them.

Of an event a partial match in a state can TAKE it, IGNORE it, or PROCEED: then the same event is
looked at in another state. A match is complete in the final state. A stop state ends a partial
match; a pending state completes it when its time is up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from flinkpy.cep.event_conditions import Condition
from flinkpy.cep.skip import AfterMatchSkipStrategy

END = "$endState$"  # the name of the final state


class Action(Enum):
    """What a transition does with the event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


class StateKind(Enum):
    """What it means that a partial match is in the state."""

    NORMAL = "normal"
    PENDING = "pending"
    STOP = "stop"
    FINAL = "final"


@dataclass(eq=False)
class State:
    """A state. ``step`` is the pattern's name for the events it takes; ``name`` is its own."""

    name: str
    step: str
    kind: StateKind
    transitions: list[Transition] = field(default_factory=list, repr=False)

    def add(self, action: Action, target: State, condition: Condition) -> None:
        """Adds a transition."""
        self.transitions.append(Transition(action, target, condition))


@dataclass(eq=False)
class Transition:
    """From the state that has it to another one, if its condition holds."""

    action: Action
    target: State
    condition: Condition


@dataclass(frozen=True, eq=False)
class Automaton:
    """What a pattern is compiled to."""

    states: tuple[State, ...]
    start: State
    skip: AfterMatchSkipStrategy
    within_ms: int  # from the first event to the last; 0: no bound
    within_previous_ms: dict[str, int]  # by the name of a state: from the event before
    names: tuple[str, ...]  # of the pattern's steps

    @property
    def is_bounded(self) -> bool:
        """Whether partial matches can time out."""
        return self.within_ms > 0 or bool(self.within_previous_ms)

    @property
    def gives_at_timeouts(self) -> bool:
        """Whether a timeout can complete a match."""
        return self.skip.skips or any(state.kind is StateKind.PENDING for state in self.states)

    def conditions(self) -> Iterator[Condition]:
        """The conditions of all transitions."""
        for state in self.states:
            for transition in state.transitions:
                yield transition.condition

    def by_name(self) -> dict[str, State]:
        """The states by their own names, under which partial matches are stored."""
        return {state.name: state for state in self.states}
