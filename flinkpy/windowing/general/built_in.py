"""The built-in aggregates as functions, for the general window operator."""

from __future__ import annotations

from typing import Any

from flinkpy.aggregates.of_records import FieldAggregate
from flinkpy.operators.functions import AggregateFunction, ReduceFunction


class FieldReduce(ReduceFunction):
    """An aggregate of a field.

    >>> FieldReduce("sum", 1).reduce(("a", 1), ("b", 2)), FieldReduce("max_by", 1).reduce(("a", 1), ("b", 2)), FieldReduce("min", None).reduce(3, 2)
    (('a', 3), ('b', 2), 2)
    """

    def __init__(self, kind: str, position: int | str | None) -> None:
        self._aggregate = FieldAggregate(kind, position)

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._aggregate.update(value1, value2)


class CountRecords(AggregateFunction):
    """How many records there are."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b
