"""Keys of Kafka's messages as columns of a table: ``key.format``, ``key.fields`` and
``value.fields-include``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.formats.port import ColumnarDecoder, ColumnarEncoder
from flinkpy.sql.sql_errors import ValidationError, proposed
from flinkpy.table.factories.table_options import STRING, TableOption, TableValues, one_of

if TYPE_CHECKING:
    import pyarrow as pa

ALL, EXCEPT_KEY = "all", "except_key"
KEY_OPTIONS = (
    TableOption("key.fields-prefix", STRING, "", "What they begin with in the table alone."),
    TableOption(
        "value.fields-include",
        one_of(ALL, EXCEPT_KEY),
        ALL,
        "Whether the value has the key's columns too.",
    ),
)


@dataclass(frozen=True)
class KeyFields:
    """Which columns of a table are in the key, and which in the value. ``prefix`` stands before
    the names of the key's columns in the table, and not in the message."""

    key: tuple[str, ...]
    value: tuple[str, ...]
    prefix: str = ""

    @staticmethod
    def of(columns: Sequence[str], values: TableValues) -> KeyFields:
        """Those that the options name. Raises ValidationError for options that contradict each
        other."""
        key = tuple(values["key.fields"] or ())
        if bool(key) != (values["key.format"] is not None):
            raise ValidationError("'key.format' and 'key.fields' stand together: one is missing")
        for name in key:
            if name not in columns:
                near = proposed(name, columns)
                raise ValidationError(f"'key.fields' names {name!r}, which is no column{near}")
        return KeyFields.with_key(key, columns, values)

    @staticmethod
    def with_key(key: tuple[str, ...], columns: Sequence[str], values: TableValues) -> KeyFields:
        """These columns are the key. Raises ValidationError for options that contradict each
        other."""
        prefix, included = values["key.fields-prefix"], values["value.fields-include"]
        for name in key:
            if not name.startswith(prefix):
                raise ValidationError(
                    f"'key.fields-prefix' is {prefix!r}, and {name!r} does not begin so"
                )
        if prefix and included != EXCEPT_KEY:
            raise ValidationError("'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY'")
        inside = tuple(name for name in columns if included == ALL or name not in key)
        return KeyFields(key, inside, prefix)

    @property
    def from_key(self) -> tuple[str, ...]:
        """The columns that a reader finds in the key alone."""
        return tuple(name for name in self.key if name not in self.value)

    def key_type(self, row: RowType) -> RowType:
        """The key's columns as they are called in the message."""
        fields = {field.name: field.type for field in row}
        return RowType.of(*((name[len(self.prefix) :], fields[name]) for name in self.key))

    def value_type(self, row: RowType) -> RowType:
        """The value's columns."""
        fields = {field.name: field.type for field in row}
        return RowType.of(*((name, fields[name]) for name in self.value))


class EncodedColumns(ColumnarEncoder):
    """Some columns of a batch under other names, in a format."""

    def __init__(
        self, inner: ColumnarEncoder, columns: Sequence[str], names: Sequence[str]
    ) -> None:
        self._inner, self._columns, self._names = inner, list(columns), list(names)

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        import pyarrow as pa

        chosen = [batch.column(name) for name in self._columns]
        return self._inner.encode(pa.RecordBatch.from_arrays(chosen, names=self._names))


class DecodedKeys:
    """Puts the columns of the keys beside those of the values. ``key`` is the column with the keys,
    which goes away."""

    def __init__(
        self, decoder: ColumnarDecoder, key: str, columns: Sequence[str], schema: pa.Schema
    ) -> None:
        self._decoder, self._key = decoder, key
        self._columns, self._schema = list(columns), schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        decoded = self._decoder.decode(batch.column(self._key).to_pylist())
        found = dict(zip(self._columns, decoded.columns))
        chosen = [
            found[name] if name in found else batch.column(name) for name in self._schema.names
        ]
        return pa.RecordBatch.from_arrays(chosen, schema=self._schema)
