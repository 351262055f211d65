"""Delivers operator events exactly once and in order, although the RPC layer may repeat and reorder
them: the sender numbers its events, and the receiver orders them and drops repetitions. Against
loss, the sender repeats an event until it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Numbered:
    """An event and its number, counted from 0 per direction and attempt of the subtask."""

    number: int
    event: Any


class Numbering:
    """The sender's side: numbers events."""

    def __init__(self) -> None:
        self._next = 0

    def wrap(self, event: Any) -> Numbered:
        numbered = Numbered(self._next, event)
        self._next += 1
        return numbered


class Reordering:
    """The receiver's side: returns each event once, in the order in which they were sent.

    >>> order = Reordering(); [order.accept(Numbered(n, n)) for n in (1, 0, 1)]
    [[], [0, 1], []]
    """

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, Any] = {}

    def accept(self, event: Any) -> list[Any]:
        """Takes ``event``; returns the events that can be processed now. An event without a number
        is returned as it is."""
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
