"""What statements about catalogs and tables need from outside of the catalogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flinkpy.sql.catalog.catalog_port import Catalog, CatalogTable, ObjectPath
from flinkpy.table.factories.found_factories import FoundFactories


@dataclass(frozen=True)
class OutsideServices:
    """The port ``CatalogServices`` over the connectors."""

    connectors: FoundFactories

    def made_catalog(self, name: str, options: Mapping[str, str]) -> Catalog:
        from flinkpy.table.catalogs.made_catalogs import made_catalog

        return made_catalog(name, options)

    def partitions(self, path: ObjectPath, table: CatalogTable) -> Sequence[str]:
        return self.connectors.factory(path, table).partitions(table)

    def add_partition(
        self, path: ObjectPath, table: CatalogTable, values: Mapping[str, object]
    ) -> bool:
        return self.connectors.factory(path, table).add_partition(table, values)

    def drop_partition(
        self, path: ObjectPath, table: CatalogTable, values: Mapping[str, object]
    ) -> bool:
        return self.connectors.factory(path, table).drop_partition(table, values)
