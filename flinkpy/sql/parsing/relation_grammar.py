"""What stands behind FROM: tables, joins, sub-queries and table functions."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from flinkpy.sql.parsing.call_grammar import plain_call
from flinkpy.sql.parsing.sql_tokens import TokenKind
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.syntax.query_tree import (
    DerivedTable,
    FromItem,
    FunctionCall,
    Hint,
    Identifier,
    JoinItem,
    ScalarSubquery,
    SqlExpression,
    TableArgument,
    TableFunctionCall,
    TableReference,
    UnnestItem,
)

_SIDES = ("LEFT", "RIGHT", "FULL")
_WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_QUERY_WORDS = ("SELECT", "WITH", "VALUES")


def from_items(cursor: TokenCursor) -> FromItem:
    """Relations with commas between them, which are cross joins."""
    start = cursor.start
    left = _joined(cursor)
    while cursor.accept(","):
        left = JoinItem(left, _joined(cursor), "CROSS", span=cursor.span_from(start))
    return left


def _joined(cursor: TokenCursor) -> FromItem:
    start = cursor.start
    left = _relation(cursor)
    while True:
        joined = _join(cursor, left)
        if joined is None:
            return left
        left = replace(joined, span=cursor.span_from(start))


def _join(cursor: TokenCursor, left: FromItem) -> JoinItem | None:
    natural = cursor.accept("NATURAL")
    kind = _join_kind(cursor)
    if kind is None:
        if natural:
            cursor.unexpected("JOIN")
        return None
    right = _relation(cursor)
    condition: SqlExpression | None = None
    using: tuple[Identifier, ...] = ()
    if kind == "CROSS" or natural:
        if cursor.at("ON") or cursor.at("USING"):
            what = "a CROSS JOIN" if kind == "CROSS" else "a NATURAL JOIN"
            cursor.fail(f"{what} has no condition")
    elif cursor.accept("ON"):
        condition = cursor.expression()
    elif cursor.accept("USING"):
        using = cursor.in_parentheses(lambda: cursor.identifier("a column"))
    elif kind != "INNER":
        cursor.unexpected(f"ON or USING, which a {kind} JOIN needs")
    return JoinItem(left, right, kind, condition, using, natural)


def _join_kind(cursor: TokenCursor) -> str | None:
    """The kind of the join that comes next, behind its JOIN."""
    if cursor.accept("JOIN") or cursor.accept("INNER", "JOIN"):
        return "INNER"
    if cursor.accept("CROSS"):
        if cursor.at("APPLY"):
            _refuse_apply(cursor, "CROSS JOIN")
        cursor.expect("JOIN")
        return "CROSS"
    if cursor.at("OUTER", "APPLY"):
        _refuse_apply(cursor, "LEFT JOIN")
    side = cursor.accept_one(*_SIDES)
    if side is None:
        _refuse_foreign(cursor)
        return None
    _refuse_semi_join(cursor)
    cursor.accept("OUTER")
    cursor.expect("JOIN")
    return side


def _refuse_apply(cursor: TokenCursor, instead: str) -> NoReturn:
    cursor.fail(f"APPLY is not SQL of Flink's; write {instead} LATERAL TABLE(f(...))")


def _refuse_semi_join(cursor: TokenCursor) -> None:
    if cursor.at("SEMI", "JOIN") or cursor.at("ANTI", "JOIN"):
        instead = "EXISTS" if cursor.at("SEMI") else "NOT EXISTS"
        problem = f"{cursor.next.key} JOIN is not SQL of Flink's"
        cursor.fail(f"{problem}; write WHERE {instead} (SELECT ...)")


def _refuse_foreign(cursor: TokenCursor) -> None:
    _refuse_semi_join(cursor)
    if cursor.at("ASOF", "JOIN"):
        cursor.fail(
            "ASOF JOIN is not SQL of Flink's; write JOIN t FOR SYSTEM_TIME AS OF time ON ..."
        )


# -- one relation ----------------------------------------------------------------------------------


def _relation(cursor: TokenCursor) -> FromItem:
    start = cursor.start
    if cursor.at("("):
        return _parenthesised(cursor)
    if cursor.accept("LATERAL"):
        return _named(cursor, _lateral(cursor), start)
    if cursor.at("UNNEST"):
        return _named(cursor, _unnest(cursor), start)
    if cursor.accept("TABLE"):
        return _named(cursor, TableFunctionCall(_call_in_parentheses(cursor)), start)
    if cursor.next.key in ("SELECT", "VALUES"):
        cursor.fail("a query behind FROM stands in parentheses: FROM (SELECT ...)")
    name = cursor.identifier("a table")
    if cursor.at("("):
        return _named(cursor, TableFunctionCall(_function(cursor, name)), start)
    return _table(cursor, name, start)


def _parenthesised(cursor: TokenCursor) -> FromItem:
    distance = 0
    while cursor.ahead(distance).key == "(":
        distance += 1
    if cursor.ahead(distance).key not in _QUERY_WORDS:
        return _join_in_parentheses(cursor)
    if distance == 1:
        return _derived(cursor)
    return cursor.attempt(lambda: _derived(cursor), lambda: _join_in_parentheses(cursor))


def _derived(cursor: TokenCursor) -> FromItem:
    start = cursor.start
    return _named(cursor, _query_in_parentheses(cursor), start)


def _query_in_parentheses(cursor: TokenCursor, lateral: bool = False) -> DerivedTable:
    cursor.expect("(")
    query = cursor.query()
    cursor.expect(")")
    return DerivedTable(query, lateral)


def _join_in_parentheses(cursor: TokenCursor) -> FromItem:
    cursor.expect("(")
    inner = from_items(cursor)
    cursor.expect(")")
    return inner


def _lateral(cursor: TokenCursor) -> FromItem:
    if cursor.at("("):
        return _query_in_parentheses(cursor, lateral=True)
    if cursor.at("UNNEST"):
        return _unnest(cursor)
    if cursor.accept("TABLE"):
        return TableFunctionCall(_call_in_parentheses(cursor), lateral=True)
    name = cursor.identifier("TABLE(f(...)) or a query in parentheses")
    return TableFunctionCall(_function(cursor, name), lateral=True)


def _call_in_parentheses(cursor: TokenCursor) -> FunctionCall:
    cursor.expect("(")
    call = _function(cursor, cursor.identifier("a table function"))
    cursor.expect(")")
    return call


def _function(cursor: TokenCursor, name: Identifier) -> FunctionCall:
    shown = name.text if len(name.parts) > 1 else name.text.upper()
    call = plain_call(cursor, shown, name.span.start)
    if shown not in _WINDOWS:
        return call
    return replace(call, arguments=tuple(map(_table_if_query, call.arguments)))


def _table_if_query(argument: SqlExpression) -> SqlExpression:
    """A query in parentheses is the table of a window function."""
    if isinstance(argument, ScalarSubquery):
        return TableArgument(argument.query, span=argument.span)
    return argument


def _unnest(cursor: TokenCursor) -> UnnestItem:
    cursor.expect("UNNEST", "(")
    value = cursor.expression()
    if cursor.at(","):
        cursor.fail("UNNEST takes one array, map or multiset; join several UNNESTs")
    cursor.expect(")")
    with_ordinality = cursor.accept("WITH", "ORDINALITY")
    return UnnestItem(value, with_ordinality)


def _table(cursor: TokenCursor, name: Identifier, start: int) -> FromItem:
    given_hints = hints(cursor)
    as_of = None
    if cursor.accept("FOR"):
        cursor.expect("SYSTEM_TIME", "AS", "OF")
        as_of = cursor.expression()
    if cursor.at("TABLESAMPLE"):
        cursor.fail("TABLESAMPLE is not supported; filter with WHERE RAND() < 0.1")
    if cursor.at("MATCH_RECOGNIZE"):
        cursor.fail("MATCH_RECOGNIZE is not supported yet: patterns over rows are to come")
    if cursor.at("PIVOT", "(") or cursor.at("UNPIVOT", "("):
        cursor.fail(f"{cursor.next.key} is not SQL of Flink's; write CASE in aggregates")
    return _named(cursor, TableReference(name, given_hints, as_of), start)


def _named(cursor: TokenCursor, item: FromItem, start: int) -> FromItem:
    """The names that a relation and its columns are given."""
    alias = None
    columns: tuple[str, ...] = ()
    if cursor.accept("AS"):
        alias = cursor.name("a name behind AS")
    elif cursor.at_name() and not _joins_begin(cursor):
        alias = cursor.name()
    if alias is not None and cursor.at("("):
        columns = cursor.in_parentheses(lambda: cursor.name("the name of a column"))
    return replace(item, alias=alias, columns=columns, span=cursor.span_from(start))


def _joins_begin(cursor: TokenCursor) -> bool:
    """Whether a word that could be a name begins a join of other databases."""
    words = cursor.next.key, cursor.ahead(1).key
    return words in (("ASOF", "JOIN"), ("SEMI", "JOIN"), ("ANTI", "JOIN"))


# -- hints -----------------------------------------------------------------------------------------


def hints(cursor: TokenCursor) -> tuple[Hint, ...]:
    """``/*+ NAME(argument, 'key'='value'), ... */``, if it comes next."""
    found: list[Hint] = []
    while cursor.accept("/*+"):
        found.append(_hint(cursor))
        while cursor.accept(",") or not cursor.at("*"):
            found.append(_hint(cursor))
        cursor.expect("*", "/")
    return tuple(found)


def _hint(cursor: TokenCursor) -> Hint:
    start = cursor.start
    name = cursor.word("the name of a hint")
    arguments: list[str] = []
    options: list[tuple[str, str]] = []
    if cursor.accept("("):
        while not cursor.at(")"):
            _hint_argument(cursor, arguments, options)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    return Hint(name, tuple(arguments), tuple(options), span=cursor.span_from(start))


def _hint_argument(
    cursor: TokenCursor, arguments: list[str], options: list[tuple[str, str]]
) -> None:
    if cursor.next.kind in (TokenKind.TEXT, TokenKind.NUMBER):
        key = cursor.take().value
    else:
        key = cursor.identifier("an argument of the hint").text
    if cursor.accept("="):
        options.append((key, cursor.literal_text("the value of the option")))
    else:
        arguments.append(key)
