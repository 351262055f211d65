"""Which finished records may go out, and when, purely: the two queues in front of the output of an asynchronous operator.

*Ordered*: in the order they came, records and control elements alike. *Unordered*: each record as soon as it is finished, but never past a
control element: between two watermarks lies a segment, inside which there is no order.

Neither knows how a record gets finished. Watermarks that follow each other with nothing between are one: the last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeAlias

from flinkpy.core.elements import ControlElement, Watermark


class Entry:
    """One record under way. ``results`` is None until it is finished."""

    __slots__ = ("attempts", "results", "segment", "timestamp", "value")

    def __init__(self, value: Any, timestamp: int | None) -> None:
        self.value, self.timestamp = value, timestamp
        self.results: list[Any] | None = None
        self.attempts = 1
        self.segment: _Segment | None = None  # of the unordered queue

    def __repr__(self) -> str:
        return f"<Entry {self.value!r:.40}, {'under way' if self.results is None else f'{len(self.results)} results'}>"


Queued: TypeAlias = Entry | ControlElement


class ElementQueue(ABC):
    """``records`` is how many entries were put and not taken."""

    def __init__(self) -> None:
        self.records = 0

    @abstractmethod
    def put(self, entry: Entry) -> None:
        """A record that has just come."""

    @abstractmethod
    def put_control(self, element: ControlElement) -> None:
        """A control element, behind the records before it."""

    @abstractmethod
    def complete(self, entry: Entry, results: list[Any]) -> None:
        """The entry is finished."""

    @abstractmethod
    def take(self) -> list[Queued]:
        """What may go out now, in order."""

    @abstractmethod
    def __iter__(self) -> Iterator[Queued]:
        """What was put and not taken, in an order in which it could be put again."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.records} records>"


class OrderedQueue(ElementQueue):
    """First in, first out."""

    def __init__(self) -> None:
        super().__init__()
        self._queue: deque[Queued] = deque()

    def put(self, entry: Entry) -> None:
        self._queue.append(entry)
        self.records += 1

    def put_control(self, element: ControlElement) -> None:
        _append_control(self._queue, element)

    def complete(self, entry: Entry, results: list[Any]) -> None:
        entry.results = results

    def take(self) -> list[Queued]:
        queue, taken = self._queue, []
        while queue:
            head = queue[0]
            if type(head) is Entry:
                if head.results is None:
                    break
                self.records -= 1
            taken.append(queue.popleft())
        return taken

    def __iter__(self) -> Iterator[Queued]:
        return iter(self._queue)


class _Segment:
    """Records between which there is no order, and the control elements behind them all."""

    __slots__ = ("controls", "finished", "under_way")

    def __init__(self) -> None:
        self.under_way: dict[Entry, None] = {}  # in the order they came
        self.finished: list[Queued] = []
        self.controls: deque[Queued] = deque()


class UnorderedQueue(ElementQueue):
    """As they get finished, segment by segment."""

    def __init__(self) -> None:
        super().__init__()
        self._segments = deque([_Segment()])  # never empty; only the last one may grow

    def put(self, entry: Entry) -> None:
        segment = self._segments[-1]
        if segment.controls:
            segment = _Segment()
            self._segments.append(segment)
        segment.under_way[entry] = None
        entry.segment = segment
        self.records += 1

    def put_control(self, element: ControlElement) -> None:
        _append_control(self._segments[-1].controls, element)

    def complete(self, entry: Entry, results: list[Any]) -> None:
        entry.results, segment = results, entry.segment
        assert segment is not None
        del segment.under_way[entry]
        segment.finished.append(entry)

    def take(self) -> list[Queued]:
        taken: list[Queued] = []
        while True:
            segment = self._segments[0]
            self.records -= len(segment.finished)
            taken += segment.finished
            segment.finished = []
            if segment.under_way or not segment.controls:
                return taken
            taken += segment.controls
            segment.controls = deque()
            if len(self._segments) > 1:
                self._segments.popleft()

    def __iter__(self) -> Iterator[Queued]:
        for segment in self._segments:
            yield from segment.finished
            yield from segment.under_way
            yield from segment.controls


def _append_control(queue: deque[Queued], element: ControlElement) -> None:
    if queue and type(element) is Watermark and type(queue[-1]) is Watermark:
        queue[-1] = element
    else:
        queue.append(element)
