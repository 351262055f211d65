"""PyFlink's names for reading and writing files: builders over :class:`TextFileSource` and :class:`~flinkpy.connectors.file_sink.FileSink`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flinkpy.common.serialization import Encoder
from flinkpy.connectors import file_sink
from flinkpy.connectors.file_formats import EncodedFormat, FileFormat, ParquetFormat
from flinkpy.connectors.text_files import TextFileSource
from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class StreamFormat:
    """How records are found in a file."""

    charset: str

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """A record per line."""
        return StreamFormat(charset_name)


class FileSource:
    """``FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()`` is ``TextFileSource(path)``."""

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str | Path) -> FileSourceBuilder:
        return FileSourceBuilder(stream_format, paths)


class FileSourceBuilder:
    """Builds the source."""

    def __init__(self, stream_format: StreamFormat, paths: tuple[str | Path, ...]) -> None:
        if not isinstance(stream_format, StreamFormat):
            raise ProgramError(f"for_record_stream_format takes a StreamFormat, this is {stream_format!r:.80}; see StreamFormat.text_line_format()")
        self._format, self._paths = stream_format, paths

    def process_static_file_set(self) -> FileSourceBuilder:
        """The files there are now; the only way so far."""
        return self

    def build(self) -> TextFileSource:
        """The source; ProgramError if there is no such file."""
        return TextFileSource(self._paths, self._format.charset)


@dataclass(frozen=True)
class OutputFileConfig:
    """Names of part files: what they begin and end with."""

    part_prefix: str = "part"
    part_suffix: str | None = None

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


class FileSink(file_sink.FileSink):
    """The file sink with PyFlink's builders.

    >>> sink = FileSink.for_row_format("out", Encoder.simple_string_encoder()).build()
    """

    class Builder:
        """Builds the sink."""

        def __init__(self, path: str | Path, form: FileFormat) -> None:
            self._path, self._format, self._config = path, form, OutputFileConfig()

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.Builder:
            self._config = output_file_config
            return self

        def build(self) -> FileSink:
            return FileSink(self._path, self._format, self._config.part_prefix, self._config.part_suffix)

    @staticmethod
    def for_row_format(base_path: str | Path, encoder: Encoder) -> FileSink.Builder:
        """What the encoder makes of each record."""
        return FileSink.Builder(base_path, EncodedFormat(encoder.encode))

    @staticmethod
    def for_bulk_format(base_path: str | Path, writer_factory: FileFormat | None = None) -> FileSink.Builder:
        """Column files; Parquet unless another format is given."""
        return FileSink.Builder(base_path, writer_factory if writer_factory is not None else ParquetFormat())
