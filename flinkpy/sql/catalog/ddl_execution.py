"""Statements about the session and its catalogs: each changes or reads the catalog manager and
gives rows. No job runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.common.logical_types.logical_type import RowField
from flinkpy.sql.catalog import altered_tables, function_ddl
from flinkpy.sql.catalog.catalog_manager import CatalogManager
from flinkpy.sql.catalog.catalog_port import (
    CatalogDatabase,
    CatalogOrigin,
    CatalogServices,
    CatalogTable,
    CatalogView,
    ObjectPath,
)
from flinkpy.sql.catalog.declared_tables import declared_table
from flinkpy.sql.catalog.expanded_queries import expanded_query
from flinkpy.sql.catalog.query_types import QueryTypes
from flinkpy.sql.catalog.shown_objects import described, partitions_of, shown
from flinkpy.sql.catalog.statement_rows import OK, StatementRows, texts
from flinkpy.sql.sql_errors import CatalogError, SqlError, ValidationError, proposed
from flinkpy.sql.syntax import statements as sql
from flinkpy.sql.syntax.query_tree import Identifier
from flinkpy.sql.syntax.statements import ComputedColumn


@dataclass(frozen=True)
class DdlExecution:
    """Executes DDL in one session. ``text`` is the statement's text."""

    session: CatalogManager
    types: QueryTypes
    text: str
    services: CatalogServices

    def takes(self, statement: sql.Statement) -> bool:
        """Whether the statement is one of these; a CREATE TABLE with a query runs a job too."""
        return type(statement) in _EXECUTED

    def execute(self, statement: sql.Statement) -> StatementRows:
        """Raises ValidationError, with the place in the statement, for what cannot be."""
        try:
            return _EXECUTED[type(statement)](self, statement) or OK
        except SqlError as error:
            raise error.within(self.text) from None

    # -- tables and views --------------------------------------------------------------------------

    def create_table(self, statement: sql.CreateTable) -> None:
        """CREATE TABLE without a query, also with LIKE."""
        path = self.session.path_of(statement.name.parts)
        liked = None if statement.like is None else self._table(statement.like.table)
        table = declared_table(statement, liked)
        if table.watermarks or any(isinstance(each, ComputedColumn) for each in table.columns):
            self.types.type_of_table(table)
        self.session.create_table(
            path,
            table,
            temporary=statement.temporary,
            if_not_exists=statement.if_not_exists,
            or_replace=statement.or_replace,
        )

    def create_view(self, statement: sql.CreateView) -> None:
        path = self.session.path_of(statement.name.parts)
        self.session.create_table(
            path,
            self._view(statement, statement.columns, statement.comment),
            temporary=statement.temporary,
            if_not_exists=statement.if_not_exists,
        )

    def alter_view(self, statement: sql.AlterView) -> None:
        path, old = self._existing(statement.name)
        if not isinstance(old, CatalogView):
            raise CatalogError(f"{path} is a table, not a view", span=statement.name.span)
        self.session.alter_table(path, self._view(statement, (), old.comment))

    def _view(
        self,
        statement: sql.CreateView | sql.AlterView,
        columns: tuple[str, ...],
        comment: str | None,
    ) -> CatalogView:
        schema = self.types.type_of_query(statement.query)
        if columns and len(columns) != len(schema.fields):
            raise ValidationError(
                f"the view has {len(columns)} names, and its query {len(schema.fields)} columns",
                span=statement.name.span,
            )
        if columns:
            named = zip(columns, schema.fields)
            schema = replace(
                schema, fields=tuple(RowField(name, field.type) for name, field in named)
            )
        expanded = expanded_query(statement.query, self.text, statement.query_text, self.session)
        return CatalogView(statement.query_text, expanded, schema, comment)

    def alter_table(
        self, statement: sql.AlterSchema | sql.AlterDrop | sql.AlterRenameColumn
    ) -> None:
        """ALTER TABLE ... ADD, MODIFY, DROP, RENAME of columns and the like."""
        if statement.if_exists and self.session.find_table(statement.name.parts) is None:
            return
        path, _ = self._existing(statement.name)
        old = self._table(statement.name)
        if isinstance(statement, sql.AlterSchema):
            new = altered_tables.with_changed_schema(old, statement)
        elif isinstance(statement, sql.AlterDrop):
            new = altered_tables.with_dropped(old, statement)
        else:
            new = altered_tables.with_renamed_column(old, statement)
        self.types.type_of_table(new)
        self.session.alter_table(path, new)

    def alter_options(self, statement: sql.AlterOptions) -> None:
        if statement.kind == "DATABASE":
            self._alter_database(statement)
            return
        if statement.kind != "TABLE":
            raise ValidationError(
                f"the options of a {statement.kind.lower()} cannot be changed", span=statement.span
            )
        if statement.if_exists and self.session.find_table(statement.name.parts) is None:
            return
        path, _ = self._existing(statement.name)
        table = self._table(statement.name)
        self.session.alter_table(path, altered_tables.with_options(table, statement))

    def rename(self, statement: sql.AlterRename) -> None:
        if statement.if_exists and self.session.find_table(statement.name.parts) is None:
            return
        path, _ = self._existing(statement.name)
        target = self.session.path_of(statement.new_name.parts)
        if len(statement.new_name.parts) > 1 and (target.catalog, target.database) != (
            path.catalog,
            path.database,
        ):
            raise ValidationError(
                f"{path} cannot be moved to another database, only renamed",
                span=statement.new_name.span,
            )
        self.session.rename_table(path, target.name)

    def change_partitions(self, statement: sql.AddPartition) -> None:
        """ALTER TABLE ... ADD PARTITION and DROP PARTITION."""
        path, _ = self._existing(statement.name)
        table = self._table(statement.name)
        for partition in statement.partitions:
            values = {name: literal.value for name, literal in partition}
            _check_partition(table, values, statement)
            change = self.services.drop_partition if statement.drop else self.services.add_partition
            if not change(path, table, values) and not statement.if_exists:
                words = "there is no partition" if statement.drop else "there is a partition"
                shown = ", ".join(f"{name}={value}" for name, value in values.items())
                end = "" if statement.drop else " already"
                raise CatalogError(f"{words} {shown} of {path}{end}", span=statement.span)

    # -- functions, databases, catalogs ------------------------------------------------------------

    def create_function(self, statement: sql.CreateFunction) -> None:
        function_ddl.create_function(self.session, statement)

    def alter_function(self, statement: sql.AlterFunction) -> None:
        function_ddl.alter_function(self.session, statement)

    def create_database(self, statement: sql.CreateDatabase) -> None:
        catalog, name = self._database(statement.name)
        if statement.if_not_exists and name in self.session.catalog(catalog).list_databases():
            return
        database = CatalogDatabase(dict(statement.options), statement.comment)
        self.session.catalog(catalog).create_database(name, database)

    def _alter_database(self, statement: sql.AlterOptions) -> None:
        catalog, name = self._database(statement.name)
        self.session.require_database(catalog, name)
        old = self.session.catalog(catalog).get_database(name) or CatalogDatabase()
        options = {**old.options, **dict(statement.options)}
        kept = {key: value for key, value in options.items() if key not in statement.reset}
        self.session.catalog(catalog).alter_database(name, replace(old, options=kept))

    def create_catalog(self, statement: sql.CreateCatalog) -> None:
        if statement.if_not_exists and statement.name in self.session.list_catalogs():
            return
        options = dict(statement.options)
        self.session.register_catalog(
            statement.name,
            self.services.made_catalog(statement.name, options),
            CatalogOrigin(options, statement.comment),
        )

    def drop(self, statement: sql.Drop) -> None:
        if statement.kind in ("TABLE", "VIEW"):
            self.session.drop_table(
                self.session.path_of(statement.name.parts),
                is_view=statement.kind == "VIEW",
                temporary=statement.temporary,
                if_exists=statement.if_exists,
            )
        elif statement.kind == "DATABASE":
            self._drop_database(statement)
        elif statement.kind == "CATALOG":
            if not statement.if_exists or statement.name.text in self.session.list_catalogs():
                self.session.drop_catalog(statement.name.text)
        else:
            function_ddl.drop_function(self.session, statement)

    def _drop_database(self, statement: sql.Drop) -> None:
        catalog, name = self._database(statement.name)
        if statement.if_exists and name not in self.session.catalog(catalog).list_databases():
            return
        self.session.require_database(catalog, name)
        if (catalog, name) == (self.session.current_catalog, self.session.current_database):
            raise CatalogError(
                f"{name!r} is the current database: USE another one first", span=statement.name.span
            )
        tables = self.session.catalog(catalog).list_tables(name)
        if tables and not statement.cascade:
            raise CatalogError(
                f"the database {name!r} has {len(tables)} tables: DROP DATABASE ... CASCADE drops "
                "them too",
                span=statement.name.span,
            )
        self.session.catalog(catalog).drop_database(name)

    # -- the session -------------------------------------------------------------------------------

    def use(self, statement: sql.Use) -> None:
        if statement.kind == "CATALOG":
            self.session.use_catalog(statement.names[0].text)
        elif statement.kind == "DATABASE":
            catalog, name = self._database(statement.names[0])
            self.session.use_database(name, catalog)
        elif [each.text for each in statement.names] != ["core"]:
            raise ValidationError("there is one module, core", span=statement.span)

    def show(self, statement: sql.Show) -> StatementRows:
        if statement.kind == "PARTITIONS" and statement.name is not None:
            path, _ = self._existing(statement.name)
            table = self._table(statement.name)
            _check_partition(table, dict(statement.partition), statement)
            found = self.services.partitions(path, table)
            return texts("partition name", partitions_of(found, statement))
        return shown(statement, self.session, self.types)

    def describe(self, statement: sql.Describe) -> StatementRows:
        return described(statement, self.session, self.types)

    # -- names -------------------------------------------------------------------------------------

    def _existing(self, name: Identifier) -> tuple[ObjectPath, CatalogTable | CatalogView]:
        path = self.session.path_of(name.parts)
        try:
            return path, self.session.require_table(path)
        except CatalogError as error:
            raise CatalogError(error.problem, span=name.span) from None

    def _table(self, name: Identifier) -> CatalogTable:
        path, found = self._existing(name)
        if isinstance(found, CatalogView):
            raise CatalogError(f"{path} is a view, not a table", span=name.span)
        return found

    def _database(self, name: Identifier) -> tuple[str, str]:
        if len(name.parts) > 2:
            raise ValidationError(f"{name.text!r} is no name of a database", span=name.span)
        catalog, database = (self.session.current_catalog, *name.parts)[-2:]
        return catalog, database


