"""PyFlink's names for reading and writing files: builders over the text and column sources and
:class:`~flinkpy.connectors.files.writing.file_sink.FileSink`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from flinkpy.common.serialization import BulkWriterFactory, Encoder
from flinkpy.common.time import Duration, to_milliseconds
from flinkpy.connectors.files.reading.text_files import DEFAULT_SPLIT_BYTES, TextFileSource
from flinkpy.connectors.files.reading.watched_files import WatchedTextFileSource
from flinkpy.connectors.files.writing import file_sink
from flinkpy.connectors.files.writing.buckets import BucketAssigner
from flinkpy.connectors.files.writing.compaction import FileCompactor, FileCompactStrategy
from flinkpy.connectors.files.writing.file_formats import EncodedFormat, FileFormat, ParquetFormat
from flinkpy.connectors.files.writing.rolling import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    RollingPolicy,
)
from flinkpy.connectors.source_api.source import Source
from flinkpy.core.errors import ProgramError

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactor",
    "FileCompactStrategy",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]

# -- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamFormat:
    """How records are read from a file.

    >>> StreamFormat.text_line_format("latin-1").charset
    'latin-1'
    """

    charset: str

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One record per line."""
        return StreamFormat(charset_name)

    def open_files(
        self, paths: tuple[str | Path, ...], interval_ms: int | None, split_bytes: int | None
    ) -> Source[Any]:
        """The source of these files, which looks for new ones at that interval; None: never."""
        if interval_ms is not None:
            return WatchedTextFileSource(paths, self.charset, split_bytes, interval_ms=interval_ms)
        return TextFileSource(paths, self.charset, split_bytes)


@dataclass(frozen=True)
class BulkFormat:
    """How batches of columns are read from files: ``open_files(paths, interval)`` makes the source,
    which looks for new files at that interval, in milliseconds; None: never.

    >>> BulkFormat.parquet(columns=["carrier"])  # doctest: +ELLIPSIS
    BulkFormat(...)
    """

    open_files: Callable[[tuple[str | Path, ...], int | None], Source[Any]]

    @staticmethod
    def parquet(columns: list[str] | None = None) -> BulkFormat:
        """Parquet files; with ``columns`` only those are read."""
        from flinkpy.connectors.files.reading.column_files import ParquetSource

        return BulkFormat(
            lambda paths, interval: ParquetSource(paths, columns, watch_interval_ms=interval)
        )


@dataclass(frozen=True)
class FileEnumeratorProvider:
    """Whether large files are cut into splits, so that several readers share one.

    >>> FileEnumeratorProvider.default_splittable_file_enumerator().splittable
    True
    """

    splittable: bool

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Cuts large files, except compressed ones. Leaves out hidden files, whose names begin with
        ``.`` or ``_``."""
        return FileEnumeratorProvider(True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Has each file read by one reader. Leaves out hidden files."""
        return FileEnumeratorProvider(False)


