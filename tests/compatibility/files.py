"""Sources and sinks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flinkpy.common import Duration, Encoder, WatermarkStrategy
from flinkpy.connectors.files.writing.file_formats import ParquetFormat
from flinkpy.connectors.source_api.source import Boundedness
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.connectors import Sink, Source
from flinkpy.datastream.connectors.base import StreamTransformer, SupportsPreprocessing
from flinkpy.datastream.connectors.file_system import (
    BucketAssigner,
    BulkFormat,
    FileCompactor,
    FileCompactStrategy,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSplitAssignerProvider,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from flinkpy.datastream.connectors.hybrid_source import HybridSource
from flinkpy.datastream.connectors.number_seq import NumberSequenceSource


def _env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def _read(source: Source[Any]) -> list[Any]:
    return sorted(
        _env().from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect()
    )


def _visible(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")
    )


def files_are_read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.txt").write_text("a\nb\n")
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder)
        assert (
            builder.monitor_continuously(Duration.of_seconds(1)).build().boundedness
            is Boundedness.CONTINUOUS_UNBOUNDED
        )
        builder.set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator())
        builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
        builder.set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
        assert _read(builder.process_static_file_set().build()) == ["a", "b"]
        assert sorted(_env().read_text_file(folder).execute_and_collect()) == ["a", "b"]
        pq.write_table(pa.table({"a": [1]}), Path(folder, "a.parquet"))
        bulk = FileSource.for_bulk_file_format(
            BulkFormat.parquet(), Path(folder, "a.parquet")
        ).build()
        assert [tuple(row) for row in _read(bulk)] == [(1,)]


def sequences_are_read() -> None:
    hybrid = (
        HybridSource.builder(NumberSequenceSource(1, 2))
        .add_source(NumberSequenceSource(3, 4))
        .build()
    )
    assert _read(hybrid) == [1, 2, 3, 4]


def files_are_written() -> None:
    config = OutputFileConfig("pre", ".ext")
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("pre", ".ext")
    config = OutputFileConfig.builder().with_part_prefix("pre").with_part_suffix(".ext").build()
    strategy = (
        FileCompactStrategy.builder()
        .set_size_threshold(1 << 20)
        .enable_compaction_on_checkpoint(1)
        .set_num_compact_threads(1)
        .build()
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = (
            FileSink.for_row_format(folder, Encoder.simple_string_encoder())
            .with_output_file_config(config)
            .with_bucket_check_interval(1000)
        )
        rows.with_bucket_assigner(BucketAssigner.date_time_bucket_assigner()).with_bucket_assigner(
            BucketAssigner.base_path_bucket_assigner()
        )
        rows.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=1))
        rows.enable_compact(strategy, FileCompactor.identical_file_compactor()).disable_compact()
        sink = rows.enable_compact(strategy, FileCompactor.concat_file_compactor()).build()
        env = _env()
        env.from_collection(["x", "y"]).sink_to(sink)
        env.execute()
        [part] = _visible(Path(folder))
        assert part.name.startswith("compacted-pre-")
        assert (part.suffix, part.read_text()) == (".ext", "x\ny\n")
    with tempfile.TemporaryDirectory() as folder:
        bulk = (
            FileSink.for_bulk_format(folder, ParquetFormat())
            .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
            .build()
        )
        env = _env()
        env.from_collection([{"a": 1}]).sink_to(bulk)
        env.execute()
        assert pq.read_table(_visible(Path(folder))[0]).to_pydict() == {"a": [1]}
        assert FileSink(folder).get_transformer() is None


def files_are_written_the_older_way() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = StreamingFileSink.for_row_format(
            folder, Encoder.simple_string_encoder()
        ).with_bucket_check_interval(1000)
        rows.with_bucket_assigner(
            BucketAssigner.base_path_bucket_assigner()
        ).with_output_file_config(OutputFileConfig.builder().build())
        env = _env()
        env.from_collection(["x"]).add_sink(
            rows.with_rolling_policy(RollingPolicy.default_rolling_policy()).build()
        )
        env.execute()
        assert _visible(Path(folder))[0].read_text() == "x\n"
        StreamingFileSink.for_bulk_format(folder, ParquetFormat()).with_rolling_policy(
            RollingPolicy.on_checkpoint_rolling_policy()
        ).build()


class _Double(StreamTransformer):
    def apply(self, ds: DataStream) -> DataStream:
        return ds.map(lambda value: 2 * value)


class _Doubling(FileSink, SupportsPreprocessing):
    def get_transformer(self) -> Any:
        return _Double()


def a_sink_may_change_the_stream_first() -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = _env()
        env.from_collection([1, 2]).sink_to(_Doubling(folder))
        env.execute()
        assert _visible(Path(folder))[0].read_text() == "2\n4\n"
        assert issubclass(FileSink, Sink)


SCENARIOS = [
    files_are_read,
    sequences_are_read,
    files_are_written,
    files_are_written_the_older_way,
    a_sink_may_change_the_stream_first,
]
