"""Avro messages as columns: decoded for all messages at once (``avro_vectors``), encoded column by
column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.values.conversion import conformed
from flinkpy.core.errors import ProgramError
from flinkpy.formats.avro.avro_references import self_contained
from flinkpy.formats.avro.avro_rows import ALL_DIGITS, AvroRowDeserializationSchema, given_schema
from flinkpy.formats.avro.avro_schema import (
    AvroField,
    AvroSchema,
    AvroType,
    column_schema,
    record_type,
)
from flinkpy.formats.avro.avro_vectors import NotSure, Vectors
from flinkpy.formats.decoded_rows import decode_one_by_one
from flinkpy.formats.port import (
    ColumnarDecoder,
    ColumnarEncoder,
    Decoded,
    RegisteredFormat,
    RegisteredSchema,
)

_FEW = 24  # messages that are decoded one by one in less time than numpy needs for its calls


class AvroColumnarDecoder(ColumnarDecoder, RegisteredFormat):
    """Avro records as columns. ``writer_schema`` is the schema that the messages were written with,
    if it is another one; Avro's rules for changed schemas hold then.

    >>> fields = '{"name": "shop", "type": "string"}, {"name": "n", "type": ["null", "int"]}'
    >>> schema = f'{{"type": "record", "name": "visit", "fields": [{fields}]}}\'
    >>> AvroColumnarDecoder(schema).decode([b"\\x08Oslo\\x02\\x06", b"\\x06Ulm\\x00"]).to_pydict()
    {'shop': ['Oslo', 'Ulm'], 'n': [3, None]}
    """

    def __init__(self, avro_schema_string: str, *, writer_schema: str | None = None) -> None:
        schema = given_schema(None, avro_schema_string, "AvroColumnarDecoder")
        writer = schema if writer_schema is None else AvroSchema.parse_string(writer_schema)
        self._texts = (str(schema), str(writer))
        found = record_type(schema, "AvroColumnarDecoder")
        self.schema = column_schema(found, "AvroColumnarDecoder")
        self._rows = AvroRowDeserializationSchema(
            avro_schema_string=str(schema), writer_schema=str(writer)
        )
        self._writer = record_type(writer, "AvroColumnarDecoder")
        self._columns = (
            _resolution(found, self._writer) if self._writer.has_columns and found.fields else None
        )

    def decode_well_formed(self, messages: Sequence[bytes | None]) -> Decoded:
        if len(messages) >= _FEW and self._columns is not None and None not in messages:
            try:
                # none of them is None
                read = Vectors(messages).record(self._writer)  # type: ignore[arg-type]
                return Decoded(
                    pa.RecordBatch.from_arrays(
                        [column(read, len(messages)) for column in self._columns],
                        schema=self.schema,
                    )
                )
            except (NotSure, pa.ArrowException):
                pass
        return decode_one_by_one(
            messages, lambda data: list(self._rows.deserialize(data)), self.schema
        )

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema("AVRO", self._texts[0])

    def written_with(self, schema: RegisteredSchema) -> AvroColumnarDecoder:
        """This decoder, for messages that were written with another schema."""
        return _decoder(self._texts[0], self_contained(schema))

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoder, self._texts


def _decoder(schema: str, writer: str) -> AvroColumnarDecoder:
    return AvroColumnarDecoder(schema, writer_schema=writer)


_PROMOTIONS = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
}
_Column = Callable[[list[Any], int], Any]


def _resolution(wanted: AvroType, written: AvroType) -> list[_Column] | None:
    """What makes each wanted column of the written ones; None where only ``fastavro`` can do it."""
    if wanted.name != written.name:
        return None
    columns = []
    for each in wanted.fields:
        at = next((at for at, other in enumerate(written.fields) if other.name == each.name), None)
        column = _missing(each) if at is None else _taken(at, each.type, written.fields[at].type)
        if column is None:
            return None
        columns.append(column)
    return columns


def _missing(field: AvroField) -> _Column | None:
    kind = field.type.arrow()
    if field.aliases or not field.has_default:
        return None
    if field.default is None:
        return lambda read, count: pa.nulls(count, kind)
    if field.type.logical is not None or field.type.kind not in (
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "string",
        "enum",
    ):
        return None
    default = pa.scalar(field.default, kind)
    return lambda read, count: pa.repeat(default, count)


def _taken(at: int, wanted: AvroType, written: AvroType) -> _Column | None:
    kind = wanted.arrow()
    if _without_branch(wanted) == _without_branch(written):
        if written.null_branch is not None and wanted.null_branch is None:
            return None
        return lambda read, count: read[at]
    same_nulls = (written.null_branch is None) or (wanted.null_branch is not None)
    if (
        (written.kind, wanted.kind) in _PROMOTIONS
        and same_nulls
        and written.logical is None
        and wanted.logical is None
    ):
        # rows have floats of 64 bits between, too
        between = pa.float64() if wanted.kind == "float" else kind
        return lambda read, count: read[at].cast(between, safe=False).cast(kind, safe=False)
    return None


def _without_branch(found: AvroType) -> AvroType:
    return AvroType(
        **{
            **{name: getattr(found, name) for name in AvroType.__dataclass_fields__},
            "null_branch": None,
        }
    )


# -- to Avro ---------------------------------------------------------------------------------------


class AvroColumnarEncoder(ColumnarEncoder, RegisteredFormat):
    """The rows of a batch as Avro records. Columns are taken by name and cast exactly.

    >>> fields = '{"name": "shop", "type": "string"}, {"name": "n", "type": ["null", "int"]}'
    >>> schema = f'{{"type": "record", "name": "visit", "fields": [{fields}]}}\'
    >>> AvroColumnarEncoder(schema).encode(
    ...     pa.RecordBatch.from_pydict({"n": [3, None], "shop": ["Oslo", "Ulm"]})
    ... )
    [b'\\x08Oslo\\x02\\x06', b'\\x06Ulm\\x00']
    """

    def __init__(self, avro_schema_string: str) -> None:
        schema = given_schema(None, avro_schema_string, "AvroColumnarEncoder")
        self._text = str(schema)
        self._type = record_type(schema, "AvroColumnarEncoder")
        self._schema = column_schema(self._type, "AvroColumnarEncoder")

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        try:
            exact = conformed(batch, self._schema)
        except pa.ArrowException as error:
            raise ProgramError(f"the columns cannot be written as Avro: {error}") from error
        if not self._type.fields:
            return [b""] * batch.num_rows
        pieces = [
            _encoded(each.type, column, each.name)
            for each, column in zip(self._type.fields, exact.columns)
        ]
        return list(map(b"".join, zip(*pieces))) if len(pieces) > 1 else pieces[0]

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema("AVRO", self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._text,)


def _encoded(found: AvroType, column: pa.Array, name: str) -> list[bytes]:
    """The bytes of each value of a column."""
    if found.kind == "null":
        return [b""] * len(column)
    if found.null_branch is None:
        if column.null_count:
            raise ProgramError(
                f"column {name!r} cannot be written as Avro: it has a null, and the schema "
                "allows none"
            )
        return _present(found, column, name)
    there, absent = _varint(1 - found.null_branch), _varint(found.null_branch)
    if not column.null_count:
        return [there + each for each in _present(found, column, name)]
    values = iter(_present(found, column.drop_null(), name))
    return [there + next(values) if valid else absent for valid in column.is_valid().to_pylist()]


def _present(found: AvroType, column: pa.Array, name: str) -> list[bytes]:
    if found.kind == "record":
        pieces = [
            _encoded(each.type, part, f"{name}.{each.name}")
            for each, part in zip(found.fields, column.flatten())
        ]
        return list(map(b"".join, zip(*pieces))) if pieces else [b""] * len(column)
    if found.kind in ("float", "double"):
        width = 4 if found.kind == "float" else 8
        data = np.ascontiguousarray(column.to_numpy(zero_copy_only=False), f"<f{width}").tobytes()
        return [data[at : at + width] for at in range(0, len(data), width)]
    if found.kind in ("int", "long"):
        return list(map(_varint, _integers(found, column, name)))
    if found.kind == "boolean":
        return [b"\x01" if each else b"\x00" for each in column.to_pylist()]
    if found.kind in ("array", "map"):
        return _lists(found, column, name)
    if found.kind == "enum":
        return _symbols(found, column, name)
    if found.logical == "decimal":
        return _decimals(found, column, name)
    return column.to_pylist() if found.kind == "fixed" else _texts(column)


def _integers(found: AvroType, column: pa.Array, name: str) -> list[int]:
    numbers: list[int]
    if found.logical is None:
        numbers = column.to_numpy(zero_copy_only=False).tolist()
    elif found.logical == "date":
        numbers = column.cast(pa.int32()).to_pylist()
    else:
        micros = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        if found.logical.endswith("millis"):
            if (micros % 1000).any():
                raise ProgramError(
                    f"column {name!r} cannot be written as Avro: it has parts of "
                    f"milliseconds, which {found.logical} has not"
                )
            micros = micros // 1000
        numbers = micros.tolist()
    return numbers


def _symbols(found: AvroType, column: pa.Array, name: str) -> list[bytes]:
    place = {symbol: _varint(at) for at, symbol in enumerate(found.symbols)}
    try:
        return [place[symbol] for symbol in column.to_pylist()]
    except KeyError as error:
        raise ProgramError(
            f"column {name!r} cannot be written as Avro: {error.args[0]!r:.80} is none of the "
            "enum's symbols: "
            f"{', '.join(found.symbols)}"
        ) from None


def _decimals(found: AvroType, column: pa.Array, name: str) -> list[bytes]:
    numbers = [int(value.scaleb(found.scale, ALL_DIGITS)) for value in column.to_pylist()]
    try:
        whole = [
            number.to_bytes(found.size or number.bit_length() // 8 + 1, "big", signed=True)
            for number in numbers
        ]
    except OverflowError:
        raise ProgramError(
            f"column {name!r} cannot be written as Avro: {found.size} bytes do not hold all "
            "of its decimals"
        ) from None
    return whole if found.kind == "fixed" else [_varint(len(each)) + each for each in whole]


def _lists(found: AvroType, column: pa.Array, name: str) -> list[bytes]:
    """All elements of a list are one block, behind which comes an empty one."""
    assert found.inner is not None
    offsets = column.offsets.to_pylist()
    start, end = offsets[0], offsets[-1]
    values = column.values if found.kind == "array" else column.items
    items = _encoded(found.inner, values.slice(start, end - start), f"{name}[]")
    if found.kind == "map":
        items = list(map(b"".join, zip(_texts(column.keys.slice(start, end - start)), items)))
    return [
        _varint(stop - begin) + b"".join(items[begin - start : stop - start]) + b"\x00"
        if stop > begin
        else b"\x00"
        for begin, stop in pairwise(offsets)
    ]


def _texts(column: pa.Array) -> list[bytes]:
    return [_varint(len(each)) + each for each in column.cast(pa.binary()).to_pylist()]


_SMALL = tuple(
    bytes([2 * number]) if number < 64 else b"%c%c" % (2 * number & 0x7F | 0x80, 2 * number >> 7)
    for number in range(8192)
)


def _varint(number: int) -> bytes:
    """An integer in Avro's form of variable length."""
    if 0 <= number < 8192:
        return _SMALL[number]
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