@dataclass(frozen=True)
class FileSplitAssignerProvider:
    """Which reader gets which split."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """In Flink, splits near the reader first. The file systems here do not tell where a file
        lies, so splits are assigned in order."""
        return FileSplitAssignerProvider()


class FileSource:
    """PyFlink's builder of file sources:
    ``FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()`` is the
    same as ``TextFileSource(path)``.

    >>> FileSource.for_record_stream_format(
    ...     StreamFormat.text_line_format(), "lines.txt"
    ... ).build()  # doctest: +SKIP
    """

    @staticmethod
    def for_record_stream_format(
        stream_format: StreamFormat, *paths: str | Path
    ) -> FileSourceBuilder:
        """A builder for a source that reads record by record, such as lines of text. Raises
        ProgramError if it is not given a StreamFormat."""
        if not isinstance(stream_format, StreamFormat):
            raise ProgramError(
                "for_record_stream_format takes a StreamFormat, this is "
                f"{stream_format!r:.80}; see StreamFormat.text_line_format()"
            )
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str | Path) -> FileSourceBuilder:
        """A builder for a source that reads column batches, such as Parquet. Raises ProgramError if
        it is not given a BulkFormat."""
        if not isinstance(bulk_format, BulkFormat):
            raise ProgramError(
                f"for_bulk_file_format takes a BulkFormat, this is {bulk_format!r:.80}; see "
                "BulkFormat.parquet()"
            )
        return FileSourceBuilder(bulk_format, paths)


class FileSourceBuilder:
    """Builds a file source.

    >>> FileSource.for_record_stream_format(
    ...     StreamFormat.text_line_format(), "lines.txt"
    ... )  # doctest: +ELLIPSIS
    <...FileSourceBuilder...>
    """

    def __init__(self, form: StreamFormat | BulkFormat, paths: tuple[str | Path, ...]) -> None:
        self._format, self._paths = form, paths
        self._interval_ms: int | None = None
        self._splittable = True

    def monitor_continuously(
        self, discovery_interval: Duration | timedelta | int
    ) -> FileSourceBuilder:
        """Looks for new files at this interval (milliseconds, if a number); the source never ends.
        Raises ProgramError for an interval below 1 ms."""
        milliseconds = to_milliseconds(discovery_interval)
        if milliseconds < 1:
            raise ProgramError(
                f"monitor_continuously() takes a duration above 0, this is {discovery_interval!r}"
            )
        self._interval_ms = milliseconds
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Reads the files that exist when the source is built, and then ends. This is the
        default."""
        self._interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Sets whether large files are cut."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise ProgramError(
                "set_file_enumerator() takes a FileEnumeratorProvider, this is "
                f"{file_enumerator!r:.80}"
            )
        self._splittable = file_enumerator.splittable
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Sets which reader gets which split; there is only one way."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise ProgramError(
                "set_split_assigner() takes a FileSplitAssignerProvider, this is "
                f"{split_assigner!r:.80}"
            )
        return self

    def build(self) -> Source[Any]:
        """The source. Raises ProgramError if there is no such file."""
        if isinstance(self._format, BulkFormat):
            return self._format.open_files(self._paths, self._interval_ms)
        split_bytes = DEFAULT_SPLIT_BYTES if self._splittable else None
        return self._format.open_files(self._paths, self._interval_ms, split_bytes)


# -- writing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputFileConfig:
    """The prefix and suffix of the names of part files.

    >>> config = (
    ...     OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".txt").build()
    ... )
    >>> config.get_part_prefix(), config.get_part_suffix()
    ('words', '.txt')
    """

    part_prefix: str = "part"
    part_suffix: str | None = None

    def get_part_prefix(self) -> str:
        return self.part_prefix

    def get_part_suffix(self) -> str:
        return self.part_suffix or ""

    class OutputFileConfigBuilder:
        """Builds the configuration."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix: str | None = None

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self._prefix, self._suffix)

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()


Self = TypeVar("Self", bound="_SinkBuilder")


S = TypeVar("S", bound=file_sink.FileSink)


class _SinkBuilder:
    """What all builders of a file sink offer. Without a bucket assigner there is one folder per
    hour, as in Flink."""

    def __init__(self, path: str | Path, form: FileFormat, rolling: RollingPolicy) -> None:
        self._path = path
        self._format = form
        self._rolling = rolling
        self._config = OutputFileConfig()
        self._buckets = BucketAssigner.date_time_bucket_assigner()
        self._check_interval_ms = file_sink.CHECK_INTERVAL_MS
        self._compact: tuple[FileCompactStrategy, FileCompactor] | None = None

    def with_output_file_config(self: Self, output_file_config: OutputFileConfig) -> Self:
        """Sets the names of part files."""
        self._config = _checked(output_file_config, OutputFileConfig, "with_output_file_config()")
        return self

    def with_bucket_assigner(self: Self, bucket_assigner: BucketAssigner) -> Self:
        """Sets which folder a record goes to."""
        self._buckets = _checked(bucket_assigner, BucketAssigner, "with_bucket_assigner()")
        return self

    def with_bucket_check_interval(self: Self, interval: int) -> Self:
        """Sets how often, in milliseconds, the rolling policy is asked while no record comes."""
        if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
            raise ProgramError(
                f"with_bucket_check_interval() takes milliseconds from 1 on, this is {interval!r}"
            )
        self._check_interval_ms = interval
        return self

    def with_rolling_policy(self: Self, rolling_policy: RollingPolicy) -> Self:
        """Sets when a part ends and the next begins."""
        self._rolling = _checked(rolling_policy, RollingPolicy, "with_rolling_policy()")
        return self

    def _build(self, kind: type[S]) -> S:
        return kind(
            self._path,
            self._format,
            self._config.part_prefix,
            self._config.part_suffix,
            buckets=self._buckets,
            rolling=self._rolling,
            check_interval_ms=self._check_interval_ms,
            compact=self._compact,
        )


class FileSink(file_sink.FileSink):
    """The file sink, with PyFlink's builders.

    >>> sink = FileSink.for_row_format("out", Encoder.simple_string_encoder()).build()
    """

    class BaseBuilder(_SinkBuilder):
        """Builds the sink."""

        def enable_compact(
            self, strategy: FileCompactStrategy, compactor: FileCompactor
        ) -> FileSink.BaseBuilder:
            """Joins small parts of one subtask and one bucket before they become visible."""
            self._compact = (
                _checked(strategy, FileCompactStrategy, "enable_compact()"),
                _checked(compactor, FileCompactor, "enable_compact()"),
            )
            return self

        def disable_compact(self) -> FileSink.BaseBuilder:
            self._compact = None
            return self

        def build(self) -> FileSink:
            return self._build(FileSink)

    class RowFormatBuilder(BaseBuilder):
        """Builds a sink that writes records one by one; by default parts end by size and age."""

    class BulkFormatBuilder(BaseBuilder):
        """Builds a sink of files that must be written as a whole; parts end only with
        checkpoints."""

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.BulkFormatBuilder:
            return super().with_rolling_policy(
                _checked(
                    rolling_policy,
                    OnCheckpointRollingPolicy,
                    "with_rolling_policy() of a bulk format",
                )
            )

    @staticmethod
    def for_row_format(base_path: str | Path, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """A builder for a sink that writes what the encoder makes of each record."""
        form = EncodedFormat(_checked(encoder, Encoder, "for_row_format()"))
        return FileSink.RowFormatBuilder(base_path, form, RollingPolicy.default_rolling_policy())

    @staticmethod
    def for_bulk_format(
        base_path: str | Path, writer_factory: BulkWriterFactory | None = None
    ) -> FileSink.BulkFormatBuilder:
        """A builder for a sink of column files; Parquet unless another format is given."""
        form = (
            ParquetFormat()
            if writer_factory is None
            else _checked(writer_factory, FileFormat, "for_bulk_format()")
        )
        return FileSink.BulkFormatBuilder(
            base_path, form, RollingPolicy.on_checkpoint_rolling_policy()
        )

    def get_transformer(self) -> Any:
        """None. In PyFlink it turns rows into Java's before the sink; here nothing needs to."""


