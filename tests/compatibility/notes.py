"""What differs, and what is absent and why. A note on a class or module holds for all of its names
that have none of their own."""

from __future__ import annotations

from collections.abc import Mapping

_KEPT = "kept, shown by its getter, without effect so far"
_CHECKPOINTS = "aligned and unaligned, full and incremental checkpoints"
_PARTS = (
    "each checkpoint ends all parts, row formats too; without checkpoints parts are visible "
    "when the subtask has ended well"
)
_SAVEPOINT = "in the native or in the canonical form; the canonical one is Parquet"

DIFFERENT = {
    "pyflink.common.execution_config.ExecutionConfig.set_latency_tracking_interval": "the histograms are in the job's result: get_metrics()",
    "pyflink.common.execution_config.ExecutionConfig.set_task_cancellation_interval": (
        "functions of tasks that share their thread with others are not interrupted; "
        "those that wait have a thread"
    ),
    "pyflink.common.execution_config.ExecutionConfig.set_task_cancellation_timeout": (
        "on Ray the worker ends then, as Flink's does; an embedded job ends without its "
        "function, whose thread goes on"
    ),
    "pyflink.common.execution_config.ExecutionConfig.set_use_snapshot_compression": _KEPT,
    "pyflink.common.execution_config.ExecutionConfig.set_execution_mode": "kept, without effect: the runtime mode decides",
    "pyflink.common.execution_config.ExecutionConfig.set_default_input_dependency_constraint": "kept, without effect: the scheduler decides",
    "pyflink.common.execution_config.ExecutionConfig.get_registered_pojo_types": "empty: there are no Java classes",
    "pyflink.common.io.InputFormat": "write yours in Python; PyFlink wraps Java's",
    "pyflink.common.job_client.JobClient.stop_with_savepoint": _SAVEPOINT,
    "pyflink.common.job_client.JobClient.trigger_savepoint": _SAVEPOINT,
    "pyflink.common.serialization.BulkWriterFactory": "use the formats of flinkpy.datastream.connectors.file_system, instead of Java's",
    "pyflink.common.watermark_strategy.WatermarkStrategy.with_watermark_alignment": "for sources; assign_timestamps_and_watermarks() refuses it",
    "pyflink.datastream.connectors.base.DeliveryGuarantee": "KafkaSink keeps it; which guarantee another sink gives depends on the sink alone",
    "pyflink.datastream.connectors.file_system.BucketAssigner.date_time_bucket_assigner": "its pattern takes Java's common letters",
    "pyflink.datastream.connectors.file_system.BulkFormat": "BulkFormat.parquet() instead of Java's formats",
    "pyflink.datastream.connectors.file_system.FileCompactStrategy.Builder.enable_compaction_on_checkpoint": "in each subtask by itself",
    "pyflink.datastream.connectors.file_system.FileCompactStrategy.Builder.set_num_compact_threads": "kept: a subtask compacts its own files",
    "pyflink.datastream.connectors.file_system.FileSink": _PARTS,
    "pyflink.datastream.connectors.file_system.FileSplitAssignerProvider": "file systems report no locations here, so splits go in order",
    "pyflink.datastream.connectors.file_system.RollingPolicy.default_rolling_policy": "checked after each batch, not after each record",
    "pyflink.datastream.connectors.file_system.StreamingFileSink": _PARTS,
    "pyflink.datastream.data_stream.DataStream.execute_and_collect": (
        "of a keyed stream it gives the records; PyFlink gives Row(key, record), as its "
        "keyed streams consist of these"
    ),
    "pyflink.datastream.data_stream.DataStream.key_by": "a key is hashable, in BATCH too: a list or a dict is refused",
    "pyflink.datastream.data_stream.CachedDataStream": "caches bounded streams in any mode, in files on the program's machine",
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.add_python_archive": (
        "embedded, a link in the working directory leads to what is unpacked; what has "
        "that name there already stays, with a warning"
    ),
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.enable_changelog_state_backend": _KEPT,
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.get_default_local_parallelism": (
        "parallelism.default if none was set, not the number of cores"
    ),
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.is_chaining_of_operators_with_different_max_parallelism_enabled": (
        "always False"
    ),
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.register_cached_file": (
        "found by runtime_context.get_cached_file(name); a detached job carries at most "
        "100 MB of a file"
    ),
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.set_python_executable": (
        "the interpreter of workers on Ray; embedded, another one than the program's gets "
        "a warning; os.environ['python'] names it"
    ),
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.set_python_requirements": (
        "installed for the workers on Ray; embedded, nothing is installed: a missing "
        "package is refused, another version gets a warning"
    ),
    "pyflink.datastream.checkpoint_config.CheckpointConfig": _CHECKPOINTS,
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.enable_checkpointing": _CHECKPOINTS,
    "pyflink.datastream.state_backend.EmbeddedRocksDBStateBackend.set_number_of_transfer_threads": _CHECKPOINTS,
    "pyflink.datastream.state_backend.EmbeddedRocksDBStateBackend.set_predefined_options": _KEPT,
    "pyflink.datastream.state_backend.EmbeddedRocksDBStateBackend.set_options": "kept, without effect: it names a Java class",
}

ABSENT = {
    "pyflink.common.watermark_strategy.AssignerWithPeriodicWatermarksWrapper": "wraps a Java class; write a WatermarkGenerator",
    "pyflink.datastream.checkpoint_storage.CustomCheckpointStorage": "wraps a Java class",
    "pyflink.datastream.state_backend.CustomStateBackend": "wraps a Java class",
}


def note_of(notes: Mapping[str, str], path: str, otherwise: str) -> str:
    """The note of the name, or of what it belongs to."""
    while path:
        if path in notes:
            return notes[path]
        path = path.rpartition(".")[0]
    return otherwise
