"""The JSON messages of Debezium: the row before, the row after, and an operation.

``c`` and ``r`` (of a snapshot) insert the row after, ``d`` deletes the row before, ``u`` is both.
What is written are inserts and deletes alone, as Flink writes them, because a -U and its +U come as
two rows: ``{"before":null,"after":{...},"op":"c"}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.formats.changes.change_rows import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    REPLICA_IDENTITY,
    changes_of,
    nullable,
    takes_back,
)
from flinkpy.formats.changes.json_changes_encoder import JsonChangesEncoder
from flinkpy.formats.json.json_columns import JsonColumnarDecoder
from flinkpy.formats.port import ChangelogDecoder, DecodedChanges, MalformedMessageError

_OPS = ["c", "r", "u", "d"]
_UPDATE, _DELETE = _OPS.index("u"), _OPS.index("d")


class DebeziumJsonDecoder(ChangelogDecoder):
    """Changes of rows of a schema. With ``schema_include`` each message has its schema, and what it
    says below ``payload``. ``ignore_parse_errors`` leaves malformed messages out.

    >>> decoder = DebeziumJsonDecoder(pa.schema({"n": pa.int32()}))
    >>> changes = decoder.decode_changes([b'{"before": {"n": 1}, "after": {"n": 2}, "op": "u"}'])
    >>> changes.batch.to_pydict(), changes.kinds.tolist()
    ({'n': [1, 2]}, [1, 2])
    """

    def __init__(
        self, schema: pa.Schema, *, schema_include: bool = False, ignore_parse_errors: bool = False
    ) -> None:
        self.schema = schema
        self._has_schema, self._ignores = schema_include, ignore_parse_errors
        row = pa.struct(nullable(schema))
        payload = [("before", row), ("after", row), ("op", pa.string())]
        told = pa.schema([("payload", pa.struct(payload))] if schema_include else payload)
        self._json = JsonColumnarDecoder(told)

    def decode_changes(self, messages: Sequence[bytes | None]) -> DecodedChanges:
        places = np.flatnonzero([bool(message) for message in messages])  # others are tombstones
        given = [messages[at] for at in places.tolist()]
        decoded, malformed = self._json.decode_well_formed(given)
        errors = {int(places[each.index or 0]): each for each in malformed}
        if malformed:
            places = np.delete(places, [each.index or 0 for each in malformed])
        before, after, op = self._parts(decoded)
        codes = pc.fill_null(pc.index_in(op, pa.array(_OPS)), -1).to_numpy()
        wrong = self._wrong(codes, before, after)
        for at in np.flatnonzero(wrong):
            index = int(places[at])
            errors[index] = MalformedMessageError(
                index, self._why(codes[at], op[at].as_py()), messages[index]
            )
        if errors and not self._ignores:
            index, error = min(errors.items())
            raise error.at(index)
        right = np.flatnonzero(~wrong)
        return self._changes(codes[right], right, places[right], before, after)

    def _parts(self, decoded: pa.RecordBatch) -> Any:
        if not self._has_schema:
            return decoded.columns
        return decoded.column(0).flatten()

    def _wrong(self, codes: Any, before: Any, after: Any) -> Any:
        """Which messages tell no change."""
        no_before = before.is_null().to_numpy(zero_copy_only=False)
        no_after = after.is_null().to_numpy(zero_copy_only=False)
        needs_before = codes >= _UPDATE
        return (codes < 0) | (needs_before & no_before) | ((codes != _DELETE) & no_after)

    @staticmethod
    def _why(code: int, op: str | None) -> str:
        if code < 0:
            return f'its "op" is {op!r}, and there are {", ".join(_OPS)}'
        if code >= _UPDATE:
            return REPLICA_IDENTITY.format("an UPDATE" if code == _UPDATE else "a DELETE")
        return 'its "after" is null'

    def _changes(
        self, codes: Any, rows: Any, places: Any, before: Any, after: Any
    ) -> DecodedChanges:
        """A message gives its row before, its row after, or one behind the other."""
        is_update = codes == _UPDATE
        counts = np.where(is_update, 2, 1)
        of = np.repeat(np.arange(len(codes)), counts)
        is_second = np.zeros(len(of), bool)
        is_second[np.flatnonzero(is_update) + np.cumsum(is_update)[is_update]] = True
        kinds = np.where(codes == _DELETE, DELETE, np.where(is_update, BEFORE, INSERT))[of]
        kinds[is_second] = AFTER
        chosen = rows[of] + np.where(takes_back(kinds), 0, len(before))
        positions = pa.array(chosen)
        columns = [
            pa.concat_arrays([one, other]).take(positions)
            for one, other in zip(before.flatten(), after.flatten())
        ]
        return changes_of(columns, self.schema, kinds, places[of])

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoder, (self.schema, self._has_schema, self._ignores)


def _decoder(schema: pa.Schema, has_schema: bool, ignores: bool) -> DebeziumJsonDecoder:
    return DebeziumJsonDecoder(schema, schema_include=has_schema, ignore_parse_errors=ignores)


class DebeziumJsonEncoder(JsonChangesEncoder):
    """A message for each row, of the columns of these names.

    >>> DebeziumJsonEncoder(["n"]).encode(pa.record_batch({"n": [1], "more": [2]}))
    [b'{"before":null,"after":{"n":1},"op":"c"}']
    """

    inserted = b'{"before":null,"after":%b,"op":"c"}'
    deleted = b'{"before":%b,"after":null,"op":"d"}'
