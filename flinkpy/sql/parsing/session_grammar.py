"""Statements about the session: what is shown, used, set, described and stopped."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.sql.parsing.literal_grammar import literal
from flinkpy.sql.parsing.sql_tokens import TokenKind
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.syntax.query_tree import Identifier
from flinkpy.sql.syntax.statements import (
    AnalyzeTable,
    Describe,
    Leave,
    ResetOption,
    SetOption,
    Show,
    Statement,
    StopJob,
    TruncateTable,
    Use,
)

_SHOWN_PLAIN = ("CURRENT CATALOG", "CURRENT DATABASE", "FULL MODULES", "MODULES", "JARS", "JOBS")
_SHOWN_BY_PATTERN = ("TABLES", "VIEWS", "DATABASES", "CATALOGS", "FUNCTIONS", "USER FUNCTIONS")
_SHOWN_OF_TABLE = ("COLUMNS", "PARTITIONS")
_NOT_SHOWN = {
    "MODELS": "models are not supported",
    "PROCEDURES": "procedures are not supported",
    "MATERIALIZED": "materialized tables are not supported",
    "CONNECTIONS": "connections are not supported",
}


def _one_of(cursor: TokenCursor, kinds: tuple[str, ...]) -> str | None:
    """Steps over the one of these kinds that comes next; a kind may have two words."""
    return next((kind for kind in kinds if cursor.accept(*kind.split())), None)


def _show(cursor: TokenCursor) -> Statement:
    if cursor.next.key in _NOT_SHOWN:
        cursor.fail(_NOT_SHOWN[cursor.next.key])
    plain = _one_of(cursor, _SHOWN_PLAIN)
    if plain is not None:
        return Show(plain)
    kind = _one_of(cursor, _SHOWN_BY_PATTERN)
    if kind is not None:
        where = None
        if kind != "CATALOGS" and cursor.accept_one("FROM", "IN") is not None:
            where = cursor.identifier("a catalog or a database")
        return Show(kind, where, *_pattern(cursor))
    if cursor.accept("CREATE"):
        created = cursor.expect_one("TABLE", "VIEW", "CATALOG")
        return Show(f"CREATE {created}", cursor.identifier("a name"))
    kind = _one_of(cursor, _SHOWN_OF_TABLE)
    if kind is None:
        cursor.unexpected("what to show, as TABLES, COLUMNS FROM t or CREATE TABLE t")
    if kind == "COLUMNS":
        cursor.expect_one("FROM", "IN")
    table = cursor.identifier("a table")
    if kind == "PARTITIONS" and cursor.accept("PARTITION"):
        return Show(kind, table, partition=cursor.in_parentheses(lambda: _partition_value(cursor)))
    return Show(kind, table, *_pattern(cursor))


def _partition_value(cursor: TokenCursor) -> tuple[str, str]:
    column = cursor.name("a partition key")
    cursor.expect("=")
    return column, str(literal(cursor).value)


def _pattern(cursor: TokenCursor) -> tuple[str | None, bool, bool]:
    """The pattern, whether it is of ILIKE, and whether NOT stands before it."""
    is_negated = cursor.accept("NOT")
    word = cursor.accept_one("LIKE", "ILIKE")
    if word is None:
        if is_negated:
            cursor.unexpected("LIKE or ILIKE")
        return None, False, False
    return cursor.literal_text("a pattern"), word == "ILIKE", is_negated


def _use(cursor: TokenCursor) -> Statement:
    if cursor.accept("CATALOG"):
        return Use("CATALOG", (cursor.identifier("a catalog"),))
    if cursor.accept("MODULES"):
        return Use("MODULES", cursor.list_of(lambda: cursor.identifier("a module")))
    return Use("DATABASE", (cursor.identifier("a database, or CATALOG and its name"),))


def _describe(cursor: TokenCursor) -> Statement:
    if cursor.at("MODEL"):
        cursor.fail("models are not supported")
    kind = "TABLE"
    if cursor.ahead(1).kind in (TokenKind.WORD, TokenKind.QUOTED_NAME, TokenKind.TEXT):
        kind = cursor.accept_one("CATALOG", "DATABASE", "FUNCTION", "JOB", "TABLE") or "TABLE"
    if kind == "JOB":
        start = cursor.start
        job = cursor.literal_text("the number of a job")
        return Describe(kind, Identifier((job,), span=cursor.span_from(start)))
    extended = cursor.at("EXTENDED") and cursor.ahead(1).kind != TokenKind.END
    if extended:
        cursor.expect("EXTENDED")
    return Describe(kind, cursor.identifier(f"a {kind.lower()}"), extended)


def _set(cursor: TokenCursor) -> Statement:
    if cursor.at_end() or cursor.at(";"):
        return SetOption()
    key = _option_key(cursor, "SET 'key' = 'value'")
    cursor.expect("=")
    return SetOption(key, cursor.literal_text("the value"))


def _reset(cursor: TokenCursor) -> Statement:
    if cursor.at_end() or cursor.at(";"):
        return ResetOption()
    return ResetOption(_option_key(cursor, "RESET 'key'"))


def _option_key(cursor: TokenCursor, form: str) -> str:
    if cursor.next.kind != TokenKind.TEXT:
        cursor.fail(f"keys and values stand in single quotes: {form}")
    return cursor.take().value


def _stop(cursor: TokenCursor) -> Statement:
    cursor.expect("JOB")
    job_id = cursor.literal_text("the number of the job")
    with_savepoint = cursor.accept("WITH", "SAVEPOINT")
    with_drain = cursor.accept("WITH", "DRAIN")
    return StopJob(job_id, with_savepoint, with_drain)


def _analyze(cursor: TokenCursor) -> Statement:
    cursor.expect("TABLE")
    name = cursor.identifier("a table")
    if cursor.at("PARTITION"):
        cursor.fail("statistics of a partition are not supported; analyze the whole table")
    cursor.expect("COMPUTE", "STATISTICS")
    if not cursor.accept("FOR"):
        return AnalyzeTable(name)
    if cursor.accept("ALL"):
        cursor.expect("COLUMNS")
        return AnalyzeTable(name, all_columns=True)
    cursor.expect("COLUMNS")
    return AnalyzeTable(name, cursor.list_of(lambda: cursor.name("a column")))


def _truncate(cursor: TokenCursor) -> Statement:
    cursor.expect("TABLE")
    return TruncateTable(cursor.identifier("a table"))


def _leave(command: str) -> Callable[[TokenCursor], Statement]:
    return lambda cursor: Leave(command)


SESSION_STATEMENTS: dict[str, Callable[[TokenCursor], Statement]] = {
    "SHOW": _show,
    "USE": _use,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SET": _set,
    "RESET": _reset,
    "STOP": _stop,
    "ANALYZE": _analyze,
    "TRUNCATE": _truncate,
    **{word: _leave(word) for word in ("QUIT", "EXIT", "CLEAR", "HELP")},
}
