"""The catalogs of a session, which of them is current, and its temporary objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from flinkpy.sql.catalog.catalog_port import (
    Catalog,
    CatalogOrigin,
    CatalogTable,
    CatalogView,
    ObjectPath,
)
from flinkpy.sql.catalog.in_memory_catalog import GenericInMemoryCatalog
from flinkpy.sql.catalog.user_functions import LoadFunction, UserFunctions, loads_nothing
from flinkpy.sql.functions.function_port import Function, FunctionRegistry
from flinkpy.sql.sql_errors import CatalogError, ValidationError, proposed

DEFAULT_CATALOG, DEFAULT_DATABASE = "default_catalog", "default_database"

AnyTable = CatalogTable | CatalogView


class CatalogManager:
    """What names mean in one session (``Names``). A temporary object hides the one in the catalog
    that has the same name."""

    def __init__(
        self,
        registry: FunctionRegistry,
        catalog: str = DEFAULT_CATALOG,
        database: str = DEFAULT_DATABASE,
        load_function: LoadFunction = loads_nothing,
    ) -> None:
        self._registry = registry
        self._catalogs: dict[str, Catalog] = {catalog: GenericInMemoryCatalog(catalog, database)}
        self.functions = UserFunctions(self._catalogs, load_function)
        self._origins = {catalog: CatalogOrigin({"type": "generic_in_memory"})}
        self.current_catalog = catalog
        self.current_database = database
        self.temporary_tables: dict[ObjectPath, AnyTable] = {}

    # -- names -------------------------------------------------------------------------------------

    def path_of(self, parts: Sequence[str]) -> ObjectPath:
        """The full name: one part is a table of the current database, two are database and
        table."""
        if not 1 <= len(parts) <= 3:
            raise ValidationError(
                f"the name {'.'.join(parts)!r} has {len(parts)} parts; a full name is "
                "catalog.database.name"
            )
        missing = [self.current_catalog, self.current_database][: 3 - len(parts)]
        return ObjectPath(*missing, *parts)

    def find_table(self, parts: Sequence[str]) -> tuple[ObjectPath, AnyTable] | None:
        path = self.path_of(parts)
        found = self.table_at(path)
        return None if found is None else (path, found)

    def table_at(self, path: ObjectPath) -> AnyTable | None:
        """The table or view of this full name."""
        if path in self.temporary_tables:
            return self.temporary_tables[path]
        catalog = self._catalogs.get(path.catalog)
        return None if catalog is None else catalog.get_table(path.database, path.name)

    def find_function(self, parts: Sequence[str]) -> Function | None:
        if len(parts) == 1:
            own = self.functions.system_function(parts[0])
            if own is not None:
                return own
            if (builtin := self._registry.find(parts[0])) is not None:
                return builtin
        return None if len(parts) > 3 else self.functions.at(self.path_of(parts))

    def table_names(self) -> Sequence[str]:
        return self.list_tables(self.current_catalog, self.current_database)

    def full_table_names(self, parts: int) -> Sequence[str]:
        found: list[str] = []
        for catalog in [self.current_catalog] if parts == 2 else self.list_catalogs():
            prefix = "" if parts == 2 else f"{catalog}."
            with suppress(CatalogError):  # one that cannot be reached has no proposals
                for database in self._catalogs[catalog].list_databases():
                    names = self.list_tables(catalog, database)
                    found += [f"{prefix}{database}.{name}" for name in names]
        return found

    def function_names(self) -> Sequence[str]:
        return sorted({*self.functions.names(), *self._registry.names()})

    # -- catalogs and databases --------------------------------------------------------------------

    def list_catalogs(self) -> list[str]:
        return sorted(self._catalogs)

    def catalog(self, name: str) -> Catalog:
        """The catalog of this name. Raises CatalogError if there is none."""
        if name not in self._catalogs:
            raise CatalogError(f"there is no catalog {name!r}{proposed(name, self._catalogs)}")
        return self._catalogs[name]

    def register_catalog(
        self, name: str, catalog: Catalog, origin: CatalogOrigin | None = None
    ) -> None:
        """Gives a catalog a name in this session."""
        if name in self._catalogs:
            raise CatalogError(f"there is a catalog {name!r} already")
        self._catalogs[name] = catalog
        self._origins[name] = origin or CatalogOrigin()

    def origin_of_catalog(self, name: str) -> CatalogOrigin:
        """How the catalog was made; without options if a program made it."""
        self.catalog(name)
        return self._origins[name]

    def drop_catalog(self, name: str) -> None:
        self.catalog(name)
        if name == self.current_catalog:
            raise CatalogError(f"{name!r} is the current catalog: USE CATALOG another one first")
        del self._catalogs[name]

    def use_catalog(self, name: str) -> None:
        """Makes it the current one, with its default database."""
        self.current_database = self.catalog(name).default_database
        self.current_catalog = name

    def use_database(self, name: str, catalog: str | None = None) -> None:
        chosen = catalog or self.current_catalog
        self.require_database(chosen, name)
        self.current_catalog, self.current_database = chosen, name

    def require_database(self, catalog: str, name: str) -> None:
        """Raises CatalogError if there is no such database."""
        known = self.catalog(catalog).list_databases()
        if name not in known:
            raise CatalogError(
                f"there is no database {name!r} in the catalog {catalog!r}{proposed(name, known)}"
            )

    # -- tables and views --------------------------------------------------------------------------

    def list_tables(self, catalog: str, database: str) -> list[str]:
        """Tables and views, also temporary ones."""
        self.require_database(catalog, database)
        permanent = self._catalogs[catalog].list_tables(database)
        return sorted({*permanent, *self.list_temporary(catalog, database)})

    def list_temporary(self, catalog: str, database: str) -> list[str]:
        return sorted(
            path.name
            for path in self.temporary_tables
            if (path.catalog, path.database) == (catalog, database)
        )

    def list_views(self, catalog: str, database: str) -> list[str]:
        """Only the views of these."""
        return [
            name
            for name in self.list_tables(catalog, database)
            if isinstance(self.table_at(ObjectPath(catalog, database, name)), CatalogView)
        ]

    def require_table(self, path: ObjectPath) -> AnyTable:
        """The table or view. Raises CatalogError, which names the nearest, if there is none."""
        found = self.table_at(path)
        if found is None:
            known = self.list_tables(path.catalog, path.database)
            raise CatalogError(f"there is no table or view {path}{proposed(path.name, known)}")
        return found

    def create_table(
        self,
        path: ObjectPath,
        table: AnyTable,
        *,
        temporary: bool = False,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> bool:
        """False if there is one already, and that may be."""
        if temporary:
            is_there = path in self.temporary_tables
        else:
            self.require_database(path.catalog, path.database)
            catalog = self.catalog(path.catalog)
            is_there = catalog.get_table(path.database, path.name) is not None
        if is_there and if_not_exists:
            return False
        if is_there and not or_replace:
            kind = "temporary table or view" if temporary else "table or view"
            raise CatalogError(f"there is a {kind} {path} already")
        if temporary:
            self.temporary_tables[path] = table
        elif is_there:
            catalog.alter_table(path.database, path.name, table)
        else:
            catalog.create_table(path.database, path.name, table)
        return True

    @contextmanager
    def declared_if_it_succeeds(self, path: ObjectPath) -> Iterator[None]:
        """If the block raises, the name means again what it meant before."""
        temporary, permanent = self.temporary_tables.get(path), self._permanent(path)
        try:
            yield
        except BaseException:
            if temporary is None:
                self.temporary_tables.pop(path, None)
            else:
                self.temporary_tables[path] = temporary
            if self._permanent(path) != permanent:
                catalog = self.catalog(path.catalog)
                if permanent is None:
                    catalog.drop_table(path.database, path.name)
                else:
                    catalog.alter_table(path.database, path.name, permanent)
            raise

    def alter_table(self, path: ObjectPath, table: AnyTable) -> None:
        """Puts the table in the place of the one that has its name."""
        if path in self.temporary_tables:
            self.temporary_tables[path] = table
        else:
            self.catalog(path.catalog).alter_table(path.database, path.name, table)

    def rename_table(self, path: ObjectPath, new_name: str) -> None:
        target = ObjectPath(path.catalog, path.database, new_name)
        if path in self.temporary_tables:
            if target in self.temporary_tables:
                raise CatalogError(f"there is a temporary table or view {target} already")
            self.temporary_tables[target] = self.temporary_tables.pop(path)
        else:
            self.catalog(path.catalog).rename_table(path.database, path.name, new_name)

    def drop_table(
        self, path: ObjectPath, *, is_view: bool, temporary: bool = False, if_exists: bool = False
    ) -> bool:
        """Whether there was one. Raises CatalogError for a table that is a view, or a view that is
        a table, or if a temporary one hides what is to be dropped."""
        word = "view" if is_view else "table"
        hidden = path in self.temporary_tables
        if not temporary and hidden and self._is(path, is_view):
            raise CatalogError(
                f"a temporary {word} has the name {path}: DROP TEMPORARY {word.upper()} it first"
            )
        found = self.temporary_tables.get(path) if temporary else self._permanent(path)
        if found is None and if_exists:
            return False
        if found is None:
            known = self.list_tables(path.catalog, path.database)
            kind = f"temporary {word}" if temporary else word
            raise CatalogError(f"there is no {kind} {path}{proposed(path.name, known)}")
        if isinstance(found, CatalogView) is not is_view:
            other = "table" if is_view else "view"
            raise CatalogError(f"{path} is a {other}: DROP {other.upper()} it")
        if temporary:
            del self.temporary_tables[path]
        else:
            self.catalog(path.catalog).drop_table(path.database, path.name)
        return True

    def _is(self, path: ObjectPath, is_view: bool) -> bool:
        return isinstance(self.temporary_tables[path], CatalogView) is is_view

    def _permanent(self, path: ObjectPath) -> AnyTable | None:
        catalog = self._catalogs.get(path.catalog)
        return None if catalog is None else catalog.get_table(path.database, path.name)
