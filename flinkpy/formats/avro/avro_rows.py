"""Avro messages one by one: rows of an Avro record, under PyFlink's names. A message is the
record's bytes alone, without the schema.

>>> from flinkpy.common import Row
>>> fields = '{"name": "shop", "type": "string"}, {"name": "n", "type": ["null", "int"]}'
>>> schema = f'{{"type": "record", "name": "visit", "fields": [{fields}]}}\'
>>> data = AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row("Oslo", 3))
>>> data
b'\\x08Oslo\\x02\\x06'
>>> AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(data)
Row(shop='Oslo', n=3)
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable
from decimal import Context, Decimal
from operator import itemgetter
from typing import Any, TypeAlias

from flinkpy.common.serialization import DeserializationSchema, SerializationSchema
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation
from flinkpy.common.types import named_row
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.avro.avro_references import self_contained
from flinkpy.formats.avro.avro_schema import (
    AvroSchema,
    AvroType,
    fastavro_schema,
    record_type,
    require_fastavro,
    row_type_of_record,
)
from flinkpy.formats.exact_values import each_converted, elements, entries, exactly, fields_in_order
from flinkpy.formats.parsed_texts import short_float
from flinkpy.formats.port import MalformedMessageError, RegisteredFormat, RegisteredSchema

Convert: TypeAlias = Callable[[Any], Any]

ALL_DIGITS = Context(prec=1000)


class AvroRowDeserializationSchema(DeserializationSchema, RegisteredFormat):
    """Rows of an Avro record. A message that is shorter or longer than its record raises
    MalformedMessageError.

    ``writer_schema``: the schema that the messages were written with, if it is another one; Avro's
    rules for changed schemas hold then."""

    def __init__(
        self,
        record_class: Any = None,
        avro_schema_string: str | None = None,
        *,
        writer_schema: str | None = None,
    ) -> None:
        self._schema = given_schema(
            record_class, avro_schema_string, "AvroRowDeserializationSchema"
        )
        self._writer = (
            self._schema if writer_schema is None else AvroSchema.parse_string(writer_schema)
        )
        found = record_type(self._schema, "AvroRowDeserializationSchema")
        is_changed = self._writer != self._schema
        if is_changed:
            check_change(found, record_type(self._writer, "writer_schema"), "the record")
        self._type = row_type_of_record(found)
        self._read = record_reader(self._writer, self._schema)
        self._row = row_maker(found, is_changed)

    def deserialize(self, data: bytes) -> Any:
        """The row."""
        record = self._read(data)
        try:
            return self._row(record)
        except ValueError as error:
            raise MalformedMessageError(None, str(error), data) from error

    def get_produced_type(self) -> TypeInformation:
        return self._type

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema("AVRO", str(self._schema))

    def written_with(self, schema: RegisteredSchema) -> AvroRowDeserializationSchema:
        """This schema, for messages that were written with another one."""
        return _deserializer(str(self._schema), self_contained(schema))

    def __reduce__(self) -> tuple[Any, ...]:
        return _deserializer, (str(self._schema), str(self._writer))


def _deserializer(schema: str, writer: str) -> AvroRowDeserializationSchema:
    return AvroRowDeserializationSchema(avro_schema_string=schema, writer_schema=writer)


class AvroRowSerializationSchema(SerializationSchema, RegisteredFormat):
    """Rows as an Avro record. Raises ProgramError for a value that its field's type does not
    have."""

    def __init__(self, record_class: Any = None, avro_schema_string: str | None = None) -> None:
        self._schema = given_schema(record_class, avro_schema_string, "AvroRowSerializationSchema")
        found = record_type(self._schema, "AvroRowSerializationSchema")
        self._record = _writer_of(found)
        self._parsed = fastavro_schema(self._schema.schema)
        self._write = require_fastavro().schemaless_writer

    def serialize(self, value: Any) -> bytes:
        """The row as Avro."""
        out = io.BytesIO()
        try:
            self._write(out, self._parsed, self._record(value))
        except Exception as error:  # fastavro has many kinds of errors for values that do not fit
            why = (
                "a text has half of a surrogate pair, which UTF-8 does not have"
                if isinstance(error, UnicodeEncodeError)
                else error
            )
            raise ProgramError(f"{value!r:.100} cannot be written as Avro: {why}") from error
        return out.getvalue()

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema("AVRO", str(self._schema))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, str(self._schema))


def given_schema(record_class: Any, text: str | None, where: str) -> AvroSchema:
    """The schema in the text. Raises ProgramError if a Java class was given, or nothing."""
    if record_class is not None:
        raise refuse(
            f"{where}: record_class names a class of Java, and there is no JVM; give "
            "avro_schema_string"
        )
    if text is None:
        raise refuse(f"{where} needs avro_schema_string, the schema as JSON")
    return text if isinstance(text, AvroSchema) else AvroSchema.parse_string(text)


def record_reader(writer: AvroSchema, reader: AvroSchema) -> Callable[[bytes], dict[str, Any]]:
    """What reads a message as a dict. Raises MalformedMessageError for a message that is no such
    record."""
    read = require_fastavro().schemaless_reader
    written, wanted = (
        fastavro_schema(_with_plain_values(each.schema)) for each in (writer, reader)
    )
    wanted = None if writer == reader else wanted

    def record(data: bytes) -> dict[str, Any]:
        source = io.BytesIO(data)
        try:
            found: dict[str, Any] = read(source, written, wanted)
        except Exception as error:
            # fastavro has many kinds of errors for bytes that are no record, IndexError and
            # KeyError among them
            raise MalformedMessageError(None, _why(error), data) from error
        if source.tell() != len(data):
            raise MalformedMessageError(
                None,
                (
                    f"{len(data) - source.tell()} of its {len(data)} bytes are left behind the "
                    "record"
                ),
                data,
            )
        return found

    return record


def _with_plain_values(schema: Any, among: str = "type") -> Any:
    """The schema with decimals as bytes, as ``fastavro`` rounds one that has too many digits, and
    UUIDs as text. In a union of several types they stay what they are, as only ``fastavro`` knows
    which one a value has."""
    if isinstance(schema, list):
        is_union_of_several = (
            among != "fields" and len([each for each in schema if each != "null"]) > 1
        )
        return schema if is_union_of_several else list(map(_with_plain_values, schema))
    if not isinstance(schema, dict):
        return schema
    kept = (
        schema
        if schema.get("logicalType") not in ("decimal", "uuid")
        else {name: each for name, each in schema.items() if name != "logicalType"}
    )
    return {
        name: _with_plain_values(each, name)
        if name in ("type", "items", "values", "fields")
        else each
        for name, each in kept.items()
    }


def check_change(wanted: AvroType, written: AvroType, where: str) -> None:
    """Raises ProgramError where a value would be read as another one, or as one of another type:
    Avro's rules for changed schemas know nothing of logical types. What else does not fit is found
    in the message."""
    if wanted.kind == written.kind == "record":
        for each in wanted.fields:
            for other in written.fields:
                if other.name in (each.name, *each.aliases):
                    check_change(each.type, other.type, f"field {each.name!r}")
    if wanted.inner is not None and written.inner is not None:
        check_change(wanted.inner, written.inner, where)
    if written.logical is None or (written.logical == "decimal" and wanted.logical is None):
        return
    if _meaning(wanted) != _meaning(written):
        raise refuse(
            f"{where} was written as {_shown(written)}, and cannot be read as {_shown(wanted)}"
        )


def _meaning(found: AvroType) -> tuple[Any, ...]:
    """A ``timestamp-millis`` means what a ``timestamp-micros`` does."""
    return (found.logical or "").removesuffix("-millis").removesuffix("-micros"), found.scale


def _shown(found: AvroType) -> str:
    return (
        f"decimal({found.precision}, {found.scale})"
        if found.logical == "decimal"
        else found.logical or found.kind
    )


def _why(error: BaseException) -> str:
    return (
        "it ends within the record"
        if isinstance(error, EOFError)
        else f"it is no record of the schema ({type(error).__name__}: {error})"
    )


# -- from Avro -------------------------------------------------------------------------------------


def row_maker(found: AvroType, is_changed: bool = False) -> Convert:
    """What makes a row of the dict that ``fastavro`` reads; of one that it made of another
    schema's, if ``is_changed``."""
    names = tuple(each.name for each in found.fields)
    taken = itemgetter(*names) if names else dict
    nested = [
        (at, convert)
        for at, convert in enumerate(_converter(each.type, is_changed) for each in found.fields)
        if convert is not None
    ]

    def row(record: dict[str, Any]) -> Any:
        values = [*taken(record)] if len(names) > 1 else [record[name] for name in names]
        for at, convert in nested:
            if values[at] is not None:
                values[at] = convert(values[at])
        return named_row(names, values)

    return row


