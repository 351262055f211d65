"""``full_window_partition``: calls over all records of a partition, when the input has ended. The
partition is a key of a keyed stream, else what one subtask gets.

Of a keyed stream it is the window that ends with the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, Generic, TypeVar

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import check_function, check_type, refuse
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.datastream.verbs.field_keys import FieldKey
from flinkpy.datastream.verbs.typed_functions import declared
from flinkpy.datastream.windowed.window_verbs import KeyedWindows
from flinkpy.operators.functions import RuntimeContext, close_function, method_of
from flinkpy.windowing.assigners import GlobalWindows

S = TypeVar("S", bound=OperatorSettings)


class PartitionWindowedStream(Generic[S]):
    """Returned by ``full_window_partition``.

    Without keys it runs in BATCH; what its calls keep lies on disk beyond the operator's share of
    the managed memory. With keys, the records of one key must fit into memory."""

    def __init__(
        self, stream: RecordedStream, as_stream: Callable[[RecordedStream], S], *, is_keyed: bool
    ) -> None:
        self._stream = stream
        self._as_stream = as_stream
        self._is_keyed = is_keyed

    def map_partition(self, func: object, output_type: TypeInformation | None = None) -> S:
        """Calls the function once with an iterator over the records, and emits what it yields or
        returns as an iterable.

        >>> numbers.full_window_partition().map_partition(
        ...     lambda records: enumerate(records)
        ... )  # doctest: +SKIP
        """
        from flinkpy.operators.batch.full_window import Mapped

        check_function(func, f.MapPartitionFunction, "map_partition", 1, "map_partition()")
        output_type = check_type(output_type, "map_partition()")
        if self._is_keyed:
            return self._windows().apply(_MapOfKey(func), output_type)
        return self._called("MapPartition", Mapped(func), output_type)

    def sort_partition(self, key: object, *, descending: bool = False) -> S:
        """The records in the order of a field (its position or name) or of a function's result;
        equal ones stay in their order. None comes before all else, NaN behind.

        >>> sales.full_window_partition().sort_partition(1, descending=True)  # doctest: +SKIP
        """
        from flinkpy.operators.batch.full_window import Sorted

        select = _selector(key)
        if self._is_keyed:
            return self._windows().apply(
                _SortOfKey(select, descending), self._stream.as_rows().output_type
            )
        return self._called("SortPartition", Sorted(select, descending=descending), None)

    def reduce(self, func: object) -> S:
        """The records reduced to one; nothing where there are none.

        >>> numbers.full_window_partition().reduce(lambda a, b: a + b)  # doctest: +SKIP
        """
        from flinkpy.operators.batch.full_window import Reduced

        if self._is_keyed:
            return self._windows().reduce(func)
        check_function(func, f.ReduceFunction, "reduce", 2, "reduce()")
        return self._called("Reduce", Reduced(func), None)

    def aggregate(self, func: object, output_type: TypeInformation | None = None) -> S:
        """The result of an AggregateFunction; without keys there is one of each subtask, also where
        no record comes."""
        from flinkpy.operators.batch.full_window import Aggregated

        if self._is_keyed:
            return self._windows().aggregate(func, output_type=output_type)
        if isinstance(func, type) or not isinstance(func, f.AggregateFunction):
            raise refuse(f"aggregate() takes an AggregateFunction object, this is {func!r:.80}")
        return self._called("Aggregate", Aggregated(func), check_type(output_type, "aggregate()"))

    def _windows(self) -> KeyedWindows[S]:
        assigner = GlobalWindows.create_with_end_of_stream_trigger()
        return KeyedWindows(self._stream, assigner, self._as_stream)

    def _called(self, name: str, call: Any, output_type: TypeInformation | None) -> S:
        """``output_type`` is of new records; those of the stream keep theirs."""
        from flinkpy.operators.batch.full_window import FullWindowOperator, Reduced, Sorted

        rows = self._stream.as_rows()
        keeps = isinstance(call, (Reduced, Sorted))
        operator = declared(FullWindowOperator(call), output_type)
        kind = rows.output_type if keeps else output_type
        made = rows.apply(name, operator, kind)
        if keeps and isinstance(self._stream, ColumnStream):
            return self._as_stream(made.as_schema(self._stream.schema))
        return self._as_stream(made)


def _selector(key: Any) -> Any:
    if isinstance(key, bool):
        raise refuse(
            f"sort_partition() takes a field or a function, this is {key!r}; the order is "
            "sort_partition(..., descending=True)"
        )
    if isinstance(key, int):
        return itemgetter(key)
    if isinstance(key, str):
        return FieldKey((key,))
    check_function(key, f.KeySelector, "get_key", 1, "sort_partition()")
    return key


class _OfKey(f.WindowFunction):
    """A window function around a function of the program."""

    def __init__(self, function: Any) -> None:
        self.wrapped_function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.wrapped_function, f.Function):
            self.wrapped_function.open(runtime_context)

    def close(self) -> None:
        close_function(self.wrapped_function)


class _MapOfKey(_OfKey):
    def apply(self, key: object, window: object, inputs: Iterable[Any]) -> Iterable[Any]:
        call = method_of(self.wrapped_function, "map_partition")
        found: Iterable[Any] | None = call(iter(inputs))
        return () if found is None else found


class _SortOfKey(_OfKey):
    def __init__(self, function: Any, descending: bool) -> None:
        super().__init__(function)
        self._descending = descending

    def apply(self, key: object, window: object, inputs: Iterable[Any]) -> Iterator[Any]:
        from flinkpy.operators.batch.sorted_records import rank_of

        select = method_of(self.wrapped_function, "get_key")
        found = sorted(inputs, key=lambda each: rank_of(select(each)), reverse=self._descending)
        return iter(found)
