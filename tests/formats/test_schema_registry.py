"""Messages with their schema's number in a registry: rows and columns of Avro, JSON and Protobuf,
and schemas that changed."""

from __future__ import annotations

import base64
import json
import pickle
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.common import Row, Types
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.formats.avro import (
    AvroColumnarDecoder,
    AvroColumnarEncoder,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
)
from flinkpy.datastream.formats.json import (
    JsonColumnarDecoder,
    JsonColumnarEncoder,
    JsonDeserializationSchema,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from flinkpy.datastream.formats.protobuf import (
    ProtobufColumnarDecoder,
    ProtobufColumnarEncoder,
    ProtobufRowDeserializationSchema,
    ProtobufRowSerializationSchema,
)
from flinkpy.datastream.formats.schema_registry import (
    RegistryColumnarDecoder,
    RegistryColumnarEncoder,
    RegistryDeserializationSchema,
    RegistrySerializationSchema,
    SchemaRegistry,
    SchemaRegistryError,
)
from flinkpy.formats.avro.avro_references import self_contained
from flinkpy.formats.port import MalformedMessageError, RegisteredSchema
from tests.formats.messages_of_all_kinds import kinds
from tests.formats.registry_server import RegistryServer, registry_server

VISIT = Types.ROW_NAMED(["shop", "n"], [Types.STRING(), Types.INT()])
ROWS = [Row(shop="Oslo", n=1), Row(shop="Ulm", n=None)]


def avro(*fields: Any) -> str:
    return json.dumps(
        {
            "type": "record",
            "name": "visit",
            "fields": [{"name": name, "type": kind, **more} for name, kind, more in fields],
        }
    )


OLD = avro(("shop", "string", {}), ("n", ["null", "int"], {}))
NEW = avro(
    ("n", ["null", "double"], {}),
    ("shop", "string", {}),
    ("country", "string", {"default": "no"}),
    ("tags", ["null", "string"], {"default": None}),
)


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as running:
        yield running


@pytest.fixture
def registry(server: RegistryServer) -> SchemaRegistry:
    return SchemaRegistry(server.url)


def rows(decoder: Any, messages: Any) -> list[Row]:
    return rows_of_batch(decoder.decode(messages))


def test_avro_has_the_schemas_number_in_front_and_is_asked_for_once(
    server: RegistryServer, registry: SchemaRegistry
) -> None:
    write = RegistrySerializationSchema(
        registry, "visits-value", AvroRowSerializationSchema(avro_schema_string=OLD)
    )
    messages = list(map(write.serialize, ROWS))
    assert messages == [b"\0\0\0\0\x01\x08Oslo\x02\x02", b"\0\0\0\0\x01\x06Ulm\x00"]
    read = RegistryDeserializationSchema(
        SchemaRegistry(server.url), AvroRowDeserializationSchema(avro_schema_string=OLD)
    )
    assert list(map(read.deserialize, messages * 3)) == ROWS * 3
    assert server.requests == ["POST /subjects/visits-value/versions", "GET /schemas/ids/1"]
    assert server.subjects == {"visits-value": [1]}
    assert read.get_produced_type() == VISIT


@pytest.mark.parametrize("repeat", [1, 20])  # decoded one by one, and all at once
def test_messages_of_changed_schemas_are_read_by_one_in_their_order(
    registry: SchemaRegistry, repeat: int
) -> None:
    older = RegistrySerializationSchema(
        registry, "visits-value", AvroRowSerializationSchema(avro_schema_string=OLD)
    )
    newer = RegistrySerializationSchema(
        registry, "visits-value", AvroRowSerializationSchema(avro_schema_string=NEW)
    )
    messages = [
        older.serialize(ROWS[0]),
        newer.serialize(Row(2.5, "Bonn", "de", "x")),
        older.serialize(ROWS[1]),
    ] * repeat
    wanted = [
        Row(n=1.0, shop="Oslo", country="no", tags=None),
        Row(n=2.5, shop="Bonn", country="de", tags="x"),
        Row(n=None, shop="Ulm", country="no", tags=None),
    ] * repeat
    read = RegistryDeserializationSchema(
        registry, AvroRowDeserializationSchema(avro_schema_string=NEW)
    )
    assert list(map(read.deserialize, messages)) == wanted
    assert rows(RegistryColumnarDecoder(registry, AvroColumnarDecoder(NEW)), messages) == wanted


def test_columns_are_written_as_rows_are(registry: SchemaRegistry) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"shop": ["Oslo", "Ulm"], "n": pa.array([1, None], pa.int32())}
    )
    for encoder, row_schema in (
        (AvroColumnarEncoder(OLD), AvroRowSerializationSchema(avro_schema_string=OLD)),
        (JsonColumnarEncoder(), JsonRowSerializationSchema(VISIT)),
    ):
        text = None if encoder.__class__ is AvroColumnarEncoder else row_schema.registered().text
        encode = RegistryColumnarEncoder(registry, "visits-value", encoder, schema_text=text).encode
        assert encode(batch) == list(
            map(RegistrySerializationSchema(registry, "visits-value", row_schema).serialize, ROWS)
        )


