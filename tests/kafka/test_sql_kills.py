"""Windows of SQL over a topic and over files, into Parquet, on Ray, while workers are killed (``kill
-9``): every window is there once, with all of its rows."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkpy.cluster.launch import submitted_jobs
from flinkpy.core.errors import JobCancelledError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table import StreamTableEnvironment
from tests.cluster.test_recovery import OPTIONS, kill_one
from tests.kafka.broker import Broker, Record
from tests.waiting import eventually

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

BEGIN = datetime.datetime(2024, 3, 1)
KEYS, WINDOW_S, PART = 5, 10, 300  # of three parts, each behind a kill, and one more of files
Sum = tuple[str, datetime.datetime, int, int]


def row(number: int) -> tuple[str, int, datetime.datetime]:
    """Event time goes up by a second with each row."""
    return f"key-{number % KEYS}", number, BEGIN + datetime.timedelta(seconds=number)


def produce(broker: Broker, topic: str, first: int) -> None:
    """A part of the rows, into both partitions, in order."""
    records = []
    for number in range(first, first + PART):
        key, n, ts = row(number)
        value = json.dumps({"k": key, "n": n, "ts": ts.isoformat(" ")}).encode()
        records.append(Record(value, partition=number % 2))
    broker.produce(topic, records)


def declare(tables: StreamTableEnvironment, broker: Broker, topic: str, folder: Path) -> None:
    columns = "k STRING, n BIGINT, ts TIMESTAMP(3)"
    tables.execute_sql(
        f"CREATE TABLE live ({columns}, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ("
        f"'connector' = 'kafka', 'topic' = '{topic}', 'format' = 'json', "
        f"'properties.bootstrap.servers' = '{broker.bootstrap}', "
        "'scan.startup.mode' = 'earliest-offset')"
    )
    tables.execute_sql(
        f"CREATE TABLE kept ({columns}, WATERMARK FOR ts AS ts - INTERVAL '1' DAY) WITH ("
        f"'connector' = 'filesystem', 'path' = '{folder / 'in'}', 'format' = 'parquet')"
    )
    tables.execute_sql(
        "CREATE TABLE sums (k STRING, window_start TIMESTAMP(3), c BIGINT, total BIGINT) WITH ("
        f"'connector' = 'filesystem', 'path' = '{folder / 'out'}', 'format' = 'parquet')"
    )


def wanted(numbers: range) -> Counter[Sum]:
    """The windows of these rows, each of which both tables have."""
    groups: dict[tuple[str, datetime.datetime], list[int]] = {}
    for number in numbers:
        key, n, ts = row(number)
        start = ts - datetime.timedelta(seconds=(ts - BEGIN).seconds % WINDOW_S)
        groups.setdefault((key, start), []).append(n)
    return Counter((*group, 2 * len(of), 2 * sum(of)) for group, of in groups.items())


def written(folder: Path) -> Counter[Sum]:
    seen = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return Counter(
        tuple(each.values()) for path in seen for each in pq.read_table(path).to_pylist()
    )


def test_a_killed_worker_changes_nothing_in_the_windows_of_a_query(
    broker: Broker, on_ray: None, tmp_path: Path
) -> None:
    topic = broker.new_topic(2)
    (tmp_path / "in").mkdir()
    for part in range(2):
        numbers = range(part, 3 * PART, 2)
        lists = zip(*map(row, numbers))
        arrays = [pa.array(list(each)) for each in lists]
        pq.write_table(
            pa.table([*arrays[:2], arrays[2].cast(pa.timestamp("ms"))], names=["k", "n", "ts"]),
            tmp_path / "in" / f"{part}.parquet",
        )
    options: dict[str, Any] = {**OPTIONS, "execution.checkpointing.dir": str(tmp_path / "chk")}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(2)
    tables = StreamTableEnvironment.create(env)
    declare(tables, broker, topic, tmp_path)
    produce(broker, topic, 0)
    inserted = tables.execute_sql(
        "INSERT INTO sums SELECT k, window_start, COUNT(*), SUM(n) FROM TUMBLE(("
        "SELECT k, n, ts FROM live UNION ALL SELECT k, n, ts FROM kept), "
        f"DESCRIPTOR(ts), INTERVAL '{WINDOW_S}' SECOND) GROUP BY k, window_start, window_end"
    )
    job = submitted_jobs()[-1]
    for part in (1, 2):
        kill_one(job, tmp_path / "chk")
        produce(broker, topic, part * PART)
    # the last window of each partition stays open
    whole = wanted(range(3 * PART - WINDOW_S))
    eventually(lambda: written(tmp_path / "out").total() >= whole.total(), 60)
    assert written(tmp_path / "out") == whole
    job.cancel()
    with pytest.raises(JobCancelledError):
        inserted.wait(60_000)
