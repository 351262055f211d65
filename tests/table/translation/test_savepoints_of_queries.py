"""A query that stops with a savepoint goes on from it with another parallelism, beside other
INSERTs and under another SELECT list; what means something else is refused, and the operator
named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table import StreamTableEnvironment
from flinkpy.testing.tables import clear_results, wait_for_rows

pytestmark = pytest.mark.wide

ROWS, KEYS, WINDOW_MS = 900, 7, 100
SUMS = (
    "INSERT INTO sums SELECT k, window_start, COUNT(*), SUM(n) FROM TUMBLE(TABLE numbers, "
    "DESCRIPTOR(ts), INTERVAL '0.1' SECOND) GROUP BY k, window_start, window_end"
)


def tables(folder: Path, parallelism: int, savepoint: str = "") -> StreamTableEnvironment:
    options: dict[str, object] = {"client.progress": False}
    if savepoint:
        options["execution.state-recovery.path"] = savepoint
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(parallelism)
    made = StreamTableEnvironment.create(env)
    made.execute_sql(
        "CREATE TABLE numbers (n BIGINT, k AS MOD(n, 7), "
        "ts AS CAST(TO_TIMESTAMP_LTZ(n, 3) AS TIMESTAMP(3)), "
        "WATERMARK FOR ts AS ts - INTERVAL '1' HOUR) WITH ('connector' = 'datagen', "
        f"'rows-per-second' = '{ROWS}', 'number-of-rows' = '{ROWS}', "
        f"'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{ROWS - 1}')"
    )
    made.execute_sql(
        "CREATE TABLE sums (k BIGINT, w TIMESTAMP(3), c BIGINT, total BIGINT) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet')"
    )
    made.execute_sql("CREATE TABLE seen (n BIGINT) WITH ('connector' = 'values')")
    made.execute_sql("CREATE TABLE more (n BIGINT) WITH ('connector' = 'blackhole')")
    return made


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of two subtasks, in the middle of the rows."""
    folder = tmp_path_factory.mktemp("stopped")
    inserts = tables(folder / "out", 2).create_statement_set()
    inserts.add_insert_sql(SUMS).add_insert_sql("INSERT INTO seen SELECT n FROM numbers")
    job = inserts.execute().get_job_client()
    assert job is not None
    assert 100 <= len(wait_for_rows({"seen": 100})["seen"]) < ROWS
    yield job.stop_with_savepoint(False, str(folder / "savepoints")).result()
    clear_results()


def run(folder: Path, parallelism: int, savepoint: str, *statements: str) -> None:
    inserts = tables(folder, parallelism, savepoint).create_statement_set()
    for each in statements:
        inserts.add_insert_sql(each)
    inserts.execute().wait(60_000)


def wanted() -> list[tuple[int, int, int]]:
    groups: dict[tuple[int, int], list[int]] = {}
    for n in range(ROWS):
        groups.setdefault((n % KEYS, n // WINDOW_MS), []).append(n)
    return sorted((key, len(each), sum(each)) for (key, _), each in groups.items())


@pytest.mark.parametrize(
    ("parallelism", "statements"),
    [
        (3, [SUMS]),
        (1, [SUMS, "INSERT INTO more SELECT n FROM numbers"]),
        (2, [SUMS.replace("SUM(n)", "SUM(n) + 0") + " HAVING COUNT(*) > 0"]),
    ],
)
def test_a_query_goes_on(
    savepoint: str, tmp_path: Path, parallelism: int, statements: list[str]
) -> None:
    run(tmp_path, parallelism, savepoint, *statements)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name[0] != "."]
    rows = [row for path in files for row in pq.read_table(path).to_pylist()]
    assert sorted((row["k"], row["c"], row["total"]) for row in rows) == wanted()


@pytest.mark.parametrize(
    "changed", [SUMS.replace("SUM(n)", "MAX(n)"), SUMS.replace("'0.1'", "'0.2'")]
)
def test_state_of_other_aggregates_and_windows_is_refused(
    savepoint: str, tmp_path: Path, changed: str
) -> None:
    with pytest.raises(JobExecutionError, match=r"state of 'WindowAggregate\(.*of another query"):
        run(tmp_path, 2, savepoint, changed)


MET = (
    "INSERT INTO met SELECT o.n, o.k, r.n FROM timed AS o LEFT JOIN thirds FOR SYSTEM_TIME AS OF "
    "o.ts AS r ON o.k = r.k"
)


def versions(folder: Path, parallelism: int, savepoint: str = "") -> StreamTableEnvironment:
    """Numbers that meet the last multiple of three with their key."""
    made = tables(folder, parallelism, savepoint)
    made.execute_sql(
        "CREATE TABLE timed (WATERMARK FOR ts AS ts) WITH ('rows-per-second' = '200') "
        "LIKE numbers (OVERWRITING WATERMARKS OVERWRITING OPTIONS)"
    )
    made.execute_sql(
        "CREATE VIEW thirds AS SELECT k, n, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k "
        "ORDER BY ts DESC) AS rn FROM timed WHERE MOD(n, 3) = 0) WHERE rn = 1"
    )
    made.execute_sql(
        "CREATE TABLE met (n BIGINT, k BIGINT, third BIGINT) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet')"
    )
    return made


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_a_join_with_versions_goes_on(before: int, after: int, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    inserts = versions(folder, before).create_statement_set()
    inserts.add_insert_sql(MET).add_insert_sql("INSERT INTO seen SELECT n FROM timed")
    job = inserts.execute().get_job_client()
    assert job is not None
    assert 100 <= len(wait_for_rows({"seen": 100}, 60)["seen"]) < ROWS
    savepoint = job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    clear_results()
    assert len(met(folder)) < ROWS
    versions(folder, after, savepoint).execute_sql(MET).wait(60_000)
    expected = [
        (n, n % KEYS, max(filter(is_third, range(n % KEYS, n + 1, KEYS)), default=None))
        for n in range(ROWS)
    ]
    assert met(folder) == expected


def is_third(n: int) -> bool:
    return n % 3 == 0


def met(folder: Path) -> list[tuple[int, int, int | None]]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]
    rows = [row for path in files for row in pq.read_table(path).to_pylist()]
    return sorted((row["n"], row["k"], row["third"]) for row in rows)
