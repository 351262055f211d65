"""Settings that PyFlink's programs make: refused where they cannot be, found again where they
can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import RestartStrategies
from flinkpy.common.restart_strategy import restart_strategy_of
from flinkpy.core.errors import ConfigurationError, JobExecutionError, ProgramError
from flinkpy.datastream import (
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkpy.datastream.checkpoint_storage import (
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    storage_of,
)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_without_generated_uids_an_operator_without_one_is_refused(
    env: StreamExecutionEnvironment,
) -> None:
    env.get_config().disable_auto_generated_uids()
    env.from_collection([1]).uid("numbers").map(lambda value: value).print().uid("print")
    with pytest.raises(ProgramError, match=r"'Map' .* has no uid"):
        env.execute()


@pytest.mark.parametrize(
    "strategy",
    [
        RestartStrategies.no_restart(),
        RestartStrategies.fixed_delay_restart(3, 10),
        RestartStrategies.failure_rate_restart(3, 1000, 10),
        RestartStrategies.fall_back_restart(),
    ],
)
def test_a_restart_strategy_is_found_again_from_its_options(strategy: Any) -> None:
    assert restart_strategy_of(strategy.options()) == strategy


@pytest.mark.parametrize(
    "storage",
    [
        JobManagerCheckpointStorage(),
        JobManagerCheckpointStorage("file:///c", 100),
        FileSystemCheckpointStorage("file:///c"),
        FileSystemCheckpointStorage("s3://bucket/c", 10, 20),
    ],
)
def test_a_checkpoint_storage_is_found_again_from_its_options(storage: Any) -> None:
    assert storage_of(storage.options()) == storage


def test_where_nothing_is_said_there_is_no_checkpoint_storage(
    env: StreamExecutionEnvironment,
) -> None:
    assert env.get_checkpoint_config().get_checkpoint_storage() is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FileSystemCheckpointStorage(""), "takes a folder or a URI"),
        (lambda: JobManagerCheckpointStorage(None, 0), "max_state_size"),
        (lambda: FileSystemCheckpointStorage("file:///c", 2 << 20), "at most 1048576"),
        (
            lambda: storage_of({"execution.checkpointing.storage": "filesystem"}),
            "needs execution.checkpointing.dir",
        ),
    ],
)
def test_a_storage_that_cannot_be_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call()


class Reading(MapFunction):
    def __init__(self, name: str) -> None:
        self._name = name

    def open(self, runtime_context: RuntimeContext) -> None:
        self._text = Path(runtime_context.get_cached_file(self._name)).read_text()

    def map(self, value: Any) -> str:
        return self._text


def test_functions_find_registered_files_by_name(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"text of {name}")
        env.register_cached_file(str(tmp_path / name), name)
    with env.from_collection([1]).map(Reading("two")).execute_and_collect() as results:
        assert list(results) == ["text of two"]
    with pytest.raises(JobExecutionError, match="no cached file 'three'"):
        list(env.from_collection([1]).map(Reading("three")).execute_and_collect())


@pytest.mark.parametrize(("path", "name"), [("", "x"), ("a;b", "x"), ("a", "x,y")])
def test_a_file_name_that_cannot_be_kept_is_refused(
    env: StreamExecutionEnvironment, path: str, name: str
) -> None:
    with pytest.raises(ProgramError, match="without ';' and ','"):
        env.register_cached_file(path, name)


def test_a_python_file_that_is_not_there_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ProgramError, match=r"there is no nowhere\.py"):
        env.add_python_file("nowhere.py")


def test_processing_time_turns_periodic_watermarks_off(env: StreamExecutionEnvironment) -> None:
    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert env.get_config().get_auto_watermark_interval() == 0


def test_any_class_that_is_no_function_can_be_called(env: StreamExecutionEnvironment) -> None:
    with env.from_collection([1, 2]).map(str).execute_and_collect() as results:
        assert list(results) == ["1", "2"]
