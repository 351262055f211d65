"""What the slice operator keeps its accumulators in: a port with two forms, of rows and of columns.

A store is a recipe that travels with the operator, and holds accumulators from ``open`` to
``close``. ``records`` are what ``records_of`` makes of a batch, or a part of it; ``contents`` are
the accumulators of some keys in one window. Both are the store's own affair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.clock import Turns
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.keys import key_group
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.context import OperatorContext
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:  # it imports Arrow, and rows need none
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

Evaluated: TypeAlias = "tuple[TimeWindow, Any]"  # a window and its contents
# for a snapshot: a key of the backend, the share it stands for, and what to keep under the key
Saved: TypeAlias = "tuple[Any, Any, Any]"


class SliceStore(ABC):
    """The accumulators of one subtask, by slice and key. A share of the keys is what has one point
    in time in a snapshot: a key, or a key group."""

    state_name: str
    _slices: Mapping[int, Sized]  # the accumulators of each

    def output_schema(self, schema: Any) -> Any:
        """For columns, the schema of the results for records of this schema; ProgramError for what
        cannot be aggregated."""
        return None

    @abstractmethod
    def open(self, context: OperatorContext, backend: KeyedStateBackend | None) -> None:
        """Begins with no slices."""

    def close(self) -> None:
        """Closes the user's functions, if there are some; also called if ``open`` failed, or never
        ran."""

    @abstractmethod
    def freeze(self) -> Callable[[Turns], Iterable[Saved]]:
        """What gives, in another thread, what is held now."""

    @property
    def held(self) -> int:
        """How many accumulators are held; over columns, records that are not put together yet count
        too."""
        return sum(map(len, self._slices.values()))

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How much memory they take, by estimate."""

    def after_batch(self) -> None:
        """Some of what a freeze has left to do."""

    def relieve(self) -> None:
        """Writes accumulators to disk if they take more than their share of memory."""

    def spill_to(self, memory: OperatorMemory) -> None:
        """Called before ``open`` in a batch job where memory is limited."""

    def free_memory(self) -> None:
        """In a batch job: writes all that it can."""

    @property
    def is_on_disk(self) -> bool:
        """Whether there are accumulators that ``freeze`` does not give, as the backend saves
        them."""
        return False

    def group_of(self, share: Any, max_parallelism: int) -> int:
        """The key group of a share."""
        return key_group(share, max_parallelism)

    @abstractmethod
    def restore(self, saved: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Takes back what was saved. Gives the share that each of the keys stands for."""

    # -- batches -----------------------------------------------------------------------------------

    @abstractmethod
    def records_of(self, batch: Batch) -> Any:
        """The records of a batch."""

    @abstractmethod
    def span(self, batch: Batch) -> tuple[int, int] | None:
        """The smallest and the greatest timestamp; None if there are none."""

    @abstractmethod
    def stamps(self, batch: Batch) -> list[int]:
        """The timestamp of each record."""

    @abstractmethod
    def by_slice(self, batch: Batch, records: Any, slicing: Slicing) -> Iterator[tuple[int, Any]]:
        """The records of each slice, in their order."""

    @abstractmethod
    def one(self, records: Any, position: int) -> Any:
        """A single record."""

    @abstractmethod
    def late_records(self, batch: Batch, positions: list[int]) -> RowBatch:
        """Records of the batch as they go to a side output."""

    fires_at_end = False  # whether open windows of processing time give results at the end

    def passed(self, watermark: int) -> int:
        """How far the time by which the store cuts slices has come with this watermark."""
        return watermark

    def local(self, now: int) -> int:
        """What that time is at this moment of processing time."""
        return now

    def moment(self, local: int) -> int:
        """When that time has passed."""
        return local

    # -- slices ------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def starts(self) -> Collection[int]:
        """The slices that hold something, by their starts."""

    @abstractmethod
    def add(self, start: int, records: Any) -> None:
        """Adds records to a slice, which may be new."""

    @abstractmethod
    def forget(self, starts: list[int], is_over: Callable[[TimeWindow], bool]) -> None:
        """These slices go, and whatever is kept of windows that are over."""

    @abstractmethod
    def evaluate(self, starts: list[int], survives: Callable[[int], bool]) -> Any:
        """The contents of a window made of these slices. Those that survive it are needed again, so
        they must not change."""

    def parts(self, starts: list[int], survives: Callable[[int], bool]) -> Iterable[Any]:
        """The same in one or more parts, each with the contents of other keys."""
        return (self.evaluate(starts, survives),)

    @abstractmethod
    def evaluate_key(self, starts: list[int], record: Any) -> Any:
        """The same, for the key of a single record. All the slices survive."""

    @abstractmethod
    def only(self, contents: Any, is_wanted: Callable[[Any], bool]) -> Any:
        """The contents of those keys whose share is wanted."""

    @abstractmethod
    def emit(self, windows: Iterable[Evaluated], now: int, operator: StreamOperator) -> Work:
        """Evaluates the windows one by one and emits their results. ``now``: how far time has
        come."""


class LocalSlices(SliceStore):
    """A store of the first phase, in the sender (``local_operator``)."""

    @abstractmethod
    def can_hold(self, records: Any) -> bool:
        """Whether the result is the same to the last bit, however these records are put
        together."""

    @abstractmethod
    def taken_out(self, start: int) -> list[Batch]:
        """The accumulators of a slice as they go over the exchange; the slice is gone."""

    @abstractmethod
    def alone(self, batch: Batch, records: Any, positions: list[int] | None = None) -> Batch:
        """These records of the batch (None: all), each as an accumulator."""
