"""Expressions and queries as they were written. No name has a meaning yet and nothing has a type.

Operators are calls too: ``a + b`` is the call of ``+``, ``a IS NOT NULL`` of ``IS NOT NULL``,
``a NOT BETWEEN b AND c`` of ``NOT BETWEEN``. Their names are those of Flink's functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.sql_errors import NOWHERE, Span


@dataclass(frozen=True)
class SqlNode:
    """Anything with a place in the text. Places do not count when trees are compared."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)


@dataclass(frozen=True)
class SqlExpression(SqlNode):
    """Something that has a value."""


@dataclass(frozen=True)
class Identifier(SqlExpression):
    """A name with dots: of a column, a part of one, or a table. Case counts."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class StarItem(SqlExpression):
    """``*`` or ``t.*``."""

    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True)
class SqlLiteral(SqlExpression):
    """A constant. ``value`` is Python's: int, Decimal (1.5), float (1e0), str, bytes, bool, None,
    date, time, datetime; months as int, milliseconds as int for intervals. ``type`` is Flink's for
    it; a NULL has NullType."""

    value: object
    type: LogicalType


@dataclass(frozen=True)
class OverWindow(SqlNode):
    """``OVER (PARTITION BY ... ORDER BY ... ROWS BETWEEN ...)``. ``unit`` is ROWS or RANGE, None
    where no frame was written."""

    partition_by: tuple[SqlExpression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    unit: str | None = None
    lower: FrameBound | None = None
    upper: FrameBound | None = None


@dataclass(frozen=True)
class FrameBound(SqlNode):
    """``kind`` is UNBOUNDED PRECEDING, PRECEDING, CURRENT ROW, FOLLOWING or UNBOUNDED FOLLOWING;
    ``offset`` belongs to PRECEDING and FOLLOWING."""

    kind: str
    offset: SqlExpression | None = None


# Functions that are called without parentheses, so that their name is that of a column too.
WITHOUT_PARENTHESES = frozenset(
    ["CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"]
)


@dataclass(frozen=True)
class FunctionCall(SqlExpression):
    """A function or an operator with its arguments. ``name`` is in capital letters for what SQL
    defines and as written for names with dots. ``names`` has the names of arguments that were
    given by name (``f(size => 3)``), None for the others; empty if none was.

    Signs are ``- (unary)`` and ``+ (unary)``; LIKE and SIMILAR TO have ESCAPE as third argument;
    OVERLAPS has four arguments, the two of each pair. COUNT(*) has a StarItem.

    ``options`` are words of the call that are no values:

    - ``unit`` of EXTRACT(x), FLOOR(x), CEIL(x), TIMESTAMPADD(n, x), TIMESTAMPDIFF(x, y), and of
      ``(x - y) DAY``: MONTH or SECOND
    - ``side`` of TRIM(text[, characters]): BOTH, LEADING, TRAILING
    - ``symmetric`` (True) of BETWEEN
    - ``kind`` of IS JSON: VALUE, OBJECT, ARRAY, SCALAR
    - ``returning`` (a type), ``wrapper`` (WITHOUT, CONDITIONAL, UNCONDITIONAL), ``on_null``,
      ``on_empty``, ``on_error`` of JSON functions: a word, or the expression of DEFAULT"""

    name: str
    arguments: tuple[SqlExpression, ...] = ()
    names: tuple[str | None, ...] = ()
    options: tuple[tuple[str, object], ...] = ()
    distinct: bool = False
    filter: SqlExpression | None = None
    order_by: tuple[OrderItem, ...] = ()
    nulls: str | None = None  # IGNORE or RESPECT
    over: OverWindow | str | None = None  # a str names one of the WINDOW clause
    function: object | None = None  # of the program, where it is not called by a name


@dataclass(frozen=True)
class CastCall(SqlExpression):
    """``CAST(value AS type)``, or TRY_CAST."""

    value: SqlExpression
    type: LogicalType
    is_try: bool = False


@dataclass(frozen=True)
class CaseCall(SqlExpression):
    """``CASE [operand] WHEN ... THEN ... ELSE ... END``. Several values of one WHEN are several
    branches."""

    operand: SqlExpression | None
    branches: tuple[tuple[SqlExpression, SqlExpression], ...]
    otherwise: SqlExpression | None


@dataclass(frozen=True)
class FieldAccess(SqlExpression):
    """``expression.name``: a part of a row that an expression gives."""

    value: SqlExpression
    name: str


@dataclass(frozen=True)
class ElementAccess(SqlExpression):
    """``expression[index]``: of an array from 1, of a map by key."""

    value: SqlExpression
    index: SqlExpression


@dataclass(frozen=True)
class ArrayConstructor(SqlExpression):
    """``ARRAY[...]``."""

    elements: tuple[SqlExpression, ...]


@dataclass(frozen=True)
class MapConstructor(SqlExpression):
    """``MAP[key, value, ...]``."""

    entries: tuple[tuple[SqlExpression, SqlExpression], ...]


@dataclass(frozen=True)
class RowConstructor(SqlExpression):
    """``ROW(...)`` or ``(a, b)``."""

    values: tuple[SqlExpression, ...]


@dataclass(frozen=True)
class ScalarSubquery(SqlExpression):
    """A query in parentheses, where a value stands."""

    query: Query


@dataclass(frozen=True)
class ArraySubquery(SqlExpression):
    """``ARRAY(SELECT ...)`` and ``MULTISET(SELECT ...)``; ``kind`` is ARRAY or MULTISET."""

    kind: str
    query: Query


@dataclass(frozen=True)
class ExistsSubquery(SqlExpression):
    """``EXISTS (SELECT ...)``."""

    query: Query


@dataclass(frozen=True)
class InSubquery(SqlExpression):
    """``value [NOT] IN (SELECT ...)``."""

    value: SqlExpression
    query: Query
    negated: bool = False


@dataclass(frozen=True)
class QuantifiedComparison(SqlExpression):
    """``value < ALL (SELECT ...)``; ``quantifier`` is ANY or ALL."""

    value: SqlExpression
    operator: str
    quantifier: str
    query: Query


@dataclass(frozen=True)
class DynamicParameter(SqlExpression):
    """``?``: only procedures of clients write it; binding refuses it."""


@dataclass(frozen=True)
class TableArgument(SqlExpression):
    """``TABLE t`` or a query as an argument of a table function, with PARTITION BY and ORDER BY."""

    table: Identifier | Query
    partition_by: tuple[SqlExpression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()


@dataclass(frozen=True)
class DescriptorArgument(SqlExpression):
    """``DESCRIPTOR(column, ...)``."""

    columns: tuple[Identifier, ...]


# -- queries ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OrderItem(SqlNode):
    """``nulls_first`` is None where the text leaves it open."""

    value: SqlExpression
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class SelectItem(SqlNode):
    """An expression of the SELECT list, and the name it was given."""

    value: SqlExpression
    alias: str | None = None


@dataclass(frozen=True)
class Hint(SqlNode):
    """``/*+ NAME(argument, 'key'='value') */``."""

    name: str
    arguments: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


# -- what stands behind FROM -----------------------------------------------------------------------


@dataclass(frozen=True)
class FromItem(SqlNode):
    """A relation; ``alias`` and ``columns`` are the names it was given."""

    alias: str | None = field(default=None, kw_only=True)
    columns: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class TableReference(FromItem):
    """A table or view by name, with its hints and ``FOR SYSTEM_TIME AS OF``."""

    name: Identifier
    hints: tuple[Hint, ...] = ()
    as_of: SqlExpression | None = None
    match: SqlNode | None = None  # MATCH_RECOGNIZE


@dataclass(frozen=True)
class DerivedTable(FromItem):
    """A query in parentheses. ``lateral``: it may name columns of the relations before it."""

    query: Query
    lateral: bool = False


@dataclass(frozen=True)
class TableFunctionCall(FromItem):
    """``TABLE(f(...))``, ``LATERAL TABLE(f(...))`` or a window function as a relation."""

    call: FunctionCall
    lateral: bool = False


@dataclass(frozen=True)
class UnnestItem(FromItem):
    """``UNNEST(expression) [WITH ORDINALITY]``."""

    value: SqlExpression
    with_ordinality: bool = False


@dataclass(frozen=True)
class JoinItem(FromItem):
    """Two relations. ``kind`` is INNER, LEFT, RIGHT, FULL or CROSS (a comma is CROSS); either
    ``condition`` or ``using`` or ``natural`` says how rows meet."""

    left: FromItem
    right: FromItem
    kind: str = "INNER"
    condition: SqlExpression | None = None
    using: tuple[Identifier, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class CommonTable(SqlNode):
    """One name of a WITH clause."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class GroupingElement(SqlNode):
    """One element of GROUP BY: ``kind`` is EXPRESSION, SETS, CUBE or ROLLUP; an EXPRESSION has one
    set with one expression."""

    kind: str
    sets: tuple[tuple[SqlExpression, ...], ...]


