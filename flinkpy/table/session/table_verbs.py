"""The verbs of tables: each makes a query of a query, as the tree that SQL would give. So a program
of verbs and one in SQL are bound, planned and run in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flinkpy.columns import Expression, col
from flinkpy.columns.expression import Alias, Call
from flinkpy.common.logical_types.logical_type import ArrayType, RowType
from flinkpy.core.errors import ProgramError
from flinkpy.sql.sql_errors import did_you_mean
from flinkpy.sql.syntax.query_tree import (
    DerivedTable,
    FieldAccess,
    FromItem,
    FunctionCall,
    GroupingElement,
    Identifier,
    JoinItem,
    OrderItem,
    Query,
    Select,
    SelectItem,
    SetOperation,
    SqlExpression,
    StarItem,
    TableFunctionCall,
    UnnestItem,
)
from flinkpy.table.expression_trees.sql_of_expressions import constant, tree_of
from flinkpy.table.expression_trees.user_calls import UserCall

_STAR = (SelectItem(StarItem()),)


def selected(query: Query, expressions: Sequence[object], *, distinct: bool = False) -> Query:
    """``SELECT expressions FROM query``."""
    items = tuple(_item(each, "select()") for each in expressions)
    return Select(items, DerivedTable(query), distinct)


def filtered(query: Query, predicate: object) -> Query:
    """``... WHERE predicate``."""
    return Select(_STAR, DerivedTable(query), where=_tree(predicate, "where()"))


def grouped(query: Query, keys: Sequence[object], expressions: Sequence[object]) -> Query:
    """``SELECT expressions FROM query GROUP BY keys``; without keys one row of all."""
    elements = tuple(GroupingElement("EXPRESSION", ((_tree(key, "group_by()"),),)) for key in keys)
    items = tuple(_item(each, "select()") for each in expressions)
    return Select(items, DerivedTable(query), group_by=elements)


def distinct_rows(query: Query) -> Query:
    """``SELECT DISTINCT *``."""
    return Select(_STAR, DerivedTable(query), True)


def joined(left: Query, right: Query, kind: str, predicate: object | None) -> Query:
    """``left JOIN right ON predicate``; without a predicate each row meets each."""
    condition = None if predicate is None else _tree(predicate, "join()")
    kind = "CROSS" if condition is None and kind == "INNER" else kind
    source: FromItem = JoinItem(DerivedTable(left), DerivedTable(right), kind, condition)
    return Select(_STAR, source)


def correlated(query: Query, call: UserCall, kind: str, predicate: object | None = None) -> Select:
    """``query JOIN LATERAL TABLE(call) ON predicate``."""
    tree = tree_of(call)
    assert isinstance(tree, FunctionCall)
    alias = "f" if call.columns else None
    made = TableFunctionCall(tree, lateral=True, alias=alias, columns=call.columns)
    condition = None if predicate is None else _tree(predicate, "join_lateral()")
    if condition is None and kind == "LEFT":
        condition = constant(True)
    return Select(_STAR, JoinItem(DerivedTable(query), made, kind, condition))


def flat_mapped(query: Query, call: UserCall) -> Query:
    """Only the columns that a table function makes."""
    assert isinstance(call.of.result, RowType), "a table function gives rows"
    names = call.columns or call.of.result.names
    joined_rows = correlated(query, UserCall(call.of, call.arguments, names), "CROSS")
    items = tuple(SelectItem(Identifier(("f", name)), name) for name in names)
    return replace(joined_rows, items=items)


def mapped(query: Query, call: UserCall) -> Query:
    """Only what a scalar function makes of each row; the fields of a ROW are columns."""
    made = Select((SelectItem(tree_of(call), "f0"),), DerivedTable(query))
    result = call.of.result
    if not isinstance(result, RowType):
        return made
    value = Identifier(("f0",))
    items = tuple(SelectItem(FieldAccess(value, name), name) for name in result.names)
    return Select(items, DerivedTable(made))


def aggregated(query: Query, keys: Sequence[object], call: UserCall) -> Query:
    """The keys, and the columns that an aggregate gives."""
    items = tuple(_item(key, "group_by()") for key in keys)
    made = Select(
        (*items, SelectItem(tree_of(call), "f0")),
        DerivedTable(query),
        group_by=tuple(
            GroupingElement("EXPRESSION", ((_tree(key, "group_by()"),),)) for key in keys
        ),
    )
    result, value = call.of.result, Identifier(("f0",))
    if isinstance(result, RowType):
        names = call.columns or result.names
        parts = [SelectItem(FieldAccess(value, old), new) for old, new in zip(result.names, names)]
    else:
        parts = [SelectItem(value, (*call.columns, "f0")[0])]
    named = [_expression(key, "group_by()").name for key in keys]
    if None in named:
        raise ProgramError("group_by(): give an expression a name with alias() before aggregate()")
    grouped_by = [SelectItem(Identifier((str(name),))) for name in named]
    return Select((*grouped_by, *parts), DerivedTable(made))


def flat_aggregated(query: Query, keys: Sequence[object], call: UserCall) -> Query:
    """The keys with each row that a table aggregate gives: an aggregate whose value is the array of
    its rows, and UNNEST over that."""
    result = call.of.result
    assert isinstance(result, ArrayType), "udtaf() says so"
    assert isinstance(result.element, RowType), "udtaf() says so"
    arrays = aggregated(query, keys, UserCall(call.of, call.arguments))
    names = call.columns or tuple(result.element.names)
    rows = UnnestItem(Identifier(("f0",)), alias="f", columns=names)
    items = [SelectItem(Identifier((str(_expression(key, "group_by()").name),))) for key in keys]
    items += [SelectItem(Identifier(("f", name)), name) for name in names]
    return Select(tuple(items), JoinItem(DerivedTable(arrays), rows, "CROSS"))


def combined(left: Query, right: Query, kind: str, keeps_all: bool) -> Query:
    """UNION, INTERSECT or EXCEPT (MINUS), with or without ALL."""
    return SetOperation(kind, keeps_all, left, right)


def ordered(query: Query, keys: Sequence[object]) -> Query:
    """``ORDER BY keys``."""
    items = tuple(_order(_expression(key, "order_by()")) for key in keys)
    return Select(_STAR, DerivedTable(query), order_by=items)


def _order(key: Expression) -> OrderItem:
    if isinstance(key, Call) and key.function in ("asc", "desc"):
        return OrderItem(tree_of(key.arguments[0]), key.function == "desc")
    return OrderItem(tree_of(key))


def limited(query: Query, offset: int | None, fetch: int | None) -> Query:
    """``OFFSET n`` or ``LIMIT n``; behind ``order_by`` of the rows in this order."""
    is_open = isinstance(query, Select) and bool(query.order_by) and query.limit is None
    if not is_open or (offset is not None and query.offset is not None):
        query = Select(_STAR, DerivedTable(query))
    if offset is not None:
        query = replace(query, offset=constant(offset))
    return query if fetch is None else replace(query, limit=constant(fetch))


def renamed(query: Query, names: Sequence[str], new_names: Sequence[str]) -> Query:
    """All columns, in their order, under other names."""
    items = tuple(
        SelectItem(tree_of(col(name)), new_name) for name, new_name in zip(names, new_names)
    )
    return Select(items, DerivedTable(query))


def added(query: Query, names: Sequence[str], columns: Sequence[object], replaces: bool) -> Query:
    """All columns and further ones; one of the same name is replaced, if that may be."""
    made = {_named(each, "add_columns()"): each for each in columns}
    doubled = [name for name in made if name in names]
    if doubled and not replaces:
        raise ProgramError(
            f"the table has a column {doubled[0]!r} already: add_or_replace_columns() replaces it"
        )
    items = [made.pop(name, col(name)) for name in names]
    return selected(query, [*items, *made.values()])


def dropped(query: Query, names: Sequence[str], columns: Sequence[object]) -> Query:
    """All columns but these."""
    gone = [_named(each, "drop_columns()") for each in columns]
    require_columns(gone, names)
    return selected(query, [col(name) for name in names if name not in gone])


def require_columns(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raises ProgramError for a column that is not there."""
    for name in wanted:
        if name not in names:
            raise ProgramError(f"the table has no column {name!r}{did_you_mean(name, names)}")


def _item(value: object, call: str) -> SelectItem:
    expression = _expression(value, call)
    alias = expression.name if isinstance(expression, Alias) else None
    return SelectItem(tree_of(expression), alias)


def _tree(value: object, call: str) -> SqlExpression:
    return tree_of(_expression(value, call))


def _named(value: object, call: str) -> str:
    name = _expression(value, call).name
    if name is None:
        raise ProgramError(f"{call}: {value!r:.80} has no name: give it one with alias()")
    return name


def _expression(value: object, call: str) -> Expression:
    if isinstance(value, Expression):
        return value
    raise ProgramError(
        f"{call} takes expressions such as col('a') + 1, this is {value!r:.80}"
        + (f"; write col({value!r})" if isinstance(value, str) else "")
    )
