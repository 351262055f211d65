"""Makes expressions: ``col``, ``lit``, and the functions of several expressions, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flinkpy.columns.expression import Aggregate, Alias, Call, Column, Expression, Literal, as_expression, refuse_aggregates
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.errors import ProgramError

__all__ = ["and_", "coalesce", "col", "concat", "concat_ws", "if_then_else", "lit", "not_", "null_of", "or_"]


def col(name: str) -> Expression:
    """A column by name. Raises ProgramError unless the name is text and not empty.

    >>> col("price") > 100
    (col('price') > 100)
    """
    if not isinstance(name, str) or not name:
        raise ProgramError(f"col() takes a column's name, this is {name!r:.80}")
    return Column(name)


def lit(value: Any, data_type: TypeInformation | None = None) -> Expression:
    """A constant. Raises ProgramError for a value that cannot be one.

    >>> lit(60) - col("delay")
    (60 - col('delay'))
    """
    return Literal(value, data_type)


def null_of(data_type: TypeInformation) -> Expression:
    """A null of that type.

    >>> from flinkpy.common.typeinfo import Types
    >>> coalesce(col("delay"), null_of(Types.LONG()))
    col('delay').coalesce(None)
    """
    return Literal(None, data_type)


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Whether all are true.

    >>> and_(col("late"), col("full"))
    (col('late') & col('full'))
    """
    return _joined("&", (predicate0, predicate1, *predicates))


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Whether at least one is true.

    >>> or_(col("late"), col("full"))
    (col('late') | col('full'))
    """
    return _joined("|", (predicate0, predicate1, *predicates))


def not_(expression: Any) -> Expression:
    """True where the expression is false; null stays null.

    >>> not_(col("late"))
    ~col('late')
    """
    return ~as_expression(expression)


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression:
    """``if_true`` where the condition is true, ``if_false`` where it is false or null.

    >>> if_then_else(col("delay") > 15, "late", "in time")
    (col('delay') > 15).then('late', 'in time')
    """
    return as_expression(condition).then(if_true, if_false)


def coalesce(first: Any, *more: Any) -> Expression:
    """The first value that is not null.

    >>> coalesce(col("nickname"), col("name"))
    col('nickname').coalesce(col('name'))
    """
    return Call("coalesce", tuple(map(as_expression, (first, *more))))


def concat(first: Any, *more: Any) -> Expression:
    """The texts joined; null if one of them is null.

    >>> concat(col("carrier"), "-", col("flight"))
    col('carrier').concat('-', col('flight'))
    """
    return Call("concat", tuple(map(as_expression, (first, *more))))


def concat_ws(separator: str, first: Any, *more: Any) -> Expression:
    """The texts joined with a separator; nulls are left out.

    >>> concat_ws(", ", col("name"), col("city"))
    col('name').concat_ws(col('city'), ', ')
    """
    if not isinstance(separator, str):
        raise ProgramError(f"concat_ws() takes a text as separator, this is {separator!r:.80}")
    return Call("concat_ws", tuple(map(as_expression, (first, *more))), (("separator", separator),))


def _joined(function: str, parts: Sequence[Any]) -> Expression:
    joined, *rest = map(as_expression, parts)
    for each in rest:
        joined = Call(function, (joined, each))
    return joined


# -- lists of expressions, as select and aggregate take them ---------------------------------------------------------------


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate and the name of its result column."""

    kind: str
    expression: Expression
    name: str


def named(expressions: Iterable[Any], where: str) -> tuple[tuple[str, Expression], ...]:
    """The expressions with their names. Raises ProgramError for an expression without a name, and for two with the
    same."""
    found: list[tuple[str, Expression]] = []
    for each in expressions:
        expression = Column(each) if isinstance(each, str) else each
        if not isinstance(expression, Expression):
            raise ProgramError(f"{where} takes names of columns and expressions, this is {each!r:.80}")
        refuse_aggregates(expression, where)
        if expression.name is None:
            raise ProgramError(f"{where}: {expression!r} has no name; give it one with .alias(\"name\")")
        found.append((expression.name, expression))
    _refuse_doubles([name for name, _ in found], where)
    return tuple(found)


def aggregate_calls(expressions: Iterable[Any], where: str) -> tuple[AggregateCall, ...]:
    """The aggregates with their names: the alias, or ``delay_avg`` for ``col("delay").avg``. Raises ProgramError for
    other expressions and for repeated names."""
    calls = []
    for each in expressions:
        inner = each.expression if isinstance(each, Alias) else each
        if not isinstance(inner, Aggregate):
            raise ProgramError(f'{where} takes aggregates such as col("delay").avg.alias("mean_delay"), this is {each!r:.100}')
        name = each.name if isinstance(each, Alias) else None
        if name is None and inner.expression.name is None:
            raise ProgramError(f"{where}: {inner!r} has no name; give it one with .alias(\"name\")")
        calls.append(AggregateCall(inner.kind, inner.expression, name or f"{inner.expression.name}_{inner.kind}"))
    _refuse_doubles([call.name for call in calls], where)
    return tuple(calls)


def _refuse_doubles(names: list[str], where: str) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ProgramError(f"{where}: two columns would be called {doubled[0]!r}; tell them apart with .alias(\"name\")")