def _converter(found: AvroType, is_changed: bool) -> Convert | None:
    """What makes the value of a row; None if it is one already."""
    if found.kind == "record":
        return row_maker(found, is_changed)
    if found.kind == "float" and is_changed:
        return short_float  # integers and defaults have more digits
    if found.logical == "decimal":
        return lambda value: decimal_of(value, found)
    if found.kind == "int" and found.logical is None:
        return _int
    if found.kind in ("bytes", "fixed"):
        return _bytes
    if found.logical is not None:
        return lambda value: (
            _moment(value, found.logical or "") if value.__class__ is int else value
        )
    inner = None if found.inner is None else _converter(found.inner, is_changed)
    if inner is None:
        return None
    if found.kind == "array":
        return lambda value: [None if each is None else inner(each) for each in value]
    return lambda value: {key: None if each is None else inner(each) for key, each in value.items()}


def _bytes(value: Any) -> bytes:
    """The bytes; a default stands in the schema as text, and ``fastavro`` gives it as it stands
    there."""
    return value.encode("latin-1") if isinstance(value, str) else value


def _moment(value: int, logical: str) -> Any:
    """The date, the time of day or the datetime of a default, which ``fastavro`` gives as the
    integer that it is in the schema."""
    if logical == "date":
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=value)
    zone = datetime.timezone.utc if logical.startswith("timestamp") else None
    moment = datetime.datetime(1970, 1, 1, tzinfo=zone) + datetime.timedelta(
        microseconds=value * (1000 if logical.endswith("millis") else 1)
    )
    return moment.time() if logical.startswith("time-") else moment


