"""Calls of functions: arguments, the functions with a syntax of their own, and what stands behind
the parentheses (FILTER, OVER, ...)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flinkpy.sql.parsing.reserved_words import FUNCTIONS, RESERVED
from flinkpy.sql.parsing.sql_tokens import TokenKind
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.parsing.type_grammar import type_of
from flinkpy.sql.syntax.query_tree import (
    WITHOUT_PARENTHESES,
    CastCall,
    DescriptorArgument,
    FrameBound,
    FunctionCall,
    Identifier,
    OrderItem,
    OverWindow,
    ScalarSubquery,
    SqlExpression,
    StarItem,
    TableArgument,
)

_UNITS = (
    *("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY"),
    *("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND"),
    *("EPOCH", "DOW", "ISODOW", "DOY", "ISOYEAR"),
)
_FRAME_KINDS = ("PRECEDING", "FOLLOWING")
_FRAME_ORDER = (
    *("UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW"),
    *("FOLLOWING", "UNBOUNDED FOLLOWING"),
)


def at_call(cursor: TokenCursor) -> bool:
    """Whether the call of a function comes next."""
    token = cursor.next
    if token.kind == TokenKind.WORD and token.key in RESERVED:
        if token.key in WITHOUT_PARENTHESES:
            return True
        return token.key in FUNCTIONS and cursor.ahead(1).key == "("
    return False


def call(cursor: TokenCursor) -> SqlExpression:
    """A call that begins with the function's name, which is one word."""
    start = cursor.start
    name = cursor.take()
    if name.key in WITHOUT_PARENTHESES and not cursor.at("("):
        return FunctionCall(name.key, span=name.span)
    if name.kind == TokenKind.WORD and name.key in SPECIAL:
        cursor.expect("(")
        made = SPECIAL[name.key](cursor, name.key)
        cursor.expect(")")
        made = replace(made, span=cursor.span_from(start))
        return made if not isinstance(made, FunctionCall) else _with_suffixes(cursor, made, start)
    return call_of(cursor, name.value.upper(), start)


def call_of(cursor: TokenCursor, name: str, start: int) -> FunctionCall:
    """The arguments of this function, and all that stands behind them."""
    return _with_suffixes(cursor, plain_call(cursor, name, start), start)


def plain_call(cursor: TokenCursor, name: str, start: int) -> FunctionCall:
    """The arguments in parentheses."""
    cursor.expect("(")
    distinct = cursor.accept("DISTINCT")
    if not distinct:
        cursor.accept("ALL")
    values: list[SqlExpression] = []
    names: list[str | None] = []
    if not cursor.at(")"):
        for argument_name, value in cursor.list_of(lambda: _argument(cursor)):
            names.append(argument_name)
            values.append(value)
    nulls = _nulls(cursor)
    order_by = order_items(cursor) if cursor.accept("ORDER", "BY") else ()
    if not values and (distinct or order_by):
        cursor.unexpected("an argument")
    cursor.expect(")")
    return FunctionCall(
        name,
        tuple(values),
        tuple(names) if any(names) else (),
        distinct=distinct,
        order_by=order_by,
        nulls=nulls,
        span=cursor.span_from(start),
    )


def _argument(cursor: TokenCursor) -> tuple[str | None, SqlExpression]:
    name = None
    if cursor.at_name() and cursor.ahead(1).key == "=>":
        name = cursor.name()
        cursor.expect("=>")
    if cursor.at("*"):
        return name, StarItem(span=cursor.take().span)
    if cursor.at("TABLE") or cursor.at("(", "TABLE"):
        return name, _table_argument(cursor)
    if cursor.at("DESCRIPTOR", "("):
        return name, _descriptor(cursor)
    if cursor.at("MODEL"):
        cursor.fail("models are not supported")
    if cursor.at("DEFAULT"):
        cursor.fail("DEFAULT is not supported here; leave the argument out")
    if cursor.next.key in ("SELECT", "WITH", "VALUES"):
        cursor.fail("a query that is a value stands in parentheses of its own: f((SELECT ...))")
    value = cursor.expression()
    if isinstance(value, ScalarSubquery) and cursor.next.key in ("PARTITION", "ORDER"):
        start = value.span.start
        table = TableArgument(value.query, *_partition_and_order(cursor))
        return name, replace(table, span=cursor.span_from(start))
    return name, value


def _table_argument(cursor: TokenCursor) -> TableArgument:
    """``TABLE t`` or ``TABLE (query)``, also in parentheses, PARTITION BY and ORDER BY."""
    start = cursor.start
    in_parentheses = cursor.accept("(")
    cursor.expect("TABLE")
    if cursor.accept("("):
        table = cursor.query()
        cursor.expect(")")
        made = TableArgument(table, *_partition_and_order(cursor))
    else:
        made = TableArgument(cursor.identifier("a table"), *_partition_and_order(cursor))
    if in_parentheses:
        cursor.expect(")")
    return replace(made, span=cursor.span_from(start))


