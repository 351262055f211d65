"""Statements by their first word: queries, INSERT, statement sets and EXPLAIN here, the others in
files of their own. Those that flinkpy does not have are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flinkpy.sql.parsing.literal_grammar import literal
from flinkpy.sql.parsing.relation_grammar import hints
from flinkpy.sql.parsing.session_grammar import SESSION_STATEMENTS
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.syntax.query_tree import Identifier, SqlLiteral
from flinkpy.sql.syntax.statements import (
    Explain,
    Insert,
    Options,
    QueryStatement,
    Statement,
    StatementSetBlock,
)

_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "TABLE", "(")

# Statements of Flink, or of other databases, that are none of flinkpy's, and why.
_NOT_HERE = {
    "ADD": "JARs are not added: no Java runs here; write CREATE FUNCTION ... LANGUAGE PYTHON",
    "REMOVE": "JARs are not removed: no Java runs here",
    "CALL": "procedures are not supported",
    "COMPILE": "COMPILE PLAN is not supported yet: compiled plans are to come",
    "LOAD": "there is the module core only",
    "UNLOAD": "there is the module core only",
    "DELETE": "DELETE is not supported: no connector here deletes rows of a table in place",
    "UPDATE": "UPDATE is not supported: no connector here changes rows of a table in place",
    "MERGE": "MERGE is not SQL of Flink's; INSERT into a table with a PRIMARY KEY upserts",
    "UPSERT": "UPSERT is not SQL of Flink's; INSERT into a table with a PRIMARY KEY upserts",
    "REFRESH": "materialized tables are not supported",
    "GRANT": "there are no rights to grant",
    "REVOKE": "there are no rights to revoke",
    "COMMIT": "there are no transactions; each statement stands for itself",
    "ROLLBACK": "there are no transactions; each statement stands for itself",
    "FROM": "a query begins with SELECT; FROM stands behind the list of columns",
}
_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")


def statement(cursor: TokenCursor) -> Statement:
    """Any statement."""
    start = cursor.start
    if cursor.next.key in _QUERY_WORDS:
        made: Statement = QueryStatement(cursor.query())
    else:
        made = _by_first_word(cursor)
    return replace(made, span=cursor.span_from(start))


def _by_first_word(cursor: TokenCursor) -> Statement:
    refused = _NOT_HERE.get(cursor.next.key)
    if refused is not None:
        cursor.fail(refused)
    for word, grammar in STATEMENTS.items():
        if cursor.accept(word):
            return grammar(cursor)
    for word in _QUERY_WORDS[:3]:
        cursor.at(word)  # noted for proposals
    return cursor.unexpected("a statement")


# -- INSERT ----------------------------------------------------------------------------------------


def _insert(cursor: TokenCursor) -> Insert:
    overwrite = cursor.expect_one("INTO", "OVERWRITE") == "OVERWRITE"
    if overwrite and cursor.at("INTO"):
        cursor.fail("INTO is left out behind INSERT OVERWRITE")
    if cursor.at("TABLE"):
        cursor.fail("the word TABLE is left out behind INSERT INTO")
    table = cursor.identifier("a table")
    options = _hinted_options(cursor)
    partition = _partition(cursor) if cursor.accept("PARTITION") else ()
    columns: tuple[Identifier, ...] = ()
    if cursor.at("(") and not _query_in_parentheses(cursor):
        columns = cursor.in_parentheses(lambda: cursor.identifier("a column"))
    return Insert(table, cursor.query(), columns, partition, overwrite, options)


def _query_in_parentheses(cursor: TokenCursor) -> bool:
    return cursor.ahead(1).key in _QUERY_WORDS


def _hinted_options(cursor: TokenCursor) -> Options:
    start = cursor.start
    options: Options = ()
    for hint in hints(cursor):
        if hint.name != "OPTIONS":
            cursor.fail(f"INSERT takes the hint OPTIONS, not {hint.name}", cursor.span_from(start))
        options += hint.options
    return options


def _partition(cursor: TokenCursor) -> tuple[tuple[str, SqlLiteral], ...]:
    return cursor.in_parentheses(lambda: _partition_value(cursor))


def _partition_value(cursor: TokenCursor) -> tuple[str, SqlLiteral]:
    column = cursor.name("a column")
    cursor.expect("=")
    return column, literal(cursor)


def _insert_statement(cursor: TokenCursor) -> Insert:
    start = cursor.start
    cursor.expect("INSERT")
    return replace(_insert(cursor), span=cursor.span_from(start))


# -- statement sets and EXPLAIN --------------------------------------------------------------------


def _execute(cursor: TokenCursor) -> Statement:
    if cursor.accept("STATEMENT"):
        cursor.expect("SET", "BEGIN")
        return _statement_set(cursor)
    if cursor.at("PLAN"):
        cursor.fail("EXECUTE PLAN is not supported yet: compiled plans are to come")
    if cursor.next.key in ("INSERT", *_QUERY_WORDS):
        return statement(cursor)
    return cursor.unexpected("STATEMENT SET, INSERT or SELECT")


def _begin(cursor: TokenCursor) -> Statement:
    cursor.expect("STATEMENT", "SET")
    cursor.accept(";")
    return _statement_set(cursor)


def _statement_set(cursor: TokenCursor) -> StatementSetBlock:
    inserts: list[Insert] = []
    while not cursor.at("END"):
        if not cursor.at("INSERT"):
            cursor.unexpected("INSERT or END")
        inserts.append(_insert_statement(cursor))
        if not cursor.accept(";"):
            break
    cursor.expect("END")
    if not inserts:
        cursor.fail("a statement set has at least one INSERT", cursor.last.span)
    return StatementSetBlock(tuple(inserts))


def _explain(cursor: TokenCursor) -> Statement:
    details: tuple[str, ...] = ()
    if cursor.accept("PLAN"):
        cursor.expect("FOR")
    elif any(cursor.at(detail) for detail in _DETAILS):
        details = cursor.list_of(lambda: cursor.expect_one(*_DETAILS))
    start = cursor.start
    if cursor.accept("STATEMENT"):
        cursor.expect("SET", "BEGIN")
        block = _statement_set(cursor)
        return Explain(replace(block, span=cursor.span_from(start)), details)
    if cursor.next.key not in ("INSERT", "EXECUTE", "CREATE", *_QUERY_WORDS):
        cursor.unexpected("a query, INSERT or STATEMENT SET")
    return Explain(statement(cursor), details)


# -- definitions, whose grammar is loaded where one stands -----------------------------------------


def _create(cursor: TokenCursor) -> Statement:
    from flinkpy.sql.parsing.definitions.create_grammar import create

    return create(cursor)


def _alter(cursor: TokenCursor) -> Statement:
    from flinkpy.sql.parsing.definitions.alter_grammar import alter

    return alter(cursor)


def _drop(cursor: TokenCursor) -> Statement:
    from flinkpy.sql.parsing.definitions.create_grammar import drop

    return drop(cursor)


STATEMENTS: dict[str, Callable[[TokenCursor], Statement]] = {
    "INSERT": _insert,
    "EXECUTE": _execute,
    "BEGIN": _begin,
    "EXPLAIN": _explain,
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    **SESSION_STATEMENTS,
}
