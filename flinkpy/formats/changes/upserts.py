"""Upserts of topics with keys: a message's value replaces the row of its key, and a message without
a value deletes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.formats.changes.change_rows import AFTER, DELETE, takes_back
from flinkpy.formats.port import (
    ChangelogEncoder,
    ColumnarDecoder,
    ColumnarEncoder,
    DecodedChanges,
    MalformedMessageError,
)


class UpsertDecoder:
    """Rows of ``schema``. The columns that ``key_columns`` names, in the order of the key's fields,
    are in the key; one that is in the value too is read from there, unless the row is deleted."""

    def __init__(
        self,
        key: ColumnarDecoder,
        value: ColumnarDecoder,
        key_columns: Sequence[str],
        schema: pa.Schema,
    ) -> None:
        self.schema = schema
        self._key, self._value, self._key_columns = key, value, tuple(key_columns)

    def decode_upserts(
        self, keys: Sequence[bytes | None], values: Sequence[bytes | None]
    ) -> DecodedChanges:
        """A change of each message. Raises MalformedMessageError for the first one that cannot be
        decoded, or has no key."""
        if None in keys:
            at = keys.index(None)
            raise MalformedMessageError(
                at, "it has no key, which says what row it is of", values[at]
            )
        in_key = dict(zip(self._key_columns, self._key.decode(keys).columns))
        is_gone = np.array([value is None for value in values], bool)
        left = np.flatnonzero(~is_gone)
        in_value = self._of_values([values[at] for at in left.tolist()], left)
        places = pa.array(np.cumsum(~is_gone) - 1, pa.int64(), mask=is_gone)
        columns = []
        for name in self.schema.names:
            if name not in in_value.schema.names:
                columns.append(in_key[name])
                continue
            column = in_value.column(name).take(places)
            if name in in_key and is_gone.any():
                column = pc.if_else(pa.array(is_gone), in_key[name], column)
            columns.append(column)
        # a row that is deleted has its key alone, also where other columns are NOT NULL
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        kinds = np.where(is_gone, DELETE, AFTER).astype(np.int8)
        return DecodedChanges(batch, kinds, np.arange(len(keys)))

    def _of_values(self, values: Sequence[bytes | None], places: Any) -> pa.RecordBatch:
        try:
            return self._value.decode(values)
        except MalformedMessageError as error:
            raise error.at(int(places[error.index or 0])) from error


class UpsertEncoder(ChangelogEncoder):
    """The values of upserts: what the inner encoder makes of a row, and nothing for one that is
    taken back."""

    def __init__(self, inner: ColumnarEncoder) -> None:
        self._inner = inner

    def encode_changes(self, batch: pa.RecordBatch, kinds: Any) -> list[bytes | None]:
        if kinds is None:
            return list(self._inner.encode(batch))
        gone = takes_back(kinds)
        left = iter(self._inner.encode(batch.filter(pa.array(~gone))))
        return [None if is_gone else next(left) for is_gone in gone.tolist()]
