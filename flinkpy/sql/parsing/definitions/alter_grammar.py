"""ALTER."""

from __future__ import annotations

from flinkpy.sql.parsing.definitions.create_grammar import NOT_HERE, function_body
from flinkpy.sql.parsing.definitions.table_grammar import (
    TableElements,
    names_in_parentheses,
    options,
    table_elements,
)
from flinkpy.sql.parsing.literal_grammar import literal
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.syntax.query_tree import Identifier, SqlLiteral
from flinkpy.sql.syntax.statements import (
    AddPartition,
    AlterDrop,
    AlterFunction,
    AlterOptions,
    AlterRename,
    AlterRenameColumn,
    AlterSchema,
    AlterView,
    Statement,
)

_Partition = tuple[tuple[str, SqlLiteral], ...]


def alter(cursor: TokenCursor) -> Statement:
    """ALTER is read already."""
    if cursor.next.key in NOT_HERE:
        cursor.fail(NOT_HERE[cursor.next.key])
    temporary = cursor.accept("TEMPORARY")
    system = temporary and cursor.accept("SYSTEM")
    if temporary or cursor.at("FUNCTION"):
        cursor.expect("FUNCTION")
        return _function(cursor, temporary, system)
    kind = cursor.expect_one("TABLE", "VIEW", "DATABASE", "CATALOG")
    if_exists = False
    if kind == "TABLE" and cursor.accept("IF"):
        cursor.expect("EXISTS")
        if_exists = True
    name = cursor.identifier(f"the name of the {kind.lower()}")
    if kind == "TABLE":
        return _table(cursor, name, if_exists)
    if kind == "VIEW":
        return _view(cursor, name)
    return _options(cursor, kind, name, False, cursor.expect_one("SET", "RESET"))


def _function(cursor: TokenCursor, temporary: bool, system: bool) -> Statement:
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.identifier("the name of the function")
    class_name, language = function_body(cursor)
    return AlterFunction(name, class_name, language, temporary, system, if_exists)


def _table(cursor: TokenCursor, name: Identifier, if_exists: bool) -> Statement:
    word = cursor.expect_one("RENAME", "SET", "RESET", "ADD", "MODIFY", "DROP")
    if cursor.at("COLUMN"):
        cursor.fail(f"the word COLUMN is left out: {word} and the name of the column")
    if word == "RENAME":
        return _rename(cursor, name, if_exists)
    if word in ("SET", "RESET"):
        return _options(cursor, "TABLE", name, if_exists, word)
    if word == "DROP":
        return _drop(cursor, name, if_exists)
    if word == "ADD" and (cursor.at("PARTITION") or cursor.at("IF", "NOT", "EXISTS")):
        given = cursor.accept("IF", "NOT", "EXISTS")
        return _partitions(cursor, name, drop=False, if_exists=given)
    return _schema(cursor, name, if_exists, word)


def _rename(cursor: TokenCursor, name: Identifier, if_exists: bool) -> Statement:
    if cursor.accept("TO"):
        return AlterRename("TABLE", name, cursor.identifier("the new name"), if_exists)
    column = cursor.name("TO and the new name, or the name of a column")
    cursor.expect("TO")
    return AlterRenameColumn(name, column, cursor.name("the new name"), if_exists)


def _options(
    cursor: TokenCursor, kind: str, name: Identifier, if_exists: bool, word: str
) -> Statement:
    if word == "SET":
        return AlterOptions(kind, name, options(cursor), if_exists=if_exists)
    keys = cursor.in_parentheses(lambda: cursor.literal_text("the key of an option"))
    return AlterOptions(kind, name, reset=keys, if_exists=if_exists)


def _schema(cursor: TokenCursor, name: Identifier, if_exists: bool, kind: str) -> Statement:
    if cursor.at("DISTRIBUTION"):
        cursor.fail("buckets are not supported: no connector here has them")
    if cursor.at("("):
        elements = table_elements(cursor, positioned=True)
    else:
        elements = TableElements(cursor, positioned=True)
        elements.read()
    if len(elements.watermarks) > 1:
        cursor.fail("a table has one watermark", elements.watermarks[1].span)
    watermark = elements.watermarks[0] if elements.watermarks else None
    columns = tuple(elements.columns)
    return AlterSchema(kind, name, columns, watermark, elements.primary_key, if_exists)


def _drop(cursor: TokenCursor, name: Identifier, if_exists: bool) -> Statement:
    if cursor.at("PARTITION") or cursor.at("IF", "EXISTS"):
        given = cursor.accept("IF", "EXISTS")
        return _partitions(cursor, name, drop=True, if_exists=given)
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
        return AlterDrop(name, primary_key=True, if_exists=if_exists)
    if cursor.accept("CONSTRAINT"):
        constraint = cursor.name("the name of the constraint")
        return AlterDrop(name, constraint=constraint, if_exists=if_exists)
    if cursor.accept("WATERMARK"):
        return AlterDrop(name, watermark=True, if_exists=if_exists)
    if cursor.at("("):
        columns = names_in_parentheses(cursor, "a column")
    else:
        columns = (cursor.name("a column, PRIMARY KEY, CONSTRAINT, WATERMARK or PARTITION"),)
    return AlterDrop(name, columns, if_exists=if_exists)


def _partitions(cursor: TokenCursor, name: Identifier, *, drop: bool, if_exists: bool) -> Statement:
    partitions: list[_Partition] = []
    while cursor.accept("PARTITION"):
        partitions.append(cursor.in_parentheses(lambda: _partition_value(cursor)))
        if cursor.at("WITH"):
            cursor.fail("a partition has no options of its own here")
        cursor.accept(",")
    if not partitions:
        cursor.unexpected("PARTITION")
    return AddPartition(name, tuple(partitions), drop, if_exists)


def _partition_value(cursor: TokenCursor) -> tuple[str, SqlLiteral]:
    column = cursor.name("a column")
    cursor.expect("=")
    return column, literal(cursor)


def _view(cursor: TokenCursor, name: Identifier) -> Statement:
    if cursor.accept("RENAME"):
        cursor.expect("TO")
        return AlterRename("VIEW", name, cursor.identifier("the new name"))
    cursor.expect("AS")
    query = cursor.query()
    return AlterView(name, query, cursor.text[query.span.start : query.span.end])
