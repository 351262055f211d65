"""The words in which both a logical and a physical plan say how rows meet: kinds of joins, frames
of OVER, windows of time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey

SOURCE_WATERMARK = "SOURCE_WATERMARK"  # the strategy that takes the watermarks of the source


class JoinKind(Enum):
    """Which rows a join gives."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"


@dataclass(frozen=True)
class Frame:
    """The rows around one that an OVER aggregate takes. ``unit`` is ROWS or RANGE. Offsets are in
    rows or in the unit of the sort key, negative before the row; None is unbounded."""

    unit: str = "RANGE"
    lower: object = None
    upper: object = 0


@dataclass(frozen=True)
class OverGroup:
    """Aggregates over the same window."""

    partition: tuple[int, ...]
    keys: tuple[SortKey, ...]
    frame: Frame
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True)
class Interval:
    """How near rows of a join are in time: ``left + lower <= right <= left + upper`` in
    milliseconds. The columns of both times by number, each on its own side."""

    left_time: int
    right_time: int
    lower: int
    upper: int


class WindowKind(Enum):
    """The table functions of windows."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


@dataclass(frozen=True)
class WindowSpec:
    """A window over the column ``time`` by number; lengths in milliseconds. ``step`` is the slide
    of HOP and the step of CUMULATE, ``size`` the gap of SESSION, whose ``partition`` has the key
    columns. ``bounds``: rows are in windows already, and these columns are window_start and
    window_end; ``time`` is not read then. ``is_local``: times are instants, and windows lie in the
    local time of the session's zone. ``is_processing``: time is that of the machine."""

    kind: WindowKind
    time: int
    size: int
    step: int | None = None
    offset: int = 0
    partition: tuple[int, ...] = ()
    bounds: tuple[int, int] | None = None
    is_local: bool = False
    is_processing: bool = False