class StreamingFileSink(file_sink.FileSink):
    """Flink's older file sink: ``stream.add_sink(StreamingFileSink.for_row_format(path,
    encoder).build())``.

    >>> sink = StreamingFileSink.for_row_format("out", Encoder.simple_string_encoder()).build()
    """

    class BaseBuilder(_SinkBuilder):
        """Builds the sink."""

        def with_rolling_policy(self: Self, policy: RollingPolicy) -> Self:
            """Sets when a part ends and the next begins."""
            return _SinkBuilder.with_rolling_policy(self, policy)

        def build(self) -> StreamingFileSink:
            return self._build(StreamingFileSink)

    class DefaultRowFormatBuilder(BaseBuilder):
        """Builds a sink that writes records one by one."""

    class DefaultBulkFormatBuilder(BaseBuilder):
        """Builds a sink of files that must be written as a whole."""

        def with_rolling_policy(
            self, policy: RollingPolicy
        ) -> StreamingFileSink.DefaultBulkFormatBuilder:
            return super().with_rolling_policy(
                _checked(
                    policy, OnCheckpointRollingPolicy, "with_rolling_policy() of a bulk format"
                )
            )

    @staticmethod
    def for_row_format(
        base_path: str | Path, encoder: Encoder
    ) -> StreamingFileSink.DefaultRowFormatBuilder:
        form = EncodedFormat(_checked(encoder, Encoder, "for_row_format()"))
        return StreamingFileSink.DefaultRowFormatBuilder(
            base_path, form, RollingPolicy.default_rolling_policy()
        )

    @staticmethod
    def for_bulk_format(
        base_path: str | Path, writer_factory: BulkWriterFactory | None = None
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        form = (
            ParquetFormat()
            if writer_factory is None
            else _checked(writer_factory, FileFormat, "for_bulk_format()")
        )
        return StreamingFileSink.DefaultBulkFormatBuilder(
            base_path, form, RollingPolicy.on_checkpoint_rolling_policy()
        )


T = TypeVar("T")


def _checked(value: object, kind: type[T], call: str) -> T:
    if not isinstance(value, kind):
        raise ProgramError(f"{call} takes a {kind.__name__}, this is {value!r:.80}")
    return value
