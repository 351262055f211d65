"""A catalog that lives as long as its session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from flinkpy.sql.catalog.catalog_port import (
    CatalogDatabase,
    CatalogFunction,
    CatalogTable,
    CatalogView,
)
from flinkpy.sql.sql_errors import CatalogError, proposed

T = TypeVar("T")


@dataclass
class _Contents:
    """What one database holds."""

    database: CatalogDatabase
    tables: dict[str, CatalogTable | CatalogView] = field(default_factory=dict)
    functions: dict[str, CatalogFunction] = field(default_factory=dict)


class GenericInMemoryCatalog:
    """Databases in a dictionary; the first one is there from the beginning.

    >>> GenericInMemoryCatalog("mine").list_databases()
    ['default']
    """

    def __init__(self, name: str, default_database: str = "default") -> None:
        self.name = name
        self.default_database = default_database
        self._databases = {default_database: _Contents(CatalogDatabase())}

    # -- databases ---------------------------------------------------------------------------------

    def list_databases(self) -> Sequence[str]:
        return sorted(self._databases)

    def get_database(self, name: str) -> CatalogDatabase | None:
        found = self._databases.get(name)
        return None if found is None else found.database

    def create_database(self, name: str, database: CatalogDatabase) -> None:
        _refuse_present("database", name, self._databases)
        self._databases[name] = _Contents(database)

    def alter_database(self, name: str, database: CatalogDatabase) -> None:
        self._contents(name).database = database

    def drop_database(self, name: str) -> None:
        self._contents(name)
        del self._databases[name]

    # -- tables and views --------------------------------------------------------------------------

    def list_tables(self, database: str) -> Sequence[str]:
        return sorted(self._contents(database).tables)

    def get_table(self, database: str, name: str) -> CatalogTable | CatalogView | None:
        found = self._databases.get(database)
        return None if found is None else found.tables.get(name)

    def create_table(self, database: str, name: str, table: CatalogTable | CatalogView) -> None:
        tables = self._contents(database).tables
        _refuse_present("table or view", name, tables)
        tables[name] = table

    def alter_table(self, database: str, name: str, table: CatalogTable | CatalogView) -> None:
        tables = self._contents(database).tables
        _present("table or view", name, tables)
        tables[name] = table

    def rename_table(self, database: str, name: str, new_name: str) -> None:
        tables = self._contents(database).tables
        _refuse_present("table or view", new_name, tables)
        table = _present("table or view", name, tables)
        del tables[name]
        tables[new_name] = table

    def drop_table(self, database: str, name: str) -> None:
        tables = self._contents(database).tables
        _present("table or view", name, tables)
        del tables[name]

    # -- functions ---------------------------------------------------------------------------------

    def list_functions(self, database: str) -> Sequence[str]:
        return sorted(self._contents(database).functions)

    def get_function(self, database: str, name: str) -> CatalogFunction | None:
        found = self._databases.get(database)
        return None if found is None else found.functions.get(name)

    def create_function(self, database: str, name: str, function: CatalogFunction) -> None:
        functions = self._contents(database).functions
        _refuse_present("function", name, functions)
        functions[name] = function

    def drop_function(self, database: str, name: str) -> None:
        functions = self._contents(database).functions
        _present("function", name, functions)
        del functions[name]

    def _contents(self, database: str) -> _Contents:
        return _present("database", database, self._databases)


def _present(kind: str, name: str, things: Mapping[str, T]) -> T:
    if name not in things:
        raise CatalogError(f"there is no {kind} {name!r}{proposed(name, things)}")
    return things[name]


def _refuse_present(kind: str, name: str, things: Mapping[str, T]) -> None:
    if name in things:
        raise CatalogError(f"there is a {kind} {name!r} already")
