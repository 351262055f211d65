"""Conversion between values and bytes, for sources and sinks that work with bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flinkpy.common.printing import formatter
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.common.types import Row
from flinkpy.core.errors import ProgramError


class SerializationSchema(ABC):
    """Converts values to bytes.

    >>> class Hex(SerializationSchema):
    ...     def serialize(self, value):
    ...         return f"{value:x}\\n".encode()
    >>> Hex().serialize(255)
    b'ff\\n'
    """

    @abstractmethod
    def serialize(self, value: Any) -> bytes: ...


class DeserializationSchema(ABC):
    """Converts bytes to values; a value of None means that the record is skipped.

    >>> class Hex(DeserializationSchema):
    ...     def deserialize(self, data):
    ...         return int(data, 16)
    >>> Hex().deserialize(b"ff")
    255
    """

    @abstractmethod
    def deserialize(self, data: bytes) -> Any: ...

    def get_produced_type(self) -> TypeInformation:
        """The type of the values."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in a character set, by default UTF-8. Of a value that is no text it writes what ``str``
    makes of it. Raises ProgramError for a character set that Python does not know.

    >>> SimpleStringSchema().deserialize(SimpleStringSchema().serialize("naïve"))
    'naïve'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        try:
            "".encode(charset)
        except LookupError:
            raise ProgramError(f"{charset!r} is no character set Python knows") from None
        self._charset = charset

    @property
    def charset(self) -> str:
        """The character set."""
        return self._charset

    def serialize(self, value: object) -> bytes:
        return str(value).encode(self._charset)

    def deserialize(self, data: bytes) -> str:
        return data.decode(self._charset)

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Passes bytes on unchanged.

    >>> ByteArraySchema().serialize(bytearray(b"raw"))
    b'raw'
    """

    def serialize(self, value: Any) -> bytes:
        return bytes(value)

    def deserialize(self, data: bytes) -> bytes:
        return data

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """The bytes in one field of a row; text is encoded as UTF-8.

    >>> RowFieldExtractorSchema(1).serialize(Row("key", b"value"))
    b'value'
    """

    def __init__(self, field_index: int) -> None:
        if not isinstance(field_index, int) or field_index < 0:
            raise ProgramError(f"the field index is a position from 0 on, this is {field_index!r}")
        self._field_index = field_index

    def serialize(self, value: Row) -> bytes:
        field = value[self._field_index]
        if field is None:
            return b""
        return field.encode() if isinstance(field, str) else bytes(field)


class Encoder(ABC):
    """Converts values to the bytes that are written to a file."""

    @abstractmethod
    def encode(self, value: Any) -> bytes: ...

    def of_type(self, type_info: TypeInformation | None) -> Encoder:
        """The encoder, adapted to a stream of that declared type; ``sink_to`` calls it."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """An encoder that writes a line for each value: as Flink writes values of the stream's
        declared type, or with ``str`` if none was declared.

        >>> Encoder.simple_string_encoder().encode((1, "a"))
        b"(1, 'a')\\n"
        """
        return _LineEncoder(charset_name)


class BulkWriterFactory(ABC):
    """Writes whole part files; ``flinkpy.connectors.files.writing.file_formats`` has Parquet, CSV,
    JSON lines and text.

    >>> from flinkpy.connectors.files.writing.file_formats import CsvFormat
    >>> isinstance(CsvFormat(columns=["word", "count"]), BulkWriterFactory)
    True
    """

    @abstractmethod
    def open(self, file: Any) -> Any:
        """Begins to write to the new binary file; returns an object with ``write(batch)``,
        ``flush()``, ``size`` and ``close()``."""


class _LineEncoder(Encoder):
    def __init__(self, charset: str, type_info: TypeInformation | None = None) -> None:
        self._charset, self._format = charset, formatter(type_info, printed=False)

    def of_type(self, type_info: TypeInformation | None) -> Encoder:
        return _LineEncoder(self._charset, type_info)

    def encode(self, value: object) -> bytes:
        return (self._format(value) + "\n").encode(self._charset)
