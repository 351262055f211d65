"""A Kafka source that gives columns: the values through a columnar decoder, and what is beside
them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Types, WatermarkStrategy
from flinkpy.connectors.kafka.kafka_source import KafkaSourceBuilder
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.kafka import KafkaSource
from flinkpy.datastream.formats.json import JsonColumnarDecoder, JsonRowDeserializationSchema
from flinkpy.table.expressions import col
from tests.connectors.harness import World
from tests.kafka.broker import Broker, Record
from tests.kafka.reading import LATEST, failure, numbered, until


class NotANumberError(Exception):
    def __init__(self, index: int, why: str) -> None:
        super().__init__(f"message {index} cannot be decoded: {why}")
        self.index = index


class Numbers:
    """A columnar decoder: each message is a number."""

    schema = pa.schema([("n", pa.int64())])

    def decode(self, messages: list[bytes | None]) -> pa.RecordBatch:
        for index, message in enumerate(messages):
            if message is not None and not message.isdigit():
                raise NotANumberError(index, f"{message!r} is no number")
        return pa.RecordBatch.from_arrays(
            [pa.array([None if each is None else int(each) for each in messages], pa.int64())],
            schema=self.schema,
        )


def columns(broker: Broker, topic: str, decoder: Any = None, /, **names: str) -> KafkaSourceBuilder:
    chosen: Any = decoder or Numbers()
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap)
        .set_topics(topic)
        .set_columns(chosen, **names)
    )


def read_table(source: KafkaSource) -> pa.Table:
    with World(source) as world:
        until(world, lambda: world.finished)
        batches = [
            batch for batch in world.subtasks[0].output.batches if isinstance(batch, ColumnBatch)
        ]
        assert all(
            batch.timestamps is not None and len(batch.timestamps) == len(batch)
            for batch in batches
        )
        return pa.Table.from_batches([batch.data for batch in batches], source.schema)


def test_values_are_decoded_many_at_a_time(broker: Broker) -> None:
    topic = broker.new_topic(2)
    for partition in range(2):
        broker.produce(topic, numbered(100, 100 * partition), partition)
    assert sorted(
        read_table(columns(broker, topic).set_bounded(LATEST).build()).column("n").to_pylist()
    ) == list(range(200))


def test_columns_of_what_is_beside_the_value_are_made_on_request(broker: Broker) -> None:
    topic = broker.new_topic(2)
    broker.produce(
        topic,
        [Record(b"7", b"a", 1, 1000), Record(None, b"b", 1, 2000), Record(b"9", None, 1, 3000)],
    )
    table = read_table(
        columns(broker, topic, topic="t", partition="p", offset="o", timestamp="at", key="k")
        .set_bounded(LATEST)
        .build()
    )
    assert table.schema == pa.schema(
        [
            ("n", pa.int64()),
            ("t", pa.string()),
            ("p", pa.int32()),
            ("o", pa.int64()),
            ("at", pa.timestamp("ms", "UTC")),
            ("k", pa.binary()),
        ]
    )
    assert table.column("at").cast(pa.int64()).to_pylist() == [1000, 2000, 3000]
    assert table.drop_columns(["at"]).to_pylist() == [
        {"n": 7, "t": topic, "p": 1, "o": 0, "k": b"a"},
        {"n": None, "t": topic, "p": 1, "o": 1, "k": b"b"},
        {"n": 9, "t": topic, "p": 1, "o": 2, "k": None},
    ]


def test_without_a_column_for_the_key_records_without_a_value_are_skipped(broker: Broker) -> None:
    topic = broker.new_topic()
    broker.produce(topic, [Record(None), Record(b"7"), Record(None), Record(b"9")])
    assert read_table(
        columns(broker, topic, offset="o").set_bounded(LATEST).build()
    ).to_pylist() == [{"n": 7, "o": 1}, {"n": 9, "o": 3}]


@pytest.mark.parametrize("names", [{}, {"key": "k"}])
def test_a_message_that_cannot_be_decoded_is_named_by_its_place(
    broker: Broker, names: dict[str, str]
) -> None:
    topic = broker.new_topic(2)
    broker.produce(
        topic, [Record(None, partition=1), Record(b"7", partition=1), Record(b"seven", partition=1)]
    )
    message = failure(columns(broker, topic, **names).build())
    assert "b'seven' is no number" in message
    assert f"from topic '{topic}', partition 1, offset 2" in message


@pytest.mark.parametrize("columnar", [True, False])
def test_a_message_that_is_not_of_its_format_is_named_by_its_place(
    broker: Broker, columnar: bool
) -> None:
    topic = broker.new_topic()
    broker.produce(topic, [b'{"n": 1}', b'{"n": "x"}'])
    rows = (
        JsonRowDeserializationSchema.builder()
        .type_info(Types.ROW_NAMED(["n"], [Types.INT()]))
        .build()
    )
    builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap).set_topics(topic)
    (
        builder.set_columns(JsonColumnarDecoder(pa.schema([("n", pa.int64())])))
        if columnar
        else builder.set_value_only_deserializer(rows)
    )
    message = failure(builder.build())
    assert f"the record at topic '{topic}', partition 0, offset 1 cannot be decoded: " in message
    assert 'b\'{"n": "x"}\'' in message


def test_json_is_read_as_columns(broker: Broker) -> None:
    topic = broker.new_topic()
    broker.produce(topic, [f'{{"n": {number}}}'.encode() for number in range(1000)])
    source = (
        columns(broker, topic, JsonColumnarDecoder(pa.schema([("n", pa.int64())])), key="k")
        .set_bounded(LATEST)
        .build()
    )
    assert read_table(source).column("n").to_pylist() == list(range(1000))


def test_a_decoder_that_gives_too_few_rows_is_told(broker: Broker) -> None:
    class Forgetful(Numbers):
        def decode(self, messages: list[bytes | None]) -> pa.RecordBatch:
            return super().decode(messages[1:])

    topic = broker.new_topic()
    broker.produce(topic, numbered(2))
    assert "Forgetful.decode() gives" in failure(columns(broker, topic, Forgetful()).build())


def test_two_columns_of_one_name_are_refused_while_the_program_is_built(broker: Broker) -> None:
    with pytest.raises(ProgramError, match="two columns would be called 'n'"):
        columns(broker, "orders", key="n")
    with pytest.raises(ProgramError, match="two columns would be called 'x'"):
        columns(broker, "orders", key="x", offset="x")


def test_a_job_over_columns_gives_what_one_over_rows_gives(broker: Broker) -> None:
    topic = broker.new_topic(3)
    for partition in range(3):
        broker.produce(topic, numbered(500, 500 * partition), partition)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    stream = env.from_source(
        columns(broker, topic).set_bounded(LATEST).build(),
        WatermarkStrategy.for_monotonous_timestamps(),
        "numbers",
    )
    assert sorted(stream.filter(col("n") % 2 == 0).to_arrow().column("n").to_pylist()) == list(
        range(0, 1500, 2)
    )
