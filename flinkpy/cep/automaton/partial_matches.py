"""Partial matches, and what they have taken.

A partial match (a *run*) is a place in the automaton and the last *cell* it took. A cell is an
event with the name it was taken under, and the cell before it. Cells never change, so partial
matches share what they have in common, and a match is read by walking back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from flinkpy.cep.automaton.pattern_states import State

# the event's timestamp, and a number that grows with each event: the order of events
EventId: TypeAlias = tuple[int, int]
Match: TypeAlias = dict[str, list[Any]]


class Cell(NamedTuple):
    """An event that was taken under a name."""

    name: str
    event: Any
    id: EventId
    before: Cell | None


class Run(NamedTuple):
    """A partial match, or a complete one in the final state."""

    state: State
    cell: Cell | None
    start: EventId  # of its first event
    previous_ms: int  # when it took its last event


class Found(NamedTuple):
    """What matching gives: a match, or a partial match that timed out."""

    match: Match
    timestamp: int
    timed_out: bool = False


class RunsOfKey:
    """What is kept for a key: its partial matches in the order of their first events, and complete
    matches that wait, because a skip strategy may still drop them for an earlier one."""

    __slots__ = ("complete", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.complete: list[Run] = []

    def __bool__(self) -> bool:
        return bool(self.runs or self.complete)


def cells_of(cell: Cell | None) -> Iterator[Cell]:
    """The cell and those before it, the last one first."""
    while cell is not None:
        yield cell
        cell = cell.before


def match_of(cell: Cell | None) -> Match:
    """The events by name, in the order they were taken."""
    match: Match = {}
    for each in reversed(list(cells_of(cell))):
        match.setdefault(each.name, []).append(each.event)
    return match
