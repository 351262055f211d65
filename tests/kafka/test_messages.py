"""Batches become messages: the arguments of librdkafka's produce(). No broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common import Row, SimpleStringSchema
from flinkpy.common.serialization import ByteArraySchema, SerializationSchema
from flinkpy.connectors.kafka.writing.messages import Message, MessageMaker
from flinkpy.connectors.kafka.writing.record_serialization import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.formats.raw_columns import RawColumnarEncoder
from tests.connectors.harness import operator_context


class Text(SerializationSchema):
    """What a function gives, as it is."""

    def __init__(self, function: Callable[[Any], Any] = lambda value: str(value).encode()) -> None:
        self._function = function

    def serialize(self, value: Any) -> bytes:
        made: bytes = self._function(value)
        return made


def builder() -> KafkaRecordSerializationSchemaBuilder:
    return (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(Text())
    )


def messages(
    schema: KafkaRecordSerializationSchema, batch: Batch, *, with_event_time: bool = True
) -> list[Message]:
    return list(
        MessageMaker(
            schema, operator_context(), lambda topic: [0, 1, 2], with_event_time=with_event_time
        ).messages(batch)
    )


def test_a_record_is_its_value_without_a_key_for_any_partition_at_the_time_of_writing() -> None:
    assert messages(builder().build(), RowBatch([1, "é"])) == [
        ("t", b"1", None, -1, None, None, 0, None),
        ("t", "é".encode(), None, -1, None, None, 0, None),
    ]


def test_keys_headers_times_partitions_and_topics_are_functions_of_the_record() -> None:
    class ByKind(KafkaTopicSelector):
        def apply(self, data: Any) -> str:
            return f"t-{data[0]}"

    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(ByKind())
        .set_value_serialization_schema(Text(lambda pair: pair[1]))
        .set_key_serialization_schema(Text(lambda pair: pair[0].encode()))
        .set_headers(lambda pair: {"kind": pair[0], "none": None})
        .set_timestamp(lambda pair: len(pair[1]))
        .set_partitioner(lambda record, key, value, topic, partitions: partitions[-1])
        .build()
    )
    found = messages(schema, RowBatch([("a", b"xyz")], [77]))
    assert found == [("t-a", b"xyz", b"a", 2, None, None, 3, [("kind", "a"), ("none", None)])]


@given(st.lists(st.integers(-5, 2**62), min_size=1), st.booleans())
def test_event_times_go_along_in_rows_as_in_columns(
    times: list[int], with_event_time: bool
) -> None:
    """librdkafka takes 0 for the time of writing: that is what a record without one has, or one
    before 1970. 1970 itself is its first millisecond."""
    values = [str(each) for each in range(len(times))]
    rows = messages(builder().build(), RowBatch(values, times), with_event_time=with_event_time)
    columns = messages(
        builder().set_key_serialization_schema(Text()).build(),
        ColumnBatch(pa.RecordBatch.from_pydict({"v": values}), np.array(times, np.int64)),
        with_event_time=with_event_time,
    )
    wanted = (
        [max(each, 0) or int(each == 0) for each in times] if with_event_time else [0] * len(times)
    )
    assert [each[6] for each in rows] == [each[6] for each in columns] == wanted


def test_columns_are_encoded_by_the_batch_and_functions_get_rows() -> None:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(RawColumnarEncoder("word"))
        .set_key_serialization_schema(Text(lambda row: row.word.upper().encode()))
        .set_headers(lambda row: [("n", bytes([row.n]))])
        .build()
    )
    batch = ColumnBatch(pa.RecordBatch.from_pydict({"word": ["a", "b"], "n": [1, 2]}))
    assert [each[1:3] + each[7:] for each in messages(schema, batch)] == [
        (b"a", b"A", [("n", b"\1")]),
        (b"b", b"B", [("n", b"\2")]),
    ]


def test_schemas_of_rows_take_columns_as_rows() -> None:
    batch = ColumnBatch(pa.RecordBatch.from_pydict({"n": [1, None]}))
    assert [each[1] for each in messages(builder().build(), batch)] == [
        str(Row(n=1)).encode(),
        str(Row(n=None)).encode(),
    ]


def test_an_encoder_of_columns_does_not_take_rows() -> None:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(RawColumnarEncoder())
        .build()
    )
    with pytest.raises(
        ProgramError, match=r"makes messages of columns, and this stream has rows: .* select\(\)"
    ):
        messages(schema, RowBatch(["a"]))


def test_a_message_may_have_no_value_and_any_kind_of_bytes() -> None:
    made = {1: None, 2: bytearray(b"two"), 3: memoryview(b"three"), 4: b"four"}
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(Text(lambda number: made[number]))
        .build()
    )
    assert [each[1] for each in messages(schema, RowBatch([1, 2, 3, 4]))] == [
        None,
        b"two",
        b"three",
        b"four",
    ]


def wrong(value: Any) -> Any:
    """A value of another type than the function should give."""
    return value


def failing(record: Any) -> Any:
    raise LookupError(f"no {record}")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (
            builder().set_key_serialization_schema(Text(lambda value: value)),
            "Text.serialize.* gives 2 as a message's key; it must return bytes, or None",
        ),
        (
            builder().set_key_serialization_schema(Text(lambda value: "text")),
            "gives 'text' as a message's key",
        ),
        (builder().set_key_serialization_schema(Text(failing)), "LookupError: no 2"),
        (
            builder().set_headers(lambda value: wrong({"a": 5})),
            r"gives \('a', 5\); a header is a name and bytes, text or None",
        ),
        (builder().set_headers(lambda value: wrong(["a"])), "gives 'a'; a header is"),
        (
            builder().set_timestamp(lambda value: wrong("now")),
            "set_timestamp.*gives 'now'; it must return milliseconds or None",
        ),
        (builder().set_timestamp(lambda value: True), "gives True"),
        (
            builder().set_partitioner(lambda *given: 3),
            r"chose partition 3 of topic 't', which has 3 \(0 to 2\)",
        ),
        (
            builder().set_partitioner(lambda *given: wrong(None)),
            "the partitioner gives None; it must return a partition's number",
        ),
        (
            KafkaRecordSerializationSchema.builder()
            .set_topic_selector(lambda value: wrong(7))
            .set_value_serialization_schema(Text()),
            "the topic selector gives 7",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_a_function_that_gives_something_else_is_named_with_its_record(
    schema: KafkaRecordSerializationSchemaBuilder, says: str
) -> None:
    with pytest.raises(UserCodeError, match=says) as caught:
        messages(schema.build(), RowBatch([2]))
    assert caught.value.record == "2"


def test_the_record_at_fault_is_named_among_many() -> None:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(ByteArraySchema())
        .build()
    )
    with pytest.raises(UserCodeError) as caught:
        messages(schema, RowBatch([b"fine", "not bytes", b"fine"]))
    assert caught.value.record == "'not bytes'"


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: KafkaRecordSerializationSchema.builder().build(), "have no topic"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("t").build(), "have no values"),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_topic(""),
            "takes the name of a topic",
        ),
        (lambda: builder().set_topic("u"), "the topic was set already"),
        (lambda: builder().set_topic_selector(lambda value: "u"), "the topic was set already"),
        (lambda: builder().set_value_serialization_schema("utf-8"), "takes a SerializationSchema"),  # type: ignore[arg-type]
        (lambda: builder().set_headers({"a": b""}), r"set_headers\(\) takes a function"),  # type: ignore[arg-type]
        (lambda: builder().set_partitioner(3), r"set_partitioner\(\) takes a function"),  # type: ignore[arg-type]
    ],
)
def test_what_is_missing_or_wrong_is_told_with_the_line(
    build: Callable[[], Any], says: str
) -> None:
    with pytest.raises(ProgramError, match=says) as caught:
        build()
    assert "test_messages.py" in str(caught.value)


def test_texts_are_utf_8() -> None:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("t")
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    assert messages(schema, RowBatch(["naïve"]))[0][1] == "naïve".encode()
