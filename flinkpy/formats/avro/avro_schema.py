"""Avro schemas: their types as declared types and as Arrow's.

A ``timestamp-millis`` or ``timestamp-micros`` is an instant, a ``local-timestamp-…`` has no zone. A
union of null and one other type is that type; any other union has no column type, and its values in
rows are as ``fastavro`` reads them. A ``uuid`` is its text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from flinkpy.columns.values.arrow_types import arrow_type
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.extras import imported
from flinkpy.core.program.program_line import refuse

_PRIMITIVE: dict[str, Any] = {
    "boolean": Types.BOOLEAN,
    "int": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "string": Types.STRING,
    "bytes": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
}
_LOGICAL: dict[tuple[str, str], Any] = {
    ("int", "date"): Types.SQL_DATE,
    ("int", "time-millis"): Types.SQL_TIME,
    ("long", "time-micros"): Types.SQL_TIME,
    ("long", "timestamp-millis"): Types.INSTANT,
    ("long", "timestamp-micros"): Types.INSTANT,
    ("long", "local-timestamp-millis"): Types.SQL_TIMESTAMP,
    ("long", "local-timestamp-micros"): Types.SQL_TIMESTAMP,
    ("bytes", "decimal"): Types.BIG_DEC,
    ("fixed", "decimal"): Types.BIG_DEC,
}
_MOST_DIGITS = 76


@dataclass(frozen=True)
class AvroType:
    """One type of a schema. ``kind`` is Avro's name for it; ``null_branch`` is the place of null in
    a union of null and this type."""

    kind: str
    name: str = ""  # of a record, an enum, a fixed
    logical: str | None = None
    null_branch: int | None = None
    fields: tuple[AvroField, ...] = ()
    inner: AvroType | None = None  # of an array's items, of a map's values
    symbols: tuple[str, ...] = ()
    size: int = 0  # of a fixed
    precision: int = 0
    scale: int = 0

    @property
    def has_columns(self) -> bool:
        """Whether there is a column type for it."""
        return (
            self.kind != "union"
            and all(each.type.has_columns for each in self.fields)
            and (self.inner is None or self.inner.has_columns)
        )

    def declared(self) -> TypeInformation:
        """The declared type of its values in rows."""
        if self.kind == "record":
            return Types.ROW_NAMED(
                [each.name for each in self.fields], [each.type.declared() for each in self.fields]
            )
        if self.inner is not None:
            inner = self.inner.declared()
            return Types.LIST(inner) if self.kind == "array" else Types.MAP(Types.STRING(), inner)
        made = _LOGICAL.get((self.kind, self.logical or "")) or _PRIMITIVE.get(
            {"enum": "string", "fixed": "bytes"}.get(self.kind, self.kind)
        )
        found: TypeInformation = Types.PICKLED_BYTE_ARRAY() if made is None else made()
        return found

    def arrow(self) -> Any:
        """Arrow's type of its columns. Raises ProgramError for a union of several types, and for a
        decimal with more digits than Arrow has."""
        if self.kind == "union":
            raise ProgramError(
                "a column has one type, and a union of Avro has several; read it as rows"
            )
        if self.kind == "record":
            return pa.struct([pa.field(each.name, each.type.arrow()) for each in self.fields])
        if self.inner is not None:
            return (
                pa.list_(self.inner.arrow())
                if self.kind == "array"
                else pa.map_(pa.string(), self.inner.arrow())
            )
        if self.logical == "decimal":
            if not 1 <= self.precision <= _MOST_DIGITS:
                raise refuse(
                    f"a column has decimals of 1 to {_MOST_DIGITS} digits, and the Avro "
                    f"schema has decimal({self.precision}, {self.scale}); "
                    "read it as rows"
                )
            return (pa.decimal128 if self.precision <= 38 else pa.decimal256)(
                self.precision, self.scale
            )
        if self.kind == "null":
            return pa.null()
        return pa.binary(self.size) if self.kind == "fixed" else arrow_type(self.declared())


@dataclass(frozen=True)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    default: Any = field(default=None, hash=False)
    has_default: bool = False


class AvroSchema:
    """A parsed schema.

    >>> str(
    ...     AvroSchema.parse_string(
    ...         '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}'
    ...     )
    ... )
    '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}'
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def __str__(self) -> str:
        return json.dumps(self._schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(json.dumps(self._schema, sort_keys=True))

    @property
    def schema(self) -> Any:
        """The schema as Python reads its JSON."""
        return self._schema

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema in a text. Raises ProgramError for a text that is no Avro schema."""
        try:
            found = json.loads(json_schema)
        except (TypeError, ValueError) as error:
            raise refuse(f"the Avro schema is no JSON: {error}") from None
        fastavro_schema(found)
        return AvroSchema(found)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema in a file."""
        try:
            with open(file_path, encoding="utf-8-sig") as file:
                return AvroSchema.parse_string(file.read())
        except OSError as error:
            raise refuse(f"the Avro schema cannot be read: {error}") from None


class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of the records of an Avro schema: dicts, or rows with its fields.

    >>> GenericRecordAvroTypeInfo(
    ...     AvroSchema.parse_string('{"type": "record", "name": "r", "fields": []}')
    ... ).schema.schema["name"]
    'r'
    """

    def __init__(self, schema: AvroSchema) -> None:
        if not isinstance(schema, AvroSchema):
            raise refuse(f"GenericRecordAvroTypeInfo takes an AvroSchema, this is {schema!r:.80}")
        self.schema = schema

    def _parts(self) -> tuple[Any, ...]:
        return (self.schema,)

    def __str__(self) -> str:
        return f"GenericRecordAvroTypeInfo({self.schema})"

    def __repr__(self) -> str:
        return f"GenericRecordAvroTypeInfo(AvroSchema.parse_string({str(self.schema)!r}))"


def fastavro_schema(schema: Any) -> Any:
    """The schema in the form that ``fastavro`` works with. Raises ProgramError for something that
    is no schema."""
    fastavro = require_fastavro()
    try:
        return fastavro.parse_schema(schema)
    except (
        Exception
    ) as error:  # fastavro has many kinds of errors for wrong schemas, KeyError among them
        raise refuse(
            f"this is no Avro schema ({type(error).__name__}: {error}): {schema!r:.100}"
        ) from None


def require_fastavro() -> Any:
    """The package. Raises ProgramError with what to install where it is missing."""
    return imported("fastavro", "avro", "Avro")


def record_type(schema: AvroSchema, where: str) -> AvroType:
    """The type of the schema's records. Raises ProgramError if it is not one of records, or
    contains itself."""
    found = _type(schema.schema, {}, "", ())
    if found.kind != "record" or found.null_branch is not None:
        raise refuse(
            f"{where} takes the schema of a record, this is one of {found.kind}: {schema!s:.100}"
        )
    return found


def column_schema(found: AvroType, where: str) -> Any:
    """The schema of a record's columns. Raises ProgramError for a field with a union of several
    types."""
    for each in found.fields:
        if not each.type.has_columns:
            raise refuse(
                f"{where}: a column has one type, and field {each.name!r} is a union of "
                "several; only rows hold those"
            )
    return pa.schema([pa.field(each.name, each.type.arrow()) for each in found.fields])


def row_type_of_record(found: AvroType) -> RowTypeInfo:
    """The declared type of a record's rows."""
    declared = found.declared()
    assert isinstance(declared, RowTypeInfo)
    return declared


def _type(node: Any, named: dict[str, Any], namespace: str, within: tuple[str, ...]) -> AvroType:
    if isinstance(node, list):
        return _union(node, named, namespace, within)
    if isinstance(node, str):
        return _of_name(node, named, namespace, within)
    kind = node["type"]
    if isinstance(kind, (dict, list)):
        return _type(kind, named, namespace, within)
    if kind in ("record", "error", "enum", "fixed"):
        return _named(node, named, namespace, within)
    if kind in ("array", "map"):
        return AvroType(
            kind,
            inner=_type(node["items" if kind == "array" else "values"], named, namespace, within),
        )
    if kind in _PRIMITIVE or kind == "null":
        return AvroType(kind, **_logical(node, kind))
    return _of_name(kind, named, namespace, within)


def _logical(node: Mapping[str, Any], kind: str) -> dict[str, Any]:
    logical = node.get("logicalType")
    # which is no decimal, says Avro, but its bytes
    if (kind, logical) not in _LOGICAL or (logical == "decimal" and "precision" not in node):
        return {}
    return {
        "logical": logical,
        **(
            {"precision": node["precision"], "scale": node.get("scale", 0)}
            if logical == "decimal"
            else {}
        ),
    }


def _of_name(name: str, named: dict[str, Any], namespace: str, within: tuple[str, ...]) -> AvroType:
    if name in _PRIMITIVE or name == "null":
        return AvroType(name)
    full = _full_name(name, namespace)
    if full in within:
        raise refuse(
            f"the Avro record {full!r} contains itself, and rows and columns have no such type"
        )
    node, where = named.get(full) or named.get(name) or (None, "")
    if node is None:
        raise refuse(f"the Avro schema refers to {name!r}, which it does not define")
    return _named(node, named, where, within)


def _named(
    node: Mapping[str, Any], named: dict[str, Any], namespace: str, within: tuple[str, ...]
) -> AvroType:
    full = _full_name(node["name"], node.get("namespace", namespace))
    inside = full.rpartition(".")[0]
    named[full] = (node, namespace)
    if node["type"] == "enum":
        return AvroType("enum", full, symbols=tuple(node["symbols"]))
    if node["type"] == "fixed":
        return AvroType("fixed", full, size=node["size"], **_logical(node, "fixed"))
    fields = [
        AvroField(
            each["name"],
            _type(each["type"], named, inside, (*within, full)),
            tuple(each.get("aliases", ())),
            each.get("default"),
            "default" in each,
        )
        for each in node["fields"]
    ]
    return AvroType("record", full, fields=tuple(fields))


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _union(
    node: list[Any], named: dict[str, Any], namespace: str, within: tuple[str, ...]
) -> AvroType:
    branches = [_type(each, named, namespace, within) for each in node]
    others = [each for each in branches if each.kind != "null"]
    if len(others) == 1 and len(branches) == 2:
        at = next(at for at, each in enumerate(branches) if each.kind == "null")
        return AvroType(**{**_fields_of(others[0]), "null_branch": at})
    return AvroType("union")


def _fields_of(found: AvroType) -> dict[str, Any]:
    return {name: getattr(found, name) for name in AvroType.__dataclass_fields__}


def all_types(found: AvroType) -> Iterator[AvroType]:
    """The type and all types inside it."""
    yield found
    for each in found.fields:
        yield from all_types(each.type)
    if found.inner is not None:
        yield from all_types(found.inner)
