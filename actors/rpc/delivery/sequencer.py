"""Puts numbered messages back in order, where the transport keeps none (calls to a Ray actor with more than one at a time may overtake).

Pure: who uses it brings the timer. A number that never comes (its call was lost, and the sender lives on) must not hold up the rest for ever:
after a while the user calls :meth:`give_up_gap`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Sequencer(Generic[T]):
    """One stream, numbered from 0.

    >>> stream = Sequencer[str](); stream.accept(1, "b"), stream.accept(0, "a")
    ([], ['a', 'b'])
    """

    __slots__ = ("_early", "_next")

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, T] = {}

    @property
    def has_gap(self) -> bool:
        return bool(self._early)

    @property
    def expected(self) -> int:
        """The number that is next in order."""
        return self._next

    def accept(self, number: int, message: T) -> list[T]:
        """What is in order now. A message that comes after its gap was given up is late, but still handed out."""
        if number < self._next:
            return [message]
        self._early[number] = message
        return self._in_order()

    def give_up_gap(self) -> list[T]:
        """Skips what is missing, up to the first message that is there."""
        if self._early:
            self._next = min(self._early)
        return self._in_order()

    def _in_order(self) -> list[T]:
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next))
            self._next += 1
        return ready


class Sequencers(Generic[T]):
    """The streams of all senders; of those that fell silent the longest ago only so many are remembered."""

    LIMIT = 10_000

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Sequencer[T]] = OrderedDict()

    def __getitem__(self, stream: str) -> Sequencer[T]:
        sequencer = self._streams.get(stream)
        if sequencer is None:
            sequencer = self._streams[stream] = Sequencer()
            if len(self._streams) > self.LIMIT:
                self._streams.popitem(last=False)
        else:
            self._streams.move_to_end(stream)
        return sequencer

    def __len__(self) -> int:
        return len(self._streams)
