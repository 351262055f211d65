"""Partial matches, and what they have taken.

A partial match (a *run*) is a place in the automaton and the last *cell* it took. A cell is an
event with the name it was taken under, and the cell before it. Cells never change, so partial
matches share what they have in common, and a match is read by walking back.

All this is plain tuples and names: a key has one tuple of runs, which is replaced and never
changed. So a snapshot needs no copy, and what was saved means the same in another process. Tuples
with named fields take four times as long to make, and two of them are made for most events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

Match: TypeAlias = dict[str, list[Any]]

# An event that was taken, and where in the tuple what is. The name it was taken under; the event;
# its time; its number, which grows with each event; the cell before it.
Cell: TypeAlias = "tuple[str, Any, int, int, Cell | None]"
NAME: Final = 0
EVENT: Final = 1
TIME: Final = 2
NUMBER: Final = 3
BEFORE: Final = 4

# A partial match, or a complete one, which is in the final state. The name of its state; the last
# cell it took; the cell of its first event.
Run: TypeAlias = tuple[str, Cell, Cell]
STATE: Final = 0
CELL: Final = 1
FIRST: Final = 2


class Aside(ABC):
    """Events that are kept aside, as nobody looks at them before they are in a match: in the place
    of one of them stands the tuple of this and a number. What is saved is the event."""

    __slots__ = ()

    @abstractmethod
    def event(self, number: int) -> Any:
        """The event."""


def is_aside(event: object) -> bool:
    """Whether this stands for an event that is kept aside."""
    return type(event) is tuple and len(event) == 2 and isinstance(event[0], Aside)


class Found(NamedTuple):
    """What matching gives: a match, or a partial match that timed out."""

    match: Match
    timestamp: int
    timed_out: bool = False


SavedCell: TypeAlias = "tuple[str, Any, int, int, int]"  # the last: which one is before, or -1
SavedRun: TypeAlias = "tuple[str, int, int, int]"  # the last: when it took its last event


class Runs(tuple[Run, ...]):
    """What is kept for a key: its partial matches in the order of their first events; behind them
    complete matches that wait, because a skip strategy may still drop them for an earlier one."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """The cells in a list: a chain of tuples would be pickled by as many nested calls."""
        places: dict[int, int] = {}
        cells: list[SavedCell] = []
        for run in self:
            for cell in reversed(list(_unknown(run[CELL], places))):
                name, event, time, number, before = cell
                if is_aside(event):
                    event = event[0].event(event[1])
                places[id(cell)] = len(cells)
                place = -1 if before is None else places[id(before)]
                cells.append((name, event, time, number, place))
        saved: list[SavedRun] = [
            (state, places[id(cell)], places[id(first)], cell[TIME]) for state, cell, first in self
        ]
        return restored_runs, (cells, saved)


NO_RUNS = Runs()


def restored_runs(cells: Iterable[SavedCell], runs: Iterable[SavedRun]) -> Runs:
    """The runs of a key as they were saved."""
    made: list[Cell] = []
    for name, event, time, number, before in cells:
        made.append((name, event, time, number, None if before < 0 else made[before]))
    return Runs((state, made[cell], made[first]) for state, cell, first, _ in runs)


def _unknown(cell: Cell | None, known: dict[int, int]) -> Iterator[Cell]:
    while cell is not None and id(cell) not in known:
        yield cell
        cell = cell[BEFORE]


def cells_of(cell: Cell | None) -> Iterator[Cell]:
    """The cell and those before it, the last one first."""
    while cell is not None:
        yield cell
        cell = cell[BEFORE]


def match_of(cell: Cell | None) -> Match:
    """The events by name, in the order they were taken."""
    chain = []
    while cell is not None:
        chain.append(cell)
        cell = cell[BEFORE]
    match: Match = {}
    for name, event, _, _, _ in reversed(chain):
        taken = match.get(name)
        if taken is None:
            match[name] = [event]
        else:
            taken.append(event)
    return match