def test_json_is_registered_with_its_json_schema(
    server: RegistryServer, registry: SchemaRegistry
) -> None:
    messages = list(
        map(
            RegistrySerializationSchema(
                registry, "visits-value", JsonRowSerializationSchema(VISIT)
            ).serialize,
            ROWS,
        )
    )
    assert messages[0] == b'\0\0\0\0\x01{"shop":"Oslo","n":1}'
    assert server.schemas[0]["schemaType"] == "JSON"
    assert json.loads(server.schemas[0]["schema"])["properties"]["n"] == {
        "type": ["integer", "null"]
    }
    assert (
        list(
            map(
                RegistryDeserializationSchema(
                    registry, JsonRowDeserializationSchema(VISIT)
                ).deserialize,
                messages,
            )
        )
        == ROWS
    )
    assert RegistryDeserializationSchema(registry, JsonDeserializationSchema()).deserialize(
        messages[1]
    ) == {"shop": "Ulm", "n": None}
    assert rows(RegistryColumnarDecoder(registry, JsonColumnarDecoder(VISIT)), messages) == ROWS


def test_protobuf_says_which_message_of_its_file_it_is(
    server: RegistryServer, registry: SchemaRegistry
) -> None:
    message_class, _ = kinds()  # the first message inside the second one of its file
    [inner] = [
        each
        for each in message_class.DESCRIPTOR.file.message_types_by_name.values()
        if each.name == "Inner"
    ]
    filled = message_class(a_int32=7)
    row = ProtobufRowDeserializationSchema(message_class).deserialize(filled.SerializeToString())
    message = RegistrySerializationSchema(
        registry, "kinds-value", ProtobufRowSerializationSchema(message_class)
    ).serialize(row)
    assert message == b"\0\0\0\0\x01\x04\x02\x00" + filled.SerializeToString()
    assert (
        base64.b64decode(server.schemas[0]["schema"]) == message_class.DESCRIPTOR.file.serialized_pb
    )
    assert "references" not in server.schemas[0]
    decoder = RegistryColumnarDecoder(registry, ProtobufColumnarDecoder(message_class))
    assert rows(decoder, [message, message]) == [row, row]
    encoder = RegistryColumnarEncoder(
        registry, "kinds-value", ProtobufColumnarEncoder(message_class)
    )
    assert rows(decoder, encoder.encode(decoder.decode([message]))) == [row]
    assert inner.full_name == "test.Inner"
    with pytest.raises(MalformedMessageError, match="another message of its Protobuf schema"):
        decoder.decode([message[:5] + b"\0" + message[8:]])


