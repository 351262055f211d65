"""Prints trees as SQL, with parentheses round every operand, and draws trees that can be printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import TypeVar

from hypothesis import strategies as st

from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntType,
    LogicalType,
    MapType,
    NullType,
    RowType,
    TimestampType,
    TimeType,
    VarCharType,
    YearMonthIntervalType,
)
from flinkpy.sql.syntax.query_tree import (
    ArrayConstructor,
    CaseCall,
    CastCall,
    CommonTable,
    DerivedTable,
    DescriptorArgument,
    ElementAccess,
    ExistsSubquery,
    FieldAccess,
    FrameBound,
    FromItem,
    FunctionCall,
    GroupingElement,
    Hint,
    Identifier,
    InSubquery,
    JoinItem,
    MapConstructor,
    OrderItem,
    OverWindow,
    QuantifiedComparison,
    Query,
    RowConstructor,
    ScalarSubquery,
    Select,
    SelectItem,
    SetOperation,
    SqlExpression,
    SqlLiteral,
    StarItem,
    TableArgument,
    TableFunctionCall,
    TableReference,
    UnnestItem,
    ValuesQuery,
)

# -- printing --------------------------------------------------------------------------------------

_BINARY = (
    *("+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">=", "AND", "OR"),
    *("LIKE", "NOT LIKE", "SIMILAR TO", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"),
)
_POSTFIX = ("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN")


def quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def text_of(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def listed(items: Iterable[SqlExpression]) -> str:
    return ", ".join(map(expression, items))


def expression(tree: SqlExpression) -> str:
    return _PRINTERS[type(tree)](tree)


def operand(tree: SqlExpression) -> str:
    atoms = (Identifier, SqlLiteral, ScalarSubquery, CastCall, CaseCall, ArrayConstructor)
    return expression(tree) if isinstance(tree, atoms) else f"({expression(tree)})"


def _literal(tree: SqlLiteral) -> str:
    value = tree.value
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ', 'seconds')}'"
    if isinstance(value, (date, time)):
        return f"{'DATE' if isinstance(value, date) else 'TIME'} '{value.isoformat()}'"
    if isinstance(tree.type, (DayTimeIntervalType, YearMonthIntervalType)):
        amount = value if isinstance(tree.type, YearMonthIntervalType) else value // 86_400_000  # type: ignore[operator]
        return f"INTERVAL '{amount}' {tree.type.unit}"
    return f"{value:e}" if isinstance(value, float) else str(value)


def _call(tree: FunctionCall) -> str:
    given = [operand(each) for each in tree.arguments]
    if tree.name in _BINARY:
        return f"{given[0]} {tree.name} {given[1]}"
    if tree.name in _POSTFIX:
        return f"{given[0]} {tree.name}"
    if tree.name == "NOT" or tree.name.endswith("(unary)"):
        return f"{tree.name.removesuffix('(unary)')} {given[0]}"
    if tree.name.endswith("BETWEEN"):
        symmetric = " SYMMETRIC" if tree.options else ""
        return f"{given[0]} {tree.name}{symmetric} {given[1]} AND {given[2]}"
    if tree.name.endswith("IN"):
        return f"{given[0]} {tree.name} ({', '.join(given[1:])})"
    if tree.name == "EXTRACT":
        return f"EXTRACT({tree.options[0][1]} FROM {given[0]})"
    if tree.name == "TRIM":
        characters = given[1] if len(given) == 2 else ""
        return f"TRIM({tree.options[0][1]} {characters} FROM {given[0]})"
    return _plain_call(tree)


def _plain_call(tree: FunctionCall) -> str:
    names = tree.names or (None,) * len(tree.arguments)
    given = ", ".join(
        (f"{quoted(name)} => " if name else "") + expression(value)
        for name, value in zip(names, tree.arguments)
    )
    printed = f"{tree.name}({'DISTINCT ' if tree.distinct else ''}{given})"
    if tree.nulls:
        printed += f" {tree.nulls} NULLS"
    if tree.order_by:
        printed += f" WITHIN GROUP ({order_by(tree.order_by)})"
    if tree.filter is not None:
        printed += f" FILTER (WHERE {expression(tree.filter)})"
    if tree.over is not None:
        printed += f" OVER {tree.over if isinstance(tree.over, str) else window(tree.over)}"
    return printed


def order_by(items: tuple[OrderItem, ...]) -> str:
    return "ORDER BY " + ", ".join(map(_order_item, items)) if items else ""


def _order_item(item: OrderItem) -> str:
    nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[item.nulls_first]
    return f"{expression(item.value)}{' DESC' if item.descending else ''}{nulls}"


def window(over: OverWindow) -> str:
    partition = f"PARTITION BY {listed(over.partition_by)}" if over.partition_by else ""
    frame = ""
    if over.unit is not None:
        assert over.lower is not None
        frame = f"{over.unit} {_bound(over.lower)}"
        if over.upper is not None:
            frame = f"{over.unit} BETWEEN {_bound(over.lower)} AND {_bound(over.upper)}"
    return f"({partition} {order_by(over.order_by)} {frame})"


def _bound(bound: FrameBound) -> str:
    return bound.kind if bound.offset is None else f"{operand(bound.offset)} {bound.kind}"


def _case(tree: CaseCall) -> str:
    given = "" if tree.operand is None else operand(tree.operand)
    branches = " ".join(
        f"WHEN {operand(condition)} THEN {operand(value)}" for condition, value in tree.branches
    )
    otherwise = "" if tree.otherwise is None else f"ELSE {operand(tree.otherwise)}"
    return f"CASE {given} {branches} {otherwise} END"


def _cast(tree: CastCall) -> str:
    return f"{'TRY_CAST' if tree.is_try else 'CAST'}({expression(tree.value)} AS {tree.type})"


def _table_argument(tree: TableArgument) -> str:
    if isinstance(tree.table, Query):
        printed = f"TABLE ({query(tree.table)})"
    else:
        printed = f"TABLE {expression(tree.table)}"
    if tree.partition_by:
        printed += f" PARTITION BY ({listed(tree.partition_by)})"
    if tree.order_by:
        printed += f" ORDER BY ({', '.join(map(_order_item, tree.order_by))})"
    return printed


_PRINTERS: dict[type[SqlExpression], Callable[..., str]] = {
    Identifier: lambda tree: ".".join(map(quoted, tree.parts)),
    StarItem: lambda tree: ".".join([*map(quoted, tree.qualifier), "*"]),
    SqlLiteral: _literal,
    FunctionCall: _call,
    CastCall: _cast,
    CaseCall: _case,
    FieldAccess: lambda tree: f"({expression(tree.value)}).{quoted(tree.name)}",
    ElementAccess: lambda tree: f"{operand(tree.value)}[{expression(tree.index)}]",
    ArrayConstructor: lambda tree: f"ARRAY[{listed(tree.elements)}]",
    MapConstructor: lambda tree: f"MAP[{listed(each for pair in tree.entries for each in pair)}]",
    RowConstructor: lambda tree: f"ROW({listed(tree.values)})",
    ScalarSubquery: lambda tree: f"({query(tree.query)})",
    ExistsSubquery: lambda tree: f"EXISTS ({query(tree.query)})",
    InSubquery: lambda tree: (
        f"{operand(tree.value)} {'NOT ' if tree.negated else ''}IN ({query(tree.query)})"
    ),
    QuantifiedComparison: lambda tree: (
        f"{operand(tree.value)} {tree.operator} {tree.quantifier} ({query(tree.query)})"
    ),
    TableArgument: _table_argument,
    DescriptorArgument: lambda tree: f"DESCRIPTOR({listed(tree.columns)})",
}


def query(tree: Query) -> str:
    common = ", ".join(map(_common_table, tree.common_tables))
    parts = [
        f"WITH {common}" if common else "",
        _body(tree),
        order_by(tree.order_by),
        f"LIMIT {expression(tree.limit)}" if tree.limit else "",
        f"OFFSET {expression(tree.offset)} ROWS" if tree.offset else "",
    ]
    return " ".join(part for part in parts if part)


def _common_table(table: CommonTable) -> str:
    return f"{quoted(table.name)}{_names(table.columns)} AS ({query(table.query)})"


def _names(columns: tuple[str, ...]) -> str:
    return f" ({', '.join(map(quoted, columns))})" if columns else ""


def _body(tree: Query) -> str:
    if isinstance(tree, SetOperation):
        keeps = " ALL" if tree.keeps_all else ""
        return f"({query(tree.left)}) {tree.kind}{keeps} ({query(tree.right)})"
    if isinstance(tree, ValuesQuery):
        return f"VALUES {', '.join(f'ROW({listed(row)})' for row in tree.rows)}"
    assert isinstance(tree, Select)
    return _select(tree)


def _select(tree: Select) -> str:
    windows = ", ".join(f"{name} AS {window(over)}" for name, over in tree.windows)
    parts = [
        "SELECT",
        _hints(tree.hints),
        "DISTINCT" if tree.distinct else "",
        ", ".join(map(_select_item, tree.items)),
        f"FROM {relation(tree.source)}" if tree.source else "",
        f"WHERE {expression(tree.where)}" if tree.where else "",
        f"GROUP BY {', '.join(map(_grouping, tree.group_by))}" if tree.group_by else "",
        f"HAVING {expression(tree.having)}" if tree.having else "",
        f"WINDOW {windows}" if windows else "",
        f"QUALIFY {expression(tree.qualify)}" if tree.qualify else "",
    ]
    return " ".join(part for part in parts if part)


def _select_item(item: SelectItem) -> str:
    return expression(item.value) + (f" AS {quoted(item.alias)}" if item.alias else "")


def _grouping(element: GroupingElement) -> str:
    if element.kind == "EXPRESSION":
        return expression(element.sets[0][0])
    sets = ", ".join(f"({listed(each)})" for each in element.sets)
    return f"{'GROUPING SETS' if element.kind == 'SETS' else element.kind} ({sets})"


def _hints(hints: tuple[Hint, ...]) -> str:
    return f"/*+ {', '.join(map(_hint, hints))} */" if hints else ""


def _hint(hint: Hint) -> str:
    options = [f"{text_of(key)} = {text_of(value)}" for key, value in hint.options]
    return f"{hint.name}({', '.join([*hint.arguments, *options])})"


def relation(item: FromItem) -> str:
    if isinstance(item, JoinItem):
        return _join(item)
    if isinstance(item, TableReference):
        printed = f"{expression(item.name)} {_hints(item.hints)}"
        if item.as_of is not None:
            printed += f" FOR SYSTEM_TIME AS OF {operand(item.as_of)}"
    elif isinstance(item, DerivedTable):
        printed = f"{'LATERAL ' if item.lateral else ''}({query(item.query)})"
    elif isinstance(item, UnnestItem):
        ordinality = " WITH ORDINALITY" if item.with_ordinality else ""
        printed = f"UNNEST({expression(item.value)}){ordinality}"
    else:
        assert isinstance(item, TableFunctionCall)
        printed = f"{'LATERAL ' if item.lateral else ''}TABLE({expression(item.call)})"
    return printed + (f" AS {quoted(item.alias)}{_names(item.columns)}" if item.alias else "")


def _join(item: JoinItem) -> str:
    natural = "NATURAL " if item.natural else ""
    printed = f"{relation(item.left)} {natural}{item.kind} JOIN "
    right = relation(item.right)
    printed += f"({right})" if isinstance(item.right, JoinItem) else right
    if item.condition is not None:
        printed += f" ON {expression(item.condition)}"
    if item.using:
        printed += f" USING ({listed(item.using)})"
    return printed


# -- drawing ---------------------------------------------------------------------------------------

T = TypeVar("T")
Expressions = st.SearchStrategy[SqlExpression]

names = st.sampled_from(["a", "b", "A", "order", "with space", "tick`s", "ü", "T"])
identifiers = st.lists(names, min_size=1, max_size=3).map(lambda parts: Identifier(tuple(parts)))
_texts = st.sampled_from(["", "a", "it's", "-- no comment", "/*", ";", "`", '"', "\n", "漢"])
_whole = st.integers(0, 2**31 - 1)


def _constant(value: object, type: LogicalType) -> SqlLiteral:
    return SqlLiteral(value, type if isinstance(type, NullType) else type.not_null())


literals = st.one_of(
    _whole.map(lambda value: _constant(value, IntType())),
    st.integers(0, 999).map(lambda n: _constant(Decimal(f"1.{n:03}"), DecimalType(4, 3))),
    st.sampled_from([0.0, 1e0, 1.5e-7, 1e300]).map(lambda x: _constant(x, DoubleType())),
    _texts.map(lambda value: _constant(value, CharType(len(value)))),
    st.binary(max_size=3).map(lambda value: _constant(value, BinaryType(len(value)))),
    st.booleans().map(lambda value: _constant(value, BooleanType())),
    st.just(_constant(None, NullType())),
    st.just(_constant(date(2024, 2, 29), DateType())),
    st.just(_constant(time(23, 59, 59), TimeType(0))),
    st.just(_constant(datetime(2024, 2, 29, 1, 2, 3), TimestampType(0))),
    st.integers(0, 99).map(lambda n: _constant(n * 86_400_000, DayTimeIntervalType("DAY"))),
    st.integers(0, 99).map(lambda n: _constant(n, YearMonthIntervalType("MONTH"))),
)
types = st.recursive(
    st.sampled_from([IntType(), VarCharType(7), DecimalType(5, 2), TimestampType(3)]),
    lambda inner: st.one_of(
        inner.map(lambda type: type.not_null()),
        inner.map(ArrayType),
        st.tuples(inner, inner).map(lambda pair: MapType(*pair)),
        inner.map(lambda type: RowType.of(("x y", type)).with_nullable(True)),
    ),
    max_leaves=4,
)


def _many(
    inner: st.SearchStrategy[T], least: int = 1, most: int = 3
) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(inner, min_size=least, max_size=most).map(tuple)


def _order_items(inner: Expressions) -> st.SearchStrategy[tuple[OrderItem, ...]]:
    return _many(
        st.builds(OrderItem, inner, st.booleans(), st.sampled_from([None, True, False])), 0, 2
    )


def _windows(inner: Expressions) -> st.SearchStrategy[OverWindow]:
    bound = st.one_of(
        st.just(FrameBound("CURRENT ROW")),
        st.just(FrameBound("UNBOUNDED PRECEDING")),
        inner.map(lambda offset: FrameBound("PRECEDING", offset)),
    )
    plain = st.builds(OverWindow, _many(inner, 0), _order_items(inner))
    framed = st.builds(
        lambda over, unit, lower: replace(
            over, unit=unit, lower=lower, upper=FrameBound("CURRENT ROW")
        ),
        plain,
        st.sampled_from(["ROWS", "RANGE"]),
        bound,
    )
    return st.one_of(plain, framed)


def _calls(inner: Expressions) -> Expressions:
    return st.builds(
        FunctionCall,
        st.sampled_from(["COUNT", "MY_F", "LEFT", "IF"]),
        _many(inner),
        distinct=st.booleans(),
        filter=st.one_of(st.none(), inner),
        order_by=_order_items(inner),
        nulls=st.sampled_from([None, "IGNORE", "RESPECT"]),
        over=st.one_of(st.none(), st.just("w"), _windows(inner)),
    )


def _operators(inner: Expressions) -> Expressions:
    return st.one_of(
        st.builds(
            lambda name, left, right: FunctionCall(name, (left, right)),
            st.sampled_from(_BINARY),
            inner,
            inner,
        ),
        st.builds(
            lambda name, value: FunctionCall(name, (value,)),
            st.sampled_from([*_POSTFIX, "NOT", "- (unary)", "+ (unary)"]),
            inner,
        ),
        st.builds(
            lambda name, values, symmetric: FunctionCall(
                name, values, options=(("symmetric", True),) if symmetric else ()
            ),
            st.sampled_from(["BETWEEN", "NOT BETWEEN"]),
            _many(inner, 3),
            st.booleans(),
        ),
        st.builds(FunctionCall, st.sampled_from(["IN", "NOT IN"]), _many(inner, 2)),
        inner.map(lambda value: FunctionCall("EXTRACT", (value,), options=(("unit", "DAY"),))),
        st.builds(
            lambda values, side: FunctionCall("TRIM", values, options=(("side", side),)),
            _many(inner, 1, 2),
            st.sampled_from(["BOTH", "LEADING"]),
        ),
    )


def _constructs(inner: Expressions) -> Expressions:
    pairs = st.tuples(inner, inner)
    accessed = inner.filter(lambda value: not isinstance(value, Identifier))
    return st.one_of(
        st.builds(CastCall, inner, types, st.booleans()),
        st.builds(CaseCall, st.none() | inner, _many(pairs), st.none() | inner),
        st.builds(FieldAccess, accessed, names),
        st.builds(ElementAccess, inner, inner),
        st.builds(ArrayConstructor, _many(inner, 0)),
        st.builds(MapConstructor, _many(pairs, 0)),
        st.builds(RowConstructor, _many(inner)),
    )


def _subqueries(inner: Expressions) -> Expressions:
    queries = _selects(inner, st.just(TableReference(Identifier(("t",)))))
    return st.one_of(
        st.builds(ScalarSubquery, queries),
        st.builds(ExistsSubquery, queries),
        st.builds(InSubquery, inner, queries, st.booleans()),
        st.builds(
            QuantifiedComparison,
            inner,
            st.sampled_from(["=", "<>", "<"]),
            st.sampled_from(["ANY", "ALL"]),
            queries,
        ),
    )


def _selects(inner: Expressions, sources: st.SearchStrategy[FromItem]) -> st.SearchStrategy[Query]:
    items = st.one_of(
        st.builds(SelectItem, inner, st.none() | names),
        st.builds(SelectItem, st.builds(StarItem, _many(names, 0, 2))),
    )
    groups = st.one_of(
        inner.filter(lambda value: not isinstance(value, RowConstructor)).map(
            lambda value: GroupingElement("EXPRESSION", ((value,),))
        ),
        st.builds(
            GroupingElement, st.sampled_from(["SETS", "CUBE", "ROLLUP"]), _many(_many(inner, 2))
        ),
    )
    return st.builds(
        Select,
        _many(items),
        st.none() | sources,
        st.booleans(),
        where=st.none() | inner,
        group_by=st.none() | _many(groups),
        having=st.none() | inner,
        qualify=st.none() | inner,
        windows=_many(st.tuples(st.just("w"), _windows(inner)), 0, 1),
        order_by=_order_items(inner),
        limit=st.none() | st.just(_constant(3, IntType())),
        offset=st.none() | st.just(_constant(5, IntType())),
    )


expressions = st.recursive(
    identifiers | literals,
    lambda inner: st.one_of(
        _operators(inner), _calls(inner), _constructs(inner), _subqueries(inner)
    ),
    max_leaves=12,
)
_small = st.recursive(identifiers | literals, _operators, max_leaves=3)


def _relations(queries: st.SearchStrategy[Query]) -> st.SearchStrategy[FromItem]:
    alias = st.fixed_dictionaries({"alias": names, "columns": _many(names, 0, 2)})
    hints = _many(
        st.builds(
            Hint, st.just("OPTIONS"), st.just(()), st.just((("k", "v"), ("it's", "x"))).map(tuple)
        ),
        0,
        1,
    )
    tables = st.builds(TableReference, identifiers, hints, st.none() | _small)
    window_call = st.builds(
        lambda table, column, by: FunctionCall(
            "TUMBLE",
            (TableArgument(table, by), DescriptorArgument((column,)), column),
            ("DATA", "TIMECOL", "SIZE"),
        ),
        identifiers | queries,
        identifiers,
        _many(identifiers, 0, 2),
    )
    named = st.one_of(
        tables,
        st.builds(DerivedTable, queries, st.booleans()),
        st.builds(TableFunctionCall, window_call, st.booleans()),
        st.builds(UnnestItem, _small, st.booleans()),
    )
    leaves = st.builds(lambda item, given: replace(item, **given), named, alias)
    return st.recursive(leaves, _joins, max_leaves=3)


def _joins(inner: st.SearchStrategy[FromItem]) -> st.SearchStrategy[FromItem]:
    kinds = st.sampled_from(["INNER", "LEFT", "RIGHT", "FULL"])
    return st.one_of(
        st.builds(JoinItem, inner, inner, kinds, _small),
        st.builds(JoinItem, inner, inner, kinds, using=_many(identifiers)),
        st.builds(JoinItem, inner, inner, kinds, natural=st.just(True)),
        st.builds(JoinItem, inner, inner, st.just("CROSS")),
    )


def _set_operations(inner: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    common = _many(st.builds(CommonTable, names, _many(names, 0, 2), inner), 0, 1)
    kinds = st.sampled_from(["UNION", "INTERSECT", "EXCEPT"])
    return st.builds(SetOperation, kinds, st.booleans(), inner, inner, common_tables=common)


_plain_queries = st.deferred(lambda: _selects(_small, st.builds(TableReference, identifiers)))
_from_items = st.deferred(lambda: _relations(_plain_queries))
_one_query = st.deferred(
    lambda: _selects(_small, _from_items) | st.builds(ValuesQuery, _many(_many(_small, 2)))
)
queries = st.recursive(_one_query, _set_operations, max_leaves=3)
