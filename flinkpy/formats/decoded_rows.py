"""Batches of messages of text: decoded by a reader of Arrow's where that surely gives what rows
have, else one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.formats.column_types import is_sure, parts_of
from flinkpy.formats.port import ColumnarDecoder, Decoded, MalformedMessageError
from flinkpy.formats.text_columns import nulls_in_required


class ArrowDecoder(ColumnarDecoder):
    """A decoder that joins the messages for a reader of Arrow's. ``_rows`` is the schema of rows
    that it must agree with."""

    _rows: Any

    @abstractmethod
    def _columns_by_arrow(self, messages: Sequence[bytes | None]) -> Sequence[Any] | None:
        """The columns of these messages, of which there is at least one; None if one may be
        malformed, or must be looked at more closely. So it is, too, if it raises an ArrowException,
        a ValueError or an OverflowError."""

    def decode_well_formed(self, messages: Sequence[bytes | None]) -> Decoded:
        batch = self._by_arrow(messages) if messages else None
        return (
            decode_one_by_one(messages, self._rows.deserialize, self.schema)
            if batch is None
            else Decoded(batch)
        )

    def _by_arrow(self, messages: Sequence[bytes | None]) -> Any:
        """The batch, if it surely has what rows have."""
        try:
            columns = self._columns_by_arrow(messages)
        except (pa.ArrowException, ValueError, OverflowError):
            return None
        if (
            columns is None
            or nulls_in_required(columns, self.schema) is not None
            or not all(map(is_sure, parts_of(columns)))
        ):
            return None
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def decode_one_by_one(
    messages: Sequence[bytes | None], decode: Callable[[bytes], Sequence[Any]], schema: pa.Schema
) -> Decoded:
    """The batch of what ``decode`` gives for each message: the values of a row, or a
    MalformedMessageError. A value that its column cannot hold makes the message malformed, too."""
    rows: list[Sequence[Any]] = []
    places: list[int] = []
    malformed: list[MalformedMessageError] = []
    nothing = [None] * len(schema)
    for index, message in enumerate(messages):
        try:
            rows.append(nothing if message is None else decode(message))
            places.append(index)
        except MalformedMessageError as error:
            malformed.append(error.at(index))
    try:
        return Decoded(_batch(rows, schema), malformed)
    except ValueError:
        return _without_misfits(rows, places, messages, schema, malformed)


def _without_misfits(
    rows: Sequence[Sequence[Any]],
    places: Sequence[int],
    messages: Sequence[bytes | None],
    schema: pa.Schema,
    malformed: list[MalformedMessageError],
) -> Decoded:
    fitting = []
    for row, index in zip(rows, places):
        try:
            _batch([row], schema)
            fitting.append(row)
        except ValueError as error:
            malformed.append(MalformedMessageError(index, str(error), messages[index]))
    return Decoded(_batch(fitting, schema), sorted(malformed, key=lambda error: error.index or 0))


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> Any:
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    columns: Sequence[Sequence[Any]] = list(zip(*rows)) if rows else [()] * len(schema)
    arrays = [array_of(column, field.type, field.name) for column, field in zip(columns, schema)]
    wrong = nulls_in_required(arrays, schema)
    if wrong is not None:
        raise ValueError(wrong)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
