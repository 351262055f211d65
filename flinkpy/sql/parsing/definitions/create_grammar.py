"""CREATE and DROP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flinkpy.sql.parsing.definitions.table_grammar import (
    comment,
    like,
    names_in_parentheses,
    table_elements,
    with_options,
)
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.syntax.statements import (
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    Statement,
    TableDefinition,
)

# What other things can be created or dropped in Flink, and why not here.
NOT_HERE = {
    "MODEL": "models are not supported; call them in a Python function",
    "MATERIALIZED": "materialized tables are not supported; an INSERT keeps a table up to date",
    "CONNECTION": "connections are not supported; a table's WITH has all options",
    "SECRET": "secrets are not supported; an option may name an environment variable",
    "MODULE": "there is the module core only",
}


@dataclass(frozen=True)
class _Modifiers:
    """The words between CREATE or DROP and what it is about."""

    or_replace: bool = False
    temporary: bool = False
    system: bool = False


def create(cursor: TokenCursor) -> Statement:
    """CREATE is read already."""
    start = cursor.start
    or_replace = cursor.accept("OR", "REPLACE")
    temporary = cursor.accept("TEMPORARY")
    given = _Modifiers(or_replace, temporary, temporary and cursor.accept("SYSTEM"))
    kind = _kind(cursor, tuple(_CREATE))
    if given.or_replace and kind != "TABLE":
        cursor.fail(f"OR REPLACE is for tables; DROP {kind} first", cursor.span_from(start))
    _check_modifiers(cursor, given, kind, start)
    return _CREATE[kind](cursor, given)


def _check_modifiers(cursor: TokenCursor, given: _Modifiers, kind: str, start: int) -> None:
    if given.system and kind != "FUNCTION":
        cursor.fail(f"SYSTEM is for functions, not for {kind}", cursor.span_from(start))
    if given.temporary and kind in ("CATALOG", "DATABASE"):
        cursor.fail(f"there is no temporary {kind}", cursor.span_from(start))


def _kind(cursor: TokenCursor, kinds: tuple[str, ...]) -> str:
    if cursor.next.key in NOT_HERE:
        cursor.fail(NOT_HERE[cursor.next.key])
    return cursor.expect_one(*kinds)


def _if_not_exists(cursor: TokenCursor) -> bool:
    if not cursor.accept("IF"):
        return False
    cursor.expect("NOT", "EXISTS")
    return True


def _table(cursor: TokenCursor, given: _Modifiers) -> Statement:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.identifier("the name of the table")
    columns_only: tuple[str, ...] = ()
    definition = TableDefinition()
    if _names_only(cursor):
        columns_only = names_in_parentheses(cursor, "the name of a column")
    elif cursor.at("("):
        start = cursor.start
        definition = table_elements(cursor).definition()
        definition = TableDefinition(
            definition.columns,
            definition.watermarks,
            definition.primary_key,
            span=cursor.span_from(start),
        )
    said = comment(cursor)
    if cursor.at("DISTRIBUTED"):
        cursor.fail("buckets are not supported: no connector here has them")
    partitioned_by: tuple[str, ...] = ()
    if cursor.accept("PARTITIONED"):
        cursor.expect("BY")
        partitioned_by = names_in_parentheses(cursor, "a column")
    given_options = with_options(cursor)
    liked = like(cursor) if cursor.accept("LIKE") else None
    query = cursor.query() if cursor.accept("AS") else None
    if columns_only and query is None:
        cursor.unexpected("AS and a query, since the columns have no types")
    return CreateTable(
        name,
        definition,
        partitioned_by,
        options=given_options,
        comment=said,
        like=liked,
        query=query,
        columns_only=columns_only,
        temporary=given.temporary,
        if_not_exists=if_not_exists,
        or_replace=given.or_replace,
    )


def _names_only(cursor: TokenCursor) -> bool:
    return cursor.at("(") and cursor.ahead(2).key in (",", ")")


def _view(cursor: TokenCursor, given: _Modifiers) -> Statement:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.identifier("the name of the view")
    columns: tuple[str, ...] = ()
    if cursor.at("("):
        columns = names_in_parentheses(cursor, "the name of a column")
    said = comment(cursor)
    cursor.expect("AS")
    query = cursor.query()
    text = cursor.text[query.span.start : query.span.end]
    return CreateView(name, query, text, columns, said, given.temporary, if_not_exists)


def _function(cursor: TokenCursor, given: _Modifiers) -> Statement:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.identifier("the name of the function")
    class_name, language = function_body(cursor)
    return CreateFunction(name, class_name, language, given.temporary, given.system, if_not_exists)


def function_body(cursor: TokenCursor) -> tuple[str, str]:
    """``AS 'module.function' LANGUAGE PYTHON``: the path and the language."""
    cursor.expect("AS")
    class_name = cursor.literal_text("the function")
    language = "JAVA"
    if cursor.accept("LANGUAGE"):
        language = cursor.expect_one("JAVA", "SCALA", "PYTHON")
    if cursor.at("USING"):
        cursor.fail("JARs are not supported: no Java runs here; write LANGUAGE PYTHON")
    return class_name, language


def _catalog(cursor: TokenCursor, given: _Modifiers) -> Statement:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name("the name of the catalog")
    said = comment(cursor)
    return CreateCatalog(name, with_options(cursor), said, if_not_exists)


def _database(cursor: TokenCursor, given: _Modifiers) -> Statement:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.identifier("the name of the database")
    said = comment(cursor)
    return CreateDatabase(name, with_options(cursor), said, if_not_exists)


_CREATE: dict[str, Callable[[TokenCursor, _Modifiers], Statement]] = {
    "TABLE": _table,
    "VIEW": _view,
    "FUNCTION": _function,
    "CATALOG": _catalog,
    "DATABASE": _database,
}


def drop(cursor: TokenCursor) -> Statement:
    """DROP is read already."""
    start = cursor.start
    temporary = cursor.accept("TEMPORARY")
    given = _Modifiers(temporary=temporary, system=temporary and cursor.accept("SYSTEM"))
    kind = _kind(cursor, tuple(_CREATE))
    _check_modifiers(cursor, given, kind, start)
    if_exists = False
    if cursor.accept("IF"):
        cursor.expect("EXISTS")
        if_exists = True
    name = cursor.identifier(f"the name of the {kind.lower()}")
    cascade = kind == "DATABASE" and cursor.accept_one("RESTRICT", "CASCADE") == "CASCADE"
    return Drop(kind, name, given.temporary, given.system, if_exists, cascade)
