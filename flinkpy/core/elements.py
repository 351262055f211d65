"""What flows between operators: batches of records, and the control elements between batches.

A batch holds records that have arrived, in one of two forms. A control element never stands inside
a batch; the batch is cut there, so the semantics are those of one record at a time. All elements
are immutable by convention: a receiver may keep one, but nobody changes it."""

from __future__ import annotations

from collections.abc import Sequence
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
    """A ``pyarrow.RecordBatch``; an int64 array of event times in milliseconds, or None; and
    ``kinds``, an int8 array of what each row means (the values of ``RowKind``), or None where all
    rows are inserts.

    What is made of a batch is made by its methods, which carry event times and kinds along. A batch
    that is constructed begins: without ``kinds`` its rows are inserts, whatever they were made of
    (``tests/test_house.py`` knows the places that may say so)."""

    __slots__ = ("data", "kinds", "timestamps")

    def __init__(
        self,
        data: pa.RecordBatch,
        timestamps: npt.NDArray[np.int64] | None = None,
        kinds: npt.NDArray[np.int8] | None = None,
    ) -> None:
        self.data = data
        self.timestamps = timestamps
        if kinds is not None:
            if kinds.dtype != "int8" or kinds.shape != (data.num_rows,):
                raise ValueError(
                    f"kinds are an int8 array with one of RowKind's values for each of "
                    f"{data.num_rows} rows; this is one of {kinds.dtype} and shape {kinds.shape}"
                )
            if not kinds.any():  # one form for the same: operators ask for None only
                kinds = None
        self.kinds = kinds

    def slice(self, start: int, length: int | None = None) -> ColumnBatch:
        """The rows from ``start`` on, at most ``length``; nothing is copied."""
        end = len(self) if length is None else start + length
        stamps, kinds = self.timestamps, self.kinds
        return ColumnBatch(
            self.data.slice(start, length),
            None if stamps is None else stamps[start:end],
            None if kinds is None else kinds[start:end],
        )

    def take(self, positions: npt.NDArray[np.integer[Any]]) -> ColumnBatch:
        """The rows at these positions, in their order."""
        import pyarrow as pa

        data, stamps, kinds = self.data, self.timestamps, self.kinds
        if data.num_columns:
            data = data.take(pa.array(positions))
        else:  # Arrow takes no rows of a batch without columns
            rows = pa.StructArray.from_buffers(pa.struct([]), len(positions), [None])
            data = pa.RecordBatch.from_struct_array(rows)
        return ColumnBatch(
            data,
            None if stamps is None else stamps[positions],
            None if kinds is None else kinds[positions],
        )

    def filter(self, mask: pa.BooleanArray) -> ColumnBatch:
        """The rows for which the mask is true; null drops a row, as false does."""
        stamps, kinds = self.timestamps, self.kinds
        if stamps is not None or kinds is not None:
            kept = mask.fill_null(False).to_numpy(zero_copy_only=False)
            stamps = None if stamps is None else stamps[kept]
            kinds = None if kinds is None else kinds[kept]
        return ColumnBatch(self.data.filter(mask), stamps, kinds)

    def with_columns(self, data: pa.RecordBatch) -> ColumnBatch:
        """The same rows with other columns."""
        return ColumnBatch(data, self.timestamps, self.kinds)

    def with_timestamps(self, timestamps: npt.NDArray[np.int64]) -> ColumnBatch:
        """The same rows with other event times."""
        return ColumnBatch(self.data, timestamps, self.kinds)

    def is_like(self, other: ColumnBatch) -> bool:
        """Whether the two have the same schema, and both have event times or neither has: so
        ``concat`` takes them together."""
        return (self.timestamps is None) is (other.timestamps is None) and bool(
            self.data.schema.equals(other.data.schema)
        )

    @staticmethod
    def concat(parts: Sequence[ColumnBatch]) -> ColumnBatch:
        """One batch with the rows of all parts, of which there is at least one, and which are alike
        (``is_like``)."""
        if len(parts) == 1:
            return parts[0]
        import numpy as np
        import pyarrow as pa

        data = pa.Table.from_batches([part.data for part in parts]).combine_chunks().to_batches()[0]
        stamps = [part.timestamps for part in parts if part.timestamps is not None]
        kinds = None
        if any(part.kinds is not None for part in parts):
            kinds = np.concatenate(
                [
                    np.zeros(len(part), np.int8) if part.kinds is None else part.kinds
                    for part in parts
                ]
            )
        return ColumnBatch(data, np.concatenate(stamps) if stamps else None, kinds)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ColumnBatch)
            and bool(self.data.equals(other.data))
            and _equal_arrays(self.timestamps, other.timestamps)
            and _equal_arrays(self.kinds, other.kinds)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        changes = "" if self.kinds is None else ", with kinds"
        names = ", ".join(self.data.schema.names)
        return f"ColumnBatch({self.data.num_rows} rows of {names}{changes})"


def _equal_arrays(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(one.tolist() == other.tolist())


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
