"""Messages with the number of their schema in a schema registry, in Confluent's form: a byte of
zero, the number in four bytes, then the message. Protobuf's have in between where the schema
defines the message.

Each class here wraps one of a format. For Avro, the schema that a message was written with comes
from the registry, and Avro's rules for changed schemas make of it what the wrapped one reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.common.serialization import DeserializationSchema, SerializationSchema
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.port import (
    ColumnarDecoder,
    ColumnarEncoder,
    Decoded,
    MalformedMessageError,
    RegisteredFormat,
    RegisteredSchema,
)
from flinkpy.formats.registry.schema_registry import SchemaRegistry, UnknownSchemaError

_HEAD = 5


class _Readers:
    """What reads the messages of each schema."""

    def __init__(self, registry: SchemaRegistry, wrapped: Any, where: str) -> None:
        _check(registry, wrapped, where)
        self._registry, self._wrapped = registry, wrapped
        self._readers: dict[int, Any] = {}

    def of(self, message: bytes) -> tuple[int, bytes]:
        """The number of the schema, and the message behind it. Raises MalformedMessageError if
        there is none."""
        if len(message) < _HEAD or message[0] != 0:
            raise MalformedMessageError(
                None,
                (
                    "it does not begin with a zero and a schema's number, as messages with a "
                    "schema registry do"
                ),
                message,
            )
        body = message[_HEAD:]
        if self._wrapped.places is not None:
            body = _behind_places(body, self._wrapped.places, message)
        return int.from_bytes(message[1:_HEAD], "big"), body

    def reader(self, number: int, message: bytes) -> Any:
        """What reads messages of this schema."""
        found = self._readers.get(number)
        if found is None:
            try:
                schema = self._registry.schema(number)
            except UnknownSchemaError as error:
                raise MalformedMessageError(None, str(error), message) from error
            wanted = self._wrapped.registered().kind
            if schema.kind != wanted:
                raise MalformedMessageError(
                    None,
                    f"its schema {number} is one of {schema.kind}, and it is read as {wanted}",
                    message,
                )
            try:
                found = self._readers[number] = self._wrapped.written_with(schema)
            except ProgramError as error:
                raise MalformedMessageError(
                    None, f"its schema {number} cannot be read: {error}", message
                ) from error
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._registry, self._wrapped, "")


class RegistryDeserializationSchema(DeserializationSchema):
    """Messages with their schema's number, read by a schema of Avro, JSON or Protobuf:
    ``RegistryDeserializationSchema(registry,
    AvroRowDeserializationSchema(avro_schema_string=...))``."""

    def __init__(self, registry: SchemaRegistry, schema: Any) -> None:
        self._readers = _Readers(registry, schema, "RegistryDeserializationSchema")
        self._schema = schema

    def deserialize(self, data: bytes) -> Any:
        """The value. A registry that cannot be asked raises SchemaRegistryError."""
        number, body = self._readers.of(data)
        return self._readers.reader(number, data).deserialize(body)

    def get_produced_type(self) -> TypeInformation:
        found: TypeInformation = self._schema.get_produced_type()
        return found


class RegistryColumnarDecoder(ColumnarDecoder):
    """Messages with their schema's number as columns, read by a decoder of Avro, JSON or
    Protobuf."""

    def __init__(self, registry: SchemaRegistry, decoder: Any) -> None:
        self._readers = _Readers(registry, decoder, "RegistryColumnarDecoder")
        self._decoder, self.schema = decoder, decoder.schema

    def decode_well_formed(self, messages: Sequence[bytes | None]) -> Decoded:
        """Messages of one schema are decoded together."""
        groups: dict[int | None, tuple[list[int], list[bytes | None]]] = {}
        malformed: list[MalformedMessageError] = []
        for index, message in enumerate(messages):
            number, body = None, None
            try:
                if message is not None:
                    number, body = self._readers.of(message)
                    self._readers.reader(number, message)
            except MalformedMessageError as error:
                malformed.append(error.at(index))
                continue
            places, bodies = groups.setdefault(number, ([], []))
            places.append(index)
            bodies.append(body)
        batches, order = [], []
        for number, (places, bodies) in groups.items():
            decoder = self._decoder if number is None else self._readers.reader(number, b"")
            batch, wrong = decoder.decode_well_formed(bodies)
            malformed += [error.at(places[error.index]) for error in wrong]
            left_out = {error.index for error in wrong}
            batches.append(batch)
            order += [place for at, place in enumerate(places) if at not in left_out]
        return Decoded(
            _in_order(batches, order, self.schema),
            sorted(malformed, key=lambda error: error.index or 0),
        )


def _in_order(batches: list[Any], order: list[int], schema: Any) -> Any:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    taken = (
        table.take(pa.array(sorted(range(len(order)), key=order.__getitem__), pa.int64()))
        .combine_chunks()
        .to_batches()
    )
    return taken[0] if taken else pa.RecordBatch.from_pylist([], schema)


class _Head:
    """What stands before each message: made when the first one is written, as the schema is
    registered then."""

    def __init__(
        self,
        registry: SchemaRegistry,
        subject: str,
        wrapped: Any,
        schema_text: str | None,
        where: str,
    ) -> None:
        if not isinstance(subject, str) or not subject:
            raise refuse(
                f"{where} takes the name of a subject, such as 'visits-value', this is "
                f"{subject!r:.80}"
            )
        self._registry = registry
        self._subject = subject
        self._wrapped = wrapped
        self._text = schema_text
        if schema_text is None or not hasattr(wrapped, "encode"):
            _check(registry, wrapped, where)
        self._head: bytes | None = None

    def get(self) -> bytes:
        """The bytes. Raises SchemaRegistryError if the registry refuses the schema."""
        if self._head is None:
            number = self._registry.register(self._subject, self._schema())
            places = getattr(self._wrapped, "places", None)
            self._head = (
                b"\0" + number.to_bytes(4, "big") + (b"" if places is None else _places(places))
            )
        return self._head

    def _schema(self) -> RegisteredSchema:
        if not isinstance(self._wrapped, RegisteredFormat):
            return RegisteredSchema("JSON", self._text or "{}")
        found = self._wrapped.registered()
        return found if self._text is None else RegisteredSchema(found.kind, self._text)


class RegistrySerializationSchema(SerializationSchema):
    """Messages with their schema's number, written by a schema of Avro, JSON or Protobuf. The
    schema is registered for the subject (a topic's values have the subject ``<topic>-value``) when
    the first message is written. ``schema_text`` replaces the text that is registered, such as that
    of a .proto file."""

    def __init__(
        self, registry: SchemaRegistry, subject: str, schema: Any, *, schema_text: str | None = None
    ) -> None:
        self._head = _Head(registry, subject, schema, schema_text, "RegistrySerializationSchema")
        self._schema = schema

    def serialize(self, value: Any) -> bytes:
        """The message. A registry that cannot be asked, or refuses the schema, raises
        SchemaRegistryError."""
        encoded: bytes = self._head.get() + self._schema.serialize(value)
        return encoded


class RegistryColumnarEncoder(ColumnarEncoder):
    """The rows of a batch as messages with their schema's number, written by an encoder of Avro,
    JSON or Protobuf. For JSON, ``schema_text`` is the JSON Schema to register."""

    def __init__(
        self,
        registry: SchemaRegistry,
        subject: str,
        encoder: Any,
        *,
        schema_text: str | None = None,
    ) -> None:
        self._head = _Head(registry, subject, encoder, schema_text, "RegistryColumnarEncoder")
        self._encoder = encoder

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        """The messages. A registry that cannot be asked, or refuses the schema, raises
        SchemaRegistryError."""
        head = self._head.get()
        return [head + each for each in self._encoder.encode(batch)]


def _check(registry: Any, wrapped: Any, where: str) -> None:
    if not isinstance(registry, SchemaRegistry):
        raise refuse(f"{where} takes a SchemaRegistry, this is {registry!r:.80}")
    if not isinstance(wrapped, RegisteredFormat):
        raise refuse(
            f"{where} takes a format of Avro, JSON or Protobuf, and for columns of JSON "
            f"schema_text, this is {wrapped!r:.80}"
        )


# -- where Protobuf's schema defines the message: its length and its places, as integers of variable
# length


def _places(places: Sequence[int]) -> bytes:
    return b"\0" if list(places) == [0] else b"".join(map(_varint, [len(places), *places]))


def _varint(number: int) -> bytes:
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _behind_places(body: bytes, wanted: Sequence[int], message: bytes) -> bytes:
    for head in (_places(wanted), b"".join(map(_varint, [len(wanted), *wanted]))):
        if body.startswith(head):
            return body[len(head) :]
    raise MalformedMessageError(
        None, "it is another message of its Protobuf schema than the one to read", message
    )
