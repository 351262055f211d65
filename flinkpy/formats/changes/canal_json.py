"""The JSON messages of Canal: rows, what their fields were before, and a type.

``INSERT`` and ``DELETE`` have their rows in ``data``. ``UPDATE`` has the rows after in ``data``,
and in ``old`` the fields that have changed, as they were. Other types are changes of the schema and
tell no row. Canal writes numbers as texts, so a text is read as what its column is. What is written
are inserts and deletes alone, as Flink writes them.

Messages are read one by one, unlike Debezium's: a field that is absent in ``old`` has not changed,
and one that is null there was null, which Arrow's reader of JSON does not tell apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.formats.changes.change_rows import AFTER, BEFORE, DELETE, INSERT, changes_of
from flinkpy.formats.changes.json_changes_encoder import JsonChangesEncoder
from flinkpy.formats.column_types import declared_type
from flinkpy.formats.json.json_rows import loader, why_no_json
from flinkpy.formats.json.json_types import needs_all_digits, reader_of
from flinkpy.formats.parsed_texts import parser_of
from flinkpy.formats.port import ChangelogDecoder, DecodedChanges, MalformedMessageError

_OF_ROWS = {"INSERT": INSERT, "DELETE": DELETE, "UPDATE": AFTER}
_NO_ROWS = frozenset(
    ["CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"]
)


class CanalJsonDecoder(ChangelogDecoder):
    """Changes of rows of a schema. ``databases`` and ``tables`` are patterns: messages of others
    are left out, and with ``ignore_parse_errors`` malformed ones.

    >>> decoder = CanalJsonDecoder(pa.schema({"id": pa.int32(), "n": pa.int32()}))
    >>> message = b'{"data": [{"id": "1", "n": "3"}], "old": [{"n": "2"}], "type": "UPDATE"}'
    >>> changes = decoder.decode_changes([message])
    >>> changes.batch.to_pylist(), changes.kinds.tolist()
    ([{'id': 1, 'n': 2}, {'id': 1, 'n': 3}], [1, 2])
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        databases: str | None = None,
        tables: str | None = None,
        ignore_parse_errors: bool = False,
    ) -> None:
        self.schema = schema
        self._arguments = databases, tables, ignore_parse_errors
        types = [declared_type(field.type) for field in schema]
        self._readers = [(field.name, _reader(each)) for field, each in zip(schema, types)]
        self._load = loader(any(map(needs_all_digits, types)))

    def decode_changes(self, messages: Sequence[bytes | None]) -> DecodedChanges:
        rows: list[list[Any]] = []
        kinds: list[int] = []
        origins: list[int] = []
        for index, message in enumerate(messages):
            if not message:
                continue
            try:
                found = list(self._changes_of(self._load(message)))
            except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
                if self._arguments[2]:
                    continue
                raise MalformedMessageError(index, why_no_json(error), message) from error
            rows += [row for _, row in found]
            kinds += [kind for kind, _ in found]
            origins += [index] * len(found)
        columns: Any = list(zip(*rows)) if rows else [()] * len(self.schema)
        arrays = [
            array_of(each, field.type, field.name) for each, field in zip(columns, self.schema)
        ]
        return changes_of(arrays, self.schema, kinds, origins)

    def _changes_of(self, told: Any) -> Iterator[tuple[int, list[Any]]]:
        """The kind and the values of each change. Raises ValueError if it is no message of
        Canal's."""
        if not isinstance(told, dict):
            raise ValueError("it is no JSON object")
        databases, tables, _ = self._arguments
        if not (_fits(databases, told.get("database")) and _fits(tables, told.get("table"))):
            return
        kind = told.get("type")
        if kind in _NO_ROWS:
            return
        if kind not in _OF_ROWS:
            raise ValueError(f'its "type" is {kind!r:.40}, and there are {", ".join(_OF_ROWS)}')
        data = _objects(told.get("data"), "data")
        if kind != "UPDATE":
            for each in data:
                yield _OF_ROWS[kind], self._values(each)
            return
        old = _objects(told.get("old"), "old")
        if len(old) != len(data):
            raise ValueError(f'"data" has {len(data)} rows, and "old" has {len(old)}')
        for before, after in zip(old, data):
            yield BEFORE, self._values({**after, **before})
            yield AFTER, self._values(after)

    def _values(self, told: dict[str, Any]) -> list[Any]:
        values = []
        for name, read in self._readers:
            value = told.get(name)
            try:
                values.append(None if value is None else read(value))
            except (ValueError, TypeError, ArithmeticError) as error:
                raise ValueError(f"field {name!r}: {error}") from error
        return values

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoder, (self.schema, *self._arguments)


def _decoder(
    schema: pa.Schema, databases: str | None, tables: str | None, ignores: bool
) -> CanalJsonDecoder:
    return CanalJsonDecoder(schema, databases=databases, tables=tables, ignore_parse_errors=ignores)


def _reader(type_info: TypeInformation) -> Callable[[Any], Any]:
    """What reads a value, also if it stands as text."""
    read, parse = reader_of(type_info), parser_of(type_info)
    if parse is None:
        return read
    return lambda value: parse(value) if type(value) is str else read(value)


def _fits(pattern: str | None, name: object) -> bool:
    return pattern is None or re.fullmatch(pattern, str(name)) is not None


def _objects(told: object, field: str) -> list[dict[str, Any]]:
    if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
        raise ValueError(f'its "{field}" is no list of rows')
    return told


class CanalJsonEncoder(JsonChangesEncoder):
    """A message for each row, of the columns of these names.

    >>> CanalJsonEncoder(["n"]).encode(pa.record_batch({"n": [1]}))
    [b'{"data":[{"n":1}],"type":"INSERT"}']
    """

    inserted = b'{"data":[%b],"type":"INSERT"}'
    deleted = b'{"data":[%b],"type":"DELETE"}'
