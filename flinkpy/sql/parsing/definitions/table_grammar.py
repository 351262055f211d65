"""What stands in the parentheses of CREATE TABLE, of ALTER TABLE ADD, and of WITH."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.parsing.type_grammar import type_of
from flinkpy.sql.syntax.statements import (
    AnyColumn,
    ColumnChange,
    ColumnDefinition,
    ComputedColumn,
    LikeClause,
    MetadataColumn,
    Options,
    PrimaryKey,
    TableDefinition,
    WatermarkDefinition,
)

_LIKE_WORDS = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_LIKE_PARTS = (
    *("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA"),
    *("OPTIONS", "PARTITIONS", "WATERMARKS"),
)


class TableElements:
    """Gathers the columns, watermarks and the key of a table, as they come."""

    def __init__(self, cursor: TokenCursor, positioned: bool = False) -> None:
        self._cursor = cursor
        self._positioned = positioned  # whether a column may say FIRST or AFTER
        self.columns: list[ColumnChange] = []
        self.watermarks: list[WatermarkDefinition] = []
        self.primary_key: PrimaryKey | None = None

    def definition(self) -> TableDefinition:
        """All of it as one."""
        columns = tuple(change.column for change in self.columns)
        return TableDefinition(columns, tuple(self.watermarks), self.primary_key)

    def read(self) -> None:
        """One element."""
        cursor = self._cursor
        if cursor.at("WATERMARK", "FOR") or _watermark_without_for(cursor):
            self.watermarks.append(watermark(cursor))
        elif cursor.next.key in ("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            self._keep_key(_table_constraint(cursor))
        elif cursor.at("INDEX") and cursor.ahead(1).key == "(":
            cursor.fail("indexes are not supported")
        else:
            self._read_column()

    def _read_column(self) -> None:
        cursor = self._cursor
        start = cursor.start
        column = self._column(start)
        if not self._positioned:
            self.columns.append(ColumnChange(column, span=column.span))
            return
        first = cursor.accept("FIRST")
        after = cursor.name("a column") if not first and cursor.accept("AFTER") else None
        self.columns.append(ColumnChange(column, first, after, span=cursor.span_from(start)))

    def _column(self, start: int) -> AnyColumn:
        cursor = self._cursor
        name = cursor.name("the name of a column")
        if cursor.accept("AS"):
            value = cursor.expression()
            return ComputedColumn(name, value, comment(cursor), span=cursor.span_from(start))
        type = type_of(cursor)
        if cursor.accept("METADATA"):
            key = cursor.literal_text("the key of the metadata") if cursor.accept("FROM") else None
            is_virtual = cursor.accept("VIRTUAL")
            said = comment(cursor)
            span = cursor.span_from(start)
            return MetadataColumn(name, type, key, is_virtual, said, span=span)
        if cursor.next.key in ("CONSTRAINT", "PRIMARY", "UNIQUE"):
            self._keep_key(_column_constraint(cursor, name))
        if cursor.at("DEFAULT"):
            cursor.fail("columns have no defaults; what an INSERT leaves out is NULL")
        return ColumnDefinition(name, type, comment(cursor), span=cursor.span_from(start))

    def _keep_key(self, key: PrimaryKey) -> None:
        if self.primary_key is not None:
            self._cursor.fail("a table has one primary key, this is another", key.span)
        self.primary_key = key


def table_elements(cursor: TokenCursor, positioned: bool = False) -> TableElements:
    """The elements in parentheses."""
    elements = TableElements(cursor, positioned)
    cursor.in_parentheses(elements.read)
    return elements


def watermark(cursor: TokenCursor) -> WatermarkDefinition:
    """``WATERMARK FOR column AS expression``."""
    start = cursor.start
    cursor.expect("WATERMARK", "FOR")
    column = cursor.identifier("a column")
    cursor.expect("AS")
    return WatermarkDefinition(column, cursor.expression(), span=cursor.span_from(start))


def _watermark_without_for(cursor: TokenCursor) -> bool:
    return cursor.at("WATERMARK") and cursor.ahead(2).key == "AS"


def _table_constraint(cursor: TokenCursor) -> PrimaryKey:
    start = cursor.start
    name = cursor.name("the name of the constraint") if cursor.accept("CONSTRAINT") else None
    _expect_primary_key(cursor)
    columns = names_in_parentheses(cursor, "a column")
    return _enforcement(cursor, PrimaryKey(columns, name), start)


def _column_constraint(cursor: TokenCursor, column: str) -> PrimaryKey:
    start = cursor.start
    name = cursor.name("the name of the constraint") if cursor.accept("CONSTRAINT") else None
    _expect_primary_key(cursor)
    return _enforcement(cursor, PrimaryKey((column,), name), start)


def _expect_primary_key(cursor: TokenCursor) -> None:
    if cursor.next.key in ("UNIQUE", "FOREIGN", "CHECK"):
        cursor.fail(f"{cursor.next.key} is not supported; a table may have a PRIMARY KEY")
    cursor.expect("PRIMARY", "KEY")


def _enforcement(cursor: TokenCursor, key: PrimaryKey, start: int) -> PrimaryKey:
    enforced = not cursor.accept("NOT", "ENFORCED")
    if enforced:
        cursor.accept("ENFORCED")
    return replace(key, enforced=enforced, span=cursor.span_from(start))


def comment(cursor: TokenCursor) -> str | None:
    """``COMMENT 'text'``, if it comes next."""
    return cursor.literal_text("the comment") if cursor.accept("COMMENT") else None


def names_in_parentheses(cursor: TokenCursor, what: str) -> tuple[str, ...]:
    """``(a, b)``."""
    return cursor.in_parentheses(lambda: cursor.name(what))


def with_options(cursor: TokenCursor) -> Options:
    """``WITH ('key' = 'value')``, if it comes next."""
    return options(cursor) if cursor.accept("WITH") else ()


def options(cursor: TokenCursor) -> Options:
    """``('key' = 'value', ...)``. No key stands there twice."""
    if cursor.accept("(", ")"):
        return ()
    seen: set[str] = set()
    return cursor.in_parentheses(lambda: _option(cursor, seen))


def _option(cursor: TokenCursor, seen: set[str]) -> tuple[str, str]:
    key = cursor.literal_text("the key of an option")
    if key in seen:
        cursor.fail(f"the option '{key}' stands here twice", cursor.last.span)
    seen.add(key)
    cursor.expect("=")
    return key, cursor.literal_text(f"the value of '{key}'")


def like(cursor: TokenCursor) -> LikeClause:
    """``LIKE table (INCLUDING ALL EXCLUDING OPTIONS)``; LIKE is read already."""
    start = cursor.start
    table = cursor.identifier("a table")
    pairs: list[tuple[str, str]] = []
    if cursor.accept("("):
        while (word := cursor.accept_one(*_LIKE_WORDS)) is not None:
            pairs.append((word, cursor.expect_one(*_LIKE_PARTS)))
        cursor.expect(")")
    return LikeClause(table, tuple(pairs), span=cursor.span_from(start))