def _partition_and_order(
    cursor: TokenCursor,
) -> tuple[tuple[SqlExpression, ...], tuple[OrderItem, ...]]:
    """Several of either stand in parentheses: a comma without them begins the next argument."""
    partition_by: tuple[SqlExpression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    if cursor.accept("PARTITION", "BY"):
        at_list = cursor.at("(")
        partition_by = (
            cursor.in_parentheses(cursor.expression) if at_list else (cursor.expression(),)
        )
    if cursor.accept("ORDER", "BY"):
        at_list = cursor.at("(")
        one = _order_item
        order_by = cursor.in_parentheses(lambda: one(cursor)) if at_list else (one(cursor),)
    return partition_by, order_by


def _descriptor(cursor: TokenCursor) -> DescriptorArgument:
    start = cursor.start
    cursor.expect("DESCRIPTOR")
    columns = cursor.in_parentheses(lambda: cursor.identifier("a column"))
    return DescriptorArgument(columns, span=cursor.span_from(start))


# -- behind the parentheses ------------------------------------------------------------------------


def _with_suffixes(cursor: TokenCursor, made: FunctionCall, start: int) -> FunctionCall:
    nulls = _nulls(cursor)
    if nulls is not None:
        made = replace(made, nulls=nulls)
    if cursor.accept("WITHIN"):
        cursor.expect("GROUP", "(", "ORDER", "BY")
        made = replace(made, order_by=order_items(cursor))
        cursor.expect(")")
    if cursor.accept("FILTER"):
        cursor.expect("(", "WHERE")
        made = replace(made, filter=cursor.expression())
        cursor.expect(")")
    if cursor.accept("OVER"):
        made = replace(made, over=_over(cursor))
    return made if made.span.end == cursor.last.span.end else _respanned(cursor, made, start)


def _nulls(cursor: TokenCursor) -> str | None:
    """``IGNORE NULLS`` or ``RESPECT NULLS``, within the parentheses or behind them."""
    if cursor.ahead(1).key != "NULLS":
        return None
    nulls = cursor.accept_one("IGNORE", "RESPECT")
    if nulls is not None:
        cursor.expect("NULLS")
    return nulls


def _respanned(cursor: TokenCursor, made: FunctionCall, start: int) -> FunctionCall:
    return replace(made, span=cursor.span_from(start))


def _over(cursor: TokenCursor) -> OverWindow | str:
    if not cursor.at("("):
        return cursor.name("the name of a window, or (")
    return over_window(cursor)


def over_window(cursor: TokenCursor) -> OverWindow:
    """What stands in the parentheses of OVER and of WINDOW."""
    start = cursor.start
    cursor.expect("(")
    partition_by: tuple[SqlExpression, ...] = ()
    if cursor.accept("PARTITION", "BY"):
        partition_by = cursor.list_of(cursor.expression)
    order_by = order_items(cursor) if cursor.accept("ORDER", "BY") else ()
    unit = cursor.accept_one("ROWS", "RANGE")
    lower, upper = _frame(cursor) if unit is not None else (None, None)
    cursor.expect(")")
    return OverWindow(partition_by, order_by, unit, lower, upper, span=cursor.span_from(start))


def _frame(cursor: TokenCursor) -> tuple[FrameBound, FrameBound | None]:
    if not cursor.accept("BETWEEN"):
        return _bound(cursor), None
    lower = _bound(cursor)
    cursor.expect("AND")
    upper = _bound(cursor)
    backwards = _FRAME_ORDER.index(lower.kind) > _FRAME_ORDER.index(upper.kind)
    if backwards or lower.kind == "UNBOUNDED FOLLOWING" or upper.kind == "UNBOUNDED PRECEDING":
        cursor.fail("the frame ends before it begins", lower.span.hull(upper.span))
    return lower, upper


def _bound(cursor: TokenCursor) -> FrameBound:
    start = cursor.start
    if cursor.accept("CURRENT"):
        cursor.expect("ROW")
        return FrameBound("CURRENT ROW", span=cursor.span_from(start))
    if cursor.accept("UNBOUNDED"):
        kind = f"UNBOUNDED {cursor.expect_one(*_FRAME_KINDS)}"
        return FrameBound(kind, span=cursor.span_from(start))
    offset = cursor.expression()
    kind = cursor.expect_one(*_FRAME_KINDS)
    return FrameBound(kind, offset, span=cursor.span_from(start))


def order_items(cursor: TokenCursor) -> tuple[OrderItem, ...]:
    """What stands behind ORDER BY."""
    return cursor.list_of(lambda: _order_item(cursor))


def _order_item(cursor: TokenCursor) -> OrderItem:
    start = cursor.start
    value = cursor.expression()
    descending = cursor.accept_one("ASC", "DESC") == "DESC"
    nulls_first = None
    if cursor.accept("NULLS"):
        nulls_first = cursor.expect_one("FIRST", "LAST") == "FIRST"
    return OrderItem(value, descending, nulls_first, span=cursor.span_from(start))


# -- functions with a syntax of their own ----------------------------------------------------------


def _cast(cursor: TokenCursor, name: str) -> SqlExpression:
    value = cursor.expression()
    cursor.expect("AS")
    return CastCall(value, type_of(cursor), name == "TRY_CAST")


def _unit(cursor: TokenCursor) -> str:
    unit = cursor.accept_one(*_UNITS)
    return unit or cursor.unexpected("a unit of time, as YEAR, DAY or SECOND")


def _extract(cursor: TokenCursor, name: str) -> SqlExpression:
    unit = _unit(cursor)
    cursor.expect("FROM")
    return FunctionCall(name, (cursor.expression(),), options=(("unit", unit),))


def _rounded(cursor: TokenCursor, name: str) -> SqlExpression:
    """``FLOOR(time TO unit)``, or of a number."""
    value = cursor.expression()
    if not cursor.accept("TO"):
        return FunctionCall(name, (value,))
    return FunctionCall(name, (value,), options=(("unit", _unit(cursor)),))


def _with_unit(cursor: TokenCursor, name: str) -> SqlExpression:
    """``TIMESTAMPADD(unit, amount, time)``, ``TIMESTAMPDIFF(unit, from, to)``."""
    unit = _unit(cursor)
    cursor.expect(",")
    first = cursor.expression()
    cursor.expect(",")
    return FunctionCall(name, (first, cursor.expression()), options=(("unit", unit),))


def _trim(cursor: TokenCursor, name: str) -> SqlExpression:
    """Arguments are the text, and the characters if they are given."""
    side = cursor.accept_one("BOTH", "LEADING", "TRAILING")
    options = (("side", side or "BOTH"),)
    if side is not None and cursor.accept("FROM"):
        return FunctionCall(name, (cursor.expression(),), options=options)
    first = cursor.expression()
    if cursor.accept("FROM"):
        return FunctionCall(name, (cursor.expression(), first), options=options)
    if side is not None:
        cursor.unexpected("FROM")
    return FunctionCall(name, (first,), options=options)


def _position(cursor: TokenCursor, name: str) -> SqlExpression:
    sought = cursor.operand()
    cursor.expect("IN")
    values = [sought, cursor.expression()]
    if cursor.accept("FROM"):
        values.append(cursor.expression())
    return FunctionCall(name, tuple(values))


def _substring(cursor: TokenCursor, name: str) -> SqlExpression:
    return FunctionCall(name, _with_words(cursor, (cursor.expression(),), "FROM", "FOR"))


def _overlay(cursor: TokenCursor, name: str) -> SqlExpression:
    values = (cursor.expression(),)
    return FunctionCall(name, _with_words(cursor, values, "PLACING", "FROM", "FOR"))


def _with_words(
    cursor: TokenCursor, values: tuple[SqlExpression, ...], *words: str
) -> tuple[SqlExpression, ...]:
    """Arguments with words before them, or with commas."""
    if not cursor.at(words[0]):
        if cursor.accept(","):
            values = (*values, *cursor.list_of(cursor.expression))
        return values
    for word in words:
        if cursor.accept(word):
            values = (*values, cursor.expression())
        elif word != words[-1]:
            cursor.unexpected(word)
    return values


# -- JSON ------------------------------------------------------------------------------------------


def _json_exists(cursor: TokenCursor, name: str) -> SqlExpression:
    values = _json_and_path(cursor)
    options: tuple[tuple[str, object], ...] = ()
    behaviour = cursor.accept_one("TRUE", "FALSE", "UNKNOWN", "ERROR")
    if behaviour is not None:
        cursor.expect("ON", "ERROR")
        options = (("on_error", behaviour),)
    return FunctionCall(name, values, options=options)


def _json_value(cursor: TokenCursor, name: str) -> SqlExpression:
    values = _json_and_path(cursor)
    options = _returning(cursor)
    while True:
        behaviour: object = cursor.accept_one("NULL", "ERROR")
        if behaviour is None:
            if not cursor.accept("DEFAULT"):
                break
            behaviour = cursor.expression()
        options = (*options, _occasion(cursor, behaviour))
    return FunctionCall(name, values, options=options)


def _json_query(cursor: TokenCursor, name: str) -> SqlExpression:
    values = _json_and_path(cursor)
    options = (*_returning(cursor), *_wrapper(cursor))
    while (behaviour := cursor.accept_one("NULL", "ERROR", "EMPTY")) is not None:
        if behaviour == "EMPTY":
            behaviour = f"EMPTY {cursor.expect_one('ARRAY', 'OBJECT')}"
        options = (*options, _occasion(cursor, behaviour))
    return FunctionCall(name, values, options=options)


def _json_and_path(cursor: TokenCursor) -> tuple[SqlExpression, ...]:
    value = cursor.expression()
    cursor.expect(",")
    return value, cursor.expression()


def _returning(cursor: TokenCursor) -> tuple[tuple[str, object], ...]:
    return (("returning", type_of(cursor)),) if cursor.accept("RETURNING") else ()


def _wrapper(cursor: TokenCursor) -> tuple[tuple[str, object], ...]:
    if cursor.accept("WITHOUT"):
        kind = "WITHOUT"
    elif cursor.accept("WITH"):
        kind = cursor.accept_one("CONDITIONAL", "UNCONDITIONAL") or "UNCONDITIONAL"
    else:
        return ()
    cursor.accept("ARRAY")
    cursor.expect("WRAPPER")
    return (("wrapper", kind),)


def _occasion(cursor: TokenCursor, behaviour: object) -> tuple[str, object]:
    cursor.expect("ON")
    return f"on_{cursor.expect_one('EMPTY', 'ERROR').lower()}", behaviour


def _json_object(cursor: TokenCursor, name: str) -> SqlExpression:
    values: tuple[SqlExpression, ...] = ()
    if not cursor.at(")") and not _at_on_null(cursor):
        for pair in cursor.list_of(lambda: _json_pair(cursor)):
            values += pair
    return FunctionCall(name, values, options=_on_null(cursor))


def _json_objectagg(cursor: TokenCursor, name: str) -> SqlExpression:
    return FunctionCall(name, _json_pair(cursor), options=_on_null(cursor))


def _json_pair(cursor: TokenCursor) -> tuple[SqlExpression, ...]:
    cursor.accept("KEY")
    key = cursor.expression()
    cursor.expect_one("VALUE", ":")
    return key, cursor.expression()


def _json_array(cursor: TokenCursor, name: str) -> SqlExpression:
    values: tuple[SqlExpression, ...] = ()
    if not cursor.at(")") and not _at_on_null(cursor):
        values = cursor.list_of(cursor.expression)
    return FunctionCall(name, values, options=_on_null(cursor))


def _json_arrayagg(cursor: TokenCursor, name: str) -> SqlExpression:
    value = cursor.expression()
    order_by = order_items(cursor) if cursor.accept("ORDER", "BY") else ()
    return FunctionCall(name, (value,), order_by=order_by, options=_on_null(cursor))


def _at_on_null(cursor: TokenCursor) -> bool:
    return cursor.at("NULL", "ON", "NULL") or cursor.at("ABSENT", "ON", "NULL")


def _on_null(cursor: TokenCursor) -> tuple[tuple[str, object], ...]:
    if not _at_on_null(cursor):
        return ()
    behaviour = cursor.take().key
    cursor.expect("ON", "NULL")
    return (("on_null", behaviour),)


SPECIAL: dict[str, Callable[[TokenCursor, str], SqlExpression]] = {
    "CAST": _cast,
    "TRY_CAST": _cast,
    "EXTRACT": _extract,
    "FLOOR": _rounded,
    "CEIL": _rounded,
    "CEILING": _rounded,
    "TIMESTAMPADD": _with_unit,
    "TIMESTAMPDIFF": _with_unit,
    "TRIM": _trim,
    "POSITION": _position,
    "SUBSTRING": _substring,
    "OVERLAY": _overlay,
    "JSON_EXISTS": _json_exists,
    "JSON_VALUE": _json_value,
    "JSON_QUERY": _json_query,
    "JSON_OBJECT": _json_object,
    "JSON_OBJECTAGG": _json_objectagg,
    "JSON_ARRAY": _json_array,
    "JSON_ARRAYAGG": _json_arrayagg,
}


def named_call(cursor: TokenCursor, name: Identifier) -> FunctionCall:
    """A call whose name is already read: SQL's in capital letters, one with dots as written."""
    if len(name.parts) > 1:
        return call_of(cursor, name.text, name.span.start)
    return call_of(cursor, name.parts[0].upper(), name.span.start)
