"""What functions of tables are derived from, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from flinkpy.metrics.metricbase import MetricGroup
    from flinkpy.operators.functions import RuntimeContext

T = TypeVar("T")
ACC = TypeVar("ACC")


class FunctionContext:
    """Where a function of a table runs; ``open`` gets it."""

    def __init__(self, runtime_context: RuntimeContext) -> None:
        self._context = runtime_context

    def get_metric_group(self) -> MetricGroup:
        """Metrics of the function's own."""
        return self._context.get_metrics_group()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A value of the job's configuration."""
        return str(self._context.get_job_parameter(key, default_value))

    def get_task_name(self) -> str:
        """The name of the task."""
        return self._context.get_task_name()

    def get_task_name_with_subtasks(self) -> str:
        """The task's name with the subtask's number and the attempt."""
        return self._context.get_task_name_with_subtasks()

    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""
        return self._context.get_number_of_parallel_subtasks()

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups."""
        return self._context.get_max_number_of_parallel_subtasks()

    def get_index_of_this_subtask(self) -> int:
        """The index of this subtask, from 0."""
        return self._context.get_index_of_this_subtask()

    def get_attempt_number(self) -> int:
        """The number of this attempt; 0 for the first."""
        return self._context.get_attempt_number()


class UserDefinedFunction(ABC):  # noqa: B024 - what is abstract has another name in each
    """What all functions of tables have: a life in each subtask."""

    def open(self, function_context: FunctionContext) -> None:
        """Called once in each subtask, before the first row."""

    def close(self) -> None:
        """Called once in each subtask, at its end."""

    def is_deterministic(self) -> bool:
        """Whether equal arguments give equal results. Others are called once for each row."""
        return True


class ScalarFunction(UserDefinedFunction):
    """One value for each row.

    >>> class Discount(ScalarFunction):
    ...     def open(self, function_context):
    ...         self.rate = float(function_context.get_job_parameter("rate", "0.1"))
    ...
    ...     def eval(self, price):
    ...         return price * (1 - self.rate)
    """

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The value for these arguments. NULL is None."""


class AsyncScalarFunction(UserDefinedFunction):
    """One value for each row, which a coroutine gives: rows wait for it together.

    >>> class Population(AsyncScalarFunction):
    ...     async def eval(self, city):
    ...         return await ask_a_service(city)
    """

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The value for these arguments."""


class TableFunction(UserDefinedFunction):
    """Any number of rows for each row.

    >>> class Words(TableFunction):
    ...     def eval(self, text):
    ...         for word in text.split():
    ...             yield word, len(word)
    """

    @abstractmethod
    def eval(self, *args: Any) -> Iterable[Any] | None:
        """The rows for these arguments: tuples or Rows; plain values if they have one column."""


class ImperativeAggregateFunction(UserDefinedFunction, Generic[T, ACC]):
    """What aggregates of rows have in common."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """An accumulator of no rows: any object that can be pickled and changed, a list or a
        Row."""

    @abstractmethod
    def accumulate(self, accumulator: ACC, *args: Any) -> None:
        """Adds a row to the accumulator."""

    def retract(self, accumulator: ACC, *args: Any) -> None:
        """Takes a row out of it again; needed where rows change."""
        raise RuntimeError(f"{type(self).__name__} has no retract()")

    def merge(self, accumulator: ACC, accumulators: Iterable[ACC]) -> None:
        """Adds other accumulators to this one; needed by windows that are made of parts."""
        raise RuntimeError(f"{type(self).__name__} has no merge()")

    def get_result_type(self) -> Any:
        """The type of the result, if ``udaf`` does not say it."""
        raise RuntimeError(f"{type(self).__name__} has no get_result_type()")

    def get_accumulator_type(self) -> Any:
        """Not asked for: an accumulator may be any object."""
        raise RuntimeError(f"{type(self).__name__} has no get_accumulator_type()")


class AggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """One value for many rows.

    >>> class Longest(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return [""]
    ...
    ...     def accumulate(self, accumulator, text):
    ...         accumulator[0] = max(accumulator[0], text, key=len)
    ...
    ...     def get_value(self, accumulator):
    ...         return accumulator[0]
    """

    @abstractmethod
    def get_value(self, accumulator: ACC) -> T:
        """The result."""


class TableAggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Any number of rows for many rows.

    >>> class TopTwo(TableAggregateFunction):
    ...     def create_accumulator(self):
    ...         return []
    ...
    ...     def accumulate(self, accumulator, value):
    ...         accumulator.append(value)
    ...
    ...     def retract(self, accumulator, value):
    ...         accumulator.remove(value)
    ...
    ...     def emit_value(self, accumulator):
    ...         yield from sorted(accumulator, reverse=True)[:2]
    """

    @abstractmethod
    def emit_value(self, accumulator: ACC) -> Iterable[T]:
        """The rows: tuples or Rows; plain values if they have one column."""
