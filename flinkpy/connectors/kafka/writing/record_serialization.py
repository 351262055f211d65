"""How records become messages of a topic: topic, key, value, headers, time and partition of each,
under PyFlink's names.

A schema of values (SerializationSchema) is called with each record. A columnar encoder
(``flinkpy.formats``) is called with each batch of columns."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.common.serialization import SerializationSchema
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.port import ChangelogEncoder, ColumnarEncoder

if TYPE_CHECKING:
    import pyarrow as pa

Headers: TypeAlias = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]
# record, key, value, topic, the topic's partitions
Partitioner: TypeAlias = Callable[[Any, "bytes | None", "bytes | None", str, "list[int]"], int]


class KafkaTopicSelector(ABC):
    """Chooses the topic of each record.

    >>> class ByLevel(KafkaTopicSelector):
    ...     def apply(self, data):
    ...         return f"logs-{data[0]}"
    >>> ByLevel().apply(("error", "disk full"))
    'logs-error'
    """

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The name of the record's topic."""


@dataclass(frozen=True)
class KafkaRecordSerializationSchema:
    """What a message is made of; made by a builder.

    >>> from flinkpy.common import SimpleStringSchema
    >>> KafkaRecordSerializationSchema.builder().set_topic("words").set_value_serialization_schema(
    ...     SimpleStringSchema()
    ... ).build().topic
    'words'
    """

    topic: str | Callable[[Any], str]
    value: SerializationSchema | ColumnarEncoder
    key: SerializationSchema | ColumnarEncoder | None = None
    headers: Callable[[Any], Headers | None] | None = None
    timestamp: Callable[[Any], int | None] | None = None
    partitioner: Partitioner | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """A builder; it needs a topic and a schema of values."""
        return KafkaRecordSerializationSchemaBuilder()

    def check_form(self, is_columnar: bool) -> None:
        """Raises ProgramError for rows, if a columnar encoder makes the messages."""
        if not is_columnar and (
            isinstance(self.value, ColumnarEncoder) or isinstance(self.key, ColumnarEncoder)
        ):
            raise ProgramError(
                "the Kafka sink's encoder makes messages of columns, and this stream has "
                "rows: give the sink a schema of rows, or "
                "make columns of them with select(), where their type is declared"
            )

    @property
    def takes_kinds(self) -> bool:
        """Whether messages say what the kinds of rows mean."""
        return isinstance(self.value, ChangelogEncoder)

    @property
    def asks_for_records(self) -> bool:
        """Whether something beside key and value is a function of the record."""
        return callable(self.topic) or any(
            each is not None for each in (self.headers, self.timestamp, self.partitioner)
        )


class KafkaRecordSerializationSchemaBuilder:
    """Builds a KafkaRecordSerializationSchema. Headers, timestamps and partitioner are flinkpy's
    own.

    >>> from flinkpy.common import SimpleStringSchema
    >>> builder = KafkaRecordSerializationSchema.builder().set_topic_selector(
    ...     lambda word: f"words-{len(word)}"
    ... )
    >>> schema = (
    ...     builder.set_value_serialization_schema(SimpleStringSchema())
    ...     .set_headers(lambda word: {"language": b"en"})
    ...     .build()
    ... )
    >>> schema.asks_for_records
    True
    """

    def __init__(self) -> None:
        self._topic: str | Callable[[Any], str] | None = None
        self._value: SerializationSchema | ColumnarEncoder | None = None
        self._key: SerializationSchema | ColumnarEncoder | None = None
        self._headers: Callable[[Any], Headers | None] | None = None
        self._timestamp: Callable[[Any], int | None] | None = None
        self._partitioner: Partitioner | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """All records go to this topic."""
        if not isinstance(topic, str) or not topic:
            raise refuse(f"set_topic() takes the name of a topic, this is {topic!r:.80}")
        self._set_topic(topic)
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Each record goes to the topic that the selector, or a function, names."""
        if isinstance(topic_selector, KafkaTopicSelector):
            self._set_topic(topic_selector.apply)
        else:
            self._set_topic(
                _function(
                    topic_selector,
                    "set_topic_selector()",
                    "a KafkaTopicSelector or a function of the record",
                )
            )
        return self

    def _set_topic(self, topic: str | Callable[[Any], str]) -> None:
        if self._topic is not None:
            raise refuse("the topic was set already: set_topic() or set_topic_selector(), once")
        self._topic = topic

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema | ColumnarEncoder
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes the key of a message of its record; without it messages have no key."""
        self._key = _schema(key_serialization_schema, "set_key_serialization_schema()")
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema | ColumnarEncoder
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes the value of a message of its record; with a columnar encoder, the values of a
        batch of columns."""
        self._value = _schema(value_serialization_schema, "set_value_serialization_schema()")
        return self

    def set_headers(
        self, headers: Callable[[Any], Headers | None]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """``headers(record)`` gives a dict, or a list of pairs: names, and bytes, text or None."""
        self._headers = _function(headers, "set_headers()", "a function of the record")
        return self

    def set_timestamp(
        self, timestamp: Callable[[Any], int | None]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """``timestamp(record)`` gives the message's time, in milliseconds since 1970; None: the
        time of writing. Without it, a message has the event time of its record."""
        self._timestamp = _function(timestamp, "set_timestamp()", "a function of the record")
        return self

    def set_partitioner(self, partitioner: Partitioner) -> KafkaRecordSerializationSchemaBuilder:
        """``partitioner(record, key, value, topic, partitions)`` gives one of the partitions.
        Without it the key's murmur2 hash decides, as in Kafka's Java client; messages without keys
        are spread in batches."""
        self._partitioner = _function(
            partitioner,
            "set_partitioner()",
            "a function of record, key, value, topic and partitions",
            5,
        )
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema. Raises ProgramError if the topic or the values' schema is missing."""
        if self._topic is None:
            raise refuse(
                "the messages have no topic: set_topic(name), or set_topic_selector(function)"
            )
        if self._value is None:
            raise refuse("the messages have no values: set_value_serialization_schema(schema)")
        return KafkaRecordSerializationSchema(
            self._topic, self._value, self._key, self._headers, self._timestamp, self._partitioner
        )


def _schema(schema: pa.Schema, call: str) -> Any:
    if not isinstance(schema, (SerializationSchema, ColumnarEncoder)) and not callable(
        getattr(schema, "serialize", None)
    ):
        raise refuse(
            f"{call} takes a SerializationSchema, or a ColumnarEncoder for columns, this is "
            f"{schema!r:.80}"
        )
    return schema


def _function(function: object, call: str, what: str, arguments: int = 1) -> Any:
    if not callable(function) or not _takes(function, arguments):
        raise refuse(f"{call} takes {what}, this is {function!r:.80}")
    return function


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    """Whether it can be called with so many arguments, as far as that is known."""
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError:
        return False
    except ValueError:  # a function written in C says nothing of its arguments
        return True
    return True
