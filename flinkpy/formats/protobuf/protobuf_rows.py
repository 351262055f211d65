"""Protobuf messages one by one: as rows with their fields, or as objects of the generated class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from flinkpy.common.serialization import DeserializationSchema, SerializationSchema
from flinkpy.common.time import Instant
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.common.types import named_row
from flinkpy.core.errors import ProgramError
from flinkpy.formats.exact_values import elements, entries, exactly, fields_in_order, in_field
from flinkpy.formats.parsed_texts import utc_of
from flinkpy.formats.port import MalformedMessageError
from flinkpy.formats.protobuf.protobuf_types import (
    TIMESTAMP,
    MessageClass,
    OfMessageClass,
    ProtobufField,
    ProtobufType,
    row_type_of_message,
)

Convert: TypeAlias = Callable[[Any], Any]


class ProtobufRowDeserializationSchema(DeserializationSchema, OfMessageClass):
    """Rows with the fields of a message. Bytes that are no such message raise
    MalformedMessageError.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> ProtobufRowDeserializationSchema(Timestamp).deserialize(b"\\x08\\x07")
    Row(seconds=7, nanos=0)
    """

    def __init__(self, message_class: Any) -> None:
        self._class = MessageClass.of(message_class, "ProtobufRowDeserializationSchema")
        self._type = row_type_of_message(self._class.type)
        self._parse, self._row = self._class.make.FromString, row_of_message(self._class.type)

    def deserialize(self, data: bytes) -> Any:
        """The row."""
        message = parsed(self._parse, data)
        try:
            return self._row(message)
        except ValueError as error:
            raise MalformedMessageError(None, str(error), data) from error

    def get_produced_type(self) -> TypeInformation:
        return self._type


class ProtobufRowSerializationSchema(SerializationSchema, OfMessageClass):
    """Rows as messages of a generated class. Raises ProgramError for a value that its field does
    not have.

    >>> from flinkpy.common import Row
    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> ProtobufRowSerializationSchema(Timestamp).serialize(Row(seconds=7, nanos=0))
    b'\\x08\\x07'
    """

    def __init__(self, message_class: Any) -> None:
        self._class = MessageClass.of(message_class, "ProtobufRowSerializationSchema")
        self._fill = message_filler(self._class.type)

    def serialize(self, value: Any) -> bytes:
        """The row as a message."""
        message = self._class.make()
        try:
            self._fill(message, value)
            encoded: bytes = message.SerializeToString()
        except Exception as error:
            # a message without its required fields, and a value that the field does not have
            raise ProgramError(f"{value!r:.100} cannot be written as Protobuf: {error}") from error
        return encoded


class ProtobufDeserializationSchema(DeserializationSchema):
    """Objects of a generated class, which must be importable on the workers.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> ProtobufDeserializationSchema(Timestamp).deserialize(b"\\x08\\x07").seconds
    7
    """

    def __init__(self, message_class: Any) -> None:
        MessageClass(message_class, "ProtobufDeserializationSchema")
        self._class = message_class

    def deserialize(self, data: bytes) -> Any:
        """The message."""
        return parsed(self._class.FromString, data)


class ProtobufSerializationSchema(SerializationSchema):
    """Objects of generated classes as bytes.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> ProtobufSerializationSchema().serialize(Timestamp(seconds=7))
    b'\\x08\\x07'
    """

    def serialize(self, value: Any) -> bytes:
        """The message's bytes."""
        if not hasattr(value, "SerializeToString"):
            raise ProgramError(
                f"{value!r:.100} is no object of a generated class: make one of it, or give "
                "rows to "
                "ProtobufRowSerializationSchema(class)"
            )
        try:
            encoded: bytes = value.SerializeToString()
        except Exception as error:
            raise ProgramError(f"{value!r:.100} cannot be written as Protobuf: {error}") from error
        return encoded


def parsed(parse: Callable[[bytes], Any], data: bytes) -> Any:
    """The message. Raises MalformedMessageError for bytes that are none."""
    try:
        return parse(data)
    except Exception as error:  # google.protobuf.message.DecodeError, and others in some versions
        raise MalformedMessageError(
            None, f"it is no such message ({type(error).__name__}: {error})", data
        ) from error


# -- from Protobuf ---------------------------------------------------------------------------------


def row_of_message(found: ProtobufType) -> Convert:
    """What makes a row of a message."""
    names = tuple(each.name for each in found.fields)
    taken = attrgetter(*names) if names else None
    others = [
        (at, _getter(each))
        for at, each in enumerate(found.fields)
        if not each.is_plain or each.may_be_none
    ]

    def row(message: Any) -> Any:
        values = [] if taken is None else [*taken(message)] if len(names) > 1 else [taken(message)]
        for at, get in others:
            values[at] = get(message, values[at])
        return named_row(names, values)

    return row


def _getter(field: ProtobufField) -> Callable[[Any, Any], Any]:
    """What makes the value of a row of a message and of what it gives for the field."""
    name, value = field.name, value_of(field.type)
    if field.key is not None:
        return lambda message, given: {key: value(each) for key, each in _items(given)}
    if field.is_list:
        return lambda message, given: list(map(value, given))
    if field.may_be_none:
        return lambda message, given: value(given) if message.HasField(name) else None
    return lambda message, given: value(given)


def _items(entries_of_map: Any) -> list[tuple[Any, Any]]:
    return [(key, entries_of_map[key]) for key in entries_of_map]


