"""What the program has received of a job with checkpoints, and does not show yet.

Each attempt of a subtask sends a *stream*: batches, with a marker behind those of each checkpoint.
Batches before a marker are shown when the marker's checkpoint is complete. The stream says so
itself; if it broke before it could, a later attempt does, which was restored from that checkpoint.
Nothing else of a broken stream is ever shown, as the later attempt makes it again. If the job fails
before any could, its JobMaster says which checkpoint is the newest that is complete.

Held batches are not counted against the bound of what is read ahead: the notice that frees them
stands behind them. So between two checkpoints the program keeps all of the results; what is more
than some megabytes lies in files."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from flinkpy.core.files.spool import Spool, Spooled
from flinkpy.network.wire.client_channel import Complete, Frame, Marker


class _Part:
    """The batches in front of a marker."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.batches: list[Spooled] = []
        self._spool = Spool(folders)

    def add(self, frame: bytes) -> None:
        self.batches.append(self._spool.add(frame))


@dataclass
class _Stream:
    """``parts``: closed by a marker, oldest first. ``open``: behind the last marker."""

    folders: Sequence[str]
    parts: deque[tuple[Marker, list[Spooled]]] = field(default_factory=deque)
    open: _Part = field(init=False)
    parallelism: int = 0
    last: int = 0  # marker received
    complete: int = 0  # the last marker whose checkpoint is
    is_over: bool = False  # no more of it will be complete
    has_records: bool = False  # or markers: it has begun, and said all of earlier attempts

    def __post_init__(self) -> None:
        self.open = _Part(self.folders)

    def add(self, frame: bytes | Marker) -> None:
        if isinstance(frame, bytes):
            self.open.add(frame)
        else:
            self.parts.append((frame, self.open.batches))
            self.open, self.last = _Part(self.folders), frame.number

    def shown(self) -> list[Spooled]:
        """What is complete, and was not shown before."""
        found: list[Spooled] = []
        while self.parts and self.parts[0][0].number <= self.complete:
            found += self.parts.popleft()[1]
        if self.is_over and self.last >= self.complete:  # all that counts was shown
            self.parts.clear()
            self.open = _Part(self.folders)
        return found


class HeldResults:
    """The streams of all subtasks and attempts, by both. Files lie in ``folders``.

    >>> held = HeldResults()
    >>> held.take(0, 0, 1, [b"a", Marker(1, 7), b"b"])
    []
    >>> held.take(
    ...     0,
    ...     1,
    ...     1,
    ...     [
    ...         Complete(0, 0, 1),
    ...         b"b again",
    ...         Marker(1, 8),
    ...         Complete(0, 1, 1),
    ...         b"c",
    ...         Marker(2, 9),
    ...         b"d",
    ...     ],
    ... )
    [(0, b'a'), (0, b'b again')]
    >>> held.job_failed(9)
    [(0, b'c')]
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._folders = folders
        self._streams: dict[tuple[int, int], _Stream] = {}

    def take(
        self, subtask: int, attempt: int, parallelism: int, frames: list[Frame]
    ) -> list[tuple[int, Spooled]]:
        """Frames as they came in a stream; gives back the batches that can be shown now, each with
        its subtask."""
        found: list[tuple[int, Spooled]] = []
        own = self._stream(subtask, attempt)
        own.parallelism = parallelism
        for frame in frames:
            if isinstance(frame, Complete):
                stream = self._stream(frame.subtask, frame.attempt)
                stream.complete = max(stream.complete, frame.number)
                found += [(frame.subtask, batch) for batch in stream.shown()]
            else:
                if not own.has_records:  # it has said of all earlier attempts what is complete
                    own.has_records = True
                    found += [
                        (subtask, batch)
                        for batch in self._end_before(subtask, attempt, parallelism)
                    ]
                own.add(frame)
                if isinstance(frame, Marker):
                    found += [(subtask, batch) for batch in own.shown()]
        return found

    def _end_before(self, subtask: int, attempt: int, parallelism: int) -> list[Spooled]:
        """No more of the subtask's earlier attempts will be complete. Of those with another
        parallelism, other subtasks may have more to say."""
        found: list[Spooled] = []
        for (other, earlier), stream in self._streams.items():
            if other == subtask and earlier < attempt and stream.parallelism == parallelism:
                stream.is_over = True
                found += stream.shown()
        return found

    def job_failed(self, checkpoint_id: int) -> list[tuple[int, Spooled]]:
        """No task says more, and this checkpoint is the newest that is complete. Gives back what it
        has and nobody could say: a job that starts from it does not make that again. Only the
        latest attempts count: what is left of earlier ones was made again."""
        attempts: dict[int, int] = {}
        for subtask, attempt in self._streams:
            attempts[subtask] = max(attempt, attempts.get(subtask, attempt))
        return [
            (subtask, batch)
            for subtask, attempt in sorted(attempts.items())
            for marker, batches in self._streams[subtask, attempt].parts
            if marker.checkpoint_id <= checkpoint_id
            for batch in batches
        ]

    def forget(self, subtask: int) -> None:
        """The subtask begins again from the beginning: nothing of its earlier attempts will be
        shown."""
        self._streams = {key: stream for key, stream in self._streams.items() if key[0] != subtask}

    def _stream(self, subtask: int, attempt: int) -> _Stream:
        return self._streams.setdefault((subtask, attempt), _Stream(self._folders))
