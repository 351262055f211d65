"""Partial matches, and what they have taken.

A partial match (a *run*) is a place in the automaton and the last *cell* it took. A cell is an
event with the name it was taken under, and the cell before it. Cells never change, so partial
matches share what they have in common, and a match is read by walking back.

All this is tuples and names: a key has one tuple of runs, which is replaced and never changed. So a
snapshot needs no copy, and what was saved means the same in another process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

Match: TypeAlias = dict[str, list[Any]]


class Cell(NamedTuple):
    """An event that was taken under a name. ``number`` grows with each event: their order."""

    name: str
    event: Any
    time: int
    number: int
    before: Cell | None


class Run(NamedTuple):
    """A partial match, or a complete one, which is in the final state. ``state`` is the name of its
    state; ``first`` the cell of its first event."""

    state: str
    cell: Cell
    first: Cell
    previous_ms: int  # when it took its last event


class Found(NamedTuple):
    """What matching gives: a match, or a partial match that timed out."""

    match: Match
    timestamp: int
    timed_out: bool = False


SavedCell: TypeAlias = "tuple[str, Any, int, int, int]"  # the last: which one is before, or -1
SavedRun: TypeAlias = "tuple[str, int, int, int]"


class Runs(tuple[Run, ...]):
    """What is kept for a key: its partial matches in the order of their first events; behind them
    complete matches that wait, because a skip strategy may still drop them for an earlier one."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """The cells in a list: a chain of tuples would be pickled by as many nested calls."""
        places: dict[int, int] = {}
        cells: list[SavedCell] = []
        for run in self:
            for cell in reversed(list(_unknown(run.cell, places))):
                before = -1 if cell.before is None else places[id(cell.before)]
                places[id(cell)] = len(cells)
                cells.append((cell.name, cell.event, cell.time, cell.number, before))
        saved: list[SavedRun] = [
            (run.state, places[id(run.cell)], places[id(run.first)], run.previous_ms)
            for run in self
        ]
        return restored_runs, (cells, saved)


NO_RUNS = Runs()


def restored_runs(cells: Iterable[SavedCell], runs: Iterable[SavedRun]) -> Runs:
    """The runs of a key as they were saved."""
    made: list[Cell] = []
    for name, event, time, number, before in cells:
        made.append(Cell(name, event, time, number, None if before < 0 else made[before]))
    return Runs(
        Run(state, made[cell], made[first], previous_ms) for state, cell, first, previous_ms in runs
    )


def _unknown(cell: Cell | None, known: dict[int, int]) -> Iterator[Cell]:
    while cell is not None and id(cell) not in known:
        yield cell
        cell = cell.before


def cells_of(cell: Cell | None) -> Iterator[Cell]:
    """The cell and those before it, the last one first."""
    while cell is not None:
        yield cell
        cell = cell.before


def match_of(cell: Cell | None) -> Match:
    """The events by name, in the order they were taken."""
    chain = []
    while cell is not None:
        chain.append(cell)
        cell = cell[4]
    match: Match = {}
    for name, event, _, _, _ in reversed(chain):
        taken = match.get(name)
        if taken is None:
            match[name] = [event]
        else:
            taken.append(event)
    return match
