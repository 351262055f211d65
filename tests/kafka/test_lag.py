"""How many records of its partitions a Kafka source has not read, against a broker."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.common import Time, WatermarkStrategy
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.datastream import AsyncDataStream, AsyncFunction
from flinkpy.testing.environment import embedded_environment
from tests.connectors.harness import World
from tests.kafka.broker import Broker
from tests.kafka.reading import numbered, strings, until
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.rest import Rest

EACH = 1000
GO = threading.Event()


class Held(AsyncFunction):
    """Holds each record until the test lets it go; the task's thread is free meanwhile."""

    async def async_invoke(self, value: str) -> list[str]:
        await asyncio.to_thread(GO.wait, 60)
        return [value]


def filled(broker: Broker) -> str:
    topic = broker.new_topic(2)
    for partition in range(2):
        broker.produce(topic, numbered(EACH, EACH * partition), partition)
    return topic


def told(world: World) -> list[float | None]:
    return [subtask.operator.measures(0).get("pendingRecords") for subtask in world.subtasks]


def test_a_reader_tells_the_records_it_has_not_read_and_those_that_come_later(
    broker: Broker,
) -> None:
    topic = filled(broker)
    with World(strings(broker, topic).build(), 2, batch_records=10) as world:
        until(world, lambda: len(world.values) > 20 and None not in told(world), steps=1)
        read, pending = len(world.values), sum(each or 0 for each in told(world))
        assert 0 < pending <= 2 * EACH - read
        until(world, lambda: len(world.values) == 2 * EACH)
        eventually(lambda: told(world) == [0, 0])
        broker.produce(topic, numbered(50), 1)
        # nobody has polled
        eventually(lambda: sorted(each or 0 for each in told(world)) == [0, 50])
        until(world, lambda: len(world.values) == 2 * EACH + 50)
        eventually(lambda: told(world) == [0, 0])


def test_a_job_that_is_held_up_tells_its_lag_by_rest(broker: Broker) -> None:
    GO.clear()
    port, topic = free_port(), filled(broker)
    env = embedded_environment(
        {
            "rest.enabled": "true",
            "rest.authentication": "NONE",
            "rest.port": str(port),
            "metrics.fetcher.update-interval": "0",
            "taskmanager.network.batch.max-records": "10",
        }
    )
    stream = env.from_source(
        strings(broker, topic).build(), WatermarkStrategy.no_watermarks(), "orders"
    )
    AsyncDataStream.unordered_wait(stream, Held(), Time.minutes(5), 4).sink_to(DiscardingSink())
    client = env.execute_async("held up")
    rest, job = Rest(port), str(client.get_job_id())

    def value(name: str) -> float:
        found: list[dict[str, Any]] = rest.get(
            f"/jobs/{job}/vertices/{vertex}/subtasks/metrics?get=Source__orders.{name}&agg=sum"
        )
        return float(found[0]["sum"]) if found else -1.0

    try:
        eventually(lambda: rest.get(f"/jobs/{job}")["status-counts"]["RUNNING"] == 1)
        vertex = rest.get(f"/jobs/{job}")["vertices"][0]["id"]
        eventually(lambda: 0 < value("pendingRecords") <= 2 * EACH)
        assert value("numRecordsOut") < EACH
        GO.set()
        eventually(lambda: (value("numRecordsOut"), value("pendingRecords")) == (2 * EACH, 0))
    finally:
        GO.set()
        client.cancel().result(60)
        stop_embedded()
