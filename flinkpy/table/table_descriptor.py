"""A table that a program declares without SQL, at PyFlink's module path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.common.config_options import ConfigOption
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.catalog.declared_tables import checked_table
from flinkpy.table.schema import Schema


class FormatDescriptor:
    """A format and its options.

    >>> FormatDescriptor.for_format("csv").option("field-delimiter", ";").build().get_options()
    {'field-delimiter': ';'}
    """

    def __init__(self, format: str, options: dict[str, str]) -> None:
        self._format, self._options = format, options

    class Builder:
        """Returned by ``for_format``."""

        def __init__(self, format: str) -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: str | ConfigOption[Any], value: object) -> FormatDescriptor.Builder:
            """Sets an option, without the name of the format before it."""
            self._options[_key(key)] = _value(value)
            return self

        def build(self) -> FormatDescriptor:
            """The descriptor."""
            return FormatDescriptor(self._format, dict(self._options))

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """A builder."""
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """The format's name."""
        return self._format

    def get_options(self) -> dict[str, str]:
        """Its options."""
        return dict(self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormatDescriptor) and (self._format, self._options) == (
            other._format,
            other._options,
        )

    def __hash__(self) -> int:
        return hash((self._format, tuple(sorted(self._options.items()))))

    def __str__(self) -> str:
        return f"{self._format}[{self._options}]"


class TableDescriptor:
    """A schema, a connector and its options.

    >>> TableDescriptor.for_connector("print").build().get_options()
    {'connector': 'print'}
    """

    def __init__(
        self,
        schema: Schema | None,
        options: dict[str, str],
        partition_keys: tuple[str, ...] = (),
        comment: str | None = None,
    ) -> None:
        self._schema, self._options = schema, options
        self._partition_keys, self._comment = partition_keys, comment

    class Builder:
        """Returned by ``for_connector``."""

        def __init__(self, connector: str, options: Mapping[str, str] | None = None) -> None:
            self._options = {"connector": connector, **(options or {})}
            self._schema: Schema | None = None
            self._partition_keys: tuple[str, ...] = ()
            self._comment: str | None = None

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """The columns."""
            self._schema = schema
            return self

        def option(self, key: str | ConfigOption[Any], value: object) -> TableDescriptor.Builder:
            """Sets an option of the connector."""
            self._options[_key(key)] = _value(value)
            return self

        def format(
            self, format: str | FormatDescriptor, format_option: ConfigOption[str] | None = None
        ) -> TableDescriptor.Builder:
            """The format of the rows, and its options if it is a descriptor."""
            key = "format" if format_option is None else format_option.key
            if isinstance(format, str):
                self._options[key] = format
                return self
            name = format.get_format()
            self._options[key] = name
            for option, value in format.get_options().items():
                self._options[f"{name}.{option}"] = value
            return self

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """The columns whose values are partitions."""
            self._partition_keys = partition_keys
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """What the table is."""
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            """The descriptor."""
            return TableDescriptor(
                self._schema, dict(self._options), self._partition_keys, self._comment
            )

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """A builder."""
        return TableDescriptor.Builder(connector)

    @staticmethod
    def for_lookup(function: object) -> TableDescriptor.Builder:
        """A builder of a table that the function is asked for, in a JOIN FOR SYSTEM_TIME AS OF. It
        is called with the columns that the condition makes equal to others, by their names, and
        gives rows. Other options are those of the connector ``python``.

        >>> def cities(id): return [(id, "Oslo")]
        >>> TableDescriptor.for_lookup(cities).build().get_options()["connector"]
        'python'
        """
        from flinkpy.table.factories.lookups.python_tables import FUNCTION, hold_function

        return TableDescriptor.Builder("python", {FUNCTION: hold_function(function)})

    def get_schema(self) -> Schema | None:
        """The columns."""
        return self._schema

    def get_options(self) -> dict[str, str]:
        """The options of the connector."""
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        """The columns whose values are partitions."""
        return list(self._partition_keys)

    def get_comment(self) -> str | None:
        """What the table is."""
        return self._comment

    def as_table(self) -> CatalogTable:
        """The table as the catalog has it. Raises ValidationError for a declaration that
        contradicts itself."""
        definition = (
            Schema.new_builder().build() if self._schema is None else self._schema
        ).definition
        return checked_table(
            CatalogTable(
                definition.columns,
                self.get_options(),
                definition.watermarks,
                definition.primary_key,
                self._partition_keys,
                self._comment,
            )
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableDescriptor) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._schema, tuple(sorted(self._options.items())), self._partition_keys))

    def __str__(self) -> str:
        return f"{self._schema or ''} WITH {self._options}"


def _key(key: str | ConfigOption[Any]) -> str:
    return key if isinstance(key, str) else key.key


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