def test_what_is_no_message_with_a_schema_is_malformed(registry: SchemaRegistry) -> None:
    number = registry.register("visits-value", RegisteredSchema("AVRO", OLD))
    other = registry.register("visits-key", RegisteredSchema("JSON", "{}"))
    good = b"\0" + number.to_bytes(4, "big") + b"\x08Oslo\x02\x02"
    head = b"\0" + other.to_bytes(4, "big")
    wrong = [b"", b"\x01" + good[1:], b"\0\0\0\0\x63", head, good[:-1]]
    read = RegistryDeserializationSchema(
        registry, AvroRowDeserializationSchema(avro_schema_string=OLD)
    )
    why = [
        "does not begin with a zero",
        "does not begin with a zero",
        "has no schema 99",
        f"its schema {other} is one of JSON, and it is read as AVRO",
        "ends within the record",
    ]
    for message, text in zip(wrong, why):
        with pytest.raises(MalformedMessageError, match=text):
            read.deserialize(message)
    batch, malformed = RegistryColumnarDecoder(
        registry, AvroColumnarDecoder(OLD)
    ).decode_well_formed([good, *wrong, None, good])
    assert [error.index for error in malformed] == [1, 2, 3, 4, 5]
    assert batch.to_pydict() == {"shop": ["Oslo", None, "Oslo"], "n": [1, None, 1]}


def test_nothing_at_all_is_an_empty_batch(registry: SchemaRegistry) -> None:
    decoder = RegistryColumnarDecoder(registry, AvroColumnarDecoder(OLD))
    assert decoder.decode([]).num_rows == 0
    assert decoder.decode_well_formed([b"wrong"]).batch.schema == decoder.schema


