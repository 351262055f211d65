"""What flows between operators: batches of records, and the control elements between batches.

A batch holds records that have arrived, in one of two forms. A control element never stands inside
a batch; the batch is cut there, so the semantics are those of one record at a time. All elements
are immutable by convention: a receiver may keep one, but nobody changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1
# Milliseconds: watermarks from here up to below MAX_TIMESTAMP are rounds of a loop; no record is so
# late
BEYOND_TIME = 2**62


class RowBatch:
    """Python values, and their event times (milliseconds since 1970, one each) or None where the
    stream has none."""

    __slots__ = ("timestamps", "values")

    def __init__(self, values: list[Any], timestamps: list[int] | None = None) -> None:
        self.values = values
        self.timestamps = timestamps

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RowBatch)
            and self.values == other.values
            and self.timestamps == other.timestamps
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"RowBatch({len(self.values)} "
            f"rows{', timestamped' if self.timestamps is not None else ''})"
        )


class ColumnBatch:
    """A ``pyarrow.RecordBatch``, and an int64 array of event times in milliseconds or None."""

    __slots__ = ("data", "timestamps")

    def __init__(
        self, data: pa.RecordBatch, timestamps: npt.NDArray[np.int64] | None = None
    ) -> None:
        self.data = data
        self.timestamps = timestamps

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ColumnBatch)
            and bool(self.data.equals(other.data))
            and (self.timestamps is None) == (other.timestamps is None)
            and (
                self.timestamps is None
                or other.timestamps is None
                or self.timestamps.tolist() == other.timestamps.tolist()
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ColumnBatch({self.data.num_rows} rows of {', '.join(self.data.schema.names)})"


Batch: TypeAlias = RowBatch | ColumnBatch


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with a timestamp at or below this one (milliseconds) follows. MAX_TIMESTAMP ends
    event time."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class WatermarkStatus:
    """Whether the channel is idle; an idle channel does not hold the watermark back until it is
    active again."""

    idle: bool


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Sent by a source to measure how long elements travel; ``marked_ms`` is the source's wall
    clock."""

    marked_ms: int
    operator_id: str
    subtask_index: int


class SnapshotType(Enum):
    """What a barrier is for."""

    CHECKPOINT = 0  # the job may go back to it by itself
    SAVEPOINT = 1  # somebody asked for it, and it belongs to them
    SUSPEND = 2  # a savepoint, behind which the job stops, to be continued later
    # a savepoint, behind which the job stops for good: event time has ended before it
    TERMINATE = 3

    @property
    def is_savepoint(self) -> bool:
        return self is not SnapshotType.CHECKPOINT

    @property
    def stops_job(self) -> bool:
        """Whether tasks finish behind the barrier."""
        return self is SnapshotType.SUSPEND or self is SnapshotType.TERMINATE


class SavepointFormatType(Enum):
    """The form of a snapshot's files."""

    NATIVE = 0  # as the backends give it: small and fast to write
    CANONICAL = 1  # a Parquet file for each state, which others read too


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """How a checkpoint is taken: as the coordinator decided when it was triggered, and known to
    every task that has its barrier."""

    snapshot_type: SnapshotType = SnapshotType.CHECKPOINT
    target: str | None = None  # the folder of a savepoint
    # the complete checkpoint that its state may have files in common with; None: it has all of its
    # own
    builds_on: int | None = None
    format_type: SavepointFormatType = SavepointFormatType.NATIVE  # CANONICAL needs a target
    # How long after the checkpoint's beginning its barriers overtake records, in milliseconds: at
    # once with 0 (unaligned), never with None (aligned)
    alignment_timeout_ms: int | None = None
    # AT_LEAST_ONCE: barriers are counted, and no channel waits for another one's
    is_tracked: bool = False

    @property
    def is_unaligned(self) -> bool:
        """Whether barriers overtake records now."""
        return self.alignment_timeout_ms == 0


ALIGNED_CHECKPOINT = CheckpointOptions()


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Separates the records before it, which belong to checkpoint ``checkpoint_id``, from those
    after it, which do not."""

    checkpoint_id: int
    timestamp_ms: int
    options: CheckpointOptions = ALIGNED_CHECKPOINT

    def overtaking(self) -> CheckpointBarrier:
        """The barrier, as it overtakes records from now on."""
        return (
            self
            if self.options.is_unaligned
            else replace(self, options=replace(self.options, alignment_timeout_ms=0))
        )


@dataclass(frozen=True, slots=True)
class EndOfData:
    """The producer has no more records. ``drain`` is False when the job stops in order to be
    continued later."""

    drain: bool = True


@dataclass(frozen=True, slots=True)
class EndOfPartition:
    """The last element of a channel; its producer may go away once it has been read."""


ControlElement: TypeAlias = (
    Watermark | WatermarkStatus | LatencyMarker | CheckpointBarrier | EndOfData | EndOfPartition
)
Element: TypeAlias = Batch | ControlElement
