"""From a table of files and its options to the sink that writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.partition_folders import folder_of
from flinkpy.connectors.files.writing.file_formats import FileFormat
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.files.writing.rolling import NEVER_BEFORE_THE_END, RollingPolicy
from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode
from flinkpy.core.options.schema import read
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.files.partition_commits import PartitionCommit, PartitionTime
from flinkpy.table.factories.files.table_file_sink import Overwrite, TableFileSink
from flinkpy.table.factories.table_options import TableValues, milliseconds
from flinkpy.table.factories.written_streams import write_stream

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream
    from flinkpy.sql.physical.physical_nodes import SinkNode

_SUCCESS_FILE = "success-file"


def add_file_sink(
    stream: DataStream, node: SinkNode, values: TableValues, format: FileFormat
) -> None:
    """Writes the rows into the table. Raises ValidationError for what this mode cannot do."""
    keys = list(node.table.partition_keys)
    files = FileSink(
        values["path"],
        format,
        rolling=_rolling(values),
        check_interval_ms=milliseconds(values["sink.rolling-policy.check-interval"]),
        partition_by=keys or None,
    )
    overwrite = _overwrite(stream, node)
    commit = _partition_commit(values) if keys else None
    sink: Any = files
    if overwrite is not None or commit is not None:
        sink = TableFileSink(values["path"], files, overwrite, commit)
    write_stream(stream, node, sink, values["sink.parallelism"])


def _overwrite(stream: DataStream, node: SinkNode) -> Overwrite | None:
    if not node.overwrite:
        return None
    configuration = stream.get_execution_environment().program.values
    if read(configuration, RUNTIME_MODE) is not RuntimeMode.BATCH:
        raise ValidationError(
            "INSERT OVERWRITE does not run in STREAMING, where a table has no last row: set "
            "'execution.runtime-mode' to BATCH, or use INSERT INTO"
        )
    fixed = dict(node.static_partition)
    keys = node.table.partition_keys
    if keys and not all(key in fixed for key in keys):
        return Overwrite(None)
    return Overwrite(folder_of({key: fixed[key] for key in keys}) if keys else "")


def _rolling(values: TableValues) -> RollingPolicy:
    if not any(key.startswith("sink.rolling-policy.") for key in values.given):
        return NEVER_BEFORE_THE_END
    return RollingPolicy.default_rolling_policy(
        values["sink.rolling-policy.file-size"],
        milliseconds(values["sink.rolling-policy.rollover-interval"]),
        milliseconds(values["sink.rolling-policy.inactivity-interval"]),
    )


def _partition_commit(values: TableValues) -> PartitionCommit | None:
    kinds = values["sink.partition-commit.policy.kind"]
    if kinds is None:
        return None
    for kind in map(str.strip, kinds.split(",")):
        if kind != _SUCCESS_FILE:
            raise ValidationError(
                f"'sink.partition-commit.policy.kind' is {_SUCCESS_FILE!r}, not {kind!r}: the "
                "folders are the partitions, and no metastore has others"
            )
    return PartitionCommit(
        values["sink.partition-commit.trigger"],
        milliseconds(values["sink.partition-commit.delay"]),
        PartitionTime(
            values["partition.time-extractor.timestamp-pattern"],
            values["partition.time-extractor.timestamp-formatter"],
            values["sink.partition-commit.watermark-time-zone"],
        ),
        values["sink.partition-commit.success-file.name"],
    )
