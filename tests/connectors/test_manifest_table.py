"""Whole jobs whose sink has a global committer: one manifest for each checkpoint, and each record
once, also with savepoints, other numbers of writers, and in BATCH."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing import embedded_environment
from flinkpy.testing.connectors import ManifestTable, ManifestTableSink
from tests.waiting import eventually

COUNT = 3000


def environment(parallelism: int, **options: Any) -> StreamExecutionEnvironment:
    return embedded_environment(
        {"execution.checkpointing.interval": "20 ms", "restart-strategy.type": "none", **options},
        parallelism=parallelism,
    )


def writing(env: StreamExecutionEnvironment, folder: Path, rate: float) -> None:
    numbers = env.generate(lambda index: index, count=COUNT, rate=rate).uid("numbers")
    numbers.set_parallelism(1).rebalance().map(lambda number: number).uid("map").sink_to(
        ManifestTableSink(folder / "table")
    ).uid("table")


@pytest.mark.parametrize("steps", [(2, 1, 3), (1, 2)])
def test_a_job_goes_on_from_savepoints_with_other_numbers_of_writers(
    tmp_path: Path, steps: tuple[int, ...]
) -> None:
    """With one writer the committer is in its chain, and finds its state all the same."""
    table, options = ManifestTable(tmp_path / "table"), dict[str, Any]()
    for parallelism in steps:
        env = environment(parallelism, **options)
        writing(env, tmp_path, rate=600)
        job, before = env.execute_async(), len(table.commits())
        eventually(lambda: len(table.commits()) > before)  # noqa: B023  # called at once
        stopped = job.stop_with_savepoint(False, str(tmp_path / "savepoints"))
        options["execution.state-recovery.path"] = str(stopped.result())
        assert len(table.rows()) == len(set(table.rows())), "a savepoint commits, too"
    env = environment(2, **options)
    writing(env, tmp_path, rate=1e6)
    env.execute()
    assert sorted(table.rows()) == list(range(COUNT))
    commits = [manifest.checkpoint_id for manifest in table.commits()]
    assert len(set(commits)) == len(commits), "one commit for each checkpoint"


@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
def test_without_checkpoints_it_commits_once_when_all_writers_have_ended(
    tmp_path: Path, mode: str
) -> None:
    env = embedded_environment({"execution.runtime-mode": mode}, parallelism=2)
    env.from_collection(list(range(10))).rebalance().map(lambda value: value).sink_to(
        ManifestTableSink(tmp_path)
    )
    env.execute()
    [manifest] = ManifestTable(tmp_path).commits()
    assert (manifest.checkpoint_id, len(manifest.files)) == (None, 2)
    assert sorted(ManifestTable(tmp_path).rows()) == list(range(10))


def test_columns_are_written_too(tmp_path: Path) -> None:
    import pandas as pd

    env = environment(2)
    env.from_pandas(pd.DataFrame({"a": [1, 2, 3]})).sink_to(ManifestTableSink(tmp_path))
    env.execute()
    assert sorted(row[0] for row in ManifestTable(tmp_path).rows()) == [1, 2, 3]


def test_the_plan_shows_the_committer_behind_the_writers(tmp_path: Path) -> None:
    env = environment(2)
    writing(env, tmp_path, 1)
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [(node["type"], node["pact"], node["parallelism"]) for node in nodes[-2:]] == [
        ("Sink: Writer", "Operator", 2),
        ("Global Committer", "Data Sink", 1),
    ]
