"""Ten million rows there and back, through an object store that holds a third of them at a time, in
workers of bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.spark.test_round_trip import environment
from tests.spark_session import OBJECT_STORE_BYTES

pytestmark = [
    pytest.mark.spark,
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore"),
]

ROWS = 10_000_000
COLUMNS = (
    "id",
    "cast(id % 1000 as int) as key",
    "id * 0.5 as price",
    "timestamp_millis(1356998400000 + id * 10) as at",
    "concat('customer ', id % 5000) as name",
)
WORKER_MB = 450  # of its own memory, the store's not counted: an idle one has 120
EXECUTOR_MB = 1900  # a heap of 1 GB, and what Java needs beside it


@contextmanager
def most_memory() -> Iterator[dict[str, int]]:
    """The most that any Ray worker and any Java process of this test's cluster had for itself (MB),
    and the object store."""
    import psutil
    import ray

    most = {"worker": 0, "java": 0, "store": 0}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            for process in psutil.Process().children(recursive=True):
                try:
                    name = " ".join(process.cmdline()[:1])
                    kind = (
                        "worker"
                        if name.startswith("ray::")
                        else "java"
                        if name.endswith("java")
                        else None
                    )
                    if kind is not None:
                        memory = process.memory_info()
                        most[kind] = max(most[kind], (memory.rss - memory.shared) >> 20)
                except psutil.Error:
                    pass
            free = ray.available_resources().get("object_store_memory", 0)
            most["store"] = max(most["store"], int(OBJECT_STORE_BYTES - free) >> 20)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join(10)


def test_ten_million_rows_go_there_and_back_in_bounded_memory(spark: Any) -> None:
    frame = spark.range(0, ROWS, 1, 40).selectExpr(*COLUMNS)
    with most_memory() as most:
        back = environment().from_spark(frame).to_spark(spark)
        wanted = (
            "count(id)",
            "sum(id)",
            "sum(key)",
            "sum(price)",
            "max(at)",
            "sum(length(name))",
            "bit_xor(xxhash64(id, key, price, at, name))",
        )
        assert back.selectExpr(*wanted).collect() == frame.selectExpr(*wanted).collect()
    print(f"most memory, in MB: {most}")
    assert 0 < most["worker"] < WORKER_MB, most
    assert 0 < most["java"] < EXECUTOR_MB, most
    assert most["store"] <= OBJECT_STORE_BYTES >> 20, most
