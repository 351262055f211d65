"""A Protobuf message with a field of every kind, as protoc would generate it, and rows of it."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)
from hypothesis import strategies as st

from flinkpy.common import Row
from tests.formats.drawn import INSTANTS, TEXTS, or_none

PROTO = descriptor_pb2.FieldDescriptorProto
SINGLE: dict[int, st.SearchStrategy[Any]] = {
    PROTO.TYPE_DOUBLE: st.floats(),
    PROTO.TYPE_FLOAT: st.floats(width=32),
    PROTO.TYPE_BOOL: st.booleans(),
    PROTO.TYPE_STRING: TEXTS,
    PROTO.TYPE_BYTES: st.binary(max_size=5),
    PROTO.TYPE_ENUM: st.sampled_from(["NONE", "SMALL", "LARGE", "7"]),
    **{
        kind: st.integers(-(1 << 31), (1 << 31) - 1)
        for kind in (PROTO.TYPE_INT32, PROTO.TYPE_SINT32, PROTO.TYPE_SFIXED32)
    },
    **{
        kind: st.integers(-(1 << 63), (1 << 63) - 1)
        for kind in (PROTO.TYPE_INT64, PROTO.TYPE_SINT64, PROTO.TYPE_SFIXED64)
    },
    **{kind: st.integers(0, (1 << 32) - 1) for kind in (PROTO.TYPE_UINT32, PROTO.TYPE_FIXED32)},
    **{kind: st.integers(0, (1 << 64) - 1) for kind in (PROTO.TYPE_UINT64, PROTO.TYPE_FIXED64)},
}


class _File:
    """Adds fields to the message, and collects the values of each."""

    def __init__(self) -> None:
        self.file = descriptor_pb2.FileDescriptorProto(
            name="kinds.proto", package="test", syntax="proto3"
        )
        self.file.dependency.extend(
            ["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"]
        )
        size = self.file.enum_type.add(name="Size")
        for number, name in enumerate(["NONE", "SMALL", "LARGE"]):
            size.value.add(name=name, number=number)
        inner = self.file.message_type.add(name="Inner")
        inner.field.add(name="n", number=1, type=PROTO.TYPE_INT32, label=PROTO.LABEL_OPTIONAL)
        inner.field.add(
            name="at",
            number=2,
            type=PROTO.TYPE_MESSAGE,
            type_name=".google.protobuf.Timestamp",
            label=PROTO.LABEL_OPTIONAL,
        )
        self.message = self.file.message_type.add(name="Outer").nested_type.add(name="Kinds")
        self.values: dict[str, st.SearchStrategy[Any]] = {}

    def add(
        self,
        name: str,
        kind: int,
        values: st.SearchStrategy[Any],
        type_name: str = "",
        label: int = PROTO.LABEL_OPTIONAL,
        is_optional: bool = False,
    ) -> None:
        field = self.message.field.add(
            name=name,
            number=len(self.message.field) + 1,
            type=kind,
            label=label,
            type_name=type_name or None,
        )
        if is_optional:
            field.proto3_optional, field.oneof_index = True, len(self.message.oneof_decl)
            self.message.oneof_decl.add(name=f"_{name}")
        self.values[name] = or_none(values) if is_optional else values

    def add_map(
        self,
        name: str,
        key: int,
        keys: st.SearchStrategy[Any],
        kind: int,
        values: st.SearchStrategy[Any],
        type_name: str = "",
    ) -> None:
        entry = self.message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=key, label=PROTO.LABEL_OPTIONAL)
        entry.field.add(
            name="value",
            number=2,
            type=kind,
            type_name=type_name or None,
            label=PROTO.LABEL_OPTIONAL,
        )
        self.add(
            name,
            PROTO.TYPE_MESSAGE,
            st.dictionaries(keys, values, max_size=2),
            f".test.Outer.Kinds.{name.title()}Entry",
            PROTO.LABEL_REPEATED,
        )


@cache
def old_kinds() -> Any:
    """The class of a message of proto2, whose texts are not checked, with a oneof."""
    file = descriptor_pb2.FileDescriptorProto(name="old.proto", package="old", syntax="proto2")
    message = file.message_type.add(name="Old")
    message.oneof_decl.add(name="either")
    message.field.add(
        name="number", number=1, type=PROTO.TYPE_INT32, label=PROTO.LABEL_OPTIONAL, oneof_index=0
    )
    message.field.add(
        name="text", number=2, type=PROTO.TYPE_STRING, label=PROTO.LABEL_OPTIONAL, oneof_index=0
    )
    message.field.add(name="name", number=3, type=PROTO.TYPE_STRING, label=PROTO.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("old.Old"))


@cache
def kinds() -> tuple[Any, st.SearchStrategy[Row]]:
    """The class, and rows of it."""
    file = _File()
    inner = st.builds(lambda n, at: Row(n=n, at=at), SINGLE[PROTO.TYPE_INT32], or_none(INSTANTS))
    for kind, values in SINGLE.items():
        name = PROTO.Type.Name(kind)[5:].lower()
        type_name = ".test.Size" if kind == PROTO.TYPE_ENUM else ""
        file.add(f"a_{name}", kind, values, type_name)
        file.add(f"maybe_{name}", kind, values, type_name, is_optional=True)
        file.add(f"all_{name}", kind, st.lists(values, max_size=2), type_name, PROTO.LABEL_REPEATED)
    for name, values in (
        ("Inner", inner),
        ("Timestamp", INSTANTS),
        ("Int32Value", SINGLE[PROTO.TYPE_INT32]),
        ("StringValue", TEXTS),
    ):
        type_name = ".test.Inner" if name == "Inner" else f".google.protobuf.{name}"
        file.add(f"a_{name}", PROTO.TYPE_MESSAGE, or_none(values), type_name)
        file.add(
            f"all_{name}",
            PROTO.TYPE_MESSAGE,
            st.lists(values, max_size=2),
            type_name,
            PROTO.LABEL_REPEATED,
        )
    file.add_map("counts", PROTO.TYPE_STRING, TEXTS, PROTO.TYPE_INT64, SINGLE[PROTO.TYPE_INT64])
    file.add_map(
        "inners",
        PROTO.TYPE_INT32,
        SINGLE[PROTO.TYPE_INT32],
        PROTO.TYPE_MESSAGE,
        inner,
        ".test.Inner",
    )
    pool = descriptor_pool.DescriptorPool()
    for imported in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(imported.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.file.SerializeToString())
    names = tuple(file.values)
    rows = st.tuples(*file.values.values()).map(lambda values: Row(*names)(*values))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Outer.Kinds")), rows
