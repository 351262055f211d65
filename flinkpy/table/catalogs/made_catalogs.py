"""Catalogs by their options: what ``CREATE CATALOG c WITH ('type' = ...)`` makes."""

from __future__ import annotations

from collections.abc import Mapping

from flinkpy.core.errors import ConfigurationError
from flinkpy.sql.catalog.catalog_port import Catalog
from flinkpy.sql.catalog.in_memory_catalog import GenericInMemoryCatalog
from flinkpy.sql.sql_errors import CatalogError, ValidationError, did_you_mean
from flinkpy.table.catalogs.file_catalog import FileCatalog
from flinkpy.table.factories.table_options import STRING, OptionTable, TableOption, TableValues

TYPE = TableOption("type", STRING, None, "Which kind of catalog it is.", required=True)
DEFAULT_DATABASE = TableOption(
    "default-database", STRING, "default", "The database that USE CATALOG chooses."
)
PATH = TableOption("path", STRING, None, "The folder, also of an object store.", required=True)

CATALOG_TYPES: Mapping[str, OptionTable] = {
    "generic_in_memory": OptionTable((TYPE, DEFAULT_DATABASE)),
    "file": OptionTable((TYPE, DEFAULT_DATABASE, PATH)),
}


def made_catalog(name: str, options: Mapping[str, str]) -> Catalog:
    """Raises ValidationError, which names the nearest, for an unknown type or option."""
    kind = options.get("type")
    if kind is None:
        raise ValidationError(f"a catalog needs the option 'type': {' or '.join(CATALOG_TYPES)}")
    if kind not in CATALOG_TYPES:
        near = did_you_mean(kind, CATALOG_TYPES) or f"; there are {', '.join(CATALOG_TYPES)}"
        raise ValidationError(f"there is no catalog of the type {kind!r}{near}")
    values: TableValues = CATALOG_TYPES[kind].read(options, f"a catalog of the type {kind!r}")
    database = values["default-database"]
    if kind == "generic_in_memory":
        return GenericInMemoryCatalog(name, database)
    return file_catalog(name, values["path"], database)


def file_catalog(name: str, path: str, default_database: str) -> FileCatalog:
    """Raises CatalogError if the folder cannot be used."""
    from flinkpy.state.checkpoints.locations import absolute
    from flinkpy.state.checkpoints.stores_of_locations import file_store_of

    location = absolute(path.removeprefix("file://"))
    try:
        return FileCatalog(name, file_store_of(location), location, default_database)
    except ConfigurationError as error:
        raise CatalogError(f"the catalog {name!r} cannot be used: {error}") from error
