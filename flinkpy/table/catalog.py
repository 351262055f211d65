"""Catalogs and what is in them, at PyFlink's module path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flinkpy.common.configuration import Configuration
from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.public_names import publish
from flinkpy.sql.catalog import catalog_port as port
from flinkpy.sql.catalog.declared_tables import checked_table
from flinkpy.sql.catalog.in_memory_catalog import GenericInMemoryCatalog as InMemory
from flinkpy.sql.sql_errors import CatalogError, proposed
from flinkpy.sql.syntax.statements import ColumnDefinition, TableDefinition
from flinkpy.table.schema import Schema

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "FileCatalog",
    "GenericInMemoryCatalog",
    "ObjectPath",
]


@dataclass(frozen=True, order=True)
class ObjectPath:
    """The database and the name of a table, view or function in a catalog.

    >>> str(ObjectPath("shop", "orders"))
    'shop.orders'
    """

    database_name: str
    object_name: str

    def get_database_name(self) -> str:
        """The database."""
        return self.database_name

    def get_object_name(self) -> str:
        """The name in it."""
        return self.object_name

    def get_full_name(self) -> str:
        """Both, with a dot between."""
        return f"{self.database_name}.{self.object_name}"

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """The path that ``get_full_name`` gives.

        >>> ObjectPath.from_string("shop.orders").get_object_name()
        'orders'
        """
        database, dot, name = full_name.partition(".")
        if not dot or not database or not name or "." in name:
            raise ProgramError(f"{full_name!r} is no path: write database.name")
        return ObjectPath(database, name)

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True)
class CatalogDatabase:
    """A database: its options and its comment."""

    properties: Mapping[str, str]
    comment: str | None = None

    @staticmethod
    def create_instance(
        properties: Mapping[str, str], comment: str | None = None
    ) -> CatalogDatabase:
        """A new one.

        >>> CatalogDatabase.create_instance({}, "all of the shop").get_comment()
        'all of the shop'
        """
        return CatalogDatabase(dict(properties), comment)

    def get_properties(self) -> dict[str, str]:
        """Its options."""
        return dict(self.properties)

    def get_comment(self) -> str | None:
        """Its comment."""
        return self.comment


class CatalogBaseTable:
    """A table or a view of a catalog.

    >>> from flinkpy.table import DataTypes
    >>> schema = Schema.new_builder().column("n", DataTypes.INT()).build()
    >>> CatalogBaseTable.create_table(schema, [], {"connector": "datagen"}).get_options()
    {'connector': 'datagen'}
    """

    def __init__(self, table: port.CatalogTable | port.CatalogView) -> None:
        self._table = table

    @staticmethod
    def create_table(
        schema: Schema,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """A table with these columns and options. Raises ValidationError if they contradict each
        other."""
        made = port.CatalogTable(
            schema.definition.columns,
            dict(properties or {}),
            schema.definition.watermarks,
            schema.definition.primary_key,
            tuple(partition_keys),
            comment,
        )
        return CatalogBaseTable(checked_table(made))

    @staticmethod
    def create_view(
        original_query: str, expanded_query: str, schema: Schema, comment: str | None = None
    ) -> CatalogBaseTable:
        """A view: its query as it was written, and with the full names of all tables."""
        columns = [each for each in schema.definition.columns if isinstance(each, ColumnDefinition)]
        row = RowType.of(*((column.name, column.type) for column in columns))
        return CatalogBaseTable(port.CatalogView(original_query, expanded_query, row, comment))

    def is_view(self) -> bool:
        """Whether it is a view."""
        return isinstance(self._table, port.CatalogView)

    def get_unresolved_schema(self) -> Schema:
        """The columns, watermarks and the key as they were declared."""
        table = self._table
        if isinstance(table, port.CatalogTable):
            definition = TableDefinition(table.columns, table.watermarks, table.primary_key)
        else:
            columns = tuple(ColumnDefinition(field.name, field.type) for field in table.schema)
            definition = TableDefinition(columns)
        return Schema(definition)

    def get_options(self) -> dict[str, str]:
        """The options; a view has none."""
        return {} if isinstance(self._table, port.CatalogView) else dict(self._table.options)

    def get_comment(self) -> str | None:
        """The comment."""
        return self._table.comment

    def copy(self) -> CatalogBaseTable:
        """Another one that is equal."""
        return CatalogBaseTable(replace(self._table))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogBaseTable) and self._table == other._table

    def __hash__(self) -> int:
        return hash(type(self._table))


@dataclass(frozen=True)
class CatalogFunction:
    """A function of Python by its path: ``shop.prices.taxed``."""

    class_name: str
    function_language: str = "PYTHON"

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """A new one."""
        return CatalogFunction(class_name, function_language.upper())

    def get_class_name(self) -> str:
        """The path of the Python object."""
        return self.class_name

    def get_function_language(self) -> str:
        """``PYTHON``."""
        return self.function_language


class CatalogDescriptor:
    """A catalog that is yet to be made: its name, options and comment.

    >>> descriptor = CatalogDescriptor.of("lake", Configuration({"type": "generic_in_memory"}))
    """

    def __init__(self, name: str, options: Mapping[str, str], comment: str | None = None) -> None:
        self.name, self.options, self.comment = name, dict(options), comment

    @staticmethod
    def of(
        catalog_name: str, configuration: Configuration, comment: str | None = None
    ) -> CatalogDescriptor:
        """A new one."""
        return CatalogDescriptor(catalog_name, configuration.to_dict(), comment)


class Catalog:
    """Databases with tables, views and functions. ``TableEnvironment.get_catalog`` gives it, and
    ``register_catalog`` takes it. Methods raise CatalogError for what is there already, or is not
    there."""

    def __init__(self, catalog: port.Catalog) -> None:
        self.catalog = catalog

    # -- databases ---------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        """The names of the databases."""
        return list(self.catalog.list_databases())

    def get_default_database(self) -> str:
        """The one that USE CATALOG chooses."""
        return self.catalog.default_database

    def database_exists(self, database_name: str) -> bool:
        """Whether there is such a database."""
        return self.catalog.get_database(database_name) is not None

    def get_database(self, database_name: str) -> CatalogDatabase:
        """The database of this name."""
        found = self.catalog.get_database(database_name)
        if found is None:
            near = proposed(database_name, self.list_databases())
            raise CatalogError(f"there is no database {database_name!r}{near}")
        return CatalogDatabase(found.options, found.comment)

    def create_database(
        self, name: str, database: CatalogDatabase, ignore_if_exists: bool = False
    ) -> None:
        """Makes a database."""
        if not (ignore_if_exists and self.database_exists(name)):
            self.catalog.create_database(name, _database(database))

    def alter_database(
        self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool = False
    ) -> None:
        """Changes its options and its comment."""
        if self.database_exists(name) or not ignore_if_not_exists:
            self.catalog.alter_database(name, _database(new_database))

    def drop_database(self, name: str, ignore_if_not_exists: bool = False) -> None:
        """Removes it with all that is in it."""
        if self.database_exists(name) or not ignore_if_not_exists:
            self.catalog.drop_database(name)

    # -- tables and views --------------------------------------------------------------------------

    def list_tables(self, database_name: str) -> list[str]:
        """The names of its tables and views."""
        return list(self.catalog.list_tables(database_name))

    def list_views(self, database_name: str) -> list[str]:
        """The names of its views."""
        names = self.list_tables(database_name)
        return [name for name in names if self.get_table(ObjectPath(database_name, name)).is_view()]

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Whether there is such a table or view."""
        return self.catalog.get_table(*_names(table_path)) is not None

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """The table or view."""
        database, name = _names(table_path)
        found = self.catalog.get_table(database, name)
        if found is None:
            near = proposed(name, self.list_tables(database))
            raise CatalogError(f"there is no table or view {table_path}{near}")
        return CatalogBaseTable(found)

    def create_table(
        self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool = False
    ) -> None:
        """Declares a table or a view."""
        if not (ignore_if_exists and self.table_exists(table_path)):
            self.catalog.create_table(*_names(table_path), table._table)

    def alter_table(
        self,
        table_path: ObjectPath,
        new_table: CatalogBaseTable,
        ignore_if_not_exists: bool = False,
    ) -> None:
        """Puts another declaration in its place."""
        if self.table_exists(table_path) or not ignore_if_not_exists:
            self.catalog.alter_table(*_names(table_path), new_table._table)

    def rename_table(
        self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool = False
    ) -> None:
        """Gives it another name in its database."""
        if self.table_exists(table_path) or not ignore_if_not_exists:
            self.catalog.rename_table(*_names(table_path), new_table_name)

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool = False) -> None:
        """Removes the declaration; the rows stay where they are."""
        if self.table_exists(table_path) or not ignore_if_not_exists:
            self.catalog.drop_table(*_names(table_path))

    # -- functions ---------------------------------------------------------------------------------

    def list_functions(self, database_name: str) -> list[str]:
        """The names of its functions."""
        return list(self.catalog.list_functions(database_name))

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Whether there is such a function."""
        return self.catalog.get_function(*_names(function_path)) is not None

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """The function."""
        database, name = _names(function_path)
        found = self.catalog.get_function(database, name)
        if found is None:
            near = proposed(name, self.list_functions(database))
            raise CatalogError(f"there is no function {function_path}{near}")
        return CatalogFunction(found.class_name, found.language)

    def create_function(
        self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool = False
    ) -> None:
        """Declares a function."""
        if not (ignore_if_exists and self.function_exists(function_path)):
            made = port.CatalogFunction(function.class_name, function.function_language)
            self.catalog.create_function(*_names(function_path), made)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool = False) -> None:
        """Removes the declaration."""
        if self.function_exists(function_path) or not ignore_if_not_exists:
            self.catalog.drop_function(*_names(function_path))


class GenericInMemoryCatalog(Catalog):
    """A catalog that lives as long as the program.

    >>> GenericInMemoryCatalog("mine").list_databases()
    ['default']
    """

    def __init__(self, name: str, default_database: str = "default") -> None:
        super().__init__(InMemory(name, default_database))


class FileCatalog(Catalog):
    """A catalog in a folder, also of an object store: a JSON file a table. Sessions that name the
    same folder see the same tables, and of two that change one table at once, one is told.

    >>> catalog = FileCatalog("lake", "s3://lake/catalog")  # doctest: +SKIP
    >>> table_env.register_catalog("lake", catalog)  # doctest: +SKIP
    """

    def __init__(self, name: str, path: str, default_database: str = "default") -> None:
        from flinkpy.table.catalogs.made_catalogs import file_catalog

        super().__init__(file_catalog(name, path, default_database))


def _database(database: CatalogDatabase) -> port.CatalogDatabase:
    return port.CatalogDatabase(database.get_properties(), database.comment)


def _names(path: ObjectPath) -> tuple[str, str]:
    return path.database_name, path.object_name


publish(__name__)
