"""All types of Arrow that a format of texts has columns of, and texts that are values of some of
them and not of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.formats.decoded_rows import decode_one_by_one

MOMENTS = [
    pa.timestamp(unit, zone)
    for unit in ("s", "ms", "us", "ns")
    for zone in (None, "UTC", "Europe/Berlin")
]
ARROW_TYPES = [
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint32(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.binary(2),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    *MOMENTS,
    pa.decimal128(5, 2),
    pa.decimal128(20, 0),
    pa.decimal128(38, 18),
    pa.decimal256(50, 3),
    pa.dictionary(pa.int32(), pa.string()),
]
ODD_TEXTS = [
    "0",
    "-1",
    "127",
    "128",
    "256",
    "-129",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "1.0",
    "1.5",
    "-0.0",
    "1e2",
    "1e-2",
    "1e400",
    "3.4028235677973366e38",
    "70000",
    "123.45",
    "123.456",
    "1234.5",
    "1e20",
    "100000000000000000000",
    "NaN",
    "-NaN",
    "Infinity",
    "true",
    "null",
    "[]",
    *map(
        json.dumps,
        [
            "",
            "ab",
            "YWI=",
            "NaN",
            "-Infinity",
            "inf",
            "1",
            "1.50",
            "1e2",
            " 1",
            "+1",
            "0x1",
            "true",
            "\u00e9",
            "0000-01-01",
            "0001-01-01",
            "9999-12-31",
            "2024-02-30",
            "2024-05-01T12",
            "2024-05-01T12:30",
            "2024-05-01 12:30:00.5",
            "2024-05-01 12:30:00.123456",
            "2024-05-01 12:30:00.123456789",
            "2024-05-01 12:30:00.1234567890",
            "2024-05-01 12:30:00.5Z",
            "2024-05-01T12:30:00+02:00",
            "1600-01-01 00:00:00",
            "1800-01-01 00:00:00Z",
            "3000-01-01 00:00:00Z",
            "0001-01-01T00:00:00+05:00",
            "9999-12-31 23:59:59Z",
            "9999-12-31 23:59:59.999999",
            "12",
            "12:30",
            "12:30:00.5",
            "12:30:00.000001",
            "12:30:00.000000001",
            "24:00:00",
            "12:30:00Z",
        ],
    ),
]


def check_arrow_against_rows(decoder: Any, messages: Sequence[tuple[str, bytes]]) -> None:
    """What Arrow's reader takes of these, rows read as the same."""
    for text, message in messages:
        batch = decoder._by_arrow([message])
        if batch is not None:
            plain, malformed = decode_one_by_one(
                [message], decoder._rows.deserialize, decoder.schema
            )
            assert not malformed, text
            assert str(batch.column(0)) == str(plain.column(0)), text
