"""When a partition is complete, and what is done then: ``sink.partition-commit.*``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from flinkpy.columns.sql.sql_meanings.moments.java_formats import PLAIN_MOMENT, read_strictly
from flinkpy.core.errors import ProgramError

_VARIABLE = re.compile(r"\$(\w+)")


@dataclass(frozen=True)
class PendingPartition:
    """A partition that has rows and is not complete yet: its folder, its values, and since when it
    has rows."""

    folder: str
    values: Mapping[str, str | None]
    seen_ms: int


@dataclass(frozen=True)
class PartitionTime:
    """The time of a partition, from its values: ``$day $hour:00:00``. Without a pattern it is the
    first value."""

    pattern: str | None = None
    format: str = PLAIN_MOMENT
    zone: str = "UTC"

    def of(self, values: Mapping[str, str | None]) -> int:
        """In milliseconds. Raises ProgramError for values that are no time.

        >>> PartitionTime("$day $hour:00:00").of({"day": "1970-01-02", "hour": "01"})
        90000000
        """
        if self.pattern is None:
            text = next(iter(values.values())) or ""
        else:
            text = _VARIABLE.sub(lambda found: values.get(found[1]) or "", self.pattern)
        moment = read_strictly(text, self.format) or read_strictly(text, "yyyy-MM-dd")
        if moment is None:
            raise ProgramError(
                f"{text!r} is no time in the form {self.format!r}: set "
                "'partition.time-extractor.timestamp-pattern' to how the partition's columns make "
                "one, such as '$day $hour:00:00'"
            )
        there = moment.replace(tzinfo=ZoneInfo(self.zone)).astimezone(datetime.timezone.utc)
        return round(there.timestamp() * 1000)


@dataclass(frozen=True)
class PartitionCommit:
    """``trigger`` is process-time or partition-time; ``success_file`` is the name of the file that
    says that a partition is complete."""

    trigger: str
    delay_ms: int
    time: PartitionTime
    success_file: str

    def is_due(self, partition: PendingPartition, now_ms: int, watermark_ms: int | None) -> bool:
        """Whether the partition is complete. Without a watermark none is, by event time."""
        if self.trigger == "process-time":
            return now_ms >= partition.seen_ms + self.delay_ms
        if watermark_ms is None:
            return False
        return watermark_ms > self.time.of(partition.values) + self.delay_ms
