"""Makes messages of batches: the arguments of librdkafka's ``produce``, a tuple for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.connectors.kafka.writing.record_serialization import KafkaRecordSerializationSchema
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.users_values import bounded_repr
from flinkpy.formats.port import ChangelogEncoder, ColumnarEncoder
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.user_errors import user_code_error

if TYPE_CHECKING:
    import pyarrow as pa

# topic, value, key, partition, two callbacks, time (0: that of writing), headers
Message: TypeAlias = "tuple[str, bytes | None, bytes | None, int, None, None, int, Any]"
ANY_PARTITION = -1
NOW = 0


class MessageMaker:
    """Serializes whole batches for one subtask: if a record fails, none of its batch is sent."""

    def __init__(
        self,
        schema: KafkaRecordSerializationSchema,
        context: OperatorContext,
        partitions_of: Callable[[str], list[int]],
        *,
        with_event_time: bool = True,
    ) -> None:
        self._schema = schema
        self._context = context
        self._partitions_of = partitions_of
        self._with_event_time = with_event_time
        self._make_values = _serializer(schema.value, "value")
        self._make_keys = None if schema.key is None else _serializer(schema.key, "key")

    def messages(self, batch: Batch) -> Iterator[Message]:
        """Raises UserCodeError, which names the record, if a function of the program fails."""
        schema = self._schema
        schema.check_form(isinstance(batch, ColumnBatch))
        values = self._of_columns_or_rows(schema.value, self._make_values, batch)
        keys: Iterable[bytes | None] = repeat(None)
        if schema.key is not None and self._make_keys is not None:
            keys = self._of_columns_or_rows(schema.key, self._make_keys, batch)
        if not schema.asks_for_records:
            assert isinstance(schema.topic, str)
            return zip(
                repeat(schema.topic),
                values,
                keys,
                repeat(ANY_PARTITION),
                repeat(None),
                repeat(None),
                self._times(batch),
                repeat(None),
            )
        return iter(
            [self._message(*each) for each in zip(rows_of(batch), values, keys, self._times(batch))]
        )

    def _of_columns_or_rows(
        self,
        schema: pa.Schema,
        make: Callable[[Sequence[Any], MessageMaker], list[bytes | None]],
        batch: Batch,
    ) -> list[bytes | None]:
        if isinstance(schema, ColumnarEncoder):
            assert isinstance(batch, ColumnBatch)
            if isinstance(schema, ChangelogEncoder):
                return schema.encode_changes(batch.data, batch.kinds)
            return list(schema.encode(batch.data))
        return make(rows_of(batch), self)

    def _times(self, batch: Batch) -> Iterable[int]:
        """As in Flink, a record without event time, or with one before 1970, has the time of
        writing. librdkafka takes 0 for that too, so the first moment of 1970 is written as its
        first millisecond."""
        stamps = batch.timestamps
        if stamps is None or not self._with_event_time:
            return repeat(NOW)
        times: list[int] = stamps if isinstance(stamps, list) else stamps.tolist()
        return times if min(times) > 0 else [time_of(each) for each in times]

    def _message(
        self, record: object, value: bytes | None, key: bytes | None, time: int
    ) -> Message:
        schema = self._schema
        try:
            topic = (
                schema.topic
                if isinstance(schema.topic, str)
                else _checked(schema.topic(record), str, "the topic selector", "a topic's name")
            )
            if schema.timestamp is not None:
                time = time_of(
                    _checked(
                        schema.timestamp(record),
                        (int, type(None)),
                        "set_timestamp()'s function",
                        "milliseconds or None",
                    )
                )
            headers = None if schema.headers is None else _headers(schema.headers(record))
            partition = ANY_PARTITION
            if schema.partitioner is not None:
                partition = self._partition(
                    schema.partitioner(record, key, value, topic, self._partitions_of(topic)), topic
                )
        except BaseException as error:
            raise user_code_error(error, self._context, record) from error
        return topic, value, key, partition, None, None, time, headers

    def _partition(self, chosen: object, topic: str) -> int:
        partition: int = _checked(chosen, int, "the partitioner", "a partition's number")
        there = self._partitions_of(topic)
        if partition not in there:
            raise ValueError(
                f"the partitioner chose partition {partition} of topic {topic!r}, which has "
                f"{len(there)} (0 to {max(there)})"
            )
        return partition

    def failed(self, error: BaseException, record: object) -> Exception:
        return user_code_error(error, self._context, record)


def time_of(milliseconds: int | None) -> int:
    """A message's time as librdkafka takes it."""
    if milliseconds is None or milliseconds < 0:
        return NOW
    return milliseconds or 1


def _serializer(
    schema: pa.Schema, what: str
) -> Callable[[Sequence[Any], MessageMaker], list[bytes | None]]:
    """A function of records that gives the bytes of each."""
    serialize = getattr(schema, "serialize", None)
    name = f"{type(schema).__name__}.serialize()"

    def make(records: Sequence[Any], maker: MessageMaker) -> list[bytes | None]:
        record: Any = None
        try:
            made = [serialize(record := each) for each in records]  # type: ignore[misc]
        except BaseException as error:
            raise maker.failed(error, record) from error
        if {bytes}.issuperset(map(type, made)):
            return made
        return [_as_bytes(each, records[at], name, what, maker) for at, each in enumerate(made)]

    return make


def _as_bytes(
    made: object, record: object, name: str, what: str, maker: MessageMaker
) -> bytes | None:
    """A message may have no value (a tombstone), or no key."""
    if made is None or type(made) is bytes:
        return made
    if isinstance(made, (bytes, bytearray, memoryview)):
        return bytes(made)
    error = TypeError(
        f"{name} gives {bounded_repr(made, 60)} as a message's {what}; it must return bytes, "
        "or None for none"
    )
    raise maker.failed(error, record)


def _checked(given: Any, wanted: Any, who: str, what: str) -> Any:
    if not isinstance(given, wanted) or isinstance(given, bool):
        raise TypeError(f"{who} gives {bounded_repr(given, 60)}; it must return {what}")
    return given


def _headers(given: Any) -> list[tuple[str, bytes | str | None]] | None:
    """Checked here, because librdkafka's own error names neither the record nor the header."""
    if given is None:
        return None
    pairs = list(given.items()) if hasattr(given, "items") else list(given)
    for pair in pairs:
        if not (
            isinstance(pair, tuple)
            and len(pair) == 2
            and isinstance(pair[0], str)
            and isinstance(pair[1], (bytes, str, type(None)))
        ):
            raise TypeError(
                f"set_headers()'s function gives {bounded_repr(pair, 60)}; a header is a name "
                "and bytes, text or None"
            )
    return pairs
