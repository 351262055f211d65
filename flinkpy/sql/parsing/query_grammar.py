"""Queries: SELECT, VALUES, set operations, WITH, and the order of their rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from flinkpy.sql.parsing.call_grammar import order_items, over_window
from flinkpy.sql.parsing.expression_grammar import star
from flinkpy.sql.parsing.relation_grammar import from_items, hints
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.syntax.query_tree import (
    WITHOUT_PARENTHESES,
    CommonTable,
    DerivedTable,
    GroupingElement,
    OverWindow,
    Query,
    RowConstructor,
    Select,
    SelectItem,
    SetOperation,
    SqlExpression,
    StarItem,
    TableReference,
    ValuesQuery,
)

_SETS = tuple[tuple[SqlExpression, ...], ...]


def query(cursor: TokenCursor) -> Query:
    """A query, with WITH before it and ORDER BY, LIMIT, OFFSET and FETCH behind it."""
    start = cursor.start
    common_tables = _common_tables(cursor)
    made = _unions(cursor)
    made = _ordered(cursor, made, common_tables)
    return replace(made, span=cursor.span_from(start))


def _common_tables(cursor: TokenCursor) -> tuple[CommonTable, ...]:
    if not cursor.accept("WITH"):
        return ()
    if cursor.at("RECURSIVE"):
        cursor.fail("WITH RECURSIVE is not supported")
    return cursor.list_of(lambda: _common_table(cursor))


def _common_table(cursor: TokenCursor) -> CommonTable:
    start = cursor.start
    name = cursor.name("the name of a query")
    columns: tuple[str, ...] = ()
    if cursor.at("("):
        columns = cursor.in_parentheses(lambda: cursor.name("the name of a column"))
    cursor.expect("AS", "(")
    made = query(cursor)
    cursor.expect(")")
    return CommonTable(name, columns, made, span=cursor.span_from(start))


def _ordered(cursor: TokenCursor, made: Query, common_tables: tuple[CommonTable, ...]) -> Query:
    order_by = order_items(cursor) if cursor.accept("ORDER", "BY") else ()
    limit, offset = _limit_and_offset(cursor)
    if not (order_by or common_tables or limit or offset):
        return made
    if made.order_by or made.limit or made.offset or made.common_tables:
        made = _all_of(made)  # the query in parentheses has an order of its own
    return replace(made, common_tables=common_tables, order_by=order_by, limit=limit, offset=offset)


def _all_of(made: Query) -> Query:
    everything = SelectItem(StarItem(span=made.span), span=made.span)
    return Select((everything,), DerivedTable(made, span=made.span), span=made.span)


def _limit_and_offset(cursor: TokenCursor) -> tuple[SqlExpression | None, SqlExpression | None]:
    limit = offset = None
    while True:
        if limit is None and cursor.accept("LIMIT"):
            limit = None if cursor.accept("ALL") else cursor.expression()
            if cursor.at(","):
                cursor.fail("LIMIT has one number; write LIMIT rows OFFSET start")
        elif offset is None and cursor.accept("OFFSET"):
            offset = cursor.expression()
            cursor.accept_one("ROW", "ROWS")
        elif limit is None and cursor.accept("FETCH"):
            cursor.expect_one("FIRST", "NEXT")
            limit = cursor.expression()
            cursor.expect_one("ROW", "ROWS")
            cursor.expect("ONLY")
        else:
            return limit, offset


# -- set operations --------------------------------------------------------------------------------


def _unions(cursor: TokenCursor) -> Query:
    start = cursor.start
    left = _intersections(cursor)
    while (kind := cursor.accept_one("UNION", "EXCEPT")) is not None:
        keeps_all = cursor.accept_one("ALL", "DISTINCT") == "ALL"
        right = _intersections(cursor)
        left = SetOperation(kind, keeps_all, left, right, span=cursor.span_from(start))
    if cursor.at("MINUS"):
        cursor.fail("MINUS is not SQL of Flink's; write EXCEPT")
    return left


def _intersections(cursor: TokenCursor) -> Query:
    start = cursor.start
    left = _term(cursor)
    while cursor.accept("INTERSECT"):
        keeps_all = cursor.accept_one("ALL", "DISTINCT") == "ALL"
        right = _term(cursor)
        left = SetOperation("INTERSECT", keeps_all, left, right, span=cursor.span_from(start))
    return left


def _term(cursor: TokenCursor) -> Query:
    start = cursor.start
    if cursor.accept("("):
        made = query(cursor)
        cursor.expect(")")
        return made
    if cursor.accept("SELECT"):
        return _select(cursor, start)
    if cursor.accept("VALUES"):
        rows = cursor.list_of(lambda: _row(cursor))
        return ValuesQuery(rows, span=cursor.span_from(start))
    if cursor.accept("TABLE"):
        return _explicit_table(cursor, start)
    if cursor.at("FROM"):
        cursor.fail("a query begins with SELECT; FROM stands behind the list of columns")
    return cursor.unexpected("a query: SELECT, VALUES or WITH")


def _row(cursor: TokenCursor) -> tuple[SqlExpression, ...]:
    value = cursor.expression()
    return value.values if isinstance(value, RowConstructor) else (value,)


def _explicit_table(cursor: TokenCursor, start: int) -> Query:
    name = cursor.identifier("a table")
    table = TableReference(name, span=name.span)
    span = cursor.span_from(start)
    everything = SelectItem(StarItem(span=span), span=span)
    return Select((everything,), table, span=span)


# -- SELECT ----------------------------------------------------------------------------------------


def _select(cursor: TokenCursor, start: int) -> Query:
    given_hints = hints(cursor)
    if cursor.at("STREAM"):
        cursor.fail("SELECT STREAM is not SQL of Flink's; every query may be one over streams")
    if cursor.at("TOP") and cursor.ahead(1).value.isdecimal():
        cursor.fail("TOP is not SQL of Flink's; write LIMIT behind the query")
    distinct = cursor.accept("DISTINCT")
    if distinct and cursor.at("ON", "("):
        cursor.fail("DISTINCT ON is not SQL of Flink's; number the rows with ROW_NUMBER() OVER")
    if not distinct:
        cursor.accept("ALL")
    items = cursor.list_of(lambda: _select_item(cursor))
    source = from_items(cursor) if cursor.accept("FROM") else None
    where = cursor.expression() if cursor.accept("WHERE") else None
    group_by = _group_by(cursor) if cursor.accept("GROUP") else None
    having = cursor.expression() if cursor.accept("HAVING") else None
    windows = _windows(cursor) if cursor.accept("WINDOW") else ()
    qualify = cursor.expression() if cursor.accept("QUALIFY") else None
    _refuse_wrong_order(cursor)
    return Select(
        items,
        source,
        distinct,
        given_hints,
        where,
        group_by,
        having,
        qualify,
        windows,
        span=cursor.span_from(start),
    )


_ORDER = "SELECT, FROM, WHERE, GROUP BY, HAVING, WINDOW, QUALIFY, ORDER BY, LIMIT"


def _refuse_wrong_order(cursor: TokenCursor) -> None:
    if cursor.next.key in ("FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY"):
        cursor.fail(f"{cursor.next.key} stands too late here; the order is {_ORDER}")


def _select_item(cursor: TokenCursor) -> SelectItem:
    start, first = cursor.start, cursor.next
    everything = star(cursor)
    if everything is not None:
        _refuse_star_words(cursor)
        return SelectItem(everything, span=cursor.span_from(start))
    value = cursor.expression()
    if cursor.at(".", "*"):
        cursor.fail("name the parts: .* stands behind the name of a table or a column only")
    alias = None
    if cursor.accept("AS"):
        alias = cursor.name("a name behind AS")
    elif cursor.at_name():
        alias = cursor.name()
    elif first.key in WITHOUT_PARENTHESES and value.span == first.span:
        alias = first.value
    return SelectItem(value, alias, span=cursor.span_from(start))


def _refuse_star_words(cursor: TokenCursor) -> None:
    word = cursor.next.key
    queries = ("SELECT", "(", "VALUES", "WITH")
    if word == "EXCEPT" and (cursor.ahead(1).key != "(" or cursor.ahead(2).key in queries):
        return
    if word in ("EXCEPT", "EXCLUDE", "REPLACE", "RENAME"):
        cursor.fail(f"* {word} is not SQL of Flink's; name the columns")
    if cursor.at("AS") or cursor.at_name():
        cursor.fail("* has no alias")


def _windows(cursor: TokenCursor) -> tuple[tuple[str, OverWindow], ...]:
    def one() -> tuple[str, OverWindow]:
        name = cursor.name("the name of a window")
        cursor.expect("AS")
        return name, over_window(cursor)

    return cursor.list_of(one)


# -- GROUP BY --------------------------------------------------------------------------------------


def _group_by(cursor: TokenCursor) -> tuple[GroupingElement, ...]:
    cursor.expect("BY")
    if cursor.at("ALL") or cursor.at("DISTINCT"):
        cursor.fail(f"GROUP BY {cursor.next.key} is not SQL of Flink's; name the columns")
    return cursor.list_of(lambda: _grouping_element(cursor))


def _grouping_element(cursor: TokenCursor) -> GroupingElement:
    start = cursor.start
    if cursor.accept("GROUPING", "SETS"):
        cursor.expect("(")
        sets = tuple(one for many in cursor.list_of(lambda: _nested(cursor)) for one in many)
        cursor.expect(")")
        return GroupingElement("SETS", sets, span=cursor.span_from(start))
    kind = cursor.accept_one("CUBE", "ROLLUP")
    if kind is not None:
        sets = cursor.in_parentheses(lambda: _set(cursor))
        return GroupingElement(kind, sets, span=cursor.span_from(start))
    values = _set(cursor)
    kind = "EXPRESSION" if len(values) == 1 else "SETS"
    return GroupingElement(kind, (values,), span=cursor.span_from(start))


def _set(cursor: TokenCursor) -> tuple[SqlExpression, ...]:
    """``a``, ``(a, b)`` or ``()``."""
    if cursor.accept("(", ")"):
        return ()
    value = cursor.expression()
    is_list = isinstance(value, RowConstructor) and cursor.text[value.span.start] == "("
    return value.values if isinstance(value, RowConstructor) and is_list else (value,)


def _nested(cursor: TokenCursor) -> _SETS:
    """The sets that one element of GROUPING SETS stands for."""
    if not (cursor.at("CUBE") or cursor.at("ROLLUP") or cursor.at("GROUPING", "SETS")):
        return (_set(cursor),)
    element = _grouping_element(cursor)
    if element.kind == "SETS":
        return element.sets
    parts = element.sets
    if element.kind == "ROLLUP":
        chosen = [parts[:count] for count in range(len(parts), -1, -1)]
    else:
        chosen = [each for n in range(len(parts), -1, -1) for each in combinations(parts, n)]
    return tuple(tuple(value for part in each for value in part) for each in chosen)
