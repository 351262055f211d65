"""The example of a source and a sink of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import own_source_and_sink
from flinkpy.datastream import StreamExecutionEnvironment


@pytest.mark.parametrize("parallelism", [1, 2])
def test_errors_and_warnings_of_all_files_end_in_a_file_per_level(
    parallelism: int, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "output"
    logs.mkdir()
    (logs / "a.log").write_text("INFO begun\nERROR disk full\nWARNING slow\n")
    (logs / "b.log").write_text("ERROR no route\nINFO ended\n")
    (logs / "c.txt").write_text("ERROR not a log\n")
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(parallelism)
    own_source_and_sink.build(env, logs, output)
    env.execute()
    written = sorted(
        (path.name.rpartition("-")[0], line)
        for path in output.iterdir()
        for line in path.read_text().splitlines()
    )
    assert written == [
        ("ERROR", "a.log: disk full"),
        ("ERROR", "b.log: no route"),
        ("WARNING", "a.log: slow"),
    ]


def test_a_split_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("INFO 0\nINFO 1\nINFO 2\n")
    source = own_source_and_sink.Logs(tmp_path)
    (split,) = source.splits(1)
    assert [message for _, _, message in source.read(split, 2)] == ["2"]
