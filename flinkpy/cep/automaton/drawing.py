"""An automaton as text: each state with what it does with an event."""

from __future__ import annotations

from collections.abc import Iterator

from flinkpy.cep.automaton.pattern_states import Action, Automaton, State, StateKind, Transition
from flinkpy.cep.event_conditions import ALWAYS, Always, Both, Condition, Either, Not, OfEvent
from flinkpy.core.codegen.inlining import inlined


def drawn(automaton: Automaton) -> str:
    """A line for each transition, from the start on.

    >>> from flinkpy.cep import Pattern
    >>> from flinkpy.cep.automaton.pattern_compiler import compiled
    >>> pattern = Pattern.begin("a").where(lambda event: event > 1)
    >>> print(drawn(compiled(pattern.followed_by("b"))))
    a  (start)
      take     if (event > 1) -> b
    b
      take     -> match
    """
    lines = []
    for state in states_in_order(automaton.start):
        bound = automaton.within_previous_ms.get(state.name)
        notes = [
            note
            for note, holds in (
                ("(start)", state is automaton.start),
                ("(complete when its time is up)", state.kind is StateKind.PENDING),
                (f"(at most {bound} ms after the event before)", bound),
            )
            if holds
        ]
        lines.append("  ".join([state.name, *notes]))
        for edge in edges_of(state):
            always = isinstance(edge.condition, Always)
            condition = "" if always else f"if {shown(edge.condition)} "
            lines.append(f"  {edge.action.value:<8} {condition}-> {name_of(edge.target)}")
    if automaton.within_ms:
        lines.append(f"from the first event to the last: less than {automaton.within_ms} ms")
    if automaton.skip.skips:
        lines.append(f"after a match: {automaton.skip!r}")
    return "\n".join(lines)


def shown(condition: Condition) -> str:
    """A condition as text: the function's expression, if it is one, or its name."""
    if isinstance(condition, Not):
        return f"not {shown(condition.condition)}"
    if isinstance(condition, Both):
        return f"{shown(condition.first)} and {shown(condition.second)}"
    if isinstance(condition, Either):
        return f"({shown(condition.first)} or {shown(condition.second)})"
    if isinstance(condition, OfEvent):
        code = getattr(condition.function, "__code__", None)
        parameters = () if code is None else code.co_varnames[:1]
        return inlined(condition.function, *parameters) or repr(condition)
    return repr(condition)


def name_of(state: State) -> str:
    """What a state is called in a drawing."""
    return {StateKind.FINAL: "match", StateKind.STOP: "no match"}.get(state.kind, state.name)


def edges_of(state: State) -> Iterator[Transition]:
    """The transitions that may ever be gone."""
    return (edge for edge in state.transitions if edge.condition != Not(ALWAYS))


def states_in_order(start: State) -> Iterator[State]:
    """The states that are reached, the nearest first; not those in which matching ends."""
    states = [start]
    for state in states:
        if state.kind in (StateKind.NORMAL, StateKind.PENDING):
            yield state
            for edge in sorted(state.transitions, key=lambda edge: edge.action is not Action.TAKE):
                if edge.target not in states:
                    states.append(edge.target)
