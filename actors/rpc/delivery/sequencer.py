"""Puts numbered messages back in order where the transport keeps none (concurrent calls to a Ray
actor may overtake each other).

It has no timer of its own. A number that never comes (its call was lost, and the sender lives on)
must not hold up the rest for ever: after a while the caller calls :meth:`give_up_gap`."""

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
        """Returns the messages that are in order now. A message whose gap was given up is late, but
        is still returned."""
        if number < self._next:
            return [message]
        self._early[number] = message
        return self._in_order()

    def give_up_gap(self) -> list[T]:
        """Skips the missing numbers, up to the first message that is there."""
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
    """The streams of all senders, of which it remembers the ``LIMIT`` used last."""

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
