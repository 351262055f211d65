"""Methods that write a stream to files under the names that other libraries have for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flinkpy.datastream.checks import located
from flinkpy.datastream.results.data_stream_sink import DataStreamSink
from flinkpy.datastream.results.sink_operators import add_sink
from flinkpy.datastream.streams.operator_settings import OperatorSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.connectors.files.writing.buckets import BucketAssigner
    from flinkpy.connectors.files.writing.file_formats import Compression, FileFormat
    from flinkpy.connectors.files.writing.rolling import RollingPolicy


class WriteVerbs(OperatorSettings):
    """Each writes part files into a folder, as ``sink_to(FileSink(...))`` does; ``FileSink`` has
    more options. ``partition_by`` are columns whose values are the names of folders, ``city=Oslo``,
    as in Hive; ``buckets`` chooses folders in another way, and ``rolling`` when a file is full."""

    def write_parquet(
        self,
        path: str | Path,
        *,
        schema: pa.Schema | None = None,
        compression: str = "zstd",
        partition_by: Sequence[str] | None = None,
        buckets: BucketAssigner | None = None,
        rolling: RollingPolicy | None = None,
    ) -> DataStreamSink:
        """Writes Parquet files into the folder ``path``. Call ``env.execute()`` to run the program.

        >>> flights.filter(col("dep_delay") > 60).write_parquet(
        ...     "late", partition_by=["carrier"]
        ... )  # doctest: +SKIP
        """
        from flinkpy.connectors.files.writing.file_formats import ParquetFormat

        return self._write(
            path, lambda: ParquetFormat(schema, compression), partition_by, buckets, rolling
        )

    def write_csv(
        self,
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        header: bool = True,
        null_value: str = "",
        encoding: str = "utf-8",
        quoting_style: Literal["needed", "all_valid"] = "needed",
        compression: Compression | None = None,
        escape: str | None = None,
        partition_by: Sequence[str] | None = None,
        buckets: BucketAssigner | None = None,
        rolling: RollingPolicy | None = None,
    ) -> DataStreamSink:
        """Writes CSV files into the folder ``path``. Call ``env.execute()`` to run the program.

        >>> flights.write_csv("out", null_value="NA", compression="gzip")  # doctest: +SKIP
        """
        from flinkpy.connectors.files.writing.file_formats import CsvFormat

        def format() -> CsvFormat:
            return CsvFormat(
                columns,
                delimiter,
                header,
                null_value=null_value,
                encoding=encoding,
                quoting_style=quoting_style,
                compression=compression,
                escape=escape,
            )

        return self._write(path, format, partition_by, buckets, rolling)

    def write_json(
        self,
        path: str | Path,
        *,
        compression: Compression | None = None,
        partition_by: Sequence[str] | None = None,
        buckets: BucketAssigner | None = None,
        rolling: RollingPolicy | None = None,
    ) -> DataStreamSink:
        """Writes files with one JSON object per line into the folder ``path``. Call
        ``env.execute()`` to run the program.

        >>> flights.write_json("out")  # doctest: +SKIP
        """
        from flinkpy.connectors.files.writing.file_formats import JsonLinesFormat

        return self._write(
            path, lambda: JsonLinesFormat(compression=compression), partition_by, buckets, rolling
        )

    def write_avro(
        self,
        path: str | Path,
        *,
        schema: pa.Schema | None = None,
        codec: Literal["null", "deflate", "bzip2", "snappy", "zstandard"] = "deflate",
        partition_by: Sequence[str] | None = None,
        buckets: BucketAssigner | None = None,
        rolling: RollingPolicy | None = None,
    ) -> DataStreamSink:
        """Writes Avro container files into the folder ``path``. Call ``env.execute()`` to run the
        program. Needs the extra ``flinkpy[avro]``.

        >>> flights.write_avro("out")  # doctest: +SKIP
        """
        from flinkpy.connectors.files.writing.file_formats import AvroFormat

        return self._write(path, lambda: AvroFormat(schema, codec), partition_by, buckets, rolling)

    write_json_lines = write_json

    def write_text(
        self,
        path: str | Path,
        *,
        charset: str = "utf-8",
        compression: Compression | None = None,
        buckets: BucketAssigner | None = None,
        rolling: RollingPolicy | None = None,
    ) -> DataStreamSink:
        """Writes files with the text of one record per line into the folder ``path``. Call
        ``env.execute()`` to run the program.

        >>> words.write_text("out")  # doctest: +SKIP
        """
        from flinkpy.connectors.files.writing.file_formats import TextFormat

        return self._write(
            path,
            lambda: TextFormat(charset=charset, compression=compression),
            None,
            buckets,
            rolling,
        )

    def _write(
        self,
        path: str | Path,
        format: Callable[[], FileFormat],
        partition_by: Sequence[str] | None,
        buckets: BucketAssigner | None,
        rolling: RollingPolicy | None,
    ) -> DataStreamSink:
        from flinkpy.connectors.files.writing.file_sink import FileSink
        from flinkpy.connectors.files.writing.rolling import NEVER_BEFORE_THE_END

        with located():
            sink = FileSink(
                path,
                format(),
                buckets=buckets,
                rolling=NEVER_BEFORE_THE_END if rolling is None else rolling,
                partition_by=partition_by,
            )
        return DataStreamSink(
            add_sink(self.recorded, sink.of_type(self.recorded.output_type), "Sink: Writer")
        )
