"""A batch of messages that are decoded one by one: what a decoder does where its fast way fails, and where it has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.formats.port import Decoded, MalformedMessageError
from flinkpy.formats.text_columns import nulls_in_required


def decode_one_by_one(messages: Sequence[bytes | None], decode: Callable[[bytes], Sequence[Any]], schema: Any) -> Decoded:
    """The batch of what ``decode`` gives for each message: the values of a row, or a MalformedMessageError. A value
    that its column cannot hold makes the message malformed, too."""
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


def _without_misfits(rows: Sequence[Sequence[Any]], places: Sequence[int], messages: Sequence[bytes | None], schema: Any,
                     malformed: list[MalformedMessageError]) -> Decoded:
    fitting = []
    for row, index in zip(rows, places):
        try:
            _batch([row], schema)
            fitting.append(row)
        except ValueError as error:
            malformed.append(MalformedMessageError(index, str(error), messages[index]))
    return Decoded(_batch(fitting, schema), sorted(malformed, key=lambda error: error.index or 0))


def _batch(rows: Sequence[Sequence[Any]], schema: Any) -> Any:
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    columns: Sequence[Sequence[Any]] = list(zip(*rows)) if rows else [()] * len(schema)
    arrays = [array_of(column, field.type, field.name) for column, field in zip(columns, schema)]
    wrong = nulls_in_required(arrays, schema)
    if wrong is not None:
        raise ValueError(wrong)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
