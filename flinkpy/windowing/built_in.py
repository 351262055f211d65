"""The built-in aggregates as functions, for the general window operator."""

from __future__ import annotations

from typing import Any

from flinkpy.operators.fields import field_of, with_field
from flinkpy.operators.functions import AggregateFunction, ReduceFunction


class FieldReduce(ReduceFunction):
    """``sum``, ``min`` and ``max`` replace one field of the first record; ``min_by`` and ``max_by`` give the whole record, the first of several.

    >>> FieldReduce("sum", 1).reduce(("a", 1), ("b", 2)), FieldReduce("max_by", 1).reduce(("a", 1), ("b", 2)), FieldReduce("min", None).reduce(3, 2)
    (('a', 3), ('b', 2), 2)
    """

    def __init__(self, kind: str, position: int | str | None) -> None:
        self._kind, self._position = kind, position

    def reduce(self, value1: Any, value2: Any) -> Any:
        position = self._position
        if position == 0 and not hasattr(type(value1), "__getitem__"):
            position = None  # PyFlink's default position: of plain numbers it is the number itself
        old, new = field_of(value1, position), field_of(value2, position)
        if self._kind == "sum":
            return with_field(value1, position, old + new)
        if not (new < old if self._kind.startswith("min") else new > old):
            return value1
        return value2 if self._kind.endswith("_by") else with_field(value1, position, new)


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
