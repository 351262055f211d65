"""Operator events arrive exactly once and in order, although the RPC layer may repeat and reorder them: the sender numbers its events, and the
receiver puts them in order and drops the repeated ones. Lost messages are the sender's part: it repeats an event until it is answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Numbered:
    """The event of that number, counted from 0, that one side sends to the other in one attempt of the subtask."""

    number: int
    event: Any


class Numbering:
    """The sender's end."""

    def __init__(self) -> None:
        self._next = 0

    def wrap(self, event: Any) -> Numbered:
        numbered = Numbered(self._next, event)
        self._next += 1
        return numbered


class Reordering:
    """The receiver's end: returns each event once, in the order in which the events were sent.

    >>> order = Reordering(); [order.accept(Numbered(n, n)) for n in (1, 0, 1)]
    [[], [0, 1], []]
    """

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, Any] = {}

    def accept(self, event: Any) -> list[Any]:
        """Takes ``event``; returns the events that can be processed now. An event without a number passes as it is."""
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
