"""The source API (Flink's FLIP-27): a Source makes one enumerator, which runs in the JobMaster and hands out splits, and one reader
per subtask, which runs in the task and turns its splits into batches.

A split is any picklable object with a ``split_id``; it carries its own position, so that a reader's snapshot is the list of its splits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from flinkpy.core.clock import Clock
from flinkpy.core.elements import Batch, Watermark, WatermarkStatus
from flinkpy.operators.base import InputStatus

__all__ = ["Boundedness", "InputStatus", "ReaderContext", "Source", "SourceReader", "SourceSplit", "SplitEnumerator", "SplitEnumeratorContext"]


class Boundedness(Enum):
    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


class SourceSplit(Protocol):
    @property
    def split_id(self) -> str: ...


S = TypeVar("S", bound=SourceSplit)


class SplitEnumeratorContext(Protocol[S]):
    """What the JobMaster offers an enumerator. All calls belong to its one thread."""

    @property
    def parallelism(self) -> int: ...

    @property
    def registered_readers(self) -> dict[int, str]:
        """Subtasks whose readers are there, and the host each is on."""
        ...

    def assign_splits(self, subtask: int, splits: list[S]) -> None: ...

    def signal_no_more_splits(self, subtask: int) -> None: ...

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        """A custom event, pickled; arrives at ``SourceReader.handle_source_event``."""
        ...

    def call_async(self, function: Callable[[], Any], handler: Callable[[Any, BaseException | None], None], period_s: float | None = None) -> None:
        """Runs a slow ``function`` elsewhere (again every ``period_s``), then ``handler(result, error)`` here."""
        ...


class SplitEnumerator(ABC, Generic[S]):
    """Finds splits and hands them out."""

    def start(self) -> None:
        """Called once, before any reader registers."""

    @abstractmethod
    def handle_split_request(self, subtask: int, host: str) -> None:
        """A reader has nothing left: assign it a split or signal that there are no more."""

    def add_reader(self, subtask: int) -> None:
        """A reader registered."""

    @abstractmethod
    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        """A reader failed before these were part of a checkpoint: hand them out again."""

    def handle_source_event(self, subtask: int, event: Any) -> None:
        """A custom event of the reader."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> Any:
        """What has not been handed out; given to ``Source.create_enumerator`` on recovery."""

    def close(self) -> None:
        """The job ended."""


@dataclass
class ReaderContext:
    """What a task offers its reader."""

    subtask_index: int
    parallelism: int
    host: str
    clock: Clock
    request_split: Callable[[], None]  # asks the enumerator
    send_source_event: Callable[[Any], None]
    wake_up: Callable[[], None]  # thread-safe: there is something to poll
    wake_up_after: Callable[[float], None]  # the same, in so many seconds
    split_begun: Callable[[str], None] = lambda split_id: None  # for readers with ``split_of_batch``: its watermark counts from now on
    split_finished: Callable[[str], None] = lambda split_id: None  # for readers with ``split_of_batch``: nothing more comes from this split


class SourceReader(ABC, Generic[S]):
    """Reads splits. All calls come from the task's thread and return at once; a reader that must block owns a thread
    and calls ``context.wake_up()``."""

    def start(self) -> None:
        """Before the first poll."""

    @abstractmethod
    def poll(self, limit: int) -> Batch | InputStatus | Watermark | WatermarkStatus:
        """The next batch of about ``limit`` records at most; or NOTHING_AVAILABLE (then ``wake_up`` must follow when there is), or END_OF_INPUT. A
        reader that knows event time or idleness itself gives a Watermark or WatermarkStatus in its place among the batches."""

    @abstractmethod
    def add_splits(self, splits: list[S]) -> None:
        """Further splits to read."""

    def notify_no_more_splits(self) -> None:
        """None will come after those already added."""

    def handle_source_event(self, event: Any) -> None:
        """A custom event of the enumerator."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[S]:
        """The splits not finished, with their positions."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable."""

    def split_of_batch(self) -> str | None:
        """The split the last polled batch came from, all of it. Readers that read several splits side by side override this, and call
        ``context.split_begun`` and ``context.split_finished`` at the beginning and the end of each: every split then has its own watermark, and
        the least counts."""
        return None

    def position(self) -> str | None:
        """Where the last polled batch came from (split and offset of its first record), for error messages."""
        return None

    def close(self) -> None:
        """Gives back what was opened."""


class Source(ABC, Generic[S]):
    """A recipe for enumerator and readers; picklable."""

    has_timestamps: bool = True  # False: its records have none unless a watermark strategy gives them some

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness: ...

    @abstractmethod
    def create_enumerator(self, context: SplitEnumeratorContext[S], checkpoint: Any = None) -> SplitEnumerator[S]: ...

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader[S]: ...

    @property
    def is_columnar(self) -> bool:
        """Whether readers give column batches."""
        return False

    def told_apart_by(self) -> Any:
        """What distinguishes it from other sources of its class and name, so that state finds its source again wherever in the program it is
        written. The same in every run."""
        return vars(self)

    def without_data(self) -> Source[S]:
        """What the JobMaster needs: this source, or a copy without the data only its readers use."""
        return self


# -- what enumerator and readers say to each other ---------------------------------------------------------------------
# Each is sent inside a flinkpy.connectors.source_api.event_order.Numbered, so that what the RPC layer repeats or reorders is taken once and in order.


@dataclass(frozen=True)
class ReaderRegistered:
    host: str


@dataclass(frozen=True)
class SplitRequested:
    host: str


@dataclass(frozen=True)
class SplitsAdded:
    splits: bytes  # pickled list: split classes may be the user's own


@dataclass(frozen=True)
class NoMoreSplits:
    pass


@dataclass(frozen=True)
class CustomSourceEvent:
    event: bytes  # pickled
