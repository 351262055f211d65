"""The two queues in front of the output of an asynchronous operator. They decide which finished
records may be emitted, and when.

*Ordered*: records and control elements in the order in which they came. *Unordered*: each record as
soon as it is finished, but never past a control element. The records between two control elements
form a segment, which has no order inside.

The queues do not know how records get finished. Of watermarks that follow each other directly, only
the last is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeAlias

from flinkpy.common.error_policy import DeadLetter
from flinkpy.core.elements import ControlElement, Watermark


class Entry:
    """One record under way. ``results`` is None until it is finished; if its function has failed,
    and the error policy diverts it, they are empty and ``letter`` is its dead letter."""

    __slots__ = ("attempts", "letter", "results", "segment", "timestamp", "value")

    def __init__(self, value: object, timestamp: int | None) -> None:
        self.value, self.timestamp = value, timestamp
        self.results: list[Any] | None = None
        self.attempts = 1
        self.letter: DeadLetter | None = None
        self.segment: _Segment | None = None  # set by the unordered queue

    def __repr__(self) -> str:
        return (
            f"<Entry {self.value!r:.40}, "
            f"{'under way' if self.results is None else f'{len(self.results)} results'}>"
        )


Queued: TypeAlias = Entry | ControlElement


class ElementQueue(ABC):
    """``records`` is the number of entries that were put and not yet taken."""

    def __init__(self) -> None:
        self.records = 0

    @abstractmethod
    def put(self, entry: Entry) -> None:
        """Adds a record that has just arrived."""

    @abstractmethod
    def put_control(self, element: ControlElement) -> None:
        """Adds a control element, after the records before it."""

    @abstractmethod
    def complete(self, entry: Entry, results: list[Any]) -> None:
        """Notes that the entry is finished, with these results."""

    @abstractmethod
    def take(self) -> list[Queued]:
        """Removes and returns what may be emitted now, in order."""

    @abstractmethod
    def __iter__(self) -> Iterator[Queued]:
        """What was put and not yet taken, in an order in which it could be put again."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.records} records>"


class OrderedQueue(ElementQueue):
    """Lets entries out in the order in which they came."""

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
    """Records that have no order among them, and the control elements that follow them all."""

    __slots__ = ("controls", "finished", "under_way")

    def __init__(self) -> None:
        self.under_way: dict[Entry, None] = {}  # in order of arrival
        self.finished: list[Queued] = []
        self.controls: deque[Queued] = deque()


class UnorderedQueue(ElementQueue):
    """Lets entries out as they get finished, segment by segment."""

    def __init__(self) -> None:
        super().__init__()
        self._segments = deque([_Segment()])  # never empty; only the last segment may grow

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
