"""Which events of rows can matter to a pattern: a generated loop leaves out the others before the
events are sorted, and before their keys are looked at.

Only conditions that can be inlined are asked here, as they cost less than what they save. An event
at which one raises is kept: it fails later, if the pattern asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from flinkpy.cep.automaton.pattern_states import Automaton
from flinkpy.cep.event_conditions import Condition, OfEvent, TwoConditions
from flinkpy.cep.matching.effects import Known, may_begin, may_change, paths_of
from flinkpy.cep.matching.generated_loop import waiting_states
from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.codegen.inlining import inlined

# times and events, until when; gives those up to then that can matter, and all later ones
Due: TypeAlias = Callable[
    [list[int], list[Any], int], tuple[list[int], list[Any], list[int], list[Any]]
]

_MOST_WAYS = 8  # with more of them the loop would cost what it saves

_SOURCE = """\
def due(times, events, now):
    due_times, due_events, later_times, later_events = [], [], [], []
    for time, event in zip(times, events):
        if time > now:
            later_times.append(time)
            later_events.append(event)
            continue
        try:
            if not {condition}:
                continue
        except Exception:
            pass
        due_times.append(time)
        due_events.append(event)
    return due_times, due_events, later_times, later_events
"""


@dataclass(frozen=True)
class Text:
    """A truth as the texts of expressions, of which one must be true."""

    ways: tuple[str, ...]

    def __or__(self, other: Text | bool) -> Text | bool:
        if isinstance(other, bool):
            return other or self
        return Text(tuple(dict.fromkeys((*self.ways, *other.ways))))

    def __and__(self, other: Text | bool) -> Text | bool:
        if isinstance(other, bool):
            return other and self
        return self if self == other else Text((f"({self} and {other})",))

    __ror__, __rand__ = __or__, __and__

    def __str__(self) -> str:
        return f"({' or '.join(self.ways)})"


def row_candidates(automaton: Automaton) -> Due | None:
    """The loop; None if every event may matter, as far as can be seen."""
    known: dict[Condition, Known] = {
        condition: Known(Text((text,)), Text((f"(not {text})",)))
        for condition in _leaves(automaton.conditions())
        if isinstance(condition, OfEvent)
        and (text := inlined(condition.function, "event")) is not None
    }
    matters = may_begin(paths_of(automaton.start), known)
    for state in dict.fromkeys(waiting_states(automaton)):
        matters = matters | may_change(paths_of(state), known)
    if not isinstance(matters, Text) or len(matters.ways) > _MOST_WAYS:
        return None
    return compile_function("due", _SOURCE.format(condition=matters), {})


def _leaves(conditions: Iterator[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if isinstance(condition, TwoConditions):
            yield from _leaves(iter((condition.first, condition.second)))
        else:
            yield getattr(condition, "condition", condition)
