"""The live top ten, from a topic into a topic of upserts, on Ray, while a worker is killed (``kill
-9``): at last the topic says who is first, second and so on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from examples.top_ten import BEST, RANKED, SALES
from flinkpy.cluster.launch import submitted_jobs
from flinkpy.core.errors import JobCancelledError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table import StreamTableEnvironment
from tests.cluster.test_recovery import OPTIONS, kill_one
from tests.kafka.broker import Broker, Record
from tests.waiting import eventually

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

ARTICLES, PART = 13, 260


def sale(number: int) -> dict[str, Any]:
    """Who leads changes with each part."""
    article = number * number % ARTICLES if number < PART else number % ARTICLES
    return {"article": f"article {article:02d}", "cents": 1 + number}


def produce(broker: Broker, topic: str, first: int) -> None:
    numbers = range(first, first + PART)
    broker.produce(
        topic, [Record(json.dumps(sale(each)).encode(), partition=each % 2) for each in numbers]
    )


def best(count: int) -> dict[int, tuple[str, int]]:
    """The ten of so many sales, by place."""
    sums: Counter[str] = Counter()
    for number in range(count):
        each = sale(number)
        sums[each["article"]] += each["cents"]
    ranked = sorted(sums.items(), key=lambda pair: -pair[1])[:10]
    return dict(enumerate(ranked, 1))


def left(broker: Broker, topic: str) -> dict[int, tuple[str, int]]:
    """What the upserts of committed transactions leave."""
    rows: dict[int, tuple[str, int]] = {}
    for each in broker.read(topic):
        place = json.loads(each.key or b"")["place"]
        rows.pop(place, None)
        if each.value is not None:
            told = json.loads(each.value)
            rows[place] = told["article"], told["cents"]
    return rows


def test_a_killed_worker_changes_nothing_in_the_ten_that_are_best(
    broker: Broker, on_ray: None, tmp_path: Path
) -> None:
    sales, target = broker.new_topic(2), broker.new_topic(2)
    options: dict[str, Any] = {**OPTIONS, "execution.checkpointing.dir": str(tmp_path / "chk")}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(2)
    tables = StreamTableEnvironment.create(env)
    where = {"brokers": broker.bootstrap, "end": "unbounded"}
    tables.execute_sql(SALES.format(topic=sales, **where))
    tables.execute_sql(BEST.format(topic=target, **where))
    produce(broker, sales, 0)
    inserted = tables.execute_sql(RANKED)
    job = submitted_jobs()[-1]
    kill_one(job, tmp_path / "chk")
    produce(broker, sales, PART)
    eventually(lambda: left(broker, target) == best(2 * PART), 60)
    assert best(PART) != best(2 * PART)
    job.cancel()
    with pytest.raises(JobCancelledError):
        inserted.wait(60_000)
