"""Tables of files that are written: what INSERT OVERWRITE replaces, and when a partition is
complete."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from flinkpy.connectors.files.writing.part_commits import PartCommitter
from flinkpy.connectors.files.writing.part_names import PartFile
from flinkpy.connectors.files.writing.part_storage import storage_of
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.launch_context import is_pending
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.table.factories.files.partition_commits import (
    PartitionCommit,
    PartitionTime,
    PendingPartition,
)
from flinkpy.table.factories.files.table_file_sink import TableCommitter, Written
from flinkpy.testing.tables import register_rows


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def files_table(tables: TableEnvironment, path: Path, clause: str = "", **options: str) -> None:
    all_options = {"connector": "filesystem", "format": "json", "path": str(path), **options}
    written = ", ".join(
        f"'{key.replace('__', '-')}' = '{value}'" for key, value in all_options.items()
    )
    tables.execute_sql(
        f"CREATE TEMPORARY TABLE {path.name} (n INT, city STRING, y INT) {clause} WITH ({written})"
    )


def insert(tables: TableEnvironment, statement: str) -> None:
    tables.execute_sql(statement).wait()


def rows(tables: TableEnvironment, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in tables.execute_sql(f"SELECT * FROM {table}").collect())


def test_insert_overwrite_replaces_the_table_also_by_its_own_rows_and_by_none(
    tables: TableEnvironment, tmp_path: Path
) -> None:
    files_table(tables, tmp_path / "whole")
    insert(tables, "INSERT INTO whole VALUES (1, 'Oslo', 1), (2, 'Bergen', 2)")
    insert(tables, "INSERT OVERWRITE whole SELECT n * 10, city, y FROM whole WHERE n > 1")
    assert rows(tables, "whole") == [(20, "Bergen", 2)]
    insert(tables, "INSERT OVERWRITE whole SELECT * FROM whole WHERE n < 0")
    assert rows(tables, "whole") == []


def test_insert_overwrite_replaces_the_partition_that_is_named_or_those_that_get_rows(
    tables: TableEnvironment, tmp_path: Path
) -> None:
    files_table(tables, tmp_path / "parts", "PARTITIONED BY (city, y)")
    insert(tables, "INSERT INTO parts VALUES (1, 'Oslo', 1), (2, 'Oslo', 2), (3, 'Bergen', 1)")
    insert(tables, "INSERT OVERWRITE parts VALUES (10, 'Oslo', 1), (11, 'Voss', 1)")
    assert rows(tables, "parts") == [
        (2, "Oslo", 2),
        (3, "Bergen", 1),
        (10, "Oslo", 1),
        (11, "Voss", 1),
    ]
    insert(tables, "INSERT OVERWRITE parts PARTITION (city = 'Oslo') VALUES (20, 2)")
    assert rows(tables, "parts")[2:] == [(11, "Voss", 1), (20, "Oslo", 2)]
    insert(
        tables,
        "INSERT OVERWRITE parts PARTITION (y = 1, city = 'Voss') SELECT n FROM parts WHERE n < 0",
    )
    assert rows(tables, "parts") == [(3, "Bergen", 1), (10, "Oslo", 1), (20, "Oslo", 2)]


def test_insert_overwrite_is_refused_in_streaming(tmp_path: Path) -> None:
    streaming = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    files_table(streaming, tmp_path / "t")
    was_pending = is_pending()
    with pytest.raises(ValidationError, match="OVERWRITE does not run in STREAMING"):
        streaming.execute_sql("INSERT OVERWRITE t VALUES (1, 'Oslo', 1)")
    assert is_pending() == was_pending  # the program has forgotten no execute()


def test_a_partition_that_is_complete_gets_a_file_that_says_so(
    tables: TableEnvironment, tmp_path: Path
) -> None:
    options = {"sink.partition-commit.policy.kind": "success-file", "sink.parallelism": "1"}
    files_table(tables, tmp_path / "said", "PARTITIONED BY (y)", **options)
    insert(tables, "INSERT INTO said VALUES (1, 'Oslo', 1), (2, 'Oslo', 2)")
    assert sorted(path.parent.name for path in tmp_path.rglob("_SUCCESS")) == ["y=1", "y=2"]
    assert rows(tables, "said") == [(1, "Oslo", 1), (2, "Oslo", 2)]


def test_a_line_of_a_raw_file_is_a_row(tables: TableEnvironment, tmp_path: Path) -> None:
    tables.execute_sql(
        "CREATE TEMPORARY TABLE lines (line STRING) WITH ('connector' = 'filesystem', "
        f"'format' = 'raw', 'path' = '{tmp_path}')"
    )
    insert(tables, "INSERT INTO lines VALUES ('a,\"b'), (''), ('{}')")
    assert rows(tables, "lines") == [("",), ('a,"b',), ("{}",)]
    counted = tables.execute_sql("SELECT COUNT(*) FROM lines WHERE line IN ('{}', 'x')").collect()
    assert [tuple(row) for row in counted] == [(1,)]


@pytest.mark.wide
@pytest.mark.parametrize("trigger", ["partition-time", "process-time"])
def test_a_stream_with_checkpoints_completes_its_partitions_and_ends(
    tmp_path: Path, trigger: str
) -> None:
    streaming = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    begin = datetime.datetime(2024, 1, 1)
    data = register_rows([(n, begin + datetime.timedelta(hours=6 * n)) for n in range(20)])
    for statement in (
        "SET 'execution.checkpointing.interval' = '50 ms'",
        f"SET 'execution.checkpointing.dir' = '{tmp_path}/checkpoints'",
        "CREATE TABLE s (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = "
        f"'values', 'data-id' = '{data}', 'rows-per-batch' = '1')",
        "CREATE TABLE days (n INT, d STRING) PARTITIONED BY (d) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}/days', 'format' = 'json', 'sink.partition-commit.delay' = '1 h', "
        f"'sink.partition-commit.trigger' = '{trigger}', "
        "'sink.partition-commit.policy.kind' = 'success-file')",
    ):
        streaming.execute_sql(statement)
    insert(streaming, "INSERT INTO days SELECT n, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM s")
    complete = sorted(path.parent.name for path in tmp_path.rglob("_SUCCESS"))
    assert complete == [f"d=2024-01-0{day}" for day in range(1, 6)]
    lines = [path.read_text() for path in tmp_path.rglob("days/*/part-*")]
    assert "".join(lines).count("\n") == 20


def written(folder: Path, name: str, watermark_ms: int | None, writer: int = 0) -> Written:
    folder.mkdir(parents=True, exist_ok=True)
    part = PartFile(str(folder / f".{name}"), str(folder / name))
    Path(part.hidden).touch()
    return Written(writer, 2, watermark_ms, (part,))


def committer(path: Path, rule: PartitionCommit, clock: ManualClock) -> TableCommitter:
    parts = PartCommitter(storage_of(""))
    return TableCommitter(str(path), parts, None, rule, clock.time_ms)


def test_by_the_clock_a_partition_is_complete_when_its_first_row_is_old_enough(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    rule = PartitionCommit("process-time", 1000, PartitionTime(), "_DONE")
    commits = committer(tmp_path, rule, clock)
    folder = tmp_path / "y=1"
    left = commits.commit([written(folder, "a", None)], 1)
    assert [each.values for each in left] == [{"y": "1"}]
    assert sorted(os.listdir(folder)) == ["a"]
    clock.advance(0.999)
    assert commits.commit(left, 1) == left
    clock.advance(0.001)
    assert commits.commit(left, 1) == []
    assert sorted(os.listdir(folder)) == ["_DONE", "a"]


def test_by_its_own_time_a_partition_is_complete_when_all_writers_have_passed_it(
    tmp_path: Path,
) -> None:
    time = PartitionTime("$day $hour:00:00", zone="Europe/Oslo")
    rule = PartitionCommit("partition-time", 3_600_000, time, "_SUCCESS")
    begin = time.of({"day": "2024-01-02", "hour": "01"})
    assert begin == 1_704_153_600_000  # midnight in UTC
    commits = committer(tmp_path, rule, ManualClock())
    folder = tmp_path / "day=2024-01-02" / "hour=01"
    late = begin + 3_600_001
    left = commits.commit([written(folder, "a", late), written(folder, "b", begin, 1)], 1)
    assert len(left) == 1
    assert commits.commit(left, 1) == left
    commits.commit([Written(1, 2, late, ())], 2)
    assert commits.commit(left, 1) == []
    assert (folder / "_SUCCESS").exists()


def test_values_that_make_no_time_are_an_error_that_names_the_option() -> None:
    assert PartitionTime().of({"day": "1970-01-02"}) == 86_400_000
    partition = PendingPartition("x", {"day": "monday"}, 0)
    rule = PartitionCommit("partition-time", 0, PartitionTime(), "_SUCCESS")
    with pytest.raises(ProgramError, match=r"partition\.time-extractor\.timestamp-pattern"):
        rule.is_due(partition, 0, 1)
