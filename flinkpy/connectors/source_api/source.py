"""The source API (Flink's FLIP-27). A Source makes one enumerator, which runs in the JobMaster and
hands out splits, and one reader per subtask, which runs in the task and turns its splits into
batches.

A split is any object with a ``split_id`` that can be pickled. It carries its own position, so a
reader's snapshot is the list of its splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from flinkpy.core.clock import Clock
from flinkpy.core.elements import Batch, Watermark, WatermarkStatus
from flinkpy.operators.base import InputStatus

if TYPE_CHECKING:
    from flinkpy.common.typeinfo import TypeInformation

__all__ = [
    "Boundedness",
    "InputStatus",
    "ReaderContext",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
]


class Boundedness(Enum):
    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


class SourceSplit(Protocol):
    @property
    def split_id(self) -> str: ...


S = TypeVar("S", bound=SourceSplit)


class SplitEnumeratorContext(Protocol[S]):
    """What the JobMaster offers an enumerator. All calls must come from the JobMaster's thread."""

    @property
    def parallelism(self) -> int: ...

    @property
    def registered_readers(self) -> dict[int, str]:
        """The subtasks whose readers have registered, with their hosts."""
        ...

    def assign_splits(self, subtask: int, splits: list[S]) -> None: ...

    def signal_no_more_splits(self, subtask: int) -> None: ...

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        """Pickles a custom event and sends it; it arrives at
        ``SourceReader.handle_source_event``."""
        ...

    def call_async(
        self,
        function: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        period_s: float | None = None,
    ) -> None:
        """Runs a slow ``function`` in another thread (again every ``period_s``), then
        ``handler(result, error)`` in the JobMaster's thread."""
        ...


class SplitEnumerator(ABC, Generic[S]):
    """Finds splits and assigns them to readers."""

    def start(self) -> None:
        """Called once, before any reader registers."""

    @abstractmethod
    def handle_split_request(self, subtask: int, host: str) -> None:
        """Called when a reader has no split left: assign it one, or signal that there are no
        more."""

    def add_reader(self, subtask: int) -> None:
        """Called when a reader has registered."""

    @abstractmethod
    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        """Called when a reader failed before these splits were part of a checkpoint: assign them
        again."""

    def handle_source_event(self, subtask: int, event: Any) -> None:
        """Called with a custom event of the reader."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> Any:
        """The splits not assigned yet, in any form; passed to ``Source.create_enumerator`` on
        recovery."""

    def close(self) -> None:
        """Called when the job has ended."""


@dataclass
class ReaderContext:
    """What a task offers its reader."""

    subtask_index: int
    parallelism: int
    host: str
    clock: Clock
    request_split: Callable[[], None]  # asks the enumerator for a split
    send_source_event: Callable[[Any], None]
    wake_up: Callable[[], None]  # thread-safe: says that there is something to poll
    wake_up_after: Callable[[float], None]  # the same, after this many seconds
    # For readers with ``split_of_batch``: its watermark counts from now on
    split_begun: Callable[[str], None] = lambda split_id: None
    # For readers with ``split_of_batch``: nothing more comes from this split
    split_finished: Callable[[str], None] = lambda split_id: None
    # For sources with ``takes_error_policy``: whether broken records go to a side output, whatever
    # the source says by itself
    diverts: bool = False
    # says that a broken record is not in the batches, and why
    leave_out: Callable[[Any, str], None] = lambda record, why: None
    # adds to a metric of the source
    count: Callable[[str, int], None] = lambda metric, number: None


class SourceReader(ABC, Generic[S]):
    """Reads splits. All calls come from the task's thread and must return at once. A reader that
    has to block needs a thread of its own, and calls ``context.wake_up()``."""

    def start(self) -> None:
        """Called before the first poll."""

    @abstractmethod
    def poll(self, limit: int) -> Batch | InputStatus | Watermark | WatermarkStatus:
        """The next batch, of at most about ``limit`` records; or NOTHING_AVAILABLE, after which the
        reader must call ``wake_up`` when there is something; or END_OF_INPUT. A reader that knows
        event time or idleness itself may return a Watermark or a WatermarkStatus between
        batches."""

    @abstractmethod
    def add_splits(self, splits: list[S]) -> None:
        """Adds splits to read."""

    def notify_no_more_splits(self) -> None:
        """Says that no splits will be added any more."""

    def handle_source_event(self, event: Any) -> None:
        """Called with a custom event of the enumerator."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[S]:
        """The unfinished splits, with their positions."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Says that the checkpoint is complete."""

    def pending_records(self) -> int | None:
        """How many records are there that were not read; None if the reader does not know. Called
        when somebody reads metrics."""
        return None

    def split_of_batch(self) -> str | None:
        """The id of the split that the whole of the last polled batch came from. Readers that read
        several splits concurrently override this, and call ``context.split_begun`` and
        ``context.split_finished`` when they begin and finish a split. Each split then has its own
        watermark, and the reader's is the least of them."""
        return None

    def position(self) -> str | None:
        """Where the last polled batch came from (split and offset of its first record), for error
        messages."""
        return None

    def close(self) -> None:
        """Releases what the reader opened."""


class Source(ABC, Generic[S]):
    """Describes a source and makes its enumerator and readers; can be pickled."""

    # False: after a restore it goes on with what comes next, and not where it was
    can_replay: bool = True
    # False: records have no timestamps unless a watermark strategy assigns them
    has_timestamps: bool = True
    # True: its readers give whole numbers as times, so that each batch need not be looked through
    gives_valid_times: bool = False
    # True: its readers heed ``ReaderContext.diverts``, and so ``stream.on_error`` is for it too
    takes_error_policy: bool = False
    # False: its readers read one split after the other, so that their splits need no watermarks
    # of their own
    interleaves_splits: bool = True

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness: ...

    @abstractmethod
    def create_enumerator(
        self, context: SplitEnumeratorContext[S], checkpoint: Any = None
    ) -> SplitEnumerator[S]: ...

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader[S]: ...

    @property
    def is_columnar(self) -> bool:
        """Whether readers return column batches."""
        return False

    @property
    def produced_type(self) -> TypeInformation | None:
        """The type of the rows, if the source knows it and the program does not say another one."""
        return None

    def filtered(self, expression: Any) -> Source[S]:
        """This source where it may leave out records for which the expression over its columns is
        not true, because they are dropped right behind it. Positions must mean the same with and
        without it."""
        return self

    def told_apart_by(self) -> Any:
        """What distinguishes this source from others of its class and name, so that its state is
        found again even if the source moves within the program. It must be the same in every
        run."""
        return vars(self)

    def without_data(self) -> Source[S]:
        """What the JobMaster needs: this source, or a copy without data that only its readers
        use."""
        return self


# -- what enumerators and readers send each other ------------------------------------------------


@dataclass(frozen=True)
class ReaderRegistered:
    host: str


@dataclass(frozen=True)
class SplitRequested:
    host: str


@dataclass(frozen=True)
class SplitsAdded:
    splits: bytes  # a pickled list, because split classes may be the user's own


@dataclass(frozen=True)
class NoMoreSplits:
    pass


@dataclass(frozen=True)
class BeginReading:
    """For readers with ``awaits_all``: every split that is known was assigned, and more may
    come."""


@dataclass(frozen=True)
class CustomSourceEvent:
    event: bytes  # pickled