def _int(value: int) -> int:
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} is no int, which has 32 bits")
    return value


def decimal_of(value: Any, found: AvroType) -> Decimal:
    """The decimal whose digits are an integer in these bytes. Raises ValueError if it has more
    digits than its type."""
    number = int.from_bytes(_bytes(value), "big", signed=True)
    if abs(number) >= 10**found.precision:
        raise ValueError(
            f"{number!r:.80} has more digits than a decimal({found.precision}, {found.scale})"
        )
    return Decimal(number).scaleb(-found.scale, ALL_DIGITS)


# -- to Avro ---------------------------------------------------------------------------------------


def _writer_of(found: AvroType) -> Convert:
    """What makes of a row's value what ``fastavro`` can write. It writes some values cut short, so
    they are checked."""
    write = _present(found)
    if found.kind in ("null", "union"):
        return write

    def checked(value: Any) -> Any:
        if value is None:
            if found.null_branch is None:
                raise ValueError("it is None, and the schema allows no null")
            return None
        return write(value)

    return checked


def _present(found: AvroType) -> Convert:
    if found.kind == "record":
        return _record(found)
    if found.inner is not None:
        inner = _writer_of(found.inner)
        if found.kind == "array":
            return lambda value: list(map(inner, elements(value)))
        return lambda value: {_key(key): inner(each) for key, each in entries(value)}
    exact = exactly(found.declared())
    if exact is None:
        return lambda value: value
    check = _CHECKS.get(found.logical or found.kind)
    return exact if check is None else lambda value: check(exact(value), found)


def _record(found: AvroType) -> Convert:
    declared = found.declared()
    assert isinstance(declared, RowTypeInfo)
    in_order, names = fields_in_order(declared), declared.field_names
    writers = [_writer_of(each.type) for each in found.fields]
    return lambda value: dict(zip(names, each_converted(names, writers, in_order(value))))


def _key(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(
            f"{value!r:.80} ({type(value).__name__}) is a key of a map, and in Avro those are texts"
        )
    return str.__str__(value)


def _symbol(value: str, found: AvroType) -> str:
    if value not in found.symbols:
        raise ValueError(f"{value!r:.80} is none of the enum's symbols: {', '.join(found.symbols)}")
    return value


def _fixed(value: bytes, found: AvroType) -> bytes:
    if len(value) != found.size:
        raise ValueError(f"{len(value)} bytes do not fill a fixed of {found.size}")
    return value


def _whole_milliseconds(value: Any, found: AvroType) -> Any:
    if value.microsecond % 1000:
        raise ValueError(f"{value!r:.80} has parts of milliseconds, which {found.logical} has not")
    return value


def _in_microseconds(value: Any, found: AvroType) -> Any:
    if not hasattr(value, "microsecond"):  # an Instant
        raise ValueError(
            f"{value!r:.80} is an Instant; give a datetime with a zone for {found.logical}"
        )
    return _whole_milliseconds(value, found) if found.logical == "timestamp-millis" else value


def _decimal(value: Any, found: AvroType) -> Any:
    if not value.is_finite():
        raise ValueError(
            f"{value!r:.80} is no number of a decimal({found.precision}, {found.scale})"
        )
    _, digits, exponent = value.as_tuple()
    if -exponent > found.scale and any(
        digits[exponent + found.scale :] if exponent + found.scale > -len(digits) else digits
    ):
        raise ValueError(f"{value!r:.80} has more than {found.scale} decimals")
    if value and value.adjusted() + 1 + found.scale > found.precision:
        raise ValueError(
            f"{value!r:.80} has more digits than a decimal({found.precision}, {found.scale})"
        )
    return value


_CHECKS: dict[str, Callable[[Any, AvroType], Any]] = {
    "enum": _symbol,
    "fixed": _fixed,
    "time-millis": _whole_milliseconds,
    "local-timestamp-millis": _whole_milliseconds,
    "timestamp-millis": _in_microseconds,
    "timestamp-micros": _in_microseconds,
    "decimal": _decimal,
}
