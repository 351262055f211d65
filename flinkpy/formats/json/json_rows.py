"""JSON messages one by one: rows of a declared type, under PyFlink's names, and plain Python
values.

>>> from flinkpy.common import Types
>>> visit = Types.ROW_NAMED(
...     ["shop", "at", "price"], [Types.STRING(), Types.INSTANT(), Types.BIG_DEC()]
... )
>>> rows = JsonRowDeserializationSchema.builder().type_info(visit).build()
>>> row = rows.deserialize(
...     b'{"shop": "Oslo", "at": "2024-05-01T12:00:00+02:00", "price": "1.50", "more": 1}'
... )
>>> row.price, row.at.hour
(Decimal('1.50'), 10)
>>> JsonRowSerializationSchema.builder().with_type_info(visit).build().serialize(row)
b'{"shop":"Oslo","at":"2024-05-01 10:00:00+00:00","price":"1.50"}'
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from flinkpy.common.serialization import DeserializationSchema, SerializationSchema
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.json.json_schema import json_schema_of, type_of_json_schema
from flinkpy.formats.json.json_types import BARE_FLOATS, needs_all_digits, reader_of, writer_of
from flinkpy.formats.port import MalformedMessageError, RegisteredFormat, RegisteredSchema
from flinkpy.formats.text_values import json_text

_PARSE_ERRORS = (ValueError, RecursionError, TypeError, ArithmeticError)


class JsonRowDeserializationSchema(DeserializationSchema, RegisteredFormat):
    """Rows of a declared type. Unknown fields are left out, missing ones are None. A value that is
    not of its field's type, and a message that is no JSON object, raise MalformedMessageError.

    >>> from flinkpy.common import Types
    >>> rows = Types.ROW_NAMED(["a"], [Types.INT()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(rows).build()
    >>> schema.deserialize(b'{"a": 2.9}')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    flinkpy.formats.port.MalformedMessageError: ... 2.9 (float) is no value of Types.INT(): ...
    """

    def __init__(
        self,
        type_info: TypeInformation,
        fail_on_missing_field: bool = False,
        ignore_parse_errors: bool = False,
    ) -> None:
        self._type = row_type(type_info, "JsonRowDeserializationSchema")
        self._required, self._ignore = fail_on_missing_field, ignore_parse_errors
        self._read = reader_of(self._type, fail_on_missing_field)
        self._load = loader(needs_all_digits(self._type))

    def deserialize(self, data: bytes) -> Any:
        """The row. With ``ignore_parse_errors`` a malformed message is None, and sources leave it
        out."""
        try:
            return self._read(self._load(data))
        except _PARSE_ERRORS as error:
            if self._ignore:
                return None
            raise MalformedMessageError(None, why_no_json(error), data) from error

    def get_produced_type(self) -> TypeInformation:
        return self._type

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema("JSON", json_schema_of(self._type))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._type, self._required, self._ignore)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """A builder of the schema."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Makes the schema; its type comes from ``type_info`` or from ``json_schema``."""

        def __init__(self) -> None:
            self._type: TypeInformation | None = None
            self._required = self._ignore = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """The type of the rows."""
            self._type = row_type(type_info, "type_info")
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """The type of the rows, in the words of JSON Schema: its types, not its rules for
            values."""
            if json_schema is None:
                raise TypeError("the JSON schema is None; give its text")
            self._type = row_type(type_of_json_schema(json_schema), "json_schema")
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """A message without one of the fields is malformed."""
            self._required = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Leaves malformed messages out."""
            self._ignore = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema. Raises ProgramError if no type was given."""
            if self._type is None:
                raise refuse(
                    "JsonRowDeserializationSchema needs a type: "
                    "type_info(Types.ROW_NAMED([...], [...]))"
                )
            return JsonRowDeserializationSchema(self._type, self._required, self._ignore)


class JsonRowSerializationSchema(SerializationSchema, RegisteredFormat):
    """Rows of a declared type as JSON objects, without blanks. Raises ProgramError for a value that
    is not of its field's type.

    >>> from flinkpy.common import Row, Types
    >>> JsonRowSerializationSchema.builder().with_type_info(
    ...     Types.ROW_NAMED(["a"], [Types.INT()])
    ... ).build().serialize(Row(7))
    b'{"a":7}'
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self._type = row_type(type_info, "JsonRowSerializationSchema")
        self._write = writer_of(self._type)

    def serialize(self, value: object) -> bytes:
        """The row as JSON."""
        try:
            return JSON_ENCODER.encode(self._write(value)).encode()
        except _PARSE_ERRORS as error:
            raise ProgramError(
                f"{value!r:.100} cannot be written as JSON: {_without_surrogates(error)}"
            ) from error

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema("JSON", json_schema_of(self._type))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._type,)

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """A builder of the schema."""
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Makes the schema."""

        def __init__(self) -> None:
            self._type: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """The type of the rows."""
            self._type = row_type(type_info, "with_type_info")
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema. Raises TypeError, as PyFlink does, if no type was given."""
            if self._type is None:
                raise TypeError(
                    "JsonRowSerializationSchema needs a type: "
                    "with_type_info(Types.ROW_NAMED([...], [...]))"
                )
            return JsonRowSerializationSchema(self._type)


class JsonDeserializationSchema(DeserializationSchema, RegisteredFormat):
    """JSON as Python reads it: objects are dicts.

    >>> JsonDeserializationSchema().deserialize(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """

    def __init__(self, ignore_parse_errors: bool = False) -> None:
        self._ignore = ignore_parse_errors

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema("JSON", "{}")

    def deserialize(self, data: bytes) -> Any:
        """The value. With ``ignore_parse_errors`` a malformed message is None, and sources leave it
        out."""
        try:
            found = json.loads(str(data, "utf-8"))
            _check_texts(data, found)
        except _PARSE_ERRORS as error:
            if self._ignore:
                return None
            raise MalformedMessageError(None, why_no_json(error), data) from error
        return found


class JsonSerializationSchema(SerializationSchema):
    """Any value as JSON: dicts, rows, named tuples and dataclasses as objects. Values that JSON
    does not have are written as in files: bytes in Base64, decimals, dates and times as text.
    Raises ProgramError for anything else.

    >>> JsonSerializationSchema().serialize({"a": [1, 2.5, None], "raw": b"abc"})
    b'{"a": [1, 2.5, null], "raw": "YWJj"}'
    """

    def serialize(self, value: object) -> bytes:
        """The value as JSON."""
        try:
            return json_text(value).encode()
        except UnicodeEncodeError as error:
            raise ProgramError(
                f"{value!r:.100} cannot be written as JSON: {_without_surrogates(error)}"
            ) from error
        except RecursionError as error:
            raise ProgramError(
                f"a {type(value).__name__} cannot be written as JSON: it is nested too deeply"
            ) from error


JSON_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def row_type(type_info: object, where: str) -> RowTypeInfo:
    """The type, if it is one of rows. Raises ProgramError if not."""
    if not isinstance(type_info, RowTypeInfo):
        raise refuse(
            f"{where} takes the type of a row, such as Types.ROW_NAMED(['a'], [Types.INT()]), "
            f"this is {type_info!r:.80}"
        )
    return type_info


def loader(all_digits: bool) -> Callable[[bytes], Any]:
    """Python's reader of JSON; with ``all_digits``, numbers with a decimal point become
    Decimals."""
    # A bare NaN becomes one of few objects, so that Infinity can be told from 1e999
    decoder = json.JSONDecoder(
        parse_constant=BARE_FLOATS.__getitem__, parse_float=Decimal if all_digits else None
    )
    read, decode = decoder.raw_decode, decoder.decode

    def load(data: bytes) -> Any:
        text = str(data, "utf-8")
        try:
            found, end = read(text)
        except json.JSONDecodeError:
            end = -1
        if end != len(text):
            found = decode(text)  # there are blanks around it, or it says what is wrong
        if b"\\u" in data:
            _check_texts(data, found)
        return found

    return load


def _check_texts(data: bytes, found: object) -> None:
    """Raises ValueError for a text with half of a surrogate pair, which no UTF-8 has."""
    if b"\\ud" in data or b"\\uD" in data:
        _LENIENT_ENCODER.encode(found).encode()


_LENIENT_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def why_no_json(error: BaseException) -> str:
    """Why the message cannot be decoded."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is no UTF-8, in which JSON is written ({error.reason} at byte {error.start})"
    if isinstance(error, UnicodeEncodeError):
        return "a text has half of a surrogate pair"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON ({error.msg} at character {error.pos})"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _without_surrogates(error: BaseException) -> str:
    return (
        "a text has half of a surrogate pair, which UTF-8 does not have"
        if isinstance(error, UnicodeEncodeError)
        else str(error)
    )
