"""Rows that change as JSON messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.formats.changes.change_rows import takes_back
from flinkpy.formats.json.json_columns import JsonColumnarEncoder
from flinkpy.formats.port import ChangelogEncoder


class JsonChangesEncoder(ChangelogEncoder):
    """A JSON message for each row, of the columns of these names. An update is the delete of the
    row before and the insert of the row after it."""

    inserted: bytes  # the message around a row that is added, and around one that is taken back
    deleted: bytes

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)

    def encode_changes(self, batch: pa.RecordBatch, kinds: Any) -> list[bytes | None]:
        rows = JsonColumnarEncoder().encode(batch.select(self._columns))
        if kinds is None:
            return [self.inserted % row for row in rows]
        back = takes_back(kinds).tolist()
        return [(self.deleted if gone else self.inserted) % row for row, gone in zip(rows, back)]
