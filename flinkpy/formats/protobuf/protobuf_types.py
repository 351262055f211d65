"""Protobuf messages: their fields as declared types and as Arrow's.

A field that knows whether it was set (``optional``, a message, a member of a ``oneof``) is None if
it was not. Other fields have no None. Of the members of a ``oneof`` at most one is set. An enum's
value is its name, or its number as text if the enum has no name for it. A ``Timestamp`` is an
instant, and a wrapper such as ``Int32Value`` is its value or None."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkpy.columns.values.arrow_types import arrow_type
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkpy.core.program.extras import imported
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.port import RegisteredFormat, RegisteredSchema

_SINGLE: dict[str, Any] = {
    **dict.fromkeys(("INT32", "SINT32", "SFIXED32"), Types.INT),
    **dict.fromkeys(("UINT32", "FIXED32"), Types.LONG),
    **dict.fromkeys(("INT64", "SINT64", "SFIXED64"), Types.LONG),
    **dict.fromkeys(("UINT64", "FIXED64"), Types.BIG_INT),
    "FLOAT": Types.FLOAT,
    "DOUBLE": Types.DOUBLE,
    "BOOL": Types.BOOLEAN,
    "STRING": Types.STRING,
    "ENUM": Types.STRING,
    "BYTES": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
}
_UNSIGNED: dict[str, Any] = {
    **dict.fromkeys(("UINT32", "FIXED32"), pa.uint32()),
    **dict.fromkeys(("UINT64", "FIXED64"), pa.uint64()),
}
TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


@dataclass(frozen=True)
class ProtobufType:
    """The type of one value. ``kind`` is Protobuf's name for it; ``wraps`` says that the value is
    in a wrapper. ``is_unchecked``: it is a text, and the parser of proto2 does not see whether it
    is UTF-8."""

    kind: str
    fields: tuple[ProtobufField, ...] = ()  # of a message
    symbols: tuple[tuple[str, int], ...] = ()  # of an enum
    wraps: bool = False
    is_unchecked: bool = False

    def declared(self) -> TypeInformation:
        """The declared type of its values in rows."""
        if self.kind == "MESSAGE":
            return Types.ROW_NAMED(
                [each.name for each in self.fields], [each.declared() for each in self.fields]
            )
        found: TypeInformation = Types.INSTANT() if self.kind == TIMESTAMP else _SINGLE[self.kind]()
        return found

    def arrow(self) -> Any:
        """Arrow's type of its columns."""
        if self.kind == "MESSAGE":
            return pa.struct([pa.field(each.name, each.arrow()) for each in self.fields])
        return _UNSIGNED.get(self.kind) or arrow_type(self.declared())


@dataclass(frozen=True)
class ProtobufField:
    """A field of a message: one value, a list, or a map with keys of the type ``key``."""

    name: str
    type: ProtobufType
    is_list: bool = False
    key: ProtobufType | None = None
    may_be_none: bool = False
    oneof: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the message gives and takes the value of a row as it is."""
        is_single = self.type.kind in _SINGLE and not (
            self.type.wraps or self.is_list or self.key is not None
        )
        return is_single and self.type.kind != "ENUM" and not self.type.is_unchecked

    def declared(self) -> TypeInformation:
        """The declared type of its values in rows."""
        inner = self.type.declared()
        if self.key is not None:
            return Types.MAP(self.key.declared(), inner)
        return Types.LIST(inner) if self.is_list else inner

    def arrow(self) -> Any:
        """Arrow's type of its columns."""
        inner = self.type.arrow()
        if self.key is not None:
            return pa.map_(self.key.arrow(), inner)
        return pa.list_(inner) if self.is_list else inner


def message_type(message_class: Any, where: str) -> ProtobufType:
    """The type of a generated class's messages. Raises ProgramError for anything else, and for a
    message that contains itself."""
    require_protobuf()
    descriptor = getattr(message_class, "DESCRIPTOR", None)
    if not isinstance(message_class, type) or not hasattr(descriptor, "fields_by_name"):
        raise refuse(
            f"{where} takes a class that protoc generated, such as visits_pb2.Visit, this is "
            f"{message_class!r:.80}"
        )
    return _message(descriptor, ())


def row_type_of_message(found: ProtobufType) -> RowTypeInfo:
    """The declared type of a message's rows."""
    declared = found.declared()
    assert isinstance(declared, RowTypeInfo)
    return declared


def require_protobuf() -> None:
    """Raises ProgramError with what to install where the package is missing."""
    imported("google.protobuf.message", "protobuf", "Protobuf")


def _message(descriptor: Any, within: tuple[str, ...]) -> ProtobufType:
    if descriptor.full_name in within:
        raise refuse(
            f"the Protobuf message {descriptor.full_name} contains itself, and rows and "
            "columns have no such type"
        )
    inside = (*within, descriptor.full_name)
    return ProtobufType("MESSAGE", tuple(_field(each, inside) for each in descriptor.fields))


