"""What a reader gives for messages: values, whole records, or columns. Each works on a batch of
messages of one partition.

The client's own methods (``Message.value``), mapped over a batch, cost a tenth of any other way to
call them."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

from flinkpy.common.serialization import ByteArraySchema, DeserializationSchema, SimpleStringSchema
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.formats.port import ColumnarDecoder

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import Message


class KafkaRecord(NamedTuple):
    """A record of a topic as it is: ``value`` and ``key`` are bytes or None, ``timestamp`` is in
    milliseconds.

    >>> KafkaRecord("orders", 0, 17, 1_700_000_000_000, (("trace", b"1"),), b"shop-1", b"{}").value
    b'{}'
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]
    key: bytes | None
    value: bytes | None


class CannotDecodeError(Exception):
    """The message at ``index`` of the batch cannot be decoded; ``__cause__`` says why."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


class RecordDecoding(ABC):
    """Makes batches of messages; can be pickled."""

    @abstractmethod
    def decode(self, messages: list[Message]) -> Batch | None:
        """The batch; None if all messages are skipped. Raises CannotDecodeError."""

    @property
    def schema(self) -> pa.Schema | None:
        """The columns; None for rows."""
        return None

    @property
    def produced_type(self) -> TypeInformation | None:
        """The type of the rows, if it is known."""
        return None


class Values(RecordDecoding):
    """The values, through a DeserializationSchema. Records without a value, and those that it gives
    None for, are skipped."""

    def __init__(self, deserialization: DeserializationSchema) -> None:
        self._deserialization = deserialization

    def decode(self, messages: list[Message]) -> Batch | None:
        from confluent_kafka import Message

        raw: list[Any] = list(map(Message.value, messages))
        stamps = [stamp for _, stamp in map(Message.timestamp, messages)]
        if None in raw:
            return self._without_tombstones(raw, stamps)
        function = self._function()
        values = raw
        if function is not None:
            upcoming = iter(raw)
            try:
                values = [function(each) for each in upcoming]
            except Exception as error:  # the iterator knows how far it got
                raise CannotDecodeError(len(raw) - length_hint(upcoming) - 1) from error
        # in a list: ``in`` would ask values how they compare
        if [value for value in values if value is None]:
            kept = [(value, stamp) for value, stamp in zip(values, stamps) if value is not None]
            return (
                RowBatch([value for value, _ in kept], [stamp for _, stamp in kept])
                if kept
                else None
            )
        return RowBatch(values, stamps)

    def _without_tombstones(self, raw: list[bytes | None], stamps: list[int]) -> Batch | None:
        function = self._function()
        values: list[Any] = []
        kept: list[int] = []
        for index, (each, stamp) in enumerate(zip(raw, stamps)):
            if each is None:
                continue
            try:
                value = each if function is None else function(each)
            except Exception as error:
                raise CannotDecodeError(index) from error
            if value is not None:
                values.append(value)
                kept.append(stamp)
        return RowBatch(values, kept) if values else None

    def _function(self) -> Callable[[bytes], Any] | None:
        """What is called for each value; None if values are what they are. Python's own function
        where it means the same."""
        schema = self._deserialization
        if type(schema) is ByteArraySchema:
            return None
        if type(schema) is SimpleStringSchema and codecs.lookup(schema.charset).name == "utf-8":
            return bytes.decode
        return schema.deserialize

    @property
    def produced_type(self) -> TypeInformation | None:
        produced = self._deserialization.get_produced_type()
        return None if produced == Types.PICKLED_BYTE_ARRAY() else produced  # which says nothing


class WholeRecords(RecordDecoding):
    """Records as they are."""

    def decode(self, messages: list[Message]) -> Batch | None:
        from confluent_kafka import Message

        first, stamps = messages[0], [stamp for _, stamp in map(Message.timestamp, messages)]
        headers: list[Any] = [
            tuple(each) if each else () for each in map(Message.headers, messages)
        ]
        records: Iterable[Any] = map(
            KafkaRecord,
            repeat(first.topic()),
            repeat(first.partition()),
            map(Message.offset, messages),
            stamps,
            headers,
            map(Message.key, messages),
            map(Message.value, messages),
        )
        return RowBatch(list(records), stamps)


# -- columns ---------------------------------------------------------------------------------------


class ColumnNames(NamedTuple):
    """The names of the columns with what is beside the value; None: no such column."""

    topic: str | None = None
    partition: str | None = None
    offset: str | None = None
    timestamp: str | None = None
    key: str | None = None


def times_of(messages: list[Message]) -> Any:
    """The times of messages, in milliseconds."""
    import numpy as np
    from confluent_kafka import Message

    return np.fromiter(
        (stamp for _, stamp in map(Message.timestamp, messages)), np.int64, len(messages)
    )


class ColumnsAndMetadata(RecordDecoding):
    """Columns, and those of what is beside a message's value, on request. Raises ProgramError if
    two would have the same name."""

    def __init__(self, columns: pa.Schema, names: ColumnNames) -> None:
        import pyarrow as pa

        types = ColumnNames(
            pa.string(), pa.int32(), pa.int64(), pa.timestamp("ms", "UTC"), pa.binary()
        )
        beside = [pa.field(name, type_) for name, type_ in zip(names, types) if name is not None]
        doubled = [
            field.name
            for field in beside
            if field.name in columns.names or [each.name for each in beside].count(field.name) > 1
        ]
        if doubled:
            raise ProgramError(
                f"two columns would be called {doubled[0]!r}; choose another name for that of "
                "the topic, partition, offset, timestamp "
                "or key"
            )
        self._names = names
        self._schema = pa.schema([*columns, *beside])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def _beside(self, messages: list[Message], stamps: object) -> list[pa.Array]:
        import pyarrow as pa
        from confluent_kafka import Message

        first, names, count = messages[0], self._names, len(messages)
        made: list[tuple[str | None, Callable[[], pa.Array]]] = [
            (names.topic, lambda: pa.repeat(pa.scalar(first.topic(), pa.string()), count)),
            (names.partition, lambda: pa.repeat(pa.scalar(first.partition(), pa.int32()), count)),
            (names.offset, lambda: pa.array(map(Message.offset, messages), pa.int64(), size=count)),
            (names.timestamp, lambda: pa.array(stamps).cast(pa.timestamp("ms", "UTC"))),
            (names.key, lambda: pa.array(map(Message.key, messages), pa.binary(), size=count)),
        ]
        return [make() for name, make in made if name is not None]


class Columns(ColumnsAndMetadata):
    """Values as columns. Records without a value are rows of nulls if there is a column for the
    key, and are skipped otherwise."""

    def __init__(self, decoder: ColumnarDecoder, names: ColumnNames) -> None:
        super().__init__(decoder.schema, names)
        self._decoder = decoder

    def decode(self, messages: list[Message]) -> Batch | None:
        import pyarrow as pa
        from confluent_kafka import Message

        raw = list(map(Message.value, messages))
        places: list[int] | None = None
        if self._names.key is None and None in raw:
            places = [index for index, value in enumerate(raw) if value is not None]
            messages, raw = [messages[index] for index in places], [raw[index] for index in places]
            if not places:
                return None
        try:
            decoded = self._decoder.decode(raw)
        except Exception as error:
            index = getattr(error, "index", None) or 0
            raise CannotDecodeError(index if places is None else places[index]) from error
        stamps = times_of(messages)
        if decoded.num_rows != len(messages):
            name = type(self._decoder).__name__
            raise ProgramError(
                f"{name}.decode() gives {decoded.num_rows} rows for {len(messages)} messages; "
                "it must give one each"
            )
        beside = self._beside(messages, stamps) if any(self._names) else []
        data = (
            pa.RecordBatch.from_arrays([*decoded.columns, *beside], schema=self._schema)
            if beside
            else decoded
        )
        return ColumnBatch(data, stamps)
