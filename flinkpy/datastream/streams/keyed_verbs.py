"""KeyedStream: a stream whose records of one key meet in one subtask."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.common.typeinfo import BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import check_function, check_process_function, check_type, located, refuse
from flinkpy.datastream.data_stream import DataStream
from flinkpy.datastream.joined.window_joins import IntervalJoins
from flinkpy.datastream.streams.column_verbs import KeyedColumnarOperations
from flinkpy.datastream.typed.typed_functions import declared, typed
from flinkpy.datastream.windowed.window_verbs import KeyedWindows
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.graph.transformations import Transformation
from flinkpy.operators.process.process_operators import KeyedProcessOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.operators.rows.keyed_stages import KeyedFilterOperator, KeyedFlatMapOperator, KeyedMapOperator

if TYPE_CHECKING:
    from flinkpy.datastream.stream_execution_environment import StreamExecutionEnvironment

_NUMERIC = frozenset({"BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BIG_INT", "BIG_DEC"})


class KeyedStream(KeyedWindows, KeyedColumnarOperations, IntervalJoins, DataStream):
    """Given by ``key_by``. A function object may keep state per key: ``runtime_context.get_state(...)`` in its ``open``.

    >>> sales.key_by(lambda sale: sale[0]).sum(1)  # doctest: +SKIP
    """

    class AccumulateType(Enum):
        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation, key: KeySpec, origin: DataStream, *, columnar: bool = False,
                 schema: Any = None) -> None:
        super().__init__(env, transformation, columnar=columnar, schema=schema)
        self._key, self._origin = key, origin

    def cache(self) -> NoReturn:
        """Not for a keyed stream: cache what comes before ``key_by``."""
        raise refuse("cache() is not for a keyed stream: call it before key_by(...)")

    def _partitioned(self, partitioning: Partitioning, call: str) -> DataStream:
        """To another key, but to no subtask but that of the key (as in Flink: the key would be lost without a word)."""
        if partitioning.kind is not PartitioningKind.HASH:
            raise refuse(f"{call} is not for a keyed stream, whose records go where their keys say: call it on the stream before key_by(...), or "
                         "leave key_by(...) out")
        return super()._partitioned(partitioning, call)

    def map(self, func: Callable[[Any], Any] | f.MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record for each record. A MapFunction may keep state per key."""
        if not isinstance(func, f.Function):
            return super().map(func, output_type)
        check_function(func, f.MapFunction, "map", 1, "map()")
        output_type = check_type(output_type, "map()")
        return self._with_state("Map", KeyedMapOperator(typed(func, f.MapFunction, output_type), self._key), output_type)

    def flat_map(self, func: Callable[[Any], Any] | f.FlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of records for each record. A FlatMapFunction may keep state per key."""
        if not isinstance(func, f.Function):
            return super().flat_map(func, output_type)
        check_function(func, f.FlatMapFunction, "flat_map", 1, "flat_map()")
        output_type = check_type(output_type, "flat_map()")
        return self._with_state("FlatMap", KeyedFlatMapOperator(typed(func, f.FlatMapFunction, output_type), self._key), output_type)

    def filter(self, func: Any) -> DataStream:
        """The records for which the function, or an expression over columns, is true. A FilterFunction may keep state per key."""
        if not isinstance(func, f.Function):
            return super().filter(func)
        check_function(func, f.FilterFunction, "filter", 1, "filter()")
        return self._with_state("Filter", KeyedFilterOperator(func, self._key), self._with_rows()._transformation.output_type)

    def _with_state(self, name: str, operator: Any, output_type: TypeInformation | None) -> DataStream:
        return self._with_rows()._apply(name, operator, output_type, key=self._key)

    def reduce(self, func: Callable[[Any, Any], Any] | f.ReduceFunction) -> DataStream:
        """The running reduction of each key: every record gives the result so far, the first one itself.

        >>> pairs.key_by(lambda p: p[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))  # doctest: +SKIP
        """
        check_function(func, f.ReduceFunction, "reduce", 2, "reduce()")
        stream = self._with_rows()
        return stream._apply("Reduce", KeyedReduceOperator(func, self._key), stream._transformation.output_type, key=self._key)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The running sum of a field per key; the other fields are those of the key's first record."""
        return self._aggregate("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The running minimum of a field per key; the other fields are those of the key's first record."""
        return self._aggregate("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The running maximum of a field per key; the other fields are those of the key's first record."""
        return self._aggregate("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record with the smallest value of a field per key, so far; the first of several."""
        return self._aggregate("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record with the largest value of a field per key, so far; the first of several."""
        return self._aggregate("max_by", position_to_max_by)

    def process(self, func: f.KeyedProcessFunction, output_type: TypeInformation | None = None) -> DataStream:  # type: ignore[override]  # keyed, as in PyFlink
        """A function with a context that knows the key, and side outputs.

        >>> from flinkpy.datastream import KeyedProcessFunction
        >>> class Tag(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield ctx.get_current_key(), value
        """
        given: Any = func
        if isinstance(given, f.ProcessFunction):
            raise refuse(f"process() on a KeyedStream takes a KeyedProcessFunction; {type(func).__name__} is a ProcessFunction")
        check_process_function(func, f.KeyedProcessFunction)
        output_type = check_type(output_type, "process()")
        return self._with_rows()._apply("KeyedProcess", declared(KeyedProcessOperator(func, self._key), output_type), output_type, key=self._key)

    def key_by(self, key_selector: Any, *more: Any, key_type: TypeInformation | None = None) -> KeyedStream:
        """By another key: the first is forgotten."""
        return self._origin.key_by(key_selector, *more, key_type=key_type)

    def _aggregate(self, kind: str, position: Any) -> DataStream:
        name = {"min_by": "MinBy", "max_by": "MaxBy"}.get(kind, kind.capitalize())
        position = self._position(kind, position)
        if self._columnar and kind in ("sum", "min", "max"):
            return self._running_columns(name, kind, position)
        stream = self._with_rows()
        output_type = stream._transformation.output_type
        with located():
            operator = KeyedAggregateOperator(kind, position, self._key)
        return stream._apply(name, operator, output_type, key=self._key)

    def _position(self, kind: str, wanted: Any) -> int | str | None:
        """Checked against the declared type where there is one; None where the records are plain numbers."""
        position = _checked(kind, wanted)
        declared = self._transformation.output_type
        if isinstance(declared, RowTypeInfo) and isinstance(position, str):
            if position not in declared.field_names:
                raise refuse(f"{kind}({position!r}): the rows have no such field; they have {', '.join(declared.field_names)}")
            field = declared.field_types[declared.field_names.index(position)]
        elif isinstance(declared, (RowTypeInfo, TupleTypeInfo)) and isinstance(position, int):
            if not -len(declared.field_types) <= position < len(declared.field_types):
                raise refuse(f"{kind}({position}): the records have {len(declared.field_types)} fields, counted from 0")
            field = declared.field_types[position]
        elif isinstance(declared, TupleTypeInfo):
            raise refuse(f"{kind}({position!r}): the records are tuples of {len(declared.field_types)} fields, which have no names: say a position")
        elif isinstance(declared, BasicTypeInfo):
            return None
        else:
            return position
        if kind == "sum" and isinstance(field, BasicTypeInfo) and field.name not in _NUMERIC:
            raise refuse(f"sum({position!r}): a field of {field!r} cannot be summed")
        return position


def _checked(kind: str, position: Any) -> int | str:
    from flinkpy.columns.expression import Expression

    if isinstance(position, Expression):
        with located():
            position = position.column_name(f"{kind}()")
    if isinstance(position, bool) or not isinstance(position, (int, str)):
        raise refuse(f"{kind}() takes the position or the name of a field, this is {position!r:.80}")
    return position
