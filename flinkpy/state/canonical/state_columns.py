"""How one state is laid out in columns, and the description of it that every file carries.

::

    keyed state        key_group | key | key_pickled | value | value_pickled   a row a key
    list of a subtask                                  value | value_pickled   a row an element
    broadcast state                key | key_pickled | value | value_pickled   a row an entry

``key`` and ``value`` are not there where they have no type; then all is in the columns of pickles.
Of a state that expires each value is a struct: ``f0`` is the value, ``f1`` when it was last
touched, in milliseconds since 1970."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkpy.common.type_texts import type_of_text
from flinkpy.common.typeinfo import ListTypeInfo, MapTypeInfo, TypeInformation, Types
from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.core.program import code
from flinkpy.graph.checkpoints import StateTable
from flinkpy.state.canonical.exact_column import ExactColumn, Loads
from flinkpy.state.canonical.seen_types import completed_type, seen_type
from flinkpy.state.descriptors import StateKind
from flinkpy.state.snapshots.operator_snapshots import Sharing

KEY_GROUP, METADATA_KEY = "key_group", b"flinkpy.state"
FORMAT, VERSION = "flinkpy state", 1


@dataclass(frozen=True)
class Entries:
    """Rows of one file: the key group of each (keyed state), its key (None for lists), and its
    value."""

    groups: Sequence[int] | None
    keys: Sequence[Any] | None
    values: Sequence[Any]


class StateColumns:
    """The columns of one state's file."""

    def __init__(
        self,
        name: str,
        has_groups: bool,
        key_type: TypeInformation | None,
        value_type: TypeInformation | None,
        *,
        has_keys: bool,
        description: Mapping[str, Any],
    ) -> None:
        what = f"the state of {name!r}"
        self._group_fields = [pa.field(KEY_GROUP, pa.int32(), nullable=False)] if has_groups else []
        self._key = ExactColumn("key", key_type, what) if has_keys else None
        self._value = ExactColumn("value", value_type, what)
        self.description = {
            "format": FORMAT,
            "version": VERSION,
            **description,
            "key_type": _text(self._key),
            "value_type": _text(self._value),
            "has_groups": has_groups,
            "has_keys": has_keys,
        }
        fields = [
            *self._group_fields,
            *(() if self._key is None else self._key.fields),
            *self._value.fields,
        ]
        self.schema = pa.schema(fields, {METADATA_KEY: json.dumps(self.description)})

    @staticmethod
    def of(
        table: StateTable, key: object, value: object, description: Mapping[str, Any]
    ) -> StateColumns:
        """For this state. What is not declared is taken from the first key and value."""
        told = {
            "name": table.name,
            "kind": table.kind,
            "type": table.type,
            "expires": table.expires,
            **description,
        }
        if table.keyed:
            return StateColumns(
                table.name,
                True,
                seen_type(key),
                _keyed_type(table, value),
                has_keys=True,
                description=told,
            )
        declared = type_of_text(table.type)
        if table.kind != Sharing.BROADCAST.name:
            element = declared.element_type if isinstance(declared, ListTypeInfo) else None
            return StateColumns(
                table.name,
                False,
                None,
                completed_type(element, value),
                has_keys=False,
                description=told,
            )
        key_type, value_type = (
            (declared.key_type, declared.value_type)
            if isinstance(declared, MapTypeInfo)
            else (None, None)
        )
        return StateColumns(
            table.name,
            False,
            completed_type(key_type, key),
            completed_type(value_type, value),
            has_keys=True,
            description=told,
        )

    @staticmethod
    def of_schema(schema: pa.Schema, file: str) -> StateColumns:
        """As the file's schema says. CheckpointDamagedError if it is not that of a state;
        ProgramError if its version is not known here."""
        try:
            told = json.loads((schema.metadata or {})[METADATA_KEY])
            if told["format"] == FORMAT and told["version"] != VERSION:
                raise ProgramError(
                    f"{file} is of version {told['version']}, this flinkpy reads version "
                    f"{VERSION}: use the flinkpy that wrote it"
                )
            columns = StateColumns(
                told["name"],
                told["has_groups"],
                type_of_text(told["key_type"]),
                type_of_text(told["value_type"]),
                has_keys=told["has_keys"],
                description=told,
            )
        except (LookupError, ValueError, TypeError) as error:
            raise CheckpointDamagedError(
                file, "a Parquet file of state", f"{type(error).__name__}: {error}"
            ) from error
        if not columns.schema.equals(schema):
            raise CheckpointDamagedError(
                file, f"the columns {columns.schema.names}", str(schema.names)
            )
        return columns

    def batch(self, entries: Entries) -> Any:
        """The entries as a table."""
        arrays = [pa.array(entries.groups, pa.int32())] if entries.groups is not None else []
        if self._key is not None and entries.keys is not None:
            arrays += self._key.arrays(entries.keys)
        arrays += self._value.arrays(entries.values)
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def entries(self, batch: Any, loads: Loads = code.loads) -> Entries:
        """The entries of a record batch, exactly as they were; ``loads`` unpickles."""
        columns, groups, keys = list(batch.columns), None, None
        if self._group_fields:
            groups = columns.pop(0).to_pylist()
        if self._key is not None:
            width = len(self._key.fields)
            keys, columns = self._key.values(columns[:width], loads), columns[width:]
        return Entries(groups, keys, self._value.values(columns, loads))


def _text(column: ExactColumn | None) -> str:
    return "" if column is None or column.type_info is None else repr(column.type_info)


def _keyed_type(table: StateTable, value: object) -> TypeInformation | None:
    """The type of a keyed state's values as they stand in snapshots."""
    if table.kind == StateKind.REGION.value:
        return None  # each operator's own form
    declared = type_of_text(table.type)
    if table.expires and declared is not None:
        if isinstance(declared, ListTypeInfo) and table.kind == StateKind.LIST.value:
            declared = Types.LIST(_stamped(declared.element_type))
        elif isinstance(declared, MapTypeInfo) and table.kind == StateKind.MAP.value:
            declared = Types.MAP(declared.key_type, _stamped(declared.value_type))
        else:
            declared = _stamped(declared)
    return completed_type(declared, value)


def _stamped(of: TypeInformation) -> TypeInformation:
    return Types.TUPLE([of, Types.LONG()])
