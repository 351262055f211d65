"""SHOW and DESCRIBE: what a session knows, as rows with Flink's column names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from urllib.parse import quote

from flinkpy.common.logical_types.logical_type import BooleanType, RowType
from flinkpy.core.secrets.hidden_secrets import shown_options
from flinkpy.sql.catalog.catalog_manager import CatalogManager
from flinkpy.sql.catalog.catalog_port import CatalogTable, CatalogView, ObjectPath
from flinkpy.sql.catalog.create_texts import (
    create_catalog_text,
    create_table_text,
    create_view_text,
    metadata_text,
)
from flinkpy.sql.catalog.query_types import QueryTypes
from flinkpy.sql.catalog.statement_rows import STRING, StatementRows, plain_text, texts
from flinkpy.sql.sql_errors import CatalogError, ValidationError, did_you_mean
from flinkpy.sql.syntax.expression_text import expression_text
from flinkpy.sql.syntax.query_tree import Identifier
from flinkpy.sql.syntax.statements import ComputedColumn, Describe, MetadataColumn, Show

Shower = Callable[[Show, CatalogManager, QueryTypes], StatementRows]


def shown(statement: Show, session: CatalogManager, types: QueryTypes) -> StatementRows:
    """The rows of a SHOW. Raises ValidationError for what is not there."""
    show = _SHOWN.get(statement.kind)
    if show is None:
        raise ValidationError(
            f"SHOW {statement.kind} is not there{did_you_mean(statement.kind, _SHOWN)}",
            span=statement.span,
        )
    return show(statement, session, types)


def filtered(names: Iterable[str], statement: Show) -> list[str]:
    """Those that LIKE or ILIKE takes, where one is written."""
    if statement.pattern is None:
        return list(names)
    flags = re.IGNORECASE | re.DOTALL if statement.is_ilike else re.DOTALL
    pattern = re.compile(_regex_of_like(statement.pattern), flags)
    return [name for name in names if (pattern.fullmatch(name) is None) is statement.is_negated]


def _regex_of_like(pattern: str) -> str:
    wild = {"%": ".*", "_": "."}
    return "".join(wild.get(letter) or re.escape(letter) for letter in pattern)


def _place(statement: Show, session: CatalogManager) -> tuple[str, str]:
    """The catalog and database of ``SHOW TABLES [FROM [catalog.]database]``."""
    parts = () if statement.name is None else statement.name.parts
    if len(parts) > 2:
        raise ValidationError(
            f"{statement.name.text if statement.name else ''!r} is no database", span=statement.span
        )
    current = (session.current_catalog, session.current_database)
    catalog, database = (*current[: 2 - len(parts)], *parts)
    return catalog, database


def _tables(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    names = session.list_tables(*_place(statement, session))
    return texts("table name", filtered(names, statement))


def _views(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    names = session.list_views(*_place(statement, session))
    return texts("view name", filtered(names, statement))


def _databases(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    catalog = statement.name.text if statement.name else session.current_catalog
    names = session.catalog(catalog).list_databases()
    return texts("database name", filtered(names, statement))


def _catalogs(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    return texts("catalog name", filtered(session.list_catalogs(), statement))


def _functions(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    return texts("function name", filtered(session.function_names(), statement))


def _user_functions(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    return texts("function name", filtered(session.functions.names(), statement))


def _current_catalog(_: Show, session: CatalogManager, __: QueryTypes) -> StatementRows:
    return texts("current catalog name", [session.current_catalog])


def _current_database(_: Show, session: CatalogManager, __: QueryTypes) -> StatementRows:
    return texts("current database name", [session.current_database])


def _modules(statement: Show, _: CatalogManager, __: QueryTypes) -> StatementRows:
    return texts("module name", filtered(["core"], statement))


def _full_modules(_: Show, __: CatalogManager, ___: QueryTypes) -> StatementRows:
    schema = RowType.of(("module name", STRING), ("used", BooleanType()))
    return StatementRows(schema, (("core", True),))


def _create_table(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    path, table = _named(statement.name, session)
    if isinstance(table, CatalogView):
        raise CatalogError(f"{path} is a view: SHOW CREATE VIEW it", span=statement.span)
    temporary = path in session.temporary_tables
    return plain_text(create_table_text(path, table, temporary=temporary))


def _create_view(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    path, view = _named(statement.name, session)
    if isinstance(view, CatalogTable):
        raise CatalogError(f"{path} is a table: SHOW CREATE TABLE it", span=statement.span)
    temporary = path in session.temporary_tables
    return plain_text(create_view_text(path, view, temporary=temporary))


def _create_catalog(statement: Show, session: CatalogManager, _: QueryTypes) -> StatementRows:
    name = statement.name.text if statement.name else session.current_catalog
    origin = session.origin_of_catalog(name)
    return plain_text(create_catalog_text(name, origin))


def partitions_of(names: Iterable[str], statement: Show) -> list[str]:
    """Those of ``city=Oslo/year=2024`` that have the values of SHOW PARTITIONS ... PARTITION."""
    wanted = {f"{key}={quote(value, safe=' ')}" for key, value in statement.partition}
    return filtered((name for name in names if wanted <= set(name.split("/"))), statement)


def _jars(_: Show, __: CatalogManager, ___: QueryTypes) -> StatementRows:
    return texts("jars", [])


def _columns(statement: Show, session: CatalogManager, types: QueryTypes) -> StatementRows:
    table = _named(statement.name, session)[1]
    whole = described_table(table, types)
    kept = set(filtered([str(row[0]) for row in whole.rows], statement))
    return StatementRows(whole.schema, tuple(row for row in whole.rows if row[0] in kept))


_SHOWN: dict[str, Shower] = {
    "TABLES": _tables,
    "VIEWS": _views,
    "DATABASES": _databases,
    "CATALOGS": _catalogs,
    "FUNCTIONS": _functions,
    "USER FUNCTIONS": _user_functions,
    "CURRENT CATALOG": _current_catalog,
    "CURRENT DATABASE": _current_database,
    "MODULES": _modules,
    "FULL MODULES": _full_modules,
    "CREATE TABLE": _create_table,
    "CREATE VIEW": _create_view,
    "CREATE CATALOG": _create_catalog,
    "JARS": _jars,
    "COLUMNS": _columns,
}


def _named(
    name: Identifier | None, session: CatalogManager
) -> tuple[ObjectPath, CatalogTable | CatalogView]:
    if name is None:
        raise ValidationError("the name of a table is missing")
    path = session.path_of(name.parts)
    try:
        return path, session.require_table(path)
    except CatalogError as error:
        raise CatalogError(error.problem, span=name.span) from None


# -- DESCRIBE --------------------------------------------------------------------------------------


def described(statement: Describe, session: CatalogManager, types: QueryTypes) -> StatementRows:
    """The rows of DESCRIBE."""
    if statement.kind == "TABLE":
        return described_table(_named(statement.name, session)[1], types)
    if statement.kind == "DATABASE":
        return _described_database(statement, session)
    if statement.kind == "CATALOG":
        return _described_catalog(statement, session)
    raise ValidationError(f"DESCRIBE {statement.kind} is not there", span=statement.span)


def described_table(table: CatalogTable | CatalogView, types: QueryTypes) -> StatementRows:
    """A row for each column: name, type, null, key, extras, watermark and, if there is any,
    comment."""
    declared = {} if isinstance(table, CatalogView) else {each.name: each for each in table.columns}
    row_type = table.schema if isinstance(table, CatalogView) else types.type_of_table(table)
    key: tuple[str, ...] = ()
    watermarks: dict[str, str] = {}
    if isinstance(table, CatalogTable):
        key = () if table.primary_key is None else table.primary_key.columns
        watermarks = {each.column.text: expression_text(each.strategy) for each in table.watermarks}
    rows = []
    for field in row_type:
        column = declared.get(field.name)
        rows.append(
            (
                field.name,
                f"{field.type.text()}{field.type.mark}",
                field.type.is_nullable,
                f"PRI({', '.join(key)})" if field.name in key else None,
                _extras(column),
                watermarks.get(field.name),
                None if column is None else column.comment,
            )
        )
    names = ["name", "type", "null", "key", "extras", "watermark", "comment"]
    width = 7 if any(row[-1] for row in rows) else 6
    schema = RowType.of(
        *((name, BooleanType() if name == "null" else STRING) for name in names[:width])
    )
    return StatementRows(schema, tuple(row[:width] for row in rows))


def _extras(column: object) -> str | None:
    if isinstance(column, ComputedColumn):
        return f"AS {expression_text(column.value)}"
    return metadata_text(column) if isinstance(column, MetadataColumn) else None


def _described_database(statement: Describe, session: CatalogManager) -> StatementRows:
    catalog, database = (session.current_catalog, *statement.name.parts)[-2:]
    session.require_database(catalog, database)
    found = session.catalog(catalog).get_database(database)
    comment = None if found is None else found.comment
    pairs = [("catalog name", catalog), ("database name", database), ("comment", comment)]
    if statement.extended and found is not None:
        options = shown_options(found.options)
        listed = ", ".join(f"{key}={value}" for key, value in options.items())
        pairs.append(("properties", f"({listed})"))
    return _pairs(pairs)


def _described_catalog(statement: Describe, session: CatalogManager) -> StatementRows:
    name = statement.name.text
    origin = session.origin_of_catalog(name)
    pairs: list[tuple[str, str | None]] = [("name", name)]
    pairs.append(("type", origin.options.get("type", type(session.catalog(name)).__name__)))
    pairs.append(("comment", origin.comment))
    if statement.extended:
        options = shown_options({k: v for k, v in origin.options.items() if k != "type"})
        pairs += [(f"option:{key}", value) for key, value in options.items()]
    return _pairs(pairs)


def _pairs(pairs: Iterable[tuple[str, str | None]]) -> StatementRows:
    schema = RowType.of(("info name", STRING), ("info value", STRING))
    return StatementRows(schema, tuple(pairs))
