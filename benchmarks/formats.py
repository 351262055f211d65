"""Messages per second of each format: rows against a bare loop over the format's own package,
columns against rows."""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from benchmarks.harness import Comparison, compare, quick
from flinkpy.common import Row, Types
from flinkpy.datastream.formats.avro import (
    AvroColumnarDecoder,
    AvroColumnarEncoder,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
)
from flinkpy.datastream.formats.csv import (
    CsvColumnarDecoder,
    CsvColumnarEncoder,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
)
from flinkpy.datastream.formats.json import (
    JsonColumnarDecoder,
    JsonColumnarEncoder,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from flinkpy.datastream.formats.protobuf import (
    ProtobufColumnarDecoder,
    ProtobufColumnarEncoder,
    ProtobufRowDeserializationSchema,
    ProtobufRowSerializationSchema,
)
from flinkpy.formats.csv.csv_cells import Dialect

FIELDS = (
    ("auction", Types.LONG(), "long"),
    ("bidder", Types.LONG(), "long"),
    ("price", Types.DOUBLE(), "double"),
    ("channel", Types.STRING(), "string"),
    ("url", Types.STRING(), "string"),
    ("seen", Types.BOOLEAN(), "boolean"),
)
BID = Types.ROW_NAMED([name for name, _, _ in FIELDS], [kind for _, kind, _ in FIELDS])
AVRO = {
    "type": "record",
    "name": "bid",
    "fields": [{"name": name, "type": ["null", kind]} for name, _, kind in FIELDS],
}
BATCH = 1000
COLUMNS_TARGET = 2.0


def bids(count: int) -> list[Row]:
    draw = random.Random(7)
    return [
        Row(
            auction=draw.randrange(100_000),
            bidder=draw.randrange(1_000_000),
            price=round(draw.random() * 1000, 2),
            channel=f"channel-{draw.randrange(99)}",
            url=f"https://www.example.com/item.htm?query=1&channel_id={draw.randrange(1 << 30)}",
            seen=draw.random() < 0.5,
        )
        for _ in range(count)
    ]


def bid_class() -> Any:
    proto = descriptor_pb2.FieldDescriptorProto
    kinds = {
        "long": proto.TYPE_INT64,
        "double": proto.TYPE_DOUBLE,
        "string": proto.TYPE_STRING,
        "boolean": proto.TYPE_BOOL,
    }
    file = descriptor_pb2.FileDescriptorProto(name="bid.proto", syntax="proto3")
    message = file.message_type.add(name="Bid")
    for number, (name, _, kind) in enumerate(FIELDS, start=1):
        message.field.add(name=name, number=number, type=kinds[kind], label=proto.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Bid"))


def timed(count: int, run: Callable[[], object]) -> Callable[[], float]:
    def once() -> float:
        started = time.perf_counter()
        run()
        return count / (time.perf_counter() - started)

    return once


def avro_bare(messages: list[bytes], schema: Any) -> list[Any]:
    return [fastavro.schemaless_reader(io.BytesIO(message), schema, None) for message in messages]


def avro_bare_written(rows: list[dict[str, Any]], schema: Any) -> list[bytes]:
    written = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        written.append(out.getvalue())
    return written


def of_format(
    name: str,
    count: int,
    rows: list[Row],
    write: Any,
    read: Any,
    encoder: Any,
    decoder: Any,
    bare: Callable[[list[bytes]], object],
    bare_written: Callable[[], object],
) -> list[Comparison]:
    """Four comparisons: rows read and written against the bare loop, columns read and written
    against rows."""
    messages = list(map(write.serialize, rows))
    batches = [messages[at : at + BATCH] for at in range(0, count, BATCH)]
    tables = list(map(decoder.decode, batches))
    reading = timed(count, lambda: list(map(read.deserialize, messages)))
    writing = timed(count, lambda: list(map(write.serialize, rows)))
    rounds = 3
    return [
        compare(
            f"{name}: rows read",
            reading,
            timed(count, lambda: bare(messages)),
            unit="msg/s",
            rounds=rounds,
        ),
        compare(
            f"{name}: rows written",
            writing,
            timed(count, bare_written),
            unit="msg/s",
            rounds=rounds,
        ),
        compare(
            f"{name}: columns read",
            timed(count, lambda: list(map(decoder.decode, batches))),
            reading,
            unit="msg/s",
            rounds=rounds,
            target=COLUMNS_TARGET,
            note="bare: rows",
        ),
        compare(
            f"{name}: columns written",
            timed(count, lambda: list(map(encoder.encode, tables))),
            writing,
            unit="msg/s",
            rounds=rounds,
            target=COLUMNS_TARGET,
            note="bare: rows",
        ),
    ]


def main() -> list[Comparison]:
    count = 2_000 if quick() else 50_000
    rows = bids(count)
    dicts = [row.as_dict() for row in rows]
    results = of_format(
        "JSON",
        count,
        rows,
        JsonRowSerializationSchema(BID),
        JsonRowDeserializationSchema(BID),
        JsonColumnarEncoder(),
        JsonColumnarDecoder(BID),
        lambda messages: list(map(json.loads, messages)),
        lambda: [json.dumps(row).encode() for row in dicts],
    )
    results += of_format(
        "CSV",
        count,
        rows,
        CsvRowSerializationSchema(BID, Dialect()),
        CsvRowDeserializationSchema(BID, Dialect()),
        CsvColumnarEncoder(),
        CsvColumnarDecoder(BID),
        lambda messages: [message.decode().split(",") for message in messages],
        lambda: [",".join(map(str, row)).encode() for row in rows],
    )
    text, parsed = json.dumps(AVRO), fastavro.parse_schema(AVRO)
    results += of_format(
        "Avro",
        count,
        rows,
        AvroRowSerializationSchema(avro_schema_string=text),
        AvroRowDeserializationSchema(avro_schema_string=text),
        AvroColumnarEncoder(text),
        AvroColumnarDecoder(text),
        lambda messages: avro_bare(messages, parsed),
        lambda: avro_bare_written(dicts, parsed),
    )
    bid = bid_class()
    results += of_format(
        "Protobuf",
        count,
        rows,
        ProtobufRowSerializationSchema(bid),
        ProtobufRowDeserializationSchema(bid),
        ProtobufColumnarEncoder(bid),
        ProtobufColumnarDecoder(bid),
        lambda messages: list(map(bid.FromString, messages)),
        lambda: [bid(**row).SerializeToString() for row in dicts],
    )
    return results


if __name__ == "__main__":
    main()
