"""Messages that are one value each, as a column: bytes as they are, or text."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkpy.columns.values.conversion import without_views
from flinkpy.core.errors import ProgramError
from flinkpy.formats.port import ColumnarDecoder, ColumnarEncoder, Decoded, MalformedMessageError
from flinkpy.formats.text_columns import is_of_bytes


class RawColumnarDecoder(ColumnarDecoder):
    """A column of bytes: each message as it is.

    >>> RawColumnarDecoder("payload").decode([b"a", None]).to_pydict()
    {'payload': [b'a', None]}
    """

    def __init__(self, field: str = "value") -> None:
        self.schema = pa.schema([(field, pa.binary())])

    def decode_well_formed(self, messages: Sequence[bytes | None]) -> Decoded:
        return Decoded(
            pa.RecordBatch.from_arrays([pa.array(messages, pa.binary())], schema=self.schema)
        )


class StringColumnarDecoder(ColumnarDecoder):
    """A column of text: each message in UTF-8.

    >>> StringColumnarDecoder().decode(["né".encode(), None]).to_pydict()
    {'value': ['né', None]}
    """

    def __init__(self, field: str = "value") -> None:
        self.schema = pa.schema([(field, pa.string())])

    def decode_well_formed(self, messages: Sequence[bytes | None]) -> Decoded:
        malformed: list[MalformedMessageError] = []
        try:
            texts = pa.array(messages, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            texts = pa.array(_well_formed(messages, malformed), pa.string())
        return Decoded(pa.RecordBatch.from_arrays([texts], schema=self.schema), malformed)


def _well_formed(
    messages: Sequence[bytes | None], malformed: list[MalformedMessageError]
) -> list[str | None]:
    texts: list[str | None] = []
    for index, message in enumerate(messages):
        try:
            texts.append(None if message is None else str(message, "utf-8"))
        except UnicodeDecodeError as error:
            malformed.append(
                MalformedMessageError(
                    index, f"it is no UTF-8 ({error.reason} at byte {error.start})", message
                )
            )
    return texts


class RawColumnarEncoder(ColumnarEncoder):
    """The only column, or the one of that name, as messages: bytes as they are, text in UTF-8. A
    null is a message of no bytes.

    >>> RawColumnarEncoder().encode(pa.RecordBatch.from_pydict({"word": ["né", None]}))
    [b'n\\xc3\\xa9', b'']
    """

    def __init__(self, field: str | None = None) -> None:
        self._field = field

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        column = without_views(batch).column(self._place(batch.schema))
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.cast(
                pa.binary() if pa.types.is_string(column.type) else pa.large_binary()
            )
        elif not is_of_bytes(column.type):
            raise ProgramError(
                f"a raw message is bytes or text, and the column is {column.type}; cast it, "
                "or choose a format such as JSON"
            )
        return [b"" if each is None else each for each in column.to_pylist()]

    def _place(self, schema: pa.Schema) -> int:
        if self._field is not None:
            place: int = schema.get_field_index(self._field)
            if place < 0:
                raise ProgramError(
                    f"there is no column {self._field!r} to write as raw messages (there are "
                    f"{', '.join(schema.names)})"
                )
            return place
        if len(schema) != 1:
            raise ProgramError(
                f"a raw message is one column, and there are {len(schema)} "
                f"({', '.join(schema.names)}); name the one to write"
            )
        return 0