def value_of(found: ProtobufType) -> Convert:
    """What makes the value of a row of what a message gives for it."""
    if found.wraps:
        return lambda wrapper: wrapper.value
    if found.kind == "MESSAGE":
        return row_of_message(found)
    if found.kind == TIMESTAMP:
        return lambda stamp: utc_of(stamp.seconds, stamp.nanos)
    if found.kind == "ENUM":
        symbols = {number: name for name, number in reversed(found.symbols)}
        return lambda number: symbols[number] if number in symbols else str(number)
    return _checked_text if found.is_unchecked else lambda value: value


def _checked_text(value: Any) -> str:
    if not isinstance(value, str):  # what is no UTF-8, Protobuf gives as bytes
        raise ValueError(f"{value!r:.80} is no UTF-8, in which Protobuf holds texts")
    return value


# -- to Protobuf -----------------------------------------------------------------------------------


def message_filler(found: ProtobufType) -> Callable[[Any, Any], None]:
    """What sets the fields of a message to those of a row."""
    in_order = fields_in_order(row_type_of_message(found))
    names = [each.name for each in found.fields]
    setters = [_setter(each) for each in found.fields]
    choices = choices_of(found)

    def fill(message: Any, value: Any) -> None:
        values = in_order(value)
        for oneof, places in choices:
            if sum(values[at] is not None for at in places) > 1:
                raise ValueError(
                    f"{value!r:.80} has several members of the oneof {oneof!r}, and a message "
                    "has one of them"
                )
        try:
            for put, each in zip(setters, values):
                put(message, each)
        except Exception:
            for name, put, each in zip(names, setters, values):
                in_field(name, partial(put, message))(each)
            raise

    return fill


def choices_of(found: ProtobufType) -> list[tuple[str, list[int]]]:
    """The oneofs of several fields, and the places of these."""
    places: dict[str, list[int]] = {}
    for at, field in enumerate(found.fields):
        if field.oneof is not None:
            places.setdefault(field.oneof, []).append(at)
    return [(oneof, members) for oneof, members in places.items() if len(members) > 1]


def _setter(field: ProtobufField) -> Callable[[Any, Any], None]:
    put = (
        _list_setter(field)
        if field.is_list
        else _map_setter(field)
        if field.key is not None
        else _single_setter(field)
    )

    def put_unless_none(message: Any, value: Any) -> None:
        if value is not None:
            put(message, value)
        elif not field.may_be_none:
            raise ValueError("it is None, and the field has no presence; declare it optional")

    return put_unless_none


def _single_setter(field: ProtobufField) -> Callable[[Any, Any], None]:
    name, found = field.name, field.type
    if found.kind in ("MESSAGE", TIMESTAMP) or found.wraps:
        fill = _filler(found)

        def put(message: Any, value: Any) -> None:
            inner = getattr(message, name)
            inner.SetInParent()
            fill(inner, value)

        return put
    exact = protobuf_value(found)
    return lambda message, value: setattr(message, name, exact(value))


def _filler(found: ProtobufType) -> Callable[[Any, Any], None]:
    if found.kind == TIMESTAMP:
        return _fill_timestamp
    if found.wraps:
        exact = protobuf_value(found)
        return lambda wrapper, value: setattr(wrapper, "value", exact(value))
    return message_filler(found)


def _fill_timestamp(stamp: Any, value: Any) -> None:
    exact = exactly(ProtobufType(TIMESTAMP).declared())
    assert exact is not None
    moment = exact(value)
    if isinstance(moment, Instant):
        stamp.seconds, stamp.nanos = moment.seconds, moment.nanos
    else:
        stamp.FromDatetime(moment)


def _list_setter(field: ProtobufField) -> Callable[[Any, Any], None]:
    name, found = field.name, field.type
    if found.kind in ("MESSAGE", TIMESTAMP) or found.wraps:
        fill = _filler(found)

        def add(message: Any, value: Any) -> None:
            for each in elements(value):
                _check_none(each)
                fill(getattr(message, name).add(), each)

        return add
    exact = protobuf_value(found)
    return lambda message, value: getattr(message, name).extend(
        [exact(_check_none(each)) for each in elements(value)]
    )


def _map_setter(field: ProtobufField) -> Callable[[Any, Any], None]:
    assert field.key is not None
    name, found, key_of = field.name, field.type, protobuf_value(field.key)
    is_message = found.kind in ("MESSAGE", TIMESTAMP) or found.wraps
    fill = _filler(found) if is_message else None
    exact = None if is_message else protobuf_value(found)

    def put(message: Any, value: Any) -> None:
        target = getattr(message, name)
        for key, each in entries(value):
            _check_none(each)
            if fill is not None:
                fill(target[key_of(_check_none(key))], each)
            elif exact is not None:
                target[key_of(_check_none(key))] = exact(each)

    return put


def _check_none(value: Any) -> Any:
    if value is None:
        raise ValueError("there is a None in it, and lists and maps of Protobuf have none")
    return value


def protobuf_value(found: ProtobufType) -> Convert:
    """What makes of a row's single value what the field takes."""
    exact = exactly(found.declared())
    assert exact is not None
    if found.kind != "ENUM":
        return exact
    numbers = dict(found.symbols)

    def number(value: Any) -> int:
        name = exact(value)
        if name in numbers:
            return numbers[name]
        try:
            return int(name)
        except ValueError:
            raise ValueError(f"{name!r:.80} is no name of the enum: {', '.join(numbers)}") from None

    return number
