"""The example that writes a topic into a bucket: each order is there once, in the folder of its
day."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.kafka_to_s3 import orders_to_lake
from flinkpy.datastream import StreamExecutionEnvironment
from tests.kafka.broker import Broker, Record
from tests.s3.server import Bucket
from tests.waiting import PATIENCE_S

DAY_MS = 86_400_000
FIRST = datetime.date(2024, 5, 30)
FIRST_MS = int(datetime.datetime(2024, 5, 30, 12, tzinfo=datetime.timezone.utc).timestamp()) * 1000
COUNT = 300


def filled(broker: Broker) -> str:
    """A topic with an order an hour for each of two partitions, some of which cost nothing."""
    topic = broker.new_topic(2)
    for partition in range(2):
        numbers = range(partition, COUNT, 2)
        broker.produce(
            topic,
            [
                Record(
                    json.dumps(
                        {
                            "order": number,
                            "shop": ["Oslo", "Rome"][number % 3 % 2],
                            "cents": number % 10,
                        }
                    ).encode(),
                    partition=partition,
                    timestamp=FIRST_MS + number * DAY_MS // 48,
                )
                for number in numbers
            ],
        )
    return topic


def wanted() -> list[tuple[int, datetime.date, str, int]]:
    """The orders that cost something, each with its day."""
    return [
        (
            number,
            FIRST + datetime.timedelta(days=(24 + number) // 48),
            ["Oslo", "Rome"][number % 3 % 2],
            number % 10,
        )
        for number in range(COUNT)
        if number % 10
    ]


def test_every_order_is_in_the_bucket_once_in_the_folder_of_its_day(
    broker: Broker, bucket: Bucket
) -> None:
    orders_to_lake(broker.bootstrap, filled(broker), bucket.url("orders"))
    rows = (
        StreamExecutionEnvironment.get_execution_environment()
        .from_parquet(bucket.url("orders"))
        .to_arrow()
        .to_pylist()
    )
    assert sorted((row["order"], row["day"], row["shop"], row["cents"]) for row in rows) == wanted()
    names = bucket.objects("orders")
    assert {name.split("/")[1] for name in names} == {f"day={day}" for _, day, _, _ in wanted()}
    assert not [name for name in names if "/." in name]


@pytest.mark.wide
def test_the_program_says_what_is_missing(broker: Broker, tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "examples" / "kafka_to_s3.py"
    done = subprocess.run(
        [sys.executable, str(program), broker.bootstrap, "no-such-topic", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert re.search(
        r"Kafka at \S+ has no topic 'no-such-topic' .*: create it, or name another one", done.stderr
    )
