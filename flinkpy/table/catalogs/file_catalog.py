"""A catalog in a folder, also of an object store: a JSON file a table. Several sessions share it.

::

    <path>/databases/shop.0000000001.json
    <path>/tables/shop/orders.0000000003.json     tables and views
    <path>/functions/shop/taxed.0000000001.json

Nothing is remembered but the versions that were read: a table that another session creates is there
at the next statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

from flinkpy.sql.catalog.catalog_port import (
    CatalogDatabase,
    CatalogFunction,
    CatalogTable,
    CatalogView,
    ObjectPath,
)
from flinkpy.sql.sql_errors import CatalogError, proposed
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import join
from flinkpy.table.catalogs import object_documents as documents
from flinkpy.table.catalogs.versioned_documents import Document, VersionedDocuments


class FileCatalog:
    """The port ``Catalog`` over a store of files."""

    def __init__(
        self, name: str, files: FileStore, path: str, default_database: str = "default"
    ) -> None:
        self.name, self.default_database = name, default_database
        self._files, self._path = files, path
        # the version that this session has read last: what it changes is that one
        self._seen: dict[tuple[str, str, str], int] = {}
        with self._telling():
            if self._read("databases", "", default_database) is None:
                self.create_database(default_database, CatalogDatabase())

    # -- databases ---------------------------------------------------------------------------------

    def list_databases(self) -> Sequence[str]:
        with self._telling():
            return self._documents("databases", "").names()

    def get_database(self, name: str) -> CatalogDatabase | None:
        found = self._read("databases", "", name)
        return None if found is None else documents.database_of_document(found, f"database {name}")

    def create_database(self, name: str, database: CatalogDatabase) -> None:
        self._create("databases", "", name, documents.document_of_database(database))

    def alter_database(self, name: str, database: CatalogDatabase) -> None:
        self._change("databases", "", name, documents.document_of_database(database))

    def drop_database(self, name: str) -> None:
        self._change("databases", "", name, None)
        with self._telling():
            self._documents("tables", name).remove_all()
            self._documents("functions", name).remove_all()
        self._seen = {place: seen for place, seen in self._seen.items() if place[1] != name}

    # -- tables and views --------------------------------------------------------------------------

    def list_tables(self, database: str) -> Sequence[str]:
        with self._telling():
            return self._documents("tables", database).names()

    def get_table(self, database: str, name: str) -> CatalogTable | CatalogView | None:
        found = self._read("tables", database, name)
        where = str(ObjectPath(self.name, database, name))
        return None if found is None else documents.table_of_document(found, where)

    def create_table(self, database: str, name: str, table: CatalogTable | CatalogView) -> None:
        self._create("tables", database, name, self._document(database, name, table))

    def alter_table(self, database: str, name: str, table: CatalogTable | CatalogView) -> None:
        self._change("tables", database, name, self._document(database, name, table))

    def rename_table(self, database: str, name: str, new_name: str) -> None:
        table = self.get_table(database, name)
        if table is None:
            raise self._absent("tables", database, name)
        self.create_table(database, new_name, table)
        self._change("tables", database, name, None)

    def drop_table(self, database: str, name: str) -> None:
        self._change("tables", database, name, None)

    def _document(self, database: str, name: str, table: CatalogTable | CatalogView) -> Document:
        return documents.document_of_table(ObjectPath(self.name, database, name), table)

    # -- functions ---------------------------------------------------------------------------------

    def list_functions(self, database: str) -> Sequence[str]:
        with self._telling():
            return self._documents("functions", database).names()

    def get_function(self, database: str, name: str) -> CatalogFunction | None:
        found = self._read("functions", database, name)
        where = str(ObjectPath(self.name, database, name))
        return None if found is None else documents.function_of_document(found, where)

    def create_function(self, database: str, name: str, function: CatalogFunction) -> None:
        self._create("functions", database, name, documents.document_of_function(function))

    def drop_function(self, database: str, name: str) -> None:
        self._change("functions", database, name, None)

    # -- files -------------------------------------------------------------------------------------

    def _documents(self, kind: str, database: str) -> VersionedDocuments:
        folder = join(self._path, kind)
        return VersionedDocuments(
            self._files, join(folder, _folder(database)) if database else folder
        )

    def _read(self, kind: str, database: str, name: str) -> Document | None:
        with self._telling():
            version, found = self._documents(kind, database).read(name)
        self._seen[kind, database, name] = version
        return found

    def _create(self, kind: str, database: str, name: str, document: Document) -> None:
        if self._read(kind, database, name) is not None:
            raise CatalogError(f"there is a {_WORDS[kind]} {name!r} already")
        self._write(kind, database, name, document)

    def _change(self, kind: str, database: str, name: str, document: Document | None) -> None:
        if (kind, database, name) not in self._seen and self._read(kind, database, name) is None:
            raise self._absent(kind, database, name)
        self._write(kind, database, name, document)

    def _write(self, kind: str, database: str, name: str, document: Document | None) -> None:
        seen = self._seen.pop((kind, database, name))
        with self._telling():
            self._documents(kind, database).write(name, document, after=seen)

    def _absent(self, kind: str, database: str, name: str) -> CatalogError:
        known = self._documents(kind, database).names()
        return CatalogError(f"there is no {_WORDS[kind]} {name!r}{proposed(name, known)}")

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Raises CatalogError for what a store of files cannot do."""
        try:
            yield
        except OSError as error:
            raise CatalogError(f"the catalog {self.name!r} cannot be used: {error}") from error


_WORDS = {"databases": "database", "tables": "table or view", "functions": "function"}


def _folder(database: str) -> str:
    return quote(database, safe=" ")
