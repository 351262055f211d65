"""Windows over instants (TIMESTAMP_LTZ) lie in the local time of the session's zone: a window of a
day begins at midnight there, and has 23 or 25 hours where the clock is changed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.kernels.zones import local_times, placed, zone_of

if TYPE_CHECKING:
    import numpy.typing as npt

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_HOUR_MS = 3_600_000
_SECOND = datetime.timedelta(seconds=1)
# A day within the years 1 and 9999, so that each zone has a local time
_LEAST, _GREATEST = -62_135_510_400_000, 253_402_214_400_000


@dataclass(frozen=True)
class WallClock:
    """The clock on the wall in this zone; None: times are what the clock shows already. Times are
    milliseconds.

    >>> clock = WallClock("America/New_York")
    >>> clock.local(np.array([0])).tolist()
    [-18000000]
    """

    zone: str | None = None

    def local(self, instants: npt.NDArray[np.int64]) -> Any:
        """What the clock shows at these instants."""
        if self.zone is None:
            return instants
        moments = pa.array(instants).view(pa.timestamp("ms", self.zone))
        return local_times(moments).view(pa.int64()).to_numpy()

    def instants(self, local: npt.NDArray[np.int64]) -> Any:
        """When the clock shows these times: for the first time, if it does so twice."""
        if self.zone is None:
            return local
        shown = pa.array(local).view(pa.timestamp("ms"))
        return placed(shown, self.zone, "ms").view(pa.int64()).to_numpy()

    def moment(self, local: int) -> int:
        """When this local time has passed: if the clock shows it twice, for the second time."""
        found = int(self.instants(np.array([local]))[0])
        if self.zone is None or self.passed(found) >= local:
            return found
        return found + local - int(self.local(np.array([found + _HOUR_MS]))[0]) + _HOUR_MS

    def passed(self, watermark: int) -> int:
        """The latest local time that will not be shown any more once event time is there. Where the
        clock is put back, the hour that it shows twice has not passed before its second end, as in
        Flink."""
        if self.zone is None or not _LEAST < watermark < _GREATEST:
            return watermark
        zone = zone_of(self.zone)
        shown = (_EPOCH + watermark * _MILLISECOND).astimezone(zone)
        offset, later = shown.utcoffset(), shown.replace(fold=1).utcoffset()
        assert offset is not None
        assert later is not None
        if shown.fold or later >= offset:
            return watermark + offset // _MILLISECOND
        changed = _changed(watermark // 1000, (offset - later) // _SECOND, zone, later)
        return changed * 1000 + later // _MILLISECOND - 1


AS_IT_IS = WallClock()  # of times without a zone


def _changed(second: int, within: int, zone: datetime.tzinfo, offset: datetime.timedelta) -> int:
    """The first second from which on the zone has this offset, at most so many seconds later."""
    before, after = second, second + within
    while after - before > 1:
        middle = (before + after) // 2
        if (_EPOCH + middle * _SECOND).astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after
