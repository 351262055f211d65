"""Protobuf messages as columns. All messages are parsed first; then each field is taken from all of
them at once, and messages, lists and maps inside them by the same means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from keyword import iskeyword
from operator import attrgetter, methodcaller
from typing import Any

import pyarrow as pa

from flinkpy.columns.values.conversion import conformed, python_values
from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.errors import ProgramError
from flinkpy.formats.decoded_rows import decode_one_by_one
from flinkpy.formats.port import ColumnarDecoder, ColumnarEncoder, Decoded
from flinkpy.formats.protobuf.protobuf_rows import (
    ProtobufRowDeserializationSchema,
    ProtobufRowSerializationSchema,
    choices_of,
    value_of,
)
from flinkpy.formats.protobuf.protobuf_types import (
    MessageClass,
    OfMessageClass,
    ProtobufField,
    ProtobufType,
)

_PLAIN = frozenset(
    (
        "INT32",
        "SINT32",
        "SFIXED32",
        "INT64",
        "SINT64",
        "SFIXED64",
        "UINT32",
        "FIXED32",
        "UINT64",
        "FIXED64",
        "FLOAT",
        "DOUBLE",
        "BOOL",
        "STRING",
        "BYTES",
    )
)


class ProtobufColumnarDecoder(ColumnarDecoder, OfMessageClass):
    """The fields of a generated class's messages as columns.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> ProtobufColumnarDecoder(Timestamp).decode([b"\\x08\\x07", b""]).to_pydict()
    {'seconds': [7, 0], 'nanos': [0, 0]}
    """

    def __init__(self, message_class: Any) -> None:
        self._class = MessageClass.of(message_class, "ProtobufColumnarDecoder")
        self.schema = pa.schema(
            [pa.field(each.name, each.arrow()) for each in self._class.type.fields]
        )
        self._rows = ProtobufRowDeserializationSchema(self._class)
        self._parse = self._class.make.FromString

    def decode_well_formed(self, messages: Sequence[bytes | None]) -> Decoded:
        try:
            parsed = list(map(self._parse, messages))
            columns = [_field(each, parsed) for each in self._class.type.fields]
            if columns:
                return Decoded(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        except Exception:
            # a malformed message, one without a value, and a value that its column does not hold:
            # found one by one
            pass
        return decode_one_by_one(
            messages, lambda data: list(self._rows.deserialize(data)), self.schema
        )


def _field(field: ProtobufField, messages: Sequence[Any]) -> Any:
    """The column of a field of all these messages."""
    taken = list(map(attrgetter(field.name), messages))
    if field.key is not None or field.is_list:
        offsets = pa.array([0, *accumulate(map(len, taken))], pa.int32())
        if field.key is None:
            return pa.ListArray.from_arrays(
                offsets, _values(field.type, list(chain.from_iterable(taken))), type=field.arrow()
            )
        keys = _values(field.key, list(chain.from_iterable(taken)))
        items = _values(field.type, [each[key] for each in taken for key in each])
        return pa.MapArray.from_arrays(offsets, keys, items)
    if not field.may_be_none:
        return _values(field.type, taken)
    there = list(map(methodcaller("HasField", field.name), messages))
    if all(there):
        return _values(field.type, taken)
    found = _values(field.type, [each for each, is_there in zip(taken, there) if is_there])
    return found.take(
        pa.array(
            [place - 1 if is_there else None for place, is_there in zip(accumulate(there), there)],
            pa.int64(),
        )
    )


def _values(found: ProtobufType, taken: Sequence[Any]) -> Any:
    """A column of these values of a field."""
    if found.wraps:
        taken = list(map(attrgetter("value"), taken))
    if found.kind in _PLAIN:
        return pa.array(taken, found.arrow())
    if found.kind == "MESSAGE" and found.fields:
        return pa.StructArray.from_arrays(
            [_field(each, taken) for each in found.fields], fields=list(found.arrow())
        )
    return array_of(list(map(value_of(found), taken)), found.arrow())


# -- to Protobuf -----------------------------------------------------------------------------------


class ProtobufColumnarEncoder(ColumnarEncoder, OfMessageClass):
    """The rows of a batch as messages of a generated class. Columns are taken by name and cast
    exactly.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> ProtobufColumnarEncoder(Timestamp).encode(
    ...     pa.RecordBatch.from_pydict({"nanos": [0], "seconds": [7]})
    ... )
    [b'\\x08\\x07']
    """

    def __init__(self, message_class: object) -> None:
        self._class = MessageClass.of(message_class, "ProtobufColumnarEncoder")
        self._schema = pa.schema(
            [pa.field(each.name, each.arrow()) for each in self._class.type.fields]
        )
        self._rows = ProtobufRowSerializationSchema(self._class)
        self._loop = _encoding_loop(self._class.type)

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        try:
            exact = conformed(batch, self._schema)
        except pa.ArrowException as error:
            raise ProgramError(f"the columns cannot be written as Protobuf: {error}") from error
        if not self._schema.names:
            return [b""] * batch.num_rows
        columns = list(map(python_values, exact.columns))
        if self._loop is None or any(
            column.null_count and not field.may_be_none
            for field, column in zip(self._class.type.fields, exact.columns)
        ):
            return list(map(self._rows.serialize, zip(*columns)))
        return self._loop(self._class.make, zip(*columns))  # type: ignore[no-any-return]


def _encoding_loop(found: ProtobufType) -> Callable[..., Any] | None:
    """A generated loop over rows of values, if the message has single values only, which columns
    have checked."""
    if (
        not found.fields
        or choices_of(found)
        or not all(each.is_plain and not iskeyword(each.name) for each in found.fields)
    ):
        return None
    lines = [
        "def encode(make, rows):",
        "    encoded = []",
        "    append = encoded.append",
        f"    for {', '.join(f'v{at}' for at in range(len(found.fields)))}, in rows:",
        "        message = make()",
    ]
    for at, field in enumerate(found.fields):
        lines += [f"        if v{at} is not None:", f"            message.{field.name} = v{at}"]
    lines += ["        append(message.SerializeToString())", "    return encoded"]
    return compile_function("encode", "\n".join(lines), {})
