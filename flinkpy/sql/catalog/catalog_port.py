"""What planning needs to know of a catalog and of its objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import LogicalType, RowType
from flinkpy.common.logical_types.sql_quotes import quoted_name
from flinkpy.sql.functions.function_port import Function
from flinkpy.sql.syntax.statements import AnyColumn, PrimaryKey, WatermarkDefinition


@dataclass(frozen=True)
class ObjectPath:
    """The full name of a table, view or function."""

    catalog: str
    database: str
    name: str

    def __str__(self) -> str:
        return ".".join(map(quoted_name, (self.catalog, self.database, self.name)))


@dataclass(frozen=True)
class CatalogTable:
    """A table as it was declared. ``columns`` are in the order of the declaration."""

    columns: tuple[AnyColumn, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    watermarks: tuple[WatermarkDefinition, ...] = ()
    primary_key: PrimaryKey | None = None
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class CatalogView:
    """A view: its query as written and with full names, and the type of its rows."""

    query: str
    expanded_query: str
    schema: RowType
    comment: str | None = None


@dataclass(frozen=True)
class CatalogFunction:
    """A user-defined function by the path of its Python object."""

    class_name: str
    language: str = "PYTHON"


@dataclass(frozen=True)
class CatalogDatabase:
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None


class Catalog(Protocol):
    """Databases with tables, views and functions. Methods raise CatalogError, which names the
    object, where it is there already or is not there. ``default_database`` is the one that USE
    CATALOG chooses."""

    @property
    def default_database(self) -> str: ...

    def list_databases(self) -> Sequence[str]: ...
    def get_database(self, name: str) -> CatalogDatabase | None: ...
    def create_database(self, name: str, database: CatalogDatabase) -> None: ...
    def alter_database(self, name: str, database: CatalogDatabase) -> None: ...
    def drop_database(self, name: str) -> None: ...

    def list_tables(self, database: str) -> Sequence[str]:
        """Tables and views."""

    def get_table(self, database: str, name: str) -> CatalogTable | CatalogView | None: ...
    def create_table(self, database: str, name: str, table: CatalogTable | CatalogView) -> None: ...
    def alter_table(self, database: str, name: str, table: CatalogTable | CatalogView) -> None: ...
    def rename_table(self, database: str, name: str, new_name: str) -> None: ...
    def drop_table(self, database: str, name: str) -> None: ...

    def list_functions(self, database: str) -> Sequence[str]: ...
    def get_function(self, database: str, name: str) -> CatalogFunction | None: ...
    def create_function(self, database: str, name: str, function: CatalogFunction) -> None: ...
    def drop_function(self, database: str, name: str) -> None: ...


@dataclass(frozen=True)
class CatalogOrigin:
    """How a catalog was made: the options and the comment of CREATE CATALOG."""

    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None


class CatalogServices(Protocol):
    """What lies outside of the catalogs: those that options describe, and the partitions of tables.
    Raises ValidationError for options that do not fit, and for a table without partitions."""

    def made_catalog(self, name: str, options: Mapping[str, str]) -> Catalog: ...

    def partitions(self, path: ObjectPath, table: CatalogTable) -> Sequence[str]:
        """Such as ``city=Oslo/year=2024``, sorted."""

    def add_partition(
        self, path: ObjectPath, table: CatalogTable, values: Mapping[str, object]
    ) -> bool:
        """Whether it is new."""

    def drop_partition(
        self, path: ObjectPath, table: CatalogTable, values: Mapping[str, object]
    ) -> bool:
        """Whether there was one; its rows are gone."""


class Names(Protocol):
    """What the names in a statement stand for, in the session's catalog and database; temporary
    objects come first. None: there is no such thing."""

    def find_table(
        self, parts: Sequence[str]
    ) -> tuple[ObjectPath, CatalogTable | CatalogView] | None: ...

    def find_function(self, parts: Sequence[str]) -> Function | None: ...

    def path_of(self, parts: Sequence[str]) -> ObjectPath:
        """The full name of what is, or would be, called so."""

    def table_names(self) -> Sequence[str]:
        """The tables and views that can be named without a dot, for proposals."""

    def full_table_names(self, parts: int) -> Sequence[str]:
        """``database.table`` of the current catalog, or with three parts of all catalogs, for
        proposals."""

    def function_names(self) -> Sequence[str]: ...


# -- what a table can do: its connector says it, planning asks -------------------------------------


@dataclass(frozen=True)
class SourceAbilities:
    """What may be pushed into a scan, and what comes out of it. ``rows`` is an estimate from
    statistics of files. ``takes_lookups``: it can be asked for the rows of a key; then, without
    ``is_scanned``, for nothing else."""

    is_bounded: bool = False
    takes_lookups: bool = False
    is_scanned: bool = True
    changes: ChangelogMode = INSERT_ONLY
    takes_projection: bool = False
    takes_filters: bool = False
    takes_limit: bool = False
    takes_partitions: bool = False
    takes_watermark: bool = False
    gives_watermarks: bool = False  # of its own, which SOURCE_WATERMARK() takes
    metadata: Mapping[str, LogicalType] = field(default_factory=dict)
    rows: int | None = None


@dataclass(frozen=True)
class SinkAbilities:
    """What a sink takes. ``metadata`` are the columns that it can write beside the physical
    ones."""

    changes: ChangelogMode = INSERT_ONLY
    takes_overwrite: bool = False
    takes_partitions: bool = False
    metadata: Mapping[str, LogicalType] = field(default_factory=dict)


class Connectors(Protocol):
    """What the options of tables stand for. Raises ValidationError for an unknown connector or
    option (and names the nearest), and for values that do not fit."""

    def source_abilities(self, path: ObjectPath, table: CatalogTable) -> SourceAbilities: ...
    def sink_abilities(self, path: ObjectPath, table: CatalogTable) -> SinkAbilities: ...
