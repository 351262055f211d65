"""Exactly once and in order over a road that may do neither: each side numbers what it says, the other puts it back in order.

A lost message is the sender's affair: operator events are asks, repeated until answered. Repeating makes doubles, and doubles are dropped here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Numbered:
    """The ``number``-th thing one side says to the other, from 0, in one attempt of the subtask."""

    number: int
    event: Any


class Numbering:
    """The sending end."""

    def __init__(self) -> None:
        self._next = 0

    def wrap(self, event: Any) -> Numbered:
        numbered = Numbered(self._next, event)
        self._next += 1
        return numbered


class Reordering:
    """The receiving end: gives out each event once, in the order it was said.

    >>> order = Reordering(); [order.accept(Numbered(n, n)) for n in (1, 0, 1)]
    [[], [0, 1], []]
    """

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, Any] = {}

    def accept(self, event: Any) -> list[Any]:
        """What can be processed now that ``event`` came. An event without a number passes as it is."""
        if not isinstance(event, Numbered):
            return [event]
        if event.number >= self._next:
            self._early[event.number] = event.event
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next))
            self._next += 1
        return ready

    def __repr__(self) -> str:
        return f"<Reordering: {self._next} taken, {len(self._early)} early>"
