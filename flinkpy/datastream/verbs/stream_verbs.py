"""The methods of all streams that return plain streams. Those that return keyed, windowed,
connected or looping streams are in ``data_stream``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import refuse
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.datastream.verbs import column_verbs, key_verbs, routing, row_verbs, shaping
from flinkpy.datastream.verbs.event_time import assign_timestamps
from flinkpy.datastream.verbs.failing_records import set_error_policy
from flinkpy.graph.partitioning import FORWARD, GLOBAL, REBALANCE, RESCALE, SHUFFLE

if TYPE_CHECKING:
    from datetime import timedelta

    import pyarrow as pa

    from flinkpy.columns.expression import Expression
    from flinkpy.common.time import Duration
    from flinkpy.state.ttl.config import StateTtlConfig

S = TypeVar("S")
V = TypeVar("V", bound="StreamVerbs[Any]")


class TableVerbs(OperatorSettings, ABC, Generic[S]):
    """The methods for columns, most of which also take rows whose type is declared with Types.ROW
    or ROW_NAMED. They return streams of type ``S``, and raise ProgramError for invalid
    arguments."""

    @abstractmethod
    def _stream(self, recorded: RecordedStream) -> S:
        """The public stream for a recorded one."""

    def select(self, *expressions: str | Expression) -> S:
        """Selects these columns and expressions, in this order; name a computed one with ``alias``.

        >>> from flinkpy.table.expressions import col
        >>> bids.select("auction", (col("price") * 0.908).alias("euro"))  # doctest: +SKIP
        """
        return self._stream(column_verbs.select_columns(self.recorded, expressions))

    def map_batches(
        self,
        function: Callable[[Any], Any],
        batch_format: str = "arrow",
        *,
        output: str = "columns",
        schema: pa.Schema | None = None,
    ) -> S:
        """Calls the function with each whole batch, as ``pyarrow.RecordBatch``
        (``batch_format="arrow"``) or ``pandas.DataFrame`` (``"pandas"``, with the types that
        ``to_pandas`` gives).

        The function returns a batch of either kind, a ``pyarrow.Table``, or a dict of columns; with
        ``output="rows"`` any iterable of records. ``schema`` declares the resulting columns, so
        that they are known while the program is built, and even if no record comes.

        >>> flights.map_batches(
        ...     lambda frame: frame.dropna(), batch_format="pandas"
        ... )  # doctest: +SKIP
        """
        return self._stream(
            column_verbs.map_batches(self.recorded, function, batch_format, output, schema)
        )

    def with_column(self, name: str, expression: object) -> S:
        """All columns and this one, which takes the place of a column of the same name.

        >>> from flinkpy.table.expressions import col
        >>> bids.with_column("euro", col("price") * 0.908)  # doctest: +SKIP
        """
        return self._stream(
            shaping.with_columns(self.recorded, (), {name: expression}, "with_column()")
        )

    def with_columns(self, *expressions: Expression, **named: Any) -> S:
        """All columns and these, each named by its alias or its keyword. They are computed from the
        columns as they come in, not from each other.

        >>> from flinkpy.table.expressions import col
        >>> bids.with_columns(
        ...     (col("price") * 0.908).alias("euro"), day=col("at").floor("day")
        ... )  # doctest: +SKIP
        """
        return self._stream(
            shaping.with_columns(self.recorded, expressions, named, "with_columns()")
        )

    def drop(self, *columns: str | Expression) -> S:
        """All columns but these.

        >>> flights.drop("tail_number", "year")  # doctest: +SKIP
        """
        return self._stream(shaping.drop_columns(self.recorded, columns))

    def rename(self, names: Mapping[str, str] = {}, /, **more: str) -> S:  # is only read
        """The columns in their order, some under new names: old name to new name.

        >>> flights.rename({"dep delay": "delay"}, carrier="airline")  # doctest: +SKIP
        """
        return self._stream(shaping.rename_columns(self.recorded, names, more))

    def distinct(self, *fields: str, ttl: StateTtlConfig | None = None) -> S:
        """The first record of each value of these fields, or of each whole record without fields.
        Records are equal if they are equal keys.

        The state keeps every value for ever, unless ``ttl`` says when one is forgotten.

        >>> flights.distinct("carrier", "origin")  # doctest: +SKIP
        """
        return self._stream(shaping.distinct_records(self.recorded, fields, ttl))

    def limit(self, n: int) -> S:
        """The first ``n`` records to arrive, at one subtask.

        A source whose records all go there ends then if no repartitioning lies in between; at a
        higher parallelism, each of its subtasks ends when it has sent ``n``. Other sources are read
        on, and the rest is dropped; ``take(n)`` ends any job.

        >>> flights.filter(col("delay") > 60).limit(100)  # doctest: +SKIP
        """
        return self._stream(shaping.limited(self.recorded, n))

    def join_table(
        self,
        table: Any,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        how: Literal["inner", "left"] = "inner",
        reload_interval: Duration | timedelta | int | None = None,
    ) -> S:
        """Each record with the rows of a table that have its key; every subtask holds the table.

        ``table`` is a frame of pandas or Polars, a ``pyarrow.Table``, a list of dicts or Rows, a
        stream that ends (which is run now), or a function without arguments that returns one of
        these. A function is called now, to know the columns, in each subtask before its first
        record, and with ``reload_interval`` (a Duration, or milliseconds) again each time it has
        passed. ``on`` names columns of both sides, or maps those of the stream to those of the
        table.

        With ``how="left"`` a record without a row is kept, with nulls. Null equals nothing, as in
        SQL; NaN equals NaN. Other columns of equal names get the suffix ``_right`` in the table.

        >>> orders.join_table(
        ...     pd.read_csv("products.csv"), on={"product": "id"}, how="left"
        ... )  # doctest: +SKIP
        """
        if isinstance(getattr(table, "recorded", None), RecordedStream):
            table = table.to_arrow()
        return self._stream(column_verbs.join_table(self.recorded, table, on, how, reload_interval))

    def aggregate(self, *aggregates: Expression) -> S:
        """Aggregates of all records, at one subtask, to which others send what they have aggregated
        where that gives the same: in BATCH one row, also where no record comes; in STREAMING a new
        row for each batch, of which the last one is the result.

        >>> from flinkpy.table.expressions import col
        >>> flights.aggregate(
        ...     col("delay").avg.alias("mean"), col("carrier").count_distinct.alias("carriers")
        ... )  # doctest: +SKIP
        """
        return self._stream(shaping.aggregate_all(self.recorded, aggregates))


class StreamVerbs(TableVerbs[S]):
    """The methods, which return streams of type ``S``. They raise ProgramError for invalid
    arguments."""

    def __init__(self, recorded: RecordedStream) -> None:
        super().__init__(recorded)
        # the declared types of the side outputs read so far
        self._side_types: dict[str, TypeInformation | None] = {}

    @property
    def is_columnar(self) -> bool:
        """Whether this is a stream of column batches; known when the program is built."""
        return self.recorded.is_columnar

    def get_type(self) -> TypeInformation:
        """The declared type of the records; PICKLED_BYTE_ARRAY if none was declared."""
        return self.recorded.shown_type()

    def map(
        self, func: Callable[[Any], Any] | f.MapFunction, output_type: TypeInformation | None = None
    ) -> S:
        """Calls the function with each record, and emits the one result. On a keyed stream a
        MapFunction may keep state per key.

        >>> env.from_collection([1, 2]).map(lambda x: x * 2, Types.INT())  # doctest: +SKIP
        """
        return self._stream(row_verbs.map_records(self.recorded, func, output_type))

    def flat_map(
        self,
        func: Callable[[Any], Any] | f.FlatMapFunction,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Calls the function with each record, and emits any number of results, which it yields or
        returns as an iterable. On a keyed stream a FlatMapFunction may keep state per key.

        >>> env.from_collection(["a b"]).flat_map(
        ...     lambda line: line.split(), Types.STRING()
        ... )  # doctest: +SKIP
        """
        return self._stream(row_verbs.flat_map_records(self.recorded, func, output_type))

    def filter(self, func: Any) -> S:
        """Keeps the records for which the function, or an expression over columns, is true. On a
        keyed stream a FilterFunction may keep state per key.

        >>> from flinkpy.table.expressions import col
        >>> stream.filter(lambda x: x > 3)  # doctest: +SKIP
        >>> flights.filter(col("delay") > 3)  # doctest: +SKIP
        """
        if column_verbs.is_expression(func):
            return self._stream(column_verbs.filter_columns(self.recorded, func))
        return self._stream(row_verbs.filter_records(self.recorded, func))

    def project(self, *field_indexes: int) -> S:
        """Turns tuples or rows into tuples of the fields at these positions, counted from 0.

        >>> env.from_collection([("a", 1, 2.0)]).project(2, 0)  # doctest: +SKIP
        """
        return self._stream(row_verbs.project_fields(self.recorded, field_indexes))

    def process(self, func: f.ProcessFunction, output_type: TypeInformation | None = None) -> S:
        """Calls the function with each record and a context; it may also emit to side outputs.

        >>> from flinkpy.datastream import ProcessFunction
        >>> class Sort(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value if value > 0 else (OutputTag("negative"), value)
        >>> positive = stream.process(Sort())  # doctest: +SKIP
        >>> negative = positive.get_side_output(OutputTag("negative"))  # doctest: +SKIP
        """
        return self._stream(row_verbs.process_records(self.recorded, func, output_type))

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> S:
        """Says where a record's event time is found, and how watermarks are generated. Watermarks
        of earlier operators are replaced.

        >>> from flinkpy.common import Duration
        >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        ...     Duration.of_seconds(5)
        ... ).with_timestamp_assigner(lambda bid: bid[2])
        >>> stream.assign_timestamps_and_watermarks(strategy)  # doctest: +SKIP
        """
        return self._stream(assign_timestamps(self.recorded, watermark_strategy))

    def on_error(self: V, policy: ErrorPolicy) -> V:
        """Says what the operator does with a record whose function raises: try again, or divert the
        record to a side output as a :class:`DeadLetter`. Without it, the job fails. Returns the
        stream itself. Raises ProgramError for an operator whose records have no policy (the page on
        failing records says which).

        >>> from flinkpy.datastream import ErrorPolicy, StreamExecutionEnvironment
        >>> failed = OutputTag("failed")
        >>> ratios = (
        ...     StreamExecutionEnvironment.get_execution_environment()
        ...     .from_collection([4, 0])
        ...     .map(lambda x: 8 / x)
        ... )
        >>> ratios.on_error(ErrorPolicy.divert(failed)).get_side_output(failed).map(
        ...     lambda letter: letter.record
        ... ).take(10)
        [0]
        """
        set_error_policy(self.recorded, policy)
        return self

    def get_side_output(self, output_tag: OutputTag) -> S:
        """The records that the operator's function emitted to this tag. Raises ProgramError if the
        tag was used before with another type."""
        if not isinstance(output_tag, OutputTag):
            raise refuse(f"get_side_output() takes an OutputTag, this is {output_tag!r:.80}")
        known = self._side_types.setdefault(output_tag.tag_id, output_tag.type_info)
        if output_tag.type_info != known:
            raise refuse(
                f"get_side_output(): the side output {output_tag.tag_id!r} was asked for as "
                f"{known!r} before, and now as "
                f"{output_tag.type_info!r}; one id is one side output of one type"
            )
        return self._stream(routing.side_output(self.recorded, output_tag))

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | f.Partitioner,
        key_selector: Callable[[Any], Any] | f.KeySelector,
    ) -> S:
        """Sends each record to the channel that ``partitioner(key, number of channels)`` returns.

        >>> stream.partition_custom(
        ...     lambda key, channels: key % channels, lambda pair: pair[0]
        ... )  # doctest: +SKIP
        """
        return self._stream(
            routing.partitioned_by_function(self.recorded, partitioner, key_selector)
        )

    def rebalance(self) -> S:
        """Sends records round robin to all subtasks of the next operator."""
        return self._stream(routing.partitioned(self.recorded, REBALANCE, "rebalance()"))

    def rescale(self) -> S:
        """Sends records round robin to some subtasks of the next operator: each subtask sends to as
        few as are needed to balance the load."""
        return self._stream(routing.partitioned(self.recorded, RESCALE, "rescale()"))

    def shuffle(self) -> S:
        """Sends each record to a random subtask of the next operator."""
        return self._stream(routing.partitioned(self.recorded, SHUFFLE, "shuffle()"))

    def global_(self) -> S:
        """Sends every record to the first subtask of the next operator."""
        return self._stream(routing.partitioned(self.recorded, GLOBAL, "global_()"))

    def forward(self) -> S:
        """Sends the records of each subtask to the subtask with the same index of the next
        operator; both must have the same parallelism."""
        return self._stream(routing.partitioned(self.recorded, FORWARD, "forward()"))


