"""How tests read topics: sources of a broker, and their coordinator and readers step by step,
without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.common.serialization import SimpleStringSchema
from flinkpy.connectors.source_api.source import Source
from flinkpy.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
)
from tests.connectors.harness import World
from tests.kafka.broker import Broker
from tests.waiting import eventually

LATEST = KafkaOffsetsInitializer.latest()


def strings(broker: Broker, *topics: str) -> KafkaSourceBuilder:
    """A source of the text of records, to be set up further."""
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_value_only_deserializer(SimpleStringSchema())
    )
    return builder.set_topics(*topics) if topics else builder


def _runs(world: World, steps: int = 1_000_000) -> bool:
    """Lets them do what they can now."""
    for subtask in world.subtasks:
        # the reader's thread may have done so in the middle of a poll, which the harness does not
        # see
        subtask.wake()
    world.run(steps)
    return True


def until(world: World, condition: Callable[[], bool], steps: int = 1_000_000) -> None:
    """Lets coordinator and readers do what they can, until the condition holds; so many steps at a
    time."""

    def holds() -> bool:
        _runs(world, steps)
        assert not world.errors, world.errors
        return condition()

    eventually(holds)


def read_to_end(
    source: Source[Any], parallelism: int = 1, seed: int = 0, **options: Any
) -> list[Any]:
    """Every record of a source that stops."""
    with World(source, parallelism, seed, **options) as world:
        until(world, lambda: world.finished)
        return world.values


def failure(source: Source[Any]) -> str:
    """How a source fails, in its own words."""
    with World(source) as world:
        try:
            eventually(lambda: _runs(world) and bool(world.errors))
        except Exception as error:
            return str(error)
        return str(world.errors[0])


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [str(number).encode() for number in range(start, start + count)]


def texts(count: int, start: int = 0) -> list[str]:
    return [str(number) for number in range(start, start + count)]
