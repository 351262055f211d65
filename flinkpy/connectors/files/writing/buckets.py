"""Which folder below a file sink's directory a record goes to."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkpy.connectors.files.partition_folders import folder_of
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.formats.text_values import plain

# The letters of Java's DateTimeFormatter that are supported; other text goes in quotes.
_LETTERS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "a": "%p",
    "DDD": "%j",
    "EEE": "%a",
    "EEEE": "%A",
    "MMM": "%b",
    "MMMM": "%B",
}


class BucketAssigner(ABC):
    """Chooses a record's bucket: the relative name of a folder; "" is the sink's directory itself.

    >>> BucketAssigner.base_path_bucket_assigner().bucket_for(0)
    ''
    """

    @abstractmethod
    def bucket_for(self, now_ms: int) -> str | None:
        """The bucket of all records that come now; None if it depends on the record, see
        :meth:`bucket_of`."""

    def bucket_of(self, value: Any) -> str:
        """The bucket of this record."""
        raise NotImplementedError

    def shares_of(self, batch: Batch, now_ms: int) -> Iterable[tuple[str, Batch]]:
        """The buckets of a batch's records that come now, and what is written to each."""
        bucket = self.bucket_for(now_ms)
        if bucket is not None:
            return [(bucket, batch)]
        values = rows_of(batch)
        shares: dict[str, list[int]] = {}
        for at, value in enumerate(values):
            shares.setdefault(self.bucket_of(value), []).append(at)
        if isinstance(batch, ColumnBatch):
            import numpy as np

            return [(name, batch.take(np.array(positions))) for name, positions in shares.items()]
        return [
            (name, RowBatch([values[at] for at in positions])) for name, positions in shares.items()
        ]

    names_in_folders: Sequence[str] = ()  # columns whose values stand there, and not in the files

    def check_names(self, names: Sequence[str]) -> None:
        """Raises ProgramError if there are no buckets for columns, or fields, of these names."""

    def type_written(self, type_info: TypeInformation | None) -> TypeInformation | None:
        """The type of what is written of records of this declared type."""
        return type_info

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """No folders: all records go into the sink's directory."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """One folder per hour of processing time, or as ``format_str`` (in Java's letters) says, in
        the given time zone or the machine's. Raises ProgramError for an unknown pattern or time
        zone."""
        return _DateTime(format_str, timezone_id)

    @staticmethod
    def by_value(bucket_of: Callable[[Any], str]) -> BucketAssigner:
        """One folder per value of a function of the record. (In PyFlink such assigners are written
        in Java.)"""
        return _ByValue(bucket_of)

    @staticmethod
    def by_columns(*names: str) -> BucketAssigner:
        """One folder for each combination of values of these columns, such as
        ``city=Oslo/year=2024``. As in Hive and Spark, the values stand in the folder's name only,
        and not in its files.

        >>> FileSink(
        ...     "out", "parquet", buckets=BucketAssigner.by_columns("city", "year")
        ... )  # doctest: +SKIP
        """
        return ByColumns(names)


class _BasePath(BucketAssigner):
    def bucket_for(self, now_ms: int) -> str:
        return ""


class _ByValue(BucketAssigner):
    def __init__(self, bucket_of: Callable[[Any], str]) -> None:
        self._bucket_of = bucket_of

    def bucket_for(self, now_ms: int) -> None:
        return None

    def bucket_of(self, value: object) -> str:
        bucket = str(self._bucket_of(value))
        if bucket.startswith("/") or ".." in bucket.split("/"):
            raise ProgramError(
                f"bucket {bucket!r} leads out of the sink's directory; give the name of a "
                "folder in it"
            )
        return bucket


class ByColumns(BucketAssigner):
    """Partitions of columns, or of records with names."""

    def __init__(self, names: Sequence[str]) -> None:
        if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
            raise ProgramError(
                "the columns of partitions are a list of names, at least one; this is "
                f"{names!r:.80}"
            )
        if len(set(names)) < len(names):
            raise ProgramError(
                f"a column stands twice in those of the partitions: {', '.join(names)}"
            )
        self._names = self.names_in_folders = list(names)

    def bucket_for(self, now_ms: int) -> None:
        return None

    def shares_of(self, batch: Batch, now_ms: int) -> Iterable[tuple[str, Batch]]:
        return (
            self._columns_shared(batch)
            if isinstance(batch, ColumnBatch)
            else self._rows_shared(batch.values)
        )

    def _columns_shared(self, batch: ColumnBatch) -> Iterator[tuple[str, Batch]]:
        data = batch.data
        self.check_names(data.schema.names)
        import numpy as np
        import pyarrow as pa

        from flinkpy.columns.values.conversion import python_values

        first = group = np.zeros(len(data), np.int64)
        for name in self._names:
            column = data.column(name)
            # Arrow would leave it as it is, and its nulls without a code
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            codes = column.dictionary_encode(null_encoding="encode")
            joint = group * len(codes.dictionary) + codes.indices.to_numpy(zero_copy_only=False)
            _, first, group = np.unique(joint, return_index=True, return_inverse=True)
        shown = zip(
            *(python_values(data.column(name).take(pa.array(first))) for name in self._names)
        )
        folders = [folder_of(dict(zip(self._names, values))) for values in shown]
        others = batch.with_columns(data.drop_columns(self._names))
        order, ends = np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))
        for at in np.argsort(first).tolist():  # in the order of their first records
            share = (
                others
                if len(first) == 1
                else others.take(order[ends[at - 1] if at else 0 : ends[at]])
            )
            yield folders[at], share

    def _rows_shared(self, values: Sequence[Any]) -> Iterator[tuple[str, Batch]]:
        shares: dict[str, list[Any]] = {}
        for value in values:
            record = plain(value)
            if not isinstance(record, dict):
                raise ProgramError(
                    f"partitions by {', '.join(self._names)} need records whose fields have "
                    f"names; {value!r:.80} has none"
                )
            self.check_names(list(record))
            folder = folder_of({name: record[name] for name in self._names})
            shares.setdefault(folder, []).append(
                {name: each for name, each in record.items() if name not in self._names}
            )
        return ((folder, RowBatch(records)) for folder, records in shares.items())

    def check_names(self, names: Sequence[str]) -> None:
        missing = [name for name in self._names if name not in names]
        if missing:
            raise ProgramError(
                f"there is no column {missing[0]!r} to partition by; there are "
                f"{', '.join(map(str, names))}"
            )
        if len(names) == len(self._names):
            raise ProgramError(
                f"partitions by {', '.join(self._names)} leave no column for the files: these "
                "are all there are"
            )

    def type_written(self, type_info: TypeInformation | None) -> TypeInformation | None:
        if not isinstance(type_info, RowTypeInfo):
            return type_info
        kept = [
            (name, kind)
            for name, kind in zip(type_info.field_names, type_info.field_types)
            if name not in self._names
        ]
        return (
            Types.ROW_NAMED([name for name, _ in kept], [kind for _, kind in kept])
            if kept
            else None
        )


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
    for match in re.finditer(
        r"'(?P<quoted>[^']*)'|(?P<run>(?P<letter>[A-Za-z])(?P=letter)*)", pattern
    ):
        out.append(pattern[position : match.start()].replace("%", "%%"))
        position = match.end()
        run = match["run"]
        if run is None:
            out.append((match["quoted"] or "'").replace("%", "%%"))
        elif run in _LETTERS:
            out.append(_LETTERS[run])
        else:
            raise ProgramError(
                f"the bucket pattern {pattern!r} has {run!r}; known are "
                f"{', '.join(_LETTERS)}, and text in quotes"
            )
    return "".join([*out, pattern[position:].replace("%", "%%")])


def _zone(timezone_id: str | None) -> datetime.tzinfo | None:
    if timezone_id is None:
        return None
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::?(\d{2}))?", timezone_id)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return datetime.timezone(
            datetime.timedelta(minutes=-minutes if offset[1] == "-" else minutes)
        )
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(timezone_id)
    except (KeyError, ValueError, OSError):
        raise ProgramError(
            f"there is no time zone {timezone_id!r}; write it as Europe/Berlin or GMT+01:00"
        ) from None
