"""Expressions: operators by their strength, and what they stand between."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.sql.parsing.call_grammar import SPECIAL, at_call, call, named_call
from flinkpy.sql.parsing.literal_grammar import (
    at_interval_of_value,
    least_integer,
    one_of_unit,
    optional_literal,
    optional_zoned_timestamp,
)
from flinkpy.sql.parsing.reserved_words import RESERVED
from flinkpy.sql.parsing.sql_tokens import TokenKind
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.parsing.type_grammar import MONTH_UNITS, SECOND_UNITS, interval_units
from flinkpy.sql.syntax.query_tree import (
    ArrayConstructor,
    ArraySubquery,
    CaseCall,
    DynamicParameter,
    ElementAccess,
    ExistsSubquery,
    FieldAccess,
    FunctionCall,
    Identifier,
    InSubquery,
    MapConstructor,
    QuantifiedComparison,
    Query,
    RowConstructor,
    ScalarSubquery,
    SqlExpression,
    StarItem,
)

# The strength of operators: the higher, the closer they bind.
_OR, _AND, _NOT, _IS, _COMPARISON, _RANGE, _SUM, _PRODUCT, _SIGN = range(9)

_BINARY = {
    "OR": _OR,
    "AND": _AND,
    "=": _COMPARISON,
    "<>": _COMPARISON,
    "<": _COMPARISON,
    "<=": _COMPARISON,
    ">": _COMPARISON,
    ">=": _COMPARISON,
    "OVERLAPS": _COMPARISON,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
    "||": _PRODUCT,
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_RANGES = ("BETWEEN", "IN", "LIKE", "SIMILAR")
_STATES = ("NULL", "TRUE", "FALSE", "UNKNOWN")
_JSON_KINDS = ("VALUE", "OBJECT", "ARRAY", "SCALAR")

# What other databases write here, and what Flink has for it.
_FOREIGN = {
    "::": "a cast is written CAST(value AS type), not value::type",
    "ILIKE": "ILIKE is not SQL of Flink's; write UPPER(a) LIKE UPPER(b)",
    "RLIKE": "RLIKE is not SQL of Flink's; write REGEXP(text, pattern)",
    "REGEXP": "REGEXP is a function here: REGEXP(text, pattern)",
    "GLOB": "GLOB is not SQL of Flink's; write LIKE or REGEXP(text, pattern)",
    "DIV": "DIV is not SQL of Flink's; / between integers divides as integers",
    "COLLATE": "collations are not supported",
    "AT": "AT TIME ZONE is not SQL of Flink's; a TIMESTAMP_LTZ is shown in the zone of the session",
    "MEMBER": "MEMBER OF is not supported; write ARRAY_CONTAINS",
    "SUBMULTISET": "SUBMULTISET OF is not supported",
    "MULTISET": "set operations of multisets are not supported",
    "->": "JSON is read with JSON_VALUE(text, path), not with ->",
    "^": "powers are written POWER(base, exponent)",
    "&": "bits are not combined by &; Flink has no operator for it",
    "|": "texts are joined with ||; Flink has no operator for bits",
    "==": "equality is written =",
    "!=": "inequality is written <>",
}
_SECOND_WORDS = {
    "AT": ("TIME",),
    "MEMBER": ("OF",),
    "SUBMULTISET": ("OF",),
    "MULTISET": ("UNION", "EXCEPT", "INTERSECT"),
}
_NO_OPERANDS = (TokenKind.SIGN, TokenKind.END)


def expression(cursor: TokenCursor) -> SqlExpression:
    """An expression of any kind."""
    return _operators(cursor, _OR)


def operand(cursor: TokenCursor) -> SqlExpression:
    """An expression without comparisons, IN, AND and the like."""
    return _operators(cursor, _SUM)


def _operators(cursor: TokenCursor, least: int) -> SqlExpression:
    """An operand, and all operators behind it that bind at least so closely."""
    start = cursor.start
    left = _prefixed(cursor, least)
    while True:
        made = _infix(cursor, left, least)
        if made is None:
            return left
        left = replace(made, span=cursor.span_from(start))


def _prefixed(cursor: TokenCursor, least: int) -> SqlExpression:
    start = cursor.start
    if cursor.at("NOT") and least <= _NOT:
        cursor.expect("NOT")
        arguments = (_operators(cursor, _NOT),)
        return FunctionCall("NOT", arguments, span=cursor.span_from(start))
    number = least_integer(cursor)
    if number is not None:
        return _with_accesses(cursor, number, start)
    sign = cursor.accept_one("-", "+")
    if sign is not None:
        arguments = (_operators(cursor, _SIGN),)
        return FunctionCall(f"{sign} (unary)", arguments, span=cursor.span_from(start))
    return _with_accesses(cursor, _primary(cursor), start)


def _infix(cursor: TokenCursor, left: SqlExpression, least: int) -> SqlExpression | None:
    """The operator that comes next with what stands left of it, if it binds closely enough."""
    key = cursor.next.key
    strength = _BINARY.get(key)
    if strength is not None and strength >= least:
        return _binary(cursor, left, strength)
    if least <= _RANGE and (key in _RANGES or (key == "NOT" and cursor.ahead(1).key in _RANGES)):
        return _range(cursor, left)
    if least <= _IS and key == "IS":
        return _is(cursor, left)
    if key in _FOREIGN:
        _refuse_foreign(cursor)
    for other in ("OR", "AND", "IS", "BETWEEN", "LIKE", "IN", "OVER"):
        cursor.at(other)  # noted as what could stand here
    return None


def _refuse_foreign(cursor: TokenCursor) -> None:
    """Says what Flink has instead of this operator. A word may be an alias, too: it is an operator
    if an operand follows, or the word that belongs to it."""
    token = cursor.next
    behind = cursor.ahead(1)
    if token.kind == TokenKind.WORD:
        belongs = _SECOND_WORDS.get(token.key)
        if belongs is not None and behind.key not in belongs:
            return
        if belongs is None and (behind.key in RESERVED or behind.kind in _NO_OPERANDS):
            return
    cursor.fail(_FOREIGN[token.key])


def _binary(cursor: TokenCursor, left: SqlExpression, strength: int) -> SqlExpression:
    operator = cursor.take().key
    if operator == "=" and cursor.next.key == "=":
        cursor.fail(_FOREIGN["=="], cursor.last.span.hull(cursor.next.span))
    if operator in _COMPARISONS and cursor.next.key in ("ALL", "ANY", "SOME"):
        quantifier = "ALL" if cursor.take().key == "ALL" else "ANY"
        return QuantifiedComparison(left, operator, quantifier, _subquery(cursor))
    right = _operators(cursor, strength + 1)
    if operator == "OVERLAPS":
        return FunctionCall(operator, (*_pair(cursor, left), *_pair(cursor, right)))
    return FunctionCall(operator, (left, right))


def _pair(cursor: TokenCursor, side: SqlExpression) -> tuple[SqlExpression, ...]:
    if not isinstance(side, RowConstructor) or len(side.values) != 2:
        cursor.fail("OVERLAPS stands between two pairs: (from, until or interval)", side.span)
    return side.values


def _range(cursor: TokenCursor, left: SqlExpression) -> SqlExpression:
    negated = cursor.accept("NOT")
    prefix = "NOT " if negated else ""
    operator = cursor.take().key
    if operator == "IN":
        return _in(cursor, left, negated)
    if operator == "BETWEEN":
        symmetric = cursor.accept_one("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
        lower = _operators(cursor, _SUM)
        cursor.expect("AND")
        upper = _operators(cursor, _SUM)
        options = (("symmetric", True),) if symmetric else ()
        return FunctionCall(f"{prefix}BETWEEN", (left, lower, upper), options=options)
    if operator == "SIMILAR":
        cursor.expect("TO")
        operator = "SIMILAR TO"
    arguments = [left, _operators(cursor, _SUM)]
    if cursor.accept("ESCAPE"):
        arguments.append(_operators(cursor, _SUM))
    return FunctionCall(prefix + operator, tuple(arguments))


def _in(cursor: TokenCursor, left: SqlExpression, negated: bool) -> SqlExpression:
    if not cursor.at("("):
        cursor.unexpected("( and the values or a query")
    if _query_begins(cursor):
        return InSubquery(left, _subquery(cursor), negated)
    values = cursor.in_parentheses(cursor.expression)
    return FunctionCall("NOT IN" if negated else "IN", (left, *values))


def _is(cursor: TokenCursor, left: SqlExpression) -> SqlExpression:
    cursor.expect("IS")
    negated = "NOT " if cursor.accept("NOT") else ""
    if cursor.accept("DISTINCT"):
        cursor.expect("FROM")
        right = _operators(cursor, _SUM)
        return FunctionCall(f"IS {negated}DISTINCT FROM", (left, right))
    if cursor.accept("JSON"):
        kind = cursor.accept_one(*_JSON_KINDS) or "VALUE"
        return FunctionCall(f"IS {negated}JSON", (left,), options=(("kind", kind),))
    state = cursor.accept_one(*_STATES)
    if state is None:
        cursor.unexpected("NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM or JSON")
    return FunctionCall(f"IS {negated}{state}", (left,))


# -- what operators stand between ------------------------------------------------------------------


def _with_accesses(cursor: TokenCursor, value: SqlExpression, start: int) -> SqlExpression:
    """``[index]`` and ``.name`` behind an expression."""
    while True:
        if cursor.accept("["):
            value = ElementAccess(value, cursor.expression())
            cursor.expect("]")
        elif cursor.at(".", "*"):
            return value  # all parts: for the SELECT list to say
        elif cursor.accept("."):
            value = FieldAccess(value, cursor.name("a name behind the dot"))
        else:
            if cursor.at("::"):
                cursor.fail(_FOREIGN["::"])
            return value
        value = replace(value, span=cursor.span_from(start))


def _primary(cursor: TokenCursor) -> SqlExpression:
    token = cursor.next
    if token.key == "(":
        return _parenthesised(cursor)
    found = optional_literal(cursor) or optional_zoned_timestamp(cursor)
    if found is not None:
        return found
    if token.kind == TokenKind.WORD:
        construct = _CONSTRUCTS.get(token.key)
        opens = token.key in ("CASE", "EXISTS") or cursor.ahead(1).key in ("(", "[")
        if construct is not None and opens:
            return construct(cursor)
        if at_call(cursor) or (token.key in SPECIAL and cursor.ahead(1).key == "("):
            return call(cursor)
    if at_interval_of_value(cursor):
        return _interval(cursor)
    if token.key == "?":
        return DynamicParameter(span=cursor.take().span)
    return _name_or_call(cursor)


def _interval(cursor: TokenCursor) -> SqlExpression:
    """``INTERVAL amount DAY`` is the amount times a day."""
    start = cursor.start
    cursor.expect("INTERVAL")
    amount = _primary(cursor)
    product = (one_of_unit(cursor), amount)
    return FunctionCall("*", product, span=cursor.span_from(start))


def _name_or_call(cursor: TokenCursor) -> SqlExpression:
    if not cursor.at_name():
        cursor.unexpected("an expression", or_name=True)
    name = _identifier(cursor)
    return named_call(cursor, name) if cursor.at("(") else name


def _identifier(cursor: TokenCursor) -> Identifier:
    """A name with dots. A dot and * behind it are for the SELECT list."""
    start = cursor.start
    parts = [cursor.name()]
    while cursor.at(".") and cursor.ahead(1).key != "*":
        cursor.expect(".")
        parts.append(cursor.name("a name behind the dot"))
    return Identifier(tuple(parts), span=cursor.span_from(start))


def _parenthesised(cursor: TokenCursor) -> SqlExpression:
    if not _query_begins(cursor):
        return _row_or_value(cursor)
    if cursor.ahead(1).key != "(":
        return _scalar_subquery(cursor)
    return cursor.attempt(lambda: _scalar_subquery(cursor), lambda: _row_or_value(cursor))


def _row_or_value(cursor: TokenCursor) -> SqlExpression:
    start = cursor.start
    values = cursor.in_parentheses(cursor.expression)
    if len(values) == 1:
        return _time_between(cursor, values[0], start) or values[0]
    return RowConstructor(values, span=cursor.span_from(start))


def _time_between(cursor: TokenCursor, value: SqlExpression, start: int) -> SqlExpression | None:
    """``(a - b) DAY``, an interval: of months or of milliseconds, whatever its unit is."""
    if not isinstance(value, FunctionCall) or value.name != "-":
        return None
    if cursor.next.key not in (*MONTH_UNITS, *SECOND_UNITS):
        return None
    (first, *_), _ = interval_units(cursor)
    unit = "MONTH" if first in MONTH_UNITS else "SECOND"
    return replace(value, options=(("unit", unit),), span=cursor.span_from(start))


def _query_begins(cursor: TokenCursor) -> bool:
    """Whether a query comes behind the parentheses that open here."""
    distance = 0
    while cursor.ahead(distance).key == "(":
        distance += 1
    return distance > 0 and cursor.ahead(distance).key in ("SELECT", "WITH", "VALUES")


def _subquery(cursor: TokenCursor) -> Query:
    cursor.expect("(")
    query = cursor.query()
    cursor.expect(")")
    return query


def _scalar_subquery(cursor: TokenCursor) -> SqlExpression:
    start = cursor.start
    return ScalarSubquery(_subquery(cursor), span=cursor.span_from(start))


# -- constructs with a word of their own -----------------------------------------------------------


def _case(cursor: TokenCursor) -> SqlExpression:
    start = cursor.start
    cursor.expect("CASE")
    value = None if cursor.at("WHEN") or cursor.at("END") else cursor.expression()
    branches: list[tuple[SqlExpression, SqlExpression]] = []
    if not cursor.at("WHEN"):
        cursor.unexpected("WHEN")
    while cursor.accept("WHEN"):
        conditions = cursor.list_of(cursor.expression) if value else (cursor.expression(),)
        cursor.expect("THEN")
        result = cursor.expression()
        branches.extend((condition, result) for condition in conditions)
    otherwise = cursor.expression() if cursor.accept("ELSE") else None
    if not cursor.accept("END"):
        cursor.unexpected("END, which closes CASE")
    return CaseCall(value, tuple(branches), otherwise, span=cursor.span_from(start))


def _exists(cursor: TokenCursor) -> SqlExpression:
    start = cursor.start
    cursor.expect("EXISTS")
    return ExistsSubquery(_subquery(cursor), span=cursor.span_from(start))


def _row(cursor: TokenCursor) -> SqlExpression:
    start = cursor.start
    cursor.expect("ROW")
    return RowConstructor(cursor.in_parentheses(cursor.expression), span=cursor.span_from(start))


def _array(cursor: TokenCursor) -> SqlExpression:
    start = cursor.start
    kind = cursor.take().key
    if cursor.at("("):
        return ArraySubquery(kind, _subquery(cursor), span=cursor.span_from(start))
    elements = _in_brackets(cursor)
    span = cursor.span_from(start)
    if kind == "MULTISET":
        return FunctionCall(kind, elements, span=span)
    return ArrayConstructor(elements, span=span)


def _map(cursor: TokenCursor) -> SqlExpression:
    start = cursor.start
    cursor.expect("MAP")
    if cursor.at("("):
        cursor.fail("a MAP is written with brackets: MAP['key', value]")
    values = _in_brackets(cursor)
    span = cursor.span_from(start)
    if len(values) % 2:
        cursor.fail("MAP[...] has keys and values in turn; the last key has no value", span)
    pairs = zip(values[::2], values[1::2])
    return MapConstructor(tuple(pairs), span=span)


def _in_brackets(cursor: TokenCursor) -> tuple[SqlExpression, ...]:
    cursor.expect("[")
    values = () if cursor.at("]") else cursor.list_of(cursor.expression)
    cursor.expect("]")
    return values


_CONSTRUCTS = {
    "CASE": _case,
    "EXISTS": _exists,
    "ROW": _row,
    "ARRAY": _array,
    "MULTISET": _array,
    "MAP": _map,
}


def star(cursor: TokenCursor) -> StarItem | None:
    """``*`` or ``t.*``, if it comes next."""
    start = cursor.start
    if cursor.accept("*"):
        return StarItem(span=cursor.span_from(start))
    distance = 0
    while cursor.ahead(distance + 1).key == "." and cursor.ahead(distance).key != "*":
        distance += 2
    if distance == 0 or cursor.ahead(distance).key != "*" or not cursor.at_name():
        return None
    qualifier = [cursor.name()]
    while cursor.accept(".") and not cursor.accept("*"):
        qualifier.append(cursor.name())
    return StarItem(tuple(qualifier), span=cursor.span_from(start))
