"""Which folder below a file sink's directory a record goes to."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flinkpy.core.errors import ProgramError

# The letters of Java's DateTimeFormatter that are supported; other text goes in quotes.
_LETTERS = {"yyyy": "%Y", "uuuu": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "hh": "%I", "mm": "%M", "ss": "%S", "a": "%p", "DDD": "%j",
            "EEE": "%a", "EEEE": "%A", "MMM": "%b", "MMMM": "%B"}


class BucketAssigner(ABC):
    """Chooses a record's bucket: the relative name of a folder; "" is the sink's directory itself.

    >>> BucketAssigner.base_path_bucket_assigner().bucket_for(0)
    ''
    """

    @abstractmethod
    def bucket_for(self, now_ms: int) -> str | None:
        """The bucket of all records that come now; None if it depends on the record, see :meth:`bucket_of`."""

    def bucket_of(self, value: Any) -> str:
        """The bucket of this record."""
        raise NotImplementedError

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """No folders: all records go into the sink's directory."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """One folder per hour of processing time, or as ``format_str`` (in Java's letters) says, in the given time
        zone or the machine's. Raises ProgramError for an unknown pattern or time zone."""
        return _DateTime(format_str, timezone_id)

    @staticmethod
    def by_value(bucket_of: Callable[[Any], str]) -> BucketAssigner:
        """One folder per value of a function of the record. (In PyFlink such assigners are written in Java.)"""
        return _ByValue(bucket_of)


class _BasePath(BucketAssigner):
    def bucket_for(self, now_ms: int) -> str:
        return ""


class _ByValue(BucketAssigner):
    def __init__(self, bucket_of: Callable[[Any], str]) -> None:
        self._bucket_of = bucket_of

    def bucket_for(self, now_ms: int) -> None:
        return None

    def bucket_of(self, value: Any) -> str:
        bucket = str(self._bucket_of(value))
        if bucket.startswith("/") or ".." in bucket.split("/"):
            raise ProgramError(f"bucket {bucket!r} leads out of the sink's directory; give the name of a folder in it")
        return bucket


class _DateTime(BucketAssigner):
    def __init__(self, pattern: str, timezone_id: str | None) -> None:
        self._pattern, self._zone_id = strftime_pattern(pattern), timezone_id
        self._zone = _zone(timezone_id)

    def bucket_for(self, now_ms: int) -> str:
        return datetime.datetime.fromtimestamp(now_ms / 1000, self._zone).strftime(self._pattern)


def strftime_pattern(pattern: str) -> str:
    """A date pattern of Java as one for ``strftime``.

    >>> strftime_pattern("yyyy-MM-dd'T'HH")
    '%Y-%m-%dT%H'
    """
    out, position = [], 0
    for match in re.finditer(r"'(?P<quoted>[^']*)'|(?P<run>(?P<letter>[A-Za-z])(?P=letter)*)", pattern):
        out.append(pattern[position:match.start()].replace("%", "%%"))
        position = match.end()
        run = match["run"]
        if run is None:
            out.append((match["quoted"] or "'").replace("%", "%%"))
        elif run in _LETTERS:
            out.append(_LETTERS[run])
        else:
            raise ProgramError(f"the bucket pattern {pattern!r} has {run!r}; known are {', '.join(_LETTERS)}, and text in quotes")
    return "".join([*out, pattern[position:].replace("%", "%%")])


def _zone(timezone_id: str | None) -> datetime.tzinfo | None:
    if timezone_id is None:
        return None
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::?(\d{2}))?", timezone_id)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return datetime.timezone(datetime.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(timezone_id)
    except (KeyError, ValueError, OSError):
        raise ProgramError(f"there is no time zone {timezone_id!r}; write it as Europe/Berlin or GMT+01:00") from None