@dataclass(frozen=True)
class Query(SqlNode):
    """Something that has rows. ORDER BY, OFFSET and LIMIT belong to every query."""

    common_tables: tuple[CommonTable, ...] = field(default=(), kw_only=True)
    order_by: tuple[OrderItem, ...] = field(default=(), kw_only=True)
    offset: SqlExpression | None = field(default=None, kw_only=True)
    limit: SqlExpression | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Select(Query):
    """``SELECT ... FROM ... WHERE ...``. ``source`` is None without FROM."""

    items: tuple[SelectItem, ...]
    source: FromItem | None = None
    distinct: bool = False
    hints: tuple[Hint, ...] = ()
    where: SqlExpression | None = None
    group_by: tuple[GroupingElement, ...] | None = None
    having: SqlExpression | None = None
    qualify: SqlExpression | None = None
    windows: tuple[tuple[str, OverWindow], ...] = ()


@dataclass(frozen=True)
class ValuesQuery(Query):
    """``VALUES (1, 'a'), (2, 'b')``."""

    rows: tuple[tuple[SqlExpression, ...], ...]


@dataclass(frozen=True)
class SetOperation(Query):
    """``kind`` is UNION, INTERSECT or EXCEPT; ``keeps_all`` is ALL."""

    kind: str
    keeps_all: bool
    left: Query
    right: Query