def _field(field: Any, within: tuple[str, ...]) -> ProtobufField:
    if _is_list(field):
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            keys, values = entry.fields_by_name["key"], entry.fields_by_name["value"]
            return ProtobufField(field.name, _value(values, within), key=_value(keys, within))
        return ProtobufField(field.name, _value(field, within), is_list=True)
    oneof = field.containing_oneof
    return ProtobufField(
        field.name,
        _value(field, within),
        may_be_none=field.has_presence,
        oneof=None if oneof is None else oneof.name,
    )


def _is_list(field: Any) -> bool:
    return (
        bool(field.is_repeated)
        if hasattr(field, "is_repeated")
        else field.label == field.LABEL_REPEATED
    )


def _value(field: Any, within: tuple[str, ...]) -> ProtobufType:
    kind = _KINDS[field.type]
    if kind == "ENUM":
        return ProtobufType(
            kind, symbols=tuple((each.name, each.number) for each in field.enum_type.values)
        )
    if kind != "MESSAGE":
        return ProtobufType(kind, is_unchecked=kind == "STRING" and _syntax(field.file) != "proto3")
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return ProtobufType(TIMESTAMP)
    if name in WRAPPERS:
        return ProtobufType(
            _value(field.message_type.fields_by_name["value"], within).kind, wraps=True
        )
    return _message(field.message_type, within)


def _syntax(file: Any) -> str:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    described = FileDescriptorProto()
    file.CopyToProto(described)
    syntax: str = described.syntax
    return syntax


_KINDS = dict(
    enumerate(
        (  # as descriptor.proto numbers them
            "DOUBLE",
            "FLOAT",
            "INT64",
            "UINT64",
            "INT32",
            "FIXED64",
            "FIXED32",
            "BOOL",
            "STRING",
            "MESSAGE",
            "MESSAGE",
            "BYTES",
            "UINT32",
            "ENUM",
            "SFIXED32",
            "SFIXED64",
            "SINT32",
            "SINT64",
        ),
        start=1,
    )
)


# -- a class of messages that travels --------------------------------------------------------------


class MessageClass:
    """A class of messages, with its type. It is pickled as its descriptors, so that it need not be
    importable where it is used."""

    def __init__(self, message_class: Any, where: str = "Protobuf") -> None:
        self.type = message_type(message_class, where)
        self.make = message_class

    @staticmethod
    def of(given: Any, where: str) -> MessageClass:
        """The class that a program gave."""
        return given if isinstance(given, MessageClass) else MessageClass(given, where)

    @property
    def place(self) -> list[int]:
        """Where its file defines the message: its place among the messages, and among those inside
        it."""
        descriptor, places = self.make.DESCRIPTOR, []
        while descriptor is not None:
            holder = descriptor.containing_type
            siblings = (
                descriptor.file.message_types_by_name.values()
                if holder is None
                else holder.nested_types
            )
            places.append([each.full_name for each in siblings].index(descriptor.full_name))
            descriptor = holder
        return places[::-1]

    def registered(self) -> RegisteredSchema:
        """Its file for a schema registry: the descriptor in Base64, as other clients of registries
        write it. Files that it imports, but for Google's own, are references."""
        return _registered(self.make.DESCRIPTOR.file)

    def __reduce__(self) -> tuple[Any, ...]:
        files: dict[str, bytes] = {}
        _add_files(self.make.DESCRIPTOR.file, files)
        return _class_of, (self.make.DESCRIPTOR.full_name, tuple(files.values()))


class OfMessageClass(RegisteredFormat):
    """What all formats of one class of messages have in common. They are made from it alone."""

    _class: MessageClass

    def registered(self) -> RegisteredSchema:
        return self._class.registered()

    @property
    def places(self) -> list[int]:
        return self._class.place

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._class,)


def _add_files(file: Any, files: dict[str, bytes]) -> None:
    """Adds the file behind all files that it imports."""
    if file.name not in files:
        for each in file.dependencies:
            _add_files(each, files)
        files[file.name] = file.serialized_pb


def _registered(file: Any) -> RegisteredSchema:
    imported = [each for each in file.dependencies if not each.name.startswith("google/protobuf/")]
    return RegisteredSchema(
        "PROTOBUF",
        base64.b64encode(file.serialized_pb).decode(),
        tuple((each.name, _registered(each)) for each in imported),
    )


def _class_of(full_name: str, files: tuple[bytes, ...]) -> MessageClass:
    require_protobuf()
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file)
    return MessageClass(message_factory.GetMessageClass(pool.FindMessageTypeByName(full_name)))
