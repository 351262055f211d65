"""Settings: every getter gives what its setter was told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from flinkpy.common import ExecutionMode, InputDependencyConstraint, RestartStrategies, Time
from flinkpy.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    ExternalizedCheckpointCleanup,
    ExternalizedCheckpointRetention,
    MemorySize,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkpy.datastream.checkpoint_storage import (
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from flinkpy.datastream.state import StateTtlConfig
from flinkpy.datastream.state_backend import FsStateBackend, HashMapStateBackend, MemoryStateBackend


def both(owner: Any, name: str, value: Any, getter: str | None = None) -> None:
    """``owner.set_name(value)``, then ``owner.get_name()``."""
    getattr(owner, f"set_{name}")(value)
    got = getattr(owner, getter or f"get_{name}")()
    assert got == value, (name, got)


def execution_config() -> None:
    config = StreamExecutionEnvironment.get_execution_environment().get_config()
    for name in (
        "parallelism",
        "max_parallelism",
        "auto_watermark_interval",
        "latency_tracking_interval",
        "task_cancellation_interval",
        "task_cancellation_timeout",
    ):
        both(config, name, 7)
    both(config, "use_snapshot_compression", True, "is_use_snapshot_compression")
    both(config, "execution_mode", ExecutionMode.BATCH)
    both(config, "default_input_dependency_constraint", InputDependencyConstraint.ALL)
    both(config, "restart_strategy", RestartStrategies.failure_rate_restart(1, 1000, 10))
    both(config, "global_job_parameters", {"a": "b"})
    assert not config.disable_auto_generated_uids().has_auto_generated_uids_enabled()
    assert config.enable_auto_generated_uids().has_auto_generated_uids_enabled()
    assert config.enable_object_reuse().is_object_reuse_enabled()
    assert not config.disable_object_reuse().is_object_reuse_enabled()
    assert config.get_registered_pojo_types() == []


def environment() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    for name in ("parallelism", "max_parallelism", "buffer_timeout"):
        both(env, name, 5)
    both(env, "restart_strategy", RestartStrategies.fixed_delay_restart(1, 10))
    both(env, "stream_time_characteristic", TimeCharacteristic.EventTime)
    both(env, "default_savepoint_directory", "file:///tmp/savepoints")
    env.set_state_backend(HashMapStateBackend())
    assert isinstance(env.get_state_backend(), HashMapStateBackend)
    env.set_state_backend(FsStateBackend("file:///tmp/c"))
    env.set_state_backend(MemoryStateBackend())
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    env.disable_operator_chaining()
    assert not env.is_chaining_enabled()
    assert env.is_chaining_of_operators_with_different_max_parallelism_enabled() is False
    env.enable_checkpointing(5000, CheckpointingMode.AT_LEAST_ONCE)
    assert (env.get_checkpoint_interval(), env.get_checkpointing_mode()) == (
        5000,
        CheckpointingMode.AT_LEAST_ONCE,
    )
    assert env.get_checkpoint_config().is_checkpointing_enabled()
    assert not env.is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled()
    env.configure({"user.x": "y"})
    assert env.get_configuration().get_string("user.x", "") == "y"
    env.set_python_requirements("requirements.txt")
    env.add_python_archive("archive.zip", "data")
    env.set_python_executable("python3")
    env.add_python_file(__file__)
    env.register_slot_sharing_group(SlotSharingGroup.builder("g").build())
    assert env.get_default_local_parallelism() == env.get_parallelism()


def checkpoint_config() -> None:
    config = CheckpointConfig()
    for name in (
        "checkpoint_interval",
        "checkpoint_timeout",
        "min_pause_between_checkpoints",
        "max_concurrent_checkpoints",
        "tolerable_checkpoint_failure_number",
    ):
        both(config, name, 20)
    both(config, "checkpointing_mode", CheckpointingMode.EXACTLY_ONCE)
    both(config, "fail_on_checkpointing_errors", False, "is_fail_on_checkpointing_errors")
    both(config, "force_unaligned_checkpoints", True, "is_force_unaligned_checkpoints")
    both(config, "aligned_checkpoint_timeout", timedelta(seconds=1))
    both(config, "alignment_timeout", timedelta(seconds=2))
    both(
        config,
        "externalized_checkpoint_retention",
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
    )
    both(
        config,
        "externalized_checkpoint_cleanup",
        ExternalizedCheckpointCleanup.DELETE_ON_CANCELLATION,
    )
    config.enable_externalized_checkpoints(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    assert config.is_externalized_checkpoints_enabled()
    assert config.enable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert config.is_checkpointing_enabled()
    both(config, "checkpoint_storage", JobManagerCheckpointStorage("file:///tmp/c", 1000))
    config.set_checkpoint_storage_dir("file:///tmp/d")
    assert config.get_checkpoint_storage() == FileSystemCheckpointStorage("file:///tmp/d")


def storages_and_backends() -> None:
    memory = JobManagerCheckpointStorage("file:///tmp/c", 1000)
    assert (
        memory.get_checkpoint_path(),
        memory.get_savepoint_path(),
        memory.get_max_state_size(),
    ) == ("file:///tmp/c", None, 1000)
    files = FileSystemCheckpointStorage("file:///tmp/c", 10, 20)
    assert (files.get_checkpoint_path(), files.get_savepoint_path()) == ("file:///tmp/c", None)
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (10, 20)
    older = FsStateBackend("file:///tmp/c", None, 10, 20)
    assert (
        older.get_checkpoint_path(),
        older.get_min_file_size_threshold(),
        older.get_write_buffer_size(),
    ) == ("file:///tmp/c", 10, 20)
    assert older.is_using_asynchronous_snapshots()
    oldest = MemoryStateBackend(max_state_size=9)
    assert (oldest.get_max_state_size(), oldest.is_using_asynchronous_snapshots()) == (9, True)


def slot_sharing_groups() -> None:
    size = MemorySize.of_mebi_bytes(2048)
    assert (
        size.get_bytes(),
        size.get_kibi_bytes(),
        size.get_mebi_bytes(),
        size.get_gibi_bytes(),
        size.get_tebi_bytes(),
    ) == (2 << 30, 2 << 20, 2048, 2, 0)
    group = (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(1.0)
        .set_external_resource("gpu", 1.0)
        .set_managed_memory(size)
        .set_managed_memory_mb(2048)
        .set_task_heap_memory(size)
        .set_task_heap_memory_mb(2048)
        .set_task_off_heap_memory(size)
        .set_task_off_heap_memory_mb(2048)
        .build()
    )
    assert (group.get_name(), group.get_cpu_cores(), group.get_external_resources()) == (
        "g",
        1.0,
        {"gpu": 1.0},
    )
    assert [
        group.get_managed_memory(),
        group.get_task_heap_memory(),
        group.get_task_off_heap_memory(),
    ] == [size] * 3


def state_ttl() -> None:
    builder = (
        StateTtlConfig.new_builder(Time.seconds(1))
        .set_ttl(Time.seconds(2))
        .update_ttl_on_read_and_write()
        .update_ttl_on_create_and_write()
    )
    builder.set_update_type(
        StateTtlConfig.UpdateType.OnReadAndWrite
    ).never_return_expired().return_expired_if_not_cleaned_up()
    builder.set_state_visibility(
        StateTtlConfig.StateVisibility.NeverReturnExpired
    ).use_processing_time()
    builder.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)
    config = (
        builder.cleanup_full_snapshot()
        .cleanup_incrementally(5, True)
        .disable_cleanup_in_background()
        .build()
    )
    assert config.is_enabled()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert (
        config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    )
    assert str(config.get_ttl())
    cleanup = config.get_cleanup_strategies()
    assert (cleanup.in_full_snapshot(), cleanup.is_cleanup_in_background()) == (True, False)
    incremental: Any = cleanup.get_incremental_cleanup_strategy()
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, True)
    compaction: Any = StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy(7)
    assert compaction.get_query_time_after_num_entries() == 7
    assert str(compaction.get_periodic_compaction_time())


SCENARIOS = [
    execution_config,
    environment,
    checkpoint_config,
    storages_and_backends,
    slot_sharing_groups,
    state_ttl,
]
