"""A job that sets no max parallelism goes on from a checkpoint at any parallelism that the
checkpoint's max parallelism allows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table.expressions import col

pytestmark = pytest.mark.finding("gaps G7")

KEYS, COUNT = 200, 3000


def environment(parallelism: int, path: str | None, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(
        {"parallelism.default": parallelism, "execution.checkpointing.interval": "1 h", **options}
    )
    if path is not None:
        env.configure({"execution.state-recovery.path": path})
    return env


def counting(
    env: StreamExecutionEnvironment, folder: Path, rate: float, max_parallelism: int | None = None
) -> None:
    """Each key's records are counted, and each count goes to a file."""
    from flinkpy.connectors.files.writing.file_sink import FileSink

    numbers = (
        env.generate(lambda index: index, count=COUNT, rate=rate).uid("numbers").set_parallelism(1)
    )
    ones = numbers.map(lambda number: (number % KEYS, 1)).uid("ones").set_parallelism(1)
    counts = (
        ones.key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .uid("counts")
    )
    if max_parallelism is not None:
        counts.set_max_parallelism(max_parallelism)
    counts.map(lambda pair: f"{pair[0]} {pair[1]}").uid("texts").sink_to(
        FileSink(folder / "out")
    ).uid("out")


def savepoint_of(env: StreamExecutionEnvironment, folder: Path) -> str:
    return str(env.execute_async().stop_with_savepoint(False, str(folder / "savepoints")).result())


def lines(folder: Path) -> list[str]:
    return sorted(
        line for file in (folder / "out").rglob("part-*") for line in file.read_text().splitlines()
    )


@pytest.mark.wide
@pytest.mark.parametrize(("unaligned", "steps"), [(False, (2, 86, 128)), (True, (2, 86))])
def test_a_job_goes_from_2_to_86_to_128_and_back_to_2_and_counts_each_record_once(
    tmp_path: Path, unaligned: bool, steps: tuple[int, ...]
) -> None:
    path, options = None, {"execution.checkpointing.unaligned.enabled": unaligned}
    for parallelism in steps:  # by themselves 2 and 128 would have 128 and 256 key groups
        env = environment(parallelism, path, **options)
        counting(env, tmp_path, rate=500)
        path = savepoint_of(env, tmp_path)
    env = environment(2, path, **options)
    counting(env, tmp_path, rate=1e6)
    env.execute()
    assert lines(tmp_path) == sorted(
        f"{key} {count}" for key in range(KEYS) for count in range(1, COUNT // KEYS + 1)
    )


def test_more_subtasks_than_key_groups_and_another_number_that_is_set_are_refused(
    tmp_path: Path,
) -> None:
    env = environment(2, None)
    counting(env, tmp_path, rate=500)
    path = savepoint_of(env, tmp_path)

    def refused(parallelism: int, max_parallelism: int | None = None, **options: Any) -> str:
        env = environment(parallelism, path, **options)
        counting(env, tmp_path, 500, max_parallelism)
        with pytest.raises(JobExecutionError) as told:
            env.execute_async()
        return str(told.value)

    assert re.search(
        r"'Reduce' \(129 subtasks, max parallelism 128\); lower their parallelism", refused(129)
    )
    set_wrongly = r"'Reduce' \(from 128 to 256\); set it to what it was"
    assert re.search(set_wrongly, refused(2, max_parallelism=256))
    assert re.search(set_wrongly, refused(2, **{"pipeline.max-parallelism": 256}))
    env = environment(86, path)
    counting(env, tmp_path, 500, max_parallelism=128)  # one operator's own, set to what it was
    env.execute_async().cancel().result()


def test_columns_go_to_the_subtask_that_has_their_key_s_state(tmp_path: Path) -> None:
    def sums(parallelism: int, path: str | None, rate: float) -> Any:
        env = environment(parallelism, path)
        columns = (
            env.generate(
                lambda index: {"g": index % KEYS, "n": index}, count=COUNT, rate=rate, columns=True
            )
            .uid("numbers")
            .set_parallelism(1)
        )
        return env, columns.key_by("g").aggregate(
            col("n").sum.alias("s"), col("n").count.alias("c")
        ).uid("sums")

    env, stream = sums(2, None, 500)
    stream.print()
    path = savepoint_of(env, tmp_path)
    env, stream = sums(86, path, 1e6)
    last: dict[int, tuple[int, int]] = {}
    for row in stream.execute_and_collect():
        last[row.g] = max(last.get(row.g, (0, 0)), (row.c, row.s))
    assert last == {key: (COUNT // KEYS, sum(range(key, COUNT, KEYS))) for key in range(KEYS)}