def _check_partition(
    table: CatalogTable, values: Mapping[str, object], statement: sql.AddPartition | sql.Show
) -> None:
    """Raises ValidationError for a column that is no partition key; ADD and DROP name them all."""
    keys = table.partition_keys
    if not keys:
        raise ValidationError(
            "the table has no partitions: it was created without PARTITIONED BY",
            span=statement.name.span if statement.name else statement.span,
        )
    for name in values:
        if name not in keys:
            raise ValidationError(
                f"{name!r} is no partition key of the table{proposed(name, keys)}"
            )
    missing = [key for key in keys if key not in values]
    if missing and isinstance(statement, sql.AddPartition):
        raise ValidationError(
            f"a partition has a value for each key of the table; {', '.join(missing)} is missing",
            span=statement.span,
        )


_EXECUTED: dict[type[sql.Statement], Callable[[DdlExecution, Any], StatementRows | None]] = {
    sql.CreateTable: DdlExecution.create_table,
    sql.CreateView: DdlExecution.create_view,
    sql.CreateFunction: DdlExecution.create_function,
    sql.AlterFunction: DdlExecution.alter_function,
    sql.CreateDatabase: DdlExecution.create_database,
    sql.CreateCatalog: DdlExecution.create_catalog,
    sql.Drop: DdlExecution.drop,
    sql.AlterRename: DdlExecution.rename,
    sql.AlterRenameColumn: DdlExecution.alter_table,
    sql.AlterSchema: DdlExecution.alter_table,
    sql.AlterDrop: DdlExecution.alter_table,
    sql.AlterOptions: DdlExecution.alter_options,
    sql.AlterView: DdlExecution.alter_view,
    sql.AddPartition: DdlExecution.change_partitions,
    sql.Use: DdlExecution.use,
    sql.Show: DdlExecution.show,
    sql.Describe: DdlExecution.describe,
}
