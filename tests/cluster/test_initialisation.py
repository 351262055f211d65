"""A program that does not wait for its job waits until the job has initialised: what cannot start
says so at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flinkpy.common.job_client import JobClient
from flinkpy.core.errors import JobExecutionError
from flinkpy.core.options.engine import ATTACHED
from flinkpy.datastream import StreamExecutionEnvironment

pytestmark = pytest.mark.finding("newcomers 2")


def environment(**options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure({key.replace("__", "."): value for key, value in options.items()})
    return env


def start_from(path: object, uid: str = "largest", **options: Any) -> JobClient:
    env = environment(execution__checkpointing__interval="1 h", **options)
    env.configure({"execution.state-recovery.path": str(path)} if path is not None else {})
    numbers = env.generate(lambda index: index, count=10**6, rate=1000).uid("numbers")
    numbers.key_by(lambda number: number % 7).reduce(max).uid(uid).print()
    return env.execute_async("numbers")


def test_a_savepoint_that_is_not_there_is_told_by_execute_async(tmp_path: Path) -> None:
    with pytest.raises(JobExecutionError, match=r"the job cannot start from .*/nothing"):
        start_from(tmp_path / "nothing")


def test_a_program_that_has_changed_since_its_savepoint_is_told_by_execute_async(
    tmp_path: Path,
) -> None:
    first = start_from(None)
    savepoint = first.trigger_savepoint(str(tmp_path)).result()
    first.cancel().result()
    with pytest.raises(JobExecutionError, match="'Reduce' \\(uid 'largest'\\)"):
        start_from(savepoint, uid="another")
    second = start_from(savepoint)
    assert second.get_job_status().result().name == "RUNNING"
    second.cancel().result()


def test_a_detached_execute_waits_as_well(tmp_path: Path) -> None:
    env = environment(
        execution__checkpointing__interval="1 h", execution__checkpointing__dir="/proc/nope"
    )
    env.configure({ATTACHED.key: False})
    env.from_collection([1]).print()
    with pytest.raises(JobExecutionError, match=r"option execution\.checkpointing\.dir"):
        env.execute()


def test_a_job_that_fails_at_its_first_record_was_submitted_all_the_same() -> None:
    env = environment()
    env.from_collection([1]).map(lambda record: 1 // 0).print()
    client = env.execute_async()
    with pytest.raises(JobExecutionError, match="division"):
        client.get_job_execution_result().result()
