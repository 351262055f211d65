"""Tables, views, functions and databases as JSON and back. A table is the statement that makes it,
as SHOW CREATE gives it, so that people can read it; nothing here is a pickle."""

from __future__ import annotations

from typing import Any

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.catalog.catalog_port import (
    CatalogDatabase,
    CatalogFunction,
    CatalogTable,
    CatalogView,
    ObjectPath,
)
from flinkpy.sql.catalog.create_texts import create_table_text
from flinkpy.sql.catalog.declared_tables import declared_table
from flinkpy.sql.sql_errors import CatalogError, SqlError
from flinkpy.sql.syntax.statements import CreateTable
from flinkpy.table.catalogs.versioned_documents import Document

FORMAT = 1


def document_of_table(path: ObjectPath, table: CatalogTable | CatalogView) -> Document:
    """Raises CatalogError for what only this program knows."""
    if isinstance(table, CatalogView):
        return _document_of_view(path, table)
    if table.options.get("connector") == "held":
        raise CatalogError(
            f"{path} has rows of this program, which a file cannot keep: create a TEMPORARY one"
        )
    statement = create_table_text(path, table, hides_secrets=False)
    return {"format": FORMAT, "kind": "TABLE", "statement": statement}


def _document_of_view(path: ObjectPath, view: CatalogView) -> Document:
    from flinkpy.sql.parsing.parse import parse_statement

    try:
        parse_statement(view.expanded_query)
    except SqlError:
        raise CatalogError(
            f"{path} is a view without a text, which a file cannot keep: create a TEMPORARY one, "
            "or write it in SQL"
        ) from None
    return {
        "format": FORMAT,
        "kind": "VIEW",
        "query": view.query,
        "expanded_query": view.expanded_query,
        "columns": [[field.name, _text_of_type(field.type)] for field in view.schema],
        "comment": view.comment,
    }


def _text_of_type(type: Any) -> str:
    """The type as SQL writes it: without the mark of a time attribute."""
    return str(type).replace(" *ROWTIME*", "").replace(" *PROCTIME*", "")


def table_of_document(document: Document, where: str) -> CatalogTable | CatalogView:
    """The table or view. Raises CatalogError for a document of a later flinkpy, or of none."""
    from flinkpy.sql.parsing.parse import parse_statement, parse_type

    _check_format(document, where)
    try:
        if document["kind"] == "VIEW":
            columns = [(name, parse_type(text)) for name, text in document["columns"]]
            return CatalogView(
                document["query"],
                document["expanded_query"],
                RowType.of(*columns),
                document["comment"],
            )
        statement = parse_statement(document["statement"])
        assert isinstance(statement, CreateTable), "a table is a CREATE TABLE"
        return declared_table(statement)
    except (KeyError, AssertionError, SqlError) as error:
        raise CatalogError(f"the file of {where} cannot be read: {error}") from error


def document_of_function(function: CatalogFunction) -> Document:
    return {
        "format": FORMAT,
        "kind": "FUNCTION",
        "class_name": function.class_name,
        "language": function.language,
    }


def function_of_document(document: Document, where: str) -> CatalogFunction:
    _check_format(document, where)
    return CatalogFunction(document["class_name"], document["language"])


def document_of_database(database: CatalogDatabase) -> Document:
    return {
        "format": FORMAT,
        "kind": "DATABASE",
        "options": dict(database.options),
        "comment": database.comment,
    }


def database_of_document(document: Document, where: str) -> CatalogDatabase:
    _check_format(document, where)
    return CatalogDatabase(document["options"], document["comment"])


def _check_format(document: Document, where: str) -> None:
    if document.get("format") != FORMAT:
        raise CatalogError(
            f"the file of {where} has the format {document.get('format')!r}, which this flinkpy "
            "does not know: use the version that wrote it, or a later one"
        )
