"""What closes windows: event time, which watermarks carry, or the clock of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flinkpy.core.elements import MAX_TIMESTAMP, Watermark
from flinkpy.operators.base import BatchForm, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.wake_up import WakeUp
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.sql.rex.relational_terms import WindowSpec

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


def moments_of(window: WindowSpec, clock: WallClock, data: pa.RecordBatch) -> npt.NDArray[Any]:
    """Where each row lies in event time, by the clock that the windows go by."""
    found: npt.NDArray[Any]
    if window.bounds is not None:
        found = milliseconds(data.column(window.bounds[1]), "window_end") - 1
    else:
        name = data.schema.names[window.time]
        found = clock.local(milliseconds(data.column(window.time), name))
    return found


class WindowsInTime(DropsLateRecords, KeyedStateOperator):
    """Closes windows as time goes on. In processing time a row lies where the clock is when it
    comes, and a timer closes the windows; those that are open when the input ends close then."""

    batch_form = BatchForm.AT_END_OF_TIME
    parks = True

    def __init__(self, clock: WallClock, *, is_processing: bool) -> None:
        self.clock = clock
        self.is_processing = is_processing

    @property
    def now(self) -> int:
        """How far time has come: windows that ended until then are closed."""
        raise NotImplementedError(type(self).__name__)

    @property
    def next_moment(self) -> int | None:
        """The last moment of the first window to close; None if there is none."""
        raise NotImplementedError(type(self).__name__)

    def advance(self, until: int) -> Work:
        """Closes the windows that end until then."""
        raise NotImplementedError(type(self).__name__)

    def open(self) -> None:
        self._wake_up = WakeUp(self.context.timers, self._due)
        self.set_alarm()

    def close(self) -> None:
        if hasattr(self, "_wake_up"):
            self._wake_up.cancel()
        super().close()

    def moments(self, window: WindowSpec, data: pa.RecordBatch) -> npt.NDArray[Any]:
        """Where each row lies in time."""
        if not self.is_processing:
            return moments_of(window, self.clock, data)
        # a clock that was set back reopens nothing
        now = int(self.clock.local(np.array([self.context.timers.now_ms()]))[0])
        return np.full(data.num_rows, max(now, self.now + 1), np.int64)

    def times_of_windows(self, ends: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What window_time is, as instants: the last moment of a window; in processing time it is
        the time when its rows go out."""
        if self.is_processing:
            return np.full(len(ends), self.context.timers.now_ms(), np.int64)
        found: npt.NDArray[Any] = self.clock.instants(ends - 1)
        return found

    def set_alarm(self) -> None:
        """Called when rows have come: in processing time a timer closes their windows."""
        if self.is_processing:
            moment = self.next_moment
            self._wake_up.at(None if moment is None else self.clock.moment(moment))

    def _due(self, moment: int) -> None:
        self.do(self._at_timer(moment))

    def _at_timer(self, moment: int) -> Work:
        yield from self._advance(self.clock.passed(moment))
        self.set_alarm()

    def process_watermark(self, watermark: Watermark) -> Work:
        if not self.is_processing or watermark.timestamp == MAX_TIMESTAMP:
            yield from self._advance(self.clock.passed(watermark.timestamp))
        super().process_watermark(watermark)

    def _advance(self, until: int) -> Work:
        if until > self.now:
            yield from self.advance(until)

    def __getstate__(self) -> dict[str, Any]:
        """Only the operator's arguments travel to the workers."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
