"""Makes expressions: ``col``, ``lit``, and the functions of several expressions, under PyFlink's
names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flinkpy.columns.expression import (
    Call,
    Column,
    Expression,
    Literal,
    as_expression,
    refuse_aggregates,
)
from flinkpy.columns.methods.expression_base import text
from flinkpy.columns.time_formats import check_readable, pieces_of
from flinkpy.columns.units import BETWEEN, TimePointUnit, unit_name
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.core.errors import ProgramError

__all__ = [
    "and_",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "date_format",
    "greatest",
    "if_then_else",
    "least",
    "lit",
    "not_",
    "null_of",
    "or_",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "when",
]


def col(name: str) -> Expression:
    """A column by name. Raises ProgramError unless the name is text and not empty.

    >>> col("price") > 100
    (col('price') > 100)
    """
    if not isinstance(name, str) or not name:
        raise ProgramError(f"col() takes a column's name, this is {name!r:.80}")
    return Column(name)


def lit(value: object, data_type: LogicalType | TypeInformation | None = None) -> Expression:
    """A constant. Raises ProgramError for a value that cannot be one.

    >>> lit(60) - col("delay")
    (60 - col('delay'))
    """
    return Literal(value, data_type)


def null_of(data_type: LogicalType | TypeInformation) -> Expression:
    """A null of that type.

    >>> from flinkpy.common.typeinfo import Types
    >>> coalesce(col("delay"), null_of(Types.LONG()))
    col('delay').coalesce(None)
    """
    return Literal(None, data_type)


def and_(predicate0: object, predicate1: object, *predicates: Any) -> Expression:
    """Whether all are true.

    >>> and_(col("late"), col("full"))
    (col('late') & col('full'))
    """
    return _joined("&", (predicate0, predicate1, *predicates))


def or_(predicate0: object, predicate1: object, *predicates: Any) -> Expression:
    """Whether at least one is true.

    >>> or_(col("late"), col("full"))
    (col('late') | col('full'))
    """
    return _joined("|", (predicate0, predicate1, *predicates))


def not_(expression: object) -> Expression:
    """True where the expression is false; null stays null.

    >>> not_(col("late"))
    ~col('late')
    """
    return ~as_expression(expression)


def if_then_else(condition: object, if_true: object, if_false: object) -> Expression:
    """``if_true`` where the condition is true, ``if_false`` where it is false or null.

    >>> if_then_else(col("delay") > 15, "late", "in time")
    (col('delay') > 15).then('late', 'in time')
    """
    return as_expression(condition).then(if_true, if_false)


def coalesce(first: object, *more: Any) -> Expression:
    """The first value that is not null.

    >>> coalesce(col("nickname"), col("name"))
    col('nickname').coalesce(col('name'))
    """
    return Call("coalesce", tuple(map(as_expression, (first, *more))))


def concat(first: object, *more: Any) -> Expression:
    """The texts joined; null if one of them is null.

    >>> concat(col("carrier"), "-", col("flight"))
    col('carrier').concat('-', col('flight'))
    """
    return Call("concat", tuple(map(as_expression, (first, *more))))


def concat_ws(separator: str, first: object, *more: Any) -> Expression:
    """The texts joined with a separator; nulls are left out.

    >>> concat_ws(", ", col("name"), col("city"))
    col('name').concat_ws(col('city'), ', ')
    """
    if not isinstance(separator, str):
        raise ProgramError(f"concat_ws() takes a text as separator, this is {separator!r:.80}")
    return Call("concat_ws", tuple(map(as_expression, (first, *more))), (("separator", separator),))


def greatest(first: object, *more: Any) -> Expression:
    """The greatest of these values, of which NaN is the greatest; null if one of them is null.

    >>> greatest(col("bid"), col("ask"), 0)
    greatest(col('bid'), col('ask'), 0)
    """
    return Call("greatest", tuple(map(as_expression, (first, *more))))


def least(first: object, *more: Any) -> Expression:
    """The least of these values; null if one of them is null.

    >>> least(col("bid"), col("ask"))
    least(col('bid'), col('ask'))
    """
    return Call("least", tuple(map(as_expression, (first, *more))))


# -- dates and times -------------------------------------------------------------------------------


def to_timestamp(timestamp_str: object, format: str = "yyyy-MM-dd HH:mm:ss") -> Expression:
    """The timestamp that a text shows in this format; null, as in Flink, for text of another form
    and for days and times that do not exist.

    A format has Java's letters, as in Flink, or Python's directives.

    >>> to_timestamp(col("at"), "dd.MM.yyyy HH:mm"), to_timestamp(col("at"), "%d.%m.%Y %H:%M")
    (to_timestamp(col('at'), 'dd.MM.yyyy HH:mm'), to_timestamp(col('at'), '%d.%m.%Y %H:%M'))
    """
    return _read(timestamp_str, format, "timestamp")


def to_date(date_str: object, format: str = "yyyy-MM-dd") -> Expression:
    """The date that a text shows in this format; null for other texts, as with
    :func:`to_timestamp`.

    >>> to_date(col("day"), "d/M/yyyy")
    to_date(col('day'), 'd/M/yyyy')
    """
    return _read(date_str, format, "date")


def _read(value: object, format: object, to: str) -> Expression:
    check_readable(text(format, f"to_{to}()"), f"to_{to}()")
    return as_expression(value)._call("read_moment", format=format, to=to)


def to_timestamp_ltz(numeric_epoch: object, precision: int = 3) -> Expression:
    """The instant so many milliseconds, or with ``precision`` 0 seconds, after 1970, in UTC.

    >>> to_timestamp_ltz(col("ms"))
    col('ms').cast(Types.INSTANT())
    """
    if precision not in (0, 3) or isinstance(precision, bool):
        raise ProgramError(
            "to_timestamp_ltz() counts seconds (precision 0) or milliseconds (3), this is "
            f"{precision!r:.80}"
        )
    number = as_expression(numeric_epoch)
    return (number if precision else number * 1000).cast(Types.INSTANT())


def date_format(timestamp: object, format: str) -> Expression:
    """A date or timestamp as text in this format, which :func:`to_timestamp` reads; a timestamp
    with a zone is shown in its local time.

    >>> date_format(col("at"), "yyyy-MM-dd'T'HH:mm")
    date_format(col('at'), "yyyy-MM-dd'T'HH:mm")
    """
    pieces_of(text(format, "date_format()"))
    return as_expression(timestamp)._call("date_format", format=format)


def timestamp_diff(
    time_point_unit: TimePointUnit | str, time_point1: object, time_point2: object
) -> Expression:
    """The number of whole units from the first to the second date or timestamp; negative if the
    second is earlier.

    >>> timestamp_diff(TimePointUnit.DAY, col("ordered"), col("delivered"))
    timestamp_diff(col('ordered'), col('delivered'), 'day')
    """
    return Call(
        "timestamp_diff",
        (as_expression(time_point1), as_expression(time_point2)),
        (("unit", unit_name(time_point_unit, BETWEEN, "timestamp_diff()")),),
    )


# -- cases -----------------------------------------------------------------------------------------


def when(condition: object) -> When:
    """The first of several cases whose condition is true:
    ``when(...).then(...).when(...).then(...).otherwise(...)``.

    >>> when(col("n") > 9).then("many").when(col("n") > 0).then("some").otherwise("none")
    (col('n') > 9).then('many', (col('n') > 0).then('some', 'none'))
    """
    return When((), as_expression(condition))


class When:
    """A condition that waits for its value."""

    def __init__(
        self, cases: tuple[tuple[Expression, Expression], ...], condition: Expression
    ) -> None:
        self._cases, self._condition = cases, condition

    def then(self, value: object) -> Then:
        """The value where the condition is true, and none before it is."""
        return Then((*self._cases, (self._condition, as_expression(value))))


class Then(Call):
    """Cases that may be followed by another one. Rows that are none of them are null, unless
    ``otherwise`` says more."""

    __slots__ = ("_cases",)

    def __init__(self, cases: tuple[tuple[Expression, Expression], ...]) -> None:
        self._cases = cases
        chosen = _chosen(cases, Literal(None))
        super().__init__(chosen.function, chosen.arguments)

    def when(self, condition: object) -> When:
        """Another case, for rows of which no condition before is true."""
        return When(self._cases, as_expression(condition))

    def otherwise(self, value: object) -> Expression:
        """The value of all other rows."""
        return _chosen(self._cases, as_expression(value))


def _chosen(cases: tuple[tuple[Expression, Expression], ...], otherwise: Expression) -> Call:
    *earlier, (condition, value) = cases
    chosen = Call("then", (condition, value, otherwise))
    for condition, value in reversed(earlier):
        chosen = Call("then", (condition, value, chosen))
    return chosen


def _joined(function: str, parts: Sequence[Any]) -> Expression:
    """All of them in pairs, and pairs of pairs, so that many are not nested deep."""
    joined = list(map(as_expression, parts))
    while len(joined) > 1:
        joined = [
            Call(function, tuple(joined[at : at + 2])) if at + 1 < len(joined) else joined[at]
            for at in range(0, len(joined), 2)
        ]
    return joined[0]


# -- lists of expressions, as select takes them ----------------------------------------------------


def named(expressions: Iterable[Any], where: str) -> tuple[tuple[str, Expression], ...]:
    """The expressions with their names. Raises ProgramError for an expression without a name, and
    for two with the same."""
    found: list[tuple[str, Expression]] = []
    for each in expressions:
        expression = Column(each) if isinstance(each, str) else each
        if not isinstance(expression, Expression):
            raise ProgramError(
                f"{where} takes names of columns and expressions, this is {each!r:.80}"
            )
        refuse_aggregates(expression, where)
        if expression.name is None:
            raise ProgramError(
                f'{where}: {expression!r} has no name; give it one with .alias("name")'
            )
        found.append((expression.name, expression))
    refuse_doubles([name for name, _ in found], where)
    return tuple(found)


def refuse_doubles(names: list[str], where: str) -> None:
    """Raises ProgramError if two columns would have one name."""
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ProgramError(
            f"{where}: two columns would be called {doubled[0]!r}; tell them apart with "
            '.alias("name")'
        )