def test_a_registry_that_cannot_be_asked_is_no_malformed_message(server: RegistryServer) -> None:
    message = b"\0\0\0\0\x01\x08Oslo\x02\x02"
    server.refuses = (503, "it is being moved")
    wrapped = AvroRowDeserializationSchema(avro_schema_string=OLD)
    with pytest.raises(SchemaRegistryError, match="cannot be asked for schema 1: HTTP Error 503"):
        RegistryDeserializationSchema(SchemaRegistry(server.url), wrapped).deserialize(message)
    with pytest.raises(
        SchemaRegistryError,
        match=r"schema registry at http://127.0.0.1:1 cannot be asked for schema 1: .*refused",
    ):
        RegistryDeserializationSchema(SchemaRegistry("http://127.0.0.1:1"), wrapped).deserialize(
            message
        )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "who are you?"),
        (403, "you may not"),
        (409, "Schema being registered is incompatible with an earlier schema"),
        (422, "Invalid schema"),
    ],
)
def test_a_registry_that_refuses_is_told_in_one_sentence(
    server: RegistryServer, status: int, said: str
) -> None:
    server.refuses = (status, said)
    with pytest.raises(SchemaRegistryError) as raised:
        SchemaRegistry(server.url, basic_auth=("user", "secret")).register(
            "visits-value", RegisteredSchema("AVRO", OLD)
        )
    assert (
        str(raised.value)
        == f"the schema registry at {server.url} refuses subject 'visits-value': {status} {said}"
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "closed connection without response"),
        (b"SSH-2.0-OpenSSH_9\r\n", "BadStatusLine: SSH-2.0-OpenSSH_9"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "Expecting value"),
        (
            b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"hello": "x"}',
            "its answer has no 'schema', so it is no schema registry: {'hello': 'x'}",
        ),
    ],
)
def test_what_is_no_schema_registry_is_told_in_one_sentence(answer: bytes, why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(SchemaRegistryError) as raised:
            SchemaRegistry(url).schema(1)
        thread.join()
    assert str(raised.value).startswith(
        f"the schema registry at {url} cannot be asked for schema 1: "
    )
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


def test_credentials_in_a_url_are_refused_and_not_shown() -> None:
    with pytest.raises(ProgramError, match=r"give basic_auth=\(user, password\)") as raised:
        SchemaRegistry("http://user:secret@registry:8081")
    assert "secret" not in str(raised.value)


def test_the_next_url_is_asked_when_the_first_is_away(server: RegistryServer) -> None:
    registry = SchemaRegistry(["http://127.0.0.1:1", server.url])
    assert (
        registry.schema(registry.register("visits-value", RegisteredSchema("AVRO", OLD))).text
        == OLD
    )
    assert registry.latest("visits-value") == RegisteredSchema("AVRO", OLD)
    with pytest.raises(SchemaRegistryError, match="has no subject 'other'"):
        registry.latest("other")


def test_credentials_and_headers_are_sent_and_travel_with_the_schema(
    server: RegistryServer,
) -> None:
    registry = SchemaRegistry(server.url, basic_auth=("user", "secret"), headers={"X-Tenant": "a"})
    wrapped = RegistrySerializationSchema(
        registry, "visits-value", AvroRowSerializationSchema(avro_schema_string=OLD)
    )
    message = pickle.loads(pickle.dumps(wrapped)).serialize(ROWS[0])
    read = RegistryDeserializationSchema(
        registry, AvroRowDeserializationSchema(avro_schema_string=OLD)
    )
    assert pickle.loads(pickle.dumps(read)).deserialize(message) == ROWS[0]
    decoder = RegistryColumnarDecoder(registry, AvroColumnarDecoder(OLD))
    assert rows(pickle.loads(pickle.dumps(decoder)), [message]) == ROWS[:1]
    assert {(sent["authorization"], sent["x-tenant"]) for sent in server.headers} == {
        ("Basic dXNlcjpzZWNyZXQ=", "a")
    }
    assert "secret" not in repr(registry)


def test_wrong_arguments_are_refused_with_what_to_give(registry: SchemaRegistry) -> None:
    schema = AvroRowSerializationSchema(avro_schema_string=OLD)
    for call, text in [
        (lambda: SchemaRegistry("registry:8081"), "takes the URL of a registry"),
        (lambda: SchemaRegistry([]), "takes the URL of a registry"),
        (lambda: RegistrySerializationSchema(registry, "", schema), "the name of a subject"),
        (lambda: RegistrySerializationSchema("http://x", "s", schema), "takes a SchemaRegistry"),  # type: ignore[arg-type]
        (
            lambda: RegistryDeserializationSchema(registry, "json"),
            "takes a format of Avro, JSON or Protobuf",
        ),
        (
            lambda: RegistryColumnarEncoder(registry, "s", JsonColumnarEncoder()),
            "for columns of JSON schema_text",
        ),
    ]:
        with pytest.raises(ProgramError, match=text):
            call()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("named", ["full", "in its namespace"])
def test_schemas_that_a_schema_refers_to_are_asked_for(
    server: RegistryServer, registry: SchemaRegistry, named: str
) -> None:
    place = json.dumps(
        {
            "type": "record",
            "name": "place",
            "namespace": "geo",
            "fields": [{"name": "land", "type": "geo.land"}],
        }
    )
    land = json.dumps({"type": "enum", "name": "land", "namespace": "geo", "symbols": ["no", "de"]})
    kind = "geo.place" if named == "full" else "place"
    visit = {
        "type": "record",
        "name": "visit",
        "namespace": "" if named == "full" else "geo",
        "fields": [
            {"name": "at", "type": kind},
            {"name": "before", "type": ["null", {"type": "array", "items": kind}]},
        ],
    }
    server.number_of("lands", {"schema": land})
    server.number_of(
        "places",
        {"schema": place, "references": [{"name": "geo.land", "subject": "lands", "version": 1}]},
    )
    server.number_of("places", {"schema": '{"type": "string"}'})
    number = server.number_of(
        "visits-value",
        {
            "schema": json.dumps(visit),
            "references": [{"name": "geo.place", "subject": "places", "version": 1}],
        },
    )
    whole = self_contained(registry.schema(number))
    message = (
        b"\0"
        + number.to_bytes(4, "big")
        + AvroRowSerializationSchema(avro_schema_string=whole).serialize(
            Row(Row("no"), [Row("de")])
        )
    )
    wanted = Row(at=Row(land="no"), before=[Row(land="de")])
    assert (
        RegistryDeserializationSchema(
            registry, AvroRowDeserializationSchema(avro_schema_string=whole)
        ).deserialize(message)
        == wanted
    )
    assert rows(RegistryColumnarDecoder(registry, AvroColumnarDecoder(whole)), [message]) == [
        wanted
    ]
    assert server.requests == [
        f"GET /schemas/ids/{number}",
        "GET /subjects/places/versions/1",
        "GET /subjects/lands/versions/1",
    ]