class KeyedVerbs(StreamVerbs[S]):
    """The methods that keyed streams have in addition."""

    def process(  # type: ignore[override]  # takes another class of functions, as in PyFlink
        self, func: f.KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> S:
        """Calls the function with each record and a context that knows the key and has timers; it
        may also emit to side outputs.

        >>> from flinkpy.datastream import KeyedProcessFunction
        >>> class Tag(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield ctx.get_current_key(), value
        """
        return self._stream(
            row_verbs.process_keyed(*key_verbs.keyed(self.recorded), func, output_type)
        )

    def reduce(self, func: Callable[[Any, Any], Any] | f.ReduceFunction) -> S:
        """The running reduction of each key. Every record emits the result so far; a key's first
        record emits itself.

        >>> pairs.key_by(lambda p: p[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))  # doctest: +SKIP
        """
        return self._stream(key_verbs.reduce_running(key_verbs.keyed(self.recorded), func))

    def sum(self, position_to_sum: int | str = 0) -> S:
        """The running sum of a field per key; the other fields are those of the key's first
        record."""
        return self._running("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> S:
        """The running minimum of a field per key; the other fields are those of the key's first
        record."""
        return self._running("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> S:
        """The running maximum of a field per key; the other fields are those of the key's first
        record."""
        return self._running("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> S:
        """The record with the smallest value of a field per key, so far; the first of several."""
        return self._running("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> S:
        """The record with the largest value of a field per key, so far; the first of several."""
        return self._running("max_by", position_to_max_by)

    def _running(self, kind: str, position: int | str) -> S:
        return self._stream(
            key_verbs.aggregate_running(key_verbs.keyed(self.recorded), kind, position)
        )

    def aggregate(self, *aggregates: Expression) -> S:
        """Running aggregates of each key over columns, and expressions of them. All aggregates are
        methods of Expression.

        Each batch emits a row for every key in it: the key's columns, then the aggregates. The last
        row of a key is its result, as with Flink SQL's mini-batch upserts. Nulls are ignored.
        ``avg`` of integers is exact: their sum divided by their count.

        >>> from flinkpy.table.expressions import col
        >>> flights.key_by("carrier").aggregate(
        ...     col("carrier").count.alias("flights"),
        ...     col("delay").avg.alias("mean"),
        ...     (col("delay").max - col("delay").min).alias("range"),
        ... )  # doctest: +SKIP
        """
        return self._stream(
            key_verbs.aggregate_expressions(key_verbs.keyed(self.recorded), aggregates)
        )
