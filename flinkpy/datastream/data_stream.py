"""DataStream: a stream of records, and what can be done with it. Every call records a transformation; nothing runs before ``execute``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, overload

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import PickledBytesTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import caller, check_function, check_process_function, check_strategy, check_type, located, no_such_method, refuse
from flinkpy.datastream.joined.window_joins import WindowJoins
from flinkpy.datastream.results.first_records import Interactive
from flinkpy.datastream.results.whole_results import TableResults
from flinkpy.datastream.streams.column_verbs import ColumnarOperations, common_columns, is_columnar_key, key_columns
from flinkpy.datastream.streams.field_keys import FieldKey, check_key_fields, check_key_type
from flinkpy.datastream.streams.operator_settings import OperatorSettings, copy_place
from flinkpy.datastream.typed.typed_functions import declared, typed
from flinkpy.datastream.windowed.window_verbs import AllWindows
from flinkpy.graph.partitioning import BROADCAST, FORWARD, GLOBAL, REBALANCE, RESCALE, SHUFFLE, KeySpec, Partitioning, PartitioningKind
from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)
from flinkpy.operators.functions import method_of
from flinkpy.operators.process.process_operators import ProcessOperator
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator, ProjectOperator
from flinkpy.operators.sinks.sink_context import takes_context

if TYPE_CHECKING:
    from datetime import timedelta

    from flinkpy.common.execution_config import ExecutionConfig
    from flinkpy.common.time import Duration
    from flinkpy.datastream.stream_execution_environment import StreamExecutionEnvironment
    from flinkpy.datastream.streams.iterating import IterativeStream
    from flinkpy.state.descriptors import MapStateDescriptor


class DataStream(OperatorSettings, TableResults, Interactive, AllWindows, ColumnarOperations, WindowJoins):
    """A stream of Python values, or of columns (``is_columnar``): then expressions work on whole batches, and functions get a Row per record.

    >>> from flinkpy.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> words = env.from_collection(["to be", "or not"]).flat_map(lambda line: line.split())
    >>> counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    >>> counts.get_name()
    'Reduce'
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation, *, columnar: bool = False, schema: Any = None,
                 helpers: tuple[Transformation, ...] = ()) -> None:
        self._env, self._transformation, self._columnar, self._helpers = env, transformation, columnar, helpers
        self._schema = schema  # a pyarrow.Schema, where it is known while the program is built
        self._side_types: dict[str, TypeInformation | None] = {}  # of the side outputs asked for

    @property
    def is_columnar(self) -> bool:
        """Whether column batches flow here, known when the program is built."""
        return self._columnar

    def get_type(self) -> TypeInformation:
        """The declared type of the records; PICKLED_BYTE_ARRAY where none was."""
        declared: TypeInformation | None = self._transformation.output_type
        if declared is None and self._schema is not None:
            from flinkpy.columns.arrow_types import row_type_of

            return row_type_of(self._schema)
        return Types.PICKLED_BYTE_ARRAY() if declared is None else declared

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment it was made by."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """How its program is executed."""
        return self._env.get_config()

    # -- record by record -----------------------------------------------------------------------------------------------------

    def map(self, func: Callable[[Any], Any] | f.MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record for each record.

        >>> env.from_collection([1, 2]).map(lambda x: x * 2, Types.INT())  # doctest: +SKIP
        """
        check_function(func, f.MapFunction, "map", 1, "map()")
        output_type = check_type(output_type, "map()")
        return self._with_rows()._apply("Map", MapOperator(typed(func, f.MapFunction, output_type)), output_type)

    def flat_map(self, func: Callable[[Any], Any] | f.FlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of records for each record: the function yields them or returns an iterable.

        >>> env.from_collection(["a b"]).flat_map(lambda line: line.split(), Types.STRING())  # doctest: +SKIP
        """
        check_function(func, f.FlatMapFunction, "flat_map", 1, "flat_map()")
        output_type = check_type(output_type, "flat_map()")
        return self._with_rows()._apply("FlatMap", FlatMapOperator(typed(func, f.FlatMapFunction, output_type)), output_type)

    def filter(self, func: Any) -> DataStream:
        """The records for which the function, or an expression over columns, is true.

        >>> from flinkpy.table.expressions import col
        >>> stream.filter(lambda x: x > 3); flights.filter(col("delay") > 3)  # doctest: +SKIP
        """
        if _is_expression(func):
            return self._filter_columns(func)
        check_function(func, f.FilterFunction, "filter", 1, "filter()")
        stream = self._with_rows()
        return stream._apply("Filter", FilterOperator(func), stream._transformation.output_type)

    def project(self, *field_indexes: int) -> DataStream:
        """Tuples of these fields of tuples or rows, by position.

        >>> env.from_collection([("a", 1, 2.0)]).project(2, 0)  # doctest: +SKIP
        """
        if not field_indexes or any(isinstance(at, bool) or not isinstance(at, int) or at < 0 for at in field_indexes):
            raise refuse(f"project() takes field positions from 0 on, these are {field_indexes}")
        stream = self._with_rows()
        types = stream._transformation.output_type
        output_type = None
        if isinstance(types, (TupleTypeInfo, RowTypeInfo)):
            if max(field_indexes) >= len(types.field_types):
                raise refuse(f"project({max(field_indexes)}): the records have {len(types.field_types)} fields, counted from 0")
            output_type = Types.TUPLE([types.field_types[at] for at in field_indexes])
        elif types is not None and not isinstance(types, PickledBytesTypeInfo):
            raise refuse(f"project() needs tuples or rows, this is a stream of {types!r}")
        return stream._apply("Projection", ProjectOperator(field_indexes), output_type)

    def process(self, func: f.ProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """A function with a context and side outputs.

        >>> from flinkpy.datastream import ProcessFunction
        >>> class Sort(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value if value > 0 else (OutputTag("negative"), value)
        >>> positive = stream.process(Sort()); negative = positive.get_side_output(OutputTag("negative"))  # doctest: +SKIP
        """
        given: Any = func
        if isinstance(given, f.KeyedProcessFunction):
            raise refuse(f"process(): {type(func).__name__} is a KeyedProcessFunction, and this stream has no keys: call key_by(...) before, or make "
                         "it a ProcessFunction")
        check_process_function(func, f.ProcessFunction)
        output_type = check_type(output_type, "process()")
        return self._with_rows()._apply("Process", declared(ProcessOperator(func), output_type), output_type)

    # -- event time -----------------------------------------------------------------------------------------------------------

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Where event times are found, and how watermarks are made from them. Watermarks from further up end here.

        >>> from flinkpy.common import Duration
        >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(lambda bid: bid[2])
        >>> stream.assign_timestamps_and_watermarks(strategy)  # doctest: +SKIP
        """
        from flinkpy.operators.event_time.timestamps import is_expression
        from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator

        strategy = check_strategy(watermark_strategy, "assign_timestamps_and_watermarks()")
        stream: DataStream = self._as_columns("an expression as timestamp assigner") if is_expression(strategy.timestamp_assigner) else self
        operator = TimestampsAndWatermarksOperator(strategy)
        with located():
            operator.check(stream._schema, stream._columnar)
        return stream._apply("Timestamps/Watermarks", operator, stream._transformation.output_type, columnar=stream._columnar)

    # -- several streams ------------------------------------------------------------------------------------------------------

    def union(self, *streams: DataStream) -> DataStream:
        """The records of all these streams, in no particular order among them."""
        streams = (self, *streams)
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise refuse(f"union() takes streams, this is {stream!r:.80}")
            self._refuse_stranger(stream, "union()")
        types = [stream._transformation.output_type for stream in streams]
        if len({repr(each) for each in types}) > 1 and None not in types:
            raise refuse(f"union() needs streams of one type, these have {', '.join(sorted({repr(each) for each in types}))}")
        columnar = all(stream._columnar for stream in streams)
        schema = common_columns([stream._schema for stream in streams], "union()") if columnar else None
        inputs = [(stream._with_schema(schema) if columnar else stream._with_rows(before_edge=True))._transformation for stream in streams]
        shared = types[0] if None not in types else None
        transformation = UnionTransformation(id=self._env._next_id(), name="union()", union=inputs, output_type=shared, where=caller())
        return DataStream(self._env, transformation, columnar=columnar, schema=schema)

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Two streams, of different types maybe, for one function. The second may be a BroadcastStream."""
        if isinstance(ds, BroadcastStream):
            self._refuse_stranger(ds.input_stream, "connect()")
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        if not isinstance(ds, DataStream):
            raise refuse(f"connect() takes a stream, this is {ds!r:.80}")
        self._refuse_stranger(ds, "connect()")
        return ConnectedStreams(self, ds)

    def iterate(self, max_wait_time: Duration | timedelta | int | None = None) -> IterativeStream:
        """Begins a loop, which ``close_with`` on the stream it gives closes: what comes back goes through it again.

        ``max_wait_time`` (a Duration, or milliseconds): when the input has ended and nothing is in the loop any more, so long is waited for what
        timers may still give.

        >>> iteration = numbers.iterate()  # doctest: +SKIP
        >>> steps = iteration.map(lambda n: n - 1)  # doctest: +SKIP
        >>> iteration.close_with(steps.filter(lambda n: n > 0))  # doctest: +SKIP
        """
        from flinkpy.datastream.streams.iterating import iterate

        return iterate(self, max_wait_time)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the operator's function sent to this tag."""
        if not isinstance(output_tag, OutputTag):
            raise refuse(f"get_side_output() takes an OutputTag, this is {output_tag!r:.80}")
        known = self._side_types.setdefault(output_tag.tag_id, output_tag.type_info)
        if output_tag.type_info != known:
            raise refuse(f"get_side_output(): the side output {output_tag.tag_id!r} was asked for as {known!r} before, and now as "
                         f"{output_tag.type_info!r}; one id is one side output of one type")
        reader = SideOutputTransformation(
            id=self._env._next_id(), name=f"get_side_output({output_tag.tag_id!r})", input=self._operator("get_side_output()"),
            tag_id=output_tag.tag_id, output_type=output_tag.type_info, where=caller())
        return DataStream(self._env, reader)

    # -- to which subtask -----------------------------------------------------------------------------------------------------

    def key_by(self, key_selector: Any, *more: Any, key_type: TypeInformation | None = None) -> KeyedStream:
        """Records of one key go to one subtask: a function of the record, a KeySelector, or the names of fields.

        >>> stream.key_by(lambda pair: pair[0]); flights.key_by("carrier", "origin")  # doctest: +SKIP
        """
        if more and isinstance(more[0], TypeInformation):  # PyFlink passes the key's type as the second argument
            key_type, more = more[0], more[1:]
        check_key_type(check_type(key_type, "key_by()"), "key_by()")
        if is_columnar_key(key_selector, more):
            names = key_columns((key_selector, *more), self._schema)
            check_key_fields(names, self.get_type(), "key_by()")
            return self._keyed(KeySpec(FieldKey(names), names if self._columnar else None))
        if more:
            raise refuse("key_by() takes one function, or one or several names of fields")
        check_function(key_selector, f.KeySelector, "get_key", 1, "key_by()")
        return self._with_rows(before_edge=True)._keyed(KeySpec(key_selector))

    def _keyed(self, key: KeySpec) -> KeyedStream:
        partitioned = self._partitioned(Partitioning(PartitioningKind.HASH, key), "key_by()")
        return KeyedStream(self._env, partitioned._transformation, key, self, columnar=self._columnar, schema=self._schema)

    def partition_custom(self, partitioner: Callable[[Any, int], int] | f.Partitioner,
                         key_selector: Callable[[Any], Any] | f.KeySelector) -> DataStream:
        """``partitioner(key, number of channels)`` says the channel.

        >>> stream.partition_custom(lambda key, channels: key % channels, lambda pair: pair[0])  # doctest: +SKIP
        """
        check_function(partitioner, f.Partitioner, "partition", 2, "partition_custom()")
        check_function(key_selector, f.KeySelector, "get_key", 1, "partition_custom()")
        stream = self._with_rows(before_edge=True)
        custom, key = method_of(partitioner, "partition"), KeySpec(method_of(key_selector, "get_key"))
        return stream._partitioned(Partitioning(PartitioningKind.CUSTOM, key, custom=custom), "partition_custom()")

    def rebalance(self) -> DataStream:
        """Round robin over all subtasks of the next operator."""
        return self._partitioned(REBALANCE, "rebalance()")

    def rescale(self) -> DataStream:
        """Round robin over the subtasks near by: no more connections than needed."""
        return self._partitioned(RESCALE, "rescale()")

    def shuffle(self) -> DataStream:
        """At random."""
        return self._partitioned(SHUFFLE, "shuffle()")

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(self, broadcast_state_descriptor: MapStateDescriptor, /, *more: MapStateDescriptor) -> BroadcastStream: ...

    def broadcast(self, *broadcast_state_descriptors: MapStateDescriptor) -> DataStream | BroadcastStream:
        """Every record to every subtask. With descriptors: a BroadcastStream, for ``connect``; its records write these states.

        >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())  # doctest: +SKIP
        >>> events.connect(changes.broadcast(rules)).process(Apply())  # doctest: +SKIP
        """
        if broadcast_state_descriptors:
            from flinkpy.datastream.streams.broadcasting import broadcast_stream

            return broadcast_stream(self, broadcast_state_descriptors)
        return self._partitioned(BROADCAST, "broadcast()")

    def global_(self) -> DataStream:
        """Every record to the first subtask."""
        return self._partitioned(GLOBAL, "global_()")

    def forward(self) -> DataStream:
        """From each subtask to the same subtask of the next operator; both must have one parallelism."""
        return self._partitioned(FORWARD, "forward()")

    def cache(self) -> CachedDataStream:
        """This bounded stream, kept by the first job that computes it for the jobs behind."""
        from flinkpy.datastream.streams.caching import CachedDataStream

        return CachedDataStream(self)

    # -- ends -----------------------------------------------------------------------------------------------------------------

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Prints every record where its subtask runs; ``2> `` in front says the subtask where there are several."""
        from flinkpy.common.printing import formatter, row_formatter
        from flinkpy.connectors.print_sink import PrintSink

        write = row_formatter() if self._columnar else formatter(self._transformation.output_type)
        return self._sink(PrintSink(sink_identifier, formatter=write), "Sink: Print to Std. Out")

    def sink_to(self, sink: Any) -> DataStreamSink:
        """Into a sink of ``flinkpy.connectors``, or any object with ``write(value)``."""
        from flinkpy.operators.sinks.sink_port import Sink

        if isinstance(sink, type):
            raise refuse(f"sink_to() takes a sink object, not a class: write {sink.__name__}(...)")
        transformer = sink.get_transformer() if hasattr(sink, "get_transformer") else None
        if transformer is not None:  # PyFlink's SupportsPreprocessing: the sink changes the stream before it takes it
            self = transformer.apply(self)
        if isinstance(sink, Sink) or hasattr(sink, "write_batch"):
            sink = sink.of_type(self._transformation.output_type) if hasattr(sink, "of_type") else sink
            return self._sink(sink, "Sink: Writer")
        if not hasattr(sink, "write") and not isinstance(sink, f.SinkFunction):
            raise refuse(f"sink_to() takes a sink or an object with write(value); a {type(sink).__name__} is neither")
        return self._with_rows()._sink(sink, "Sink: Writer")

    def add_sink(self, sink_func: Any) -> DataStreamSink:
        """Into a SinkFunction, or a function called with every record."""
        if not isinstance(sink_func, f.SinkFunction) and not callable(sink_func):
            return self.sink_to(sink_func)
        with_context = isinstance(sink_func, f.SinkFunction) and takes_context(sink_func.invoke)
        check_function(sink_func, f.SinkFunction, "invoke", 1 + with_context, "add_sink()")
        return self._with_rows()._sink(sink_func, "Sink: Unnamed")

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Runs the program and gives its records here, as they come: a CloseableIterator, or a list of ``limit`` records.

        >>> with env.from_collection([1, 2]).map(lambda x: x * 2).execute_and_collect() as results:  # doctest: +SKIP
        ...     print(list(results))
        [2, 4]
        """
        from flinkpy.datastream.results.collecting import execute_and_collect

        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise refuse(f"execute_and_collect(): limit is a whole number from 1 on, this is {limit!r}")
        results = execute_and_collect(self, job_execution_name)
        if limit is None:
            return results
        with results:
            return results.first(limit)

    # -- how the program grows ------------------------------------------------------------------------------------------------

    def _apply(self, name: str, operator: Any, output_type: TypeInformation | None, *, key: KeySpec | None = None,
               columnar: bool = False) -> DataStream:
        schema = None
        if columnar and (self._schema is not None or not self._columnar):
            with located():
                schema = operator.output_schema(self._schema)
        transformation = OneInputTransformation(id=self._env._next_id(), name=name, input=self._transformation, operator=operator, key=key,
                                                output_type=output_type, where=caller())
        self._env._add(transformation)
        return DataStream(self._env, transformation, columnar=columnar, schema=schema, helpers=self._conversion())

    def _sink(self, sink: Any, name: str) -> DataStreamSink:
        from flinkpy.operators.sinks.source_and_sink import SinkOperator

        with located():
            operator = SinkOperator(sink)
        ended = self._apply(name, operator, None)
        return DataStreamSink(self._env, ended._transformation, ended._helpers)

    def _partitioned(self, partitioning: Partitioning, call: str) -> DataStream:
        transformation = PartitionTransformation(id=self._env._next_id(), name=call, input=self._transformation, partitioning=partitioning,
                                                 output_type=self._transformation.output_type, where=caller())
        return DataStream(self._env, transformation, columnar=self._columnar, schema=self._schema)

    def _with_rows(self, *, before_edge: bool = False) -> DataStream:
        """This stream as rows: itself, or behind a conversion. That runs where its reader does, or with ``before_edge`` where its writer does."""
        if not self._columnar:
            return self
        from flinkpy.operators.columnar.column_operators import ColumnsToRowsOperator

        stream = self._converted("Columns to rows", ColumnsToRowsOperator(), columnar=False)
        if before_edge:
            copy_place(self._transformation, stream._transformation)
        return stream

    def _with_schema(self, schema: Any) -> DataStream:
        """This stream of columns under a schema that differs from its own in what may be null: itself, or behind a conversion where its writer is."""
        if self._schema is None or self._schema.equals(schema):
            return self
        from flinkpy.operators.columnar.column_operators import NullableColumnsOperator

        stream = self._converted("Nullable columns", NullableColumnsOperator(schema), columnar=True)
        copy_place(self._transformation, stream._transformation)
        return stream

    def _converted(self, name: str, operator: Any, *, columnar: bool) -> DataStream:
        stream = self._apply(name, operator, None, columnar=columnar)
        stream._is_conversion = True
        return stream

    _is_conversion = False

    def _conversion(self) -> tuple[Transformation, ...]:
        return (self._transformation,) if self._is_conversion else ()

    def _refuse_stranger(self, other: DataStream, call: str) -> None:
        if other._env is not self._env:
            raise refuse(f"{call}: the streams belong to different environments; make both from one StreamExecutionEnvironment")

    if not TYPE_CHECKING:  # for mypy a name that is not there is an error

        def __getattr__(self, name: str) -> NoReturn:
            raise no_such_method(self, name, KeyedStream)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} behind {self._transformation.name!r}{', columnar' if self._columnar else ''}>"


def _is_expression(value: Any) -> bool:
    from flinkpy.columns.expression import Expression

    return isinstance(value, Expression)


from flinkpy.datastream.results.collecting import CloseableIterator as CloseableIterator  # noqa: E402  (PyFlink has all streams in this module)
from flinkpy.datastream.results.data_stream_sink import DataStreamSink as DataStreamSink  # noqa: E402
from flinkpy.datastream.streams.broadcasting import BroadcastConnectedStream as BroadcastConnectedStream  # noqa: E402
from flinkpy.datastream.streams.broadcasting import BroadcastStream as BroadcastStream  # noqa: E402
from flinkpy.datastream.streams.caching import CachedDataStream as CachedDataStream  # noqa: E402
from flinkpy.datastream.streams.connected import ConnectedStreams as ConnectedStreams  # noqa: E402
from flinkpy.datastream.streams.keyed_verbs import KeyedStream as KeyedStream  # noqa: E402
from flinkpy.datastream.windowed.windowed_stream import AllWindowedStream as AllWindowedStream  # noqa: E402
from flinkpy.datastream.windowed.windowed_stream import WindowedStream as WindowedStream  # noqa: E402
