"""What flows: batches of records, and the control elements that stand between them.

A batch is what has arrived, in one of two forms. Control elements never stand inside a batch: cutting a batch there keeps the
semantics exactly those of record-at-a-time. All are immutable by convention: who received one may keep it, nobody changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1


class RowBatch:
    """Python values, and their event times (milliseconds since 1970, one each) or None where the stream has none."""

    __slots__ = ("timestamps", "values")

    def __init__(self, values: list[Any], timestamps: list[int] | None = None) -> None:
        self.values = values
        self.timestamps = timestamps

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowBatch) and self.values == other.values and self.timestamps == other.timestamps

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RowBatch({len(self.values)} rows{', timestamped' if self.timestamps is not None else ''})"


class ColumnBatch:
    """A ``pyarrow.RecordBatch``, and an int64 array of event times in milliseconds or None."""

    __slots__ = ("data", "timestamps")

    def __init__(self, data: pa.RecordBatch, timestamps: npt.NDArray[np.int64] | None = None) -> None:
        self.data = data
        self.timestamps = timestamps

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, ColumnBatch) and bool(self.data.equals(other.data))
                and (self.timestamps is None) == (other.timestamps is None)
                and (self.timestamps is None or other.timestamps is None or self.timestamps.tolist() == other.timestamps.tolist()))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ColumnBatch({self.data.num_rows} rows of {', '.join(self.data.schema.names)})"


Batch: TypeAlias = RowBatch | ColumnBatch


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with a timestamp at or below this one follows (milliseconds). MAX_TIMESTAMP ends event time."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class WatermarkStatus:
    """An idle channel holds no watermark back until it is active again."""

    idle: bool


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Sent by a source to measure how long elements travel; ``marked_ms`` is its wall clock."""

    marked_ms: int
    operator_id: str
    subtask_index: int


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Cuts the stream: what came before belongs to checkpoint ``checkpoint_id``, what follows does not."""

    checkpoint_id: int
    timestamp_ms: int
    is_savepoint: bool = False
    unaligned: bool = False


@dataclass(frozen=True, slots=True)
class EndOfData:
    """The producer has no more records. ``drain`` is False when the job stops to be continued later."""

    drain: bool = True


@dataclass(frozen=True, slots=True)
class EndOfPartition:
    """The last element of a channel; its producer may go away once this was read."""


ControlElement: TypeAlias = Watermark | WatermarkStatus | LatencyMarker | CheckpointBarrier | EndOfData | EndOfPartition
Element: TypeAlias = Batch | ControlElement
