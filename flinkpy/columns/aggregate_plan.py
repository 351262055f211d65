"""What ``aggregate(...)`` computes: the aggregates, and the expressions over their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flinkpy.columns.expression import Aggregate, Alias, Call, Column, Expression, columns_of
from flinkpy.columns.expression_functions import refuse_doubles
from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate and the name of its result column."""

    kind: str
    expression: Expression
    name: str
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class AggregatePlan:
    """``results``: the columns to make of the keys and the aggregates afterwards; None if the
    aggregates themselves are the results."""

    calls: tuple[AggregateCall, ...]
    results: tuple[tuple[str, Expression], ...] | None

    @property
    def names(self) -> list[str]:
        """The names of the results."""
        return (
            [call.name for call in self.calls]
            if self.results is None
            else [name for name, _ in self.results]
        )


def plan_aggregates(expressions: Iterable[Any], keys: Sequence[str], where: str) -> AggregatePlan:
    """The plan for these expressions, which consist of aggregates, constants and key columns, and
    have at least one of the first or the last. The name of a result is its alias, or ``delay_avg``
    for ``col("delay").avg``. Raises ProgramError for other expressions, and for repeated names."""
    listed = list(expressions)
    if all(isinstance(_without_alias(each), Aggregate) for each in listed):
        return AggregatePlan(aggregate_calls(listed, where), None)
    inner = _Inner(keys, where)
    results = tuple(
        (name, inner.without_aggregates(_without_alias(each)))
        for each, name in _with_names(listed, where, keys)
    )
    return AggregatePlan(tuple(inner.calls), results)


def aggregate_calls(aggregates: Iterable[Any], where: str) -> tuple[AggregateCall, ...]:
    """The plain aggregates with their names. Raises ProgramError for two with the same name."""
    return tuple(_call(_without_alias(each), name) for each, name in _with_names(aggregates, where))


def _with_names(
    expressions: Iterable[Any], where: str, keys: Sequence[str] = ()
) -> list[tuple[Expression, str]]:
    found = [(each, _name(each, where, keys)) for each in expressions]
    refuse_doubles([name for _, name in found], where)
    return found


def _without_alias(expression: object) -> Any:
    return expression.expression if isinstance(expression, Alias) else expression


def _call(aggregate: Aggregate, name: str) -> AggregateCall:
    return AggregateCall(aggregate.kind, aggregate.expression, name, aggregate.options)


def _name(each: object, where: str, keys: Sequence[str]) -> str:
    if not isinstance(each, Expression) or not (
        _has_aggregate(each) or columns_of(each).intersection(keys)
    ):
        raise ProgramError(
            f'{where} takes aggregates such as col("delay").avg.alias("mean_delay"), this is '
            f"{each!r:.100}"
        )
    if isinstance(each, Alias):
        return each.name
    if isinstance(each, Aggregate) and each.expression.name is not None:
        return f"{each.expression.name}_{each.kind}"
    raise ProgramError(f'{where}: {each!r} has no name; give it one with .alias("name")')


def _has_aggregate(expression: Expression) -> bool:
    return isinstance(expression, Aggregate) or any(map(_has_aggregate, expression.inputs))


class _Inner:
    """Gathers the aggregates inside expressions, under names that no column of the user has."""

    def __init__(self, keys: Sequence[str], where: str) -> None:
        self.calls: list[AggregateCall] = []
        self._keys, self._where = keys, where

    def without_aggregates(self, expression: Expression) -> Expression:
        """The expression with columns in the place of its aggregates."""
        if isinstance(expression, Aggregate):
            self.calls.append(_call(expression, f"{len(self.calls)} {expression!r}"))
            return Column(self.calls[-1].name)
        if isinstance(expression, Call):
            return Call(
                expression.function,
                tuple(map(self.without_aggregates, expression.arguments)),
                expression.options,
            )
        if isinstance(expression, Alias):
            return Alias(self.without_aggregates(expression.expression), expression.name)
        if isinstance(expression, Column) and expression.column not in self._keys:
            raise ProgramError(
                f"{self._where}: {expression!r} stands beside aggregates, and is no key; make "
                "it a key, or take its first_value, max "
                "or another aggregate"
            )
        return expression
