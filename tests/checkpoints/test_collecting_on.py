"""What a program collects of a job that fails for good, and what another one collects of the job
that goes on from its last checkpoint: together each record once."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import StreamExecutionEnvironment

COUNT = 3000


def environment(folder: Path, path: Path | None) -> StreamExecutionEnvironment:
    options: dict[str, Any] = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(folder),
        "restart-strategy.type": "none",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    if path is not None:
        options["execution.state-recovery.path"] = str(path)
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(2)
    return env


def collected(env: StreamExecutionEnvironment, fails_at: int) -> list[int]:
    def checked(number: int) -> int:
        if number == fails_at:
            raise ValueError("for good")
        return number

    numbers = (
        env.generate(lambda index: index, count=COUNT, rate=30_000)
        .uid("numbers")
        .map(checked)
        .uid("checked")
    )
    seen: list[int] = []
    results = (
        numbers.key_by(lambda number: number % 5)
        .map(lambda number: number)
        .uid("keyed")
        .execute_and_collect()
    )
    with (
        results,
        pytest.raises(JobExecutionError, match="for good") if fails_at >= 0 else nullcontext(),
    ):
        seen.extend(results)
    return seen


@pytest.mark.parametrize("fails_at", [1200, 1900, 2600])
def test_two_programs_collect_each_record_once(fails_at: int, tmp_path: Path) -> None:
    first = collected(environment(tmp_path, None), fails_at)
    jobs = [each for each in tmp_path.iterdir() if list(each.glob("chk-*/_metadata"))]
    # it may have failed before its first checkpoint
    second = collected(environment(tmp_path / "second", jobs[0] if jobs else None), -1)
    assert sorted(first + second) == list(range(COUNT))
