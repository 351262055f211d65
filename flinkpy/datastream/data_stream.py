"""The public classes of streams and their environment, under PyFlink's module path. Every call only
records; nothing runs before ``execute``.

These classes refer to each other in the types of their methods: ``key_by`` returns a KeyedStream,
which is a DataStream; environments return streams, and streams their environment. So they are in
one module, as in PyFlink. The methods are implemented in ``verbs``, ``windowed``, ``joined``,
``results`` and ``env``, which import none of these classes. A new method that returns a plain
stream belongs in ``verbs.stream_verbs.StreamVerbs``; one that returns a stream of another class
belongs here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, overload

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.checks import no_frame, no_such_method, refuse
from flinkpy.datastream.env.stream_environment import Environment
from flinkpy.datastream.joined.interval_joins import IntervalJoin
from flinkpy.datastream.joined.window_joins import CoGroupedStreams, JoinedStreams
from flinkpy.datastream.results.collecting import CloseableIterator as CloseableIterator
from flinkpy.datastream.results.data_stream_sink import DataStreamSink as DataStreamSink
from flinkpy.datastream.results.stream_results import StreamResults
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.datastream.verbs import key_verbs, routing, shaping
from flinkpy.datastream.verbs.broadcasting import (
    Broadcast,
    BroadcastConnected,
    broadcast_with_states,
)
from flinkpy.datastream.verbs.caching import Cache, NoOperator
from flinkpy.datastream.verbs.connected import Connected
from flinkpy.datastream.verbs.iterating import Iteration, iterate
from flinkpy.datastream.verbs.stream_verbs import KeyedVerbs, StreamVerbs
from flinkpy.datastream.windowed.full_windows import PartitionWindowedStream
from flinkpy.datastream.windowed.window_checks import checked_assigner, count_windows
from flinkpy.datastream.windowed.window_verbs import AllWindows, KeyedWindows
from flinkpy.graph.partitioning import BROADCAST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from flinkpy.cep.dynamic.pattern_updates import PatternUpdate
    from flinkpy.cep.pattern import Pattern
    from flinkpy.common.configuration import Configuration
    from flinkpy.common.execution_config import ExecutionConfig
    from flinkpy.common.time import Duration
    from flinkpy.datastream.patterns.dynamic_streams import DynamicPatternStream
    from flinkpy.datastream.patterns.pattern_streams import PatternStream
    from flinkpy.state.descriptors import MapStateDescriptor
    from flinkpy.windowing.assigners import WindowAssigner


class DataStream(StreamVerbs["DataStream"], StreamResults):
    """A stream of Python values, or of columns (``is_columnar``). With columns, expressions work on
    whole batches, and functions get a Row per record.

    >>> from flinkpy.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> words = env.from_collection(["to be", "or not"]).flat_map(lambda line: line.split())
    >>> counts = (
    ...     words.map(lambda word: (word, 1))
    ...     .key_by(lambda pair: pair[0])
    ...     .reduce(lambda a, b: (a[0], a[1] + b[1]))
    ... )
    >>> counts.get_name()
    'Reduce'
    """

    def __init__(self, env: StreamExecutionEnvironment, recorded: RecordedStream) -> None:
        super().__init__(recorded)
        self._env = env

    def _stream(self, recorded: RecordedStream) -> DataStream:
        return DataStream(self._env, recorded)

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that the stream belongs to."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """The execution settings of the stream's program."""
        return self._env.get_config()

    # -- windows -----------------------------------------------------------------------------------

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Puts all records into windows, whatever their keys; one subtask does all the work.

        >>> stream.window_all(TumblingEventTimeWindows.of(Time.seconds(10))).sum(
        ...     1
        ... )  # doctest: +SKIP
        """
        return AllWindowedStream(
            self, checked_assigner(self.recorded, window_assigner, "window_all()")
        )

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of ``size`` records. A new window begins with every ``slide``-th record or, if
        ``slide`` is 0, when the one before is full.

        A window is evaluated once, when it is full.
        """
        assigner, trigger = count_windows(size, slide, "count_window_all()")
        return AllWindowedStream(self, assigner).trigger(trigger)

    def full_window_partition(self) -> PartitionWindowedStream[DataStream]:
        """All records of a partition, when the input has ended: of each key of a keyed stream, else
        of each subtask (in BATCH only).

        >>> numbers.full_window_partition().sort_partition(0).sink_to(sink)  # doctest: +SKIP
        """
        is_keyed = isinstance(self, KeyedStream)
        return PartitionWindowedStream(self.recorded, self._stream, is_keyed=is_keyed)

    # -- patterns ----------------------------------------------------------------------------------

    def match(self, pattern: Pattern, comparator: Any = None) -> PatternStream[DataStream]:
        """Looks for a pattern in the records: of each key of a keyed stream, else in all records,
        in one subtask. ``comparator``, a function of two records that gives a number below, at or
        above 0, orders records of equal time; without it they stay in the order they came.

        >>> payments.key_by(card).match(
        ...     Pattern.begin("small").where(lambda payment: payment.amount < 1)
        ...     .next("big").where(lambda payment: payment.amount > 500)
        ... ).select(lambda match: match["big"][0])  # doctest: +SKIP
        """
        from flinkpy.datastream.patterns.pattern_streams import pattern_stream

        return pattern_stream(self, pattern, comparator, self._stream)

    def match_dynamic(
        self, updates: DataStream, initial: Iterable[PatternUpdate] = (), comparator: Any = None
    ) -> DynamicPatternStream[DataStream]:
        """Looks for patterns that come, change and go while the job runs. ``updates`` has
        PatternUpdates, or the texts of ``to_json()`` of such; every subtask gets them. ``initial``
        are there from the beginning.

        >>> payments.key_by(card).match_dynamic(rules).select(
        ...     lambda pattern, match: (pattern, match)
        ... )  # doctest: +SKIP
        """
        from flinkpy.datastream.patterns.dynamic_streams import dynamic_pattern_stream

        return dynamic_pattern_stream(self, updates, initial, comparator, self._stream)

    # -- several streams ---------------------------------------------------------------------------

    def union(
        self, *streams: DataStream, by_name: bool = False, fill_missing: bool = False
    ) -> DataStream:
        """The records of all these streams, in no particular order. Raises ProgramError for streams
        of different types or environments.

        With ``by_name`` columns are matched by their names, in the order of the first stream; with
        ``fill_missing`` too, a column that a stream does not have is null there."""
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise refuse(f"union() takes streams, this is {stream!r:.80}")
        recorded = [stream.recorded for stream in (self, *streams)]
        if fill_missing and not by_name:
            raise refuse(
                "union(fill_missing=True) is for columns that are matched by name: union(..., "
                "by_name=True, fill_missing=True)"
            )
        return self._stream(
            routing.union_of(shaping.aligned(recorded, fill_missing) if by_name else recorded)
        )

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(
        self, ds: DataStream | BroadcastStream
    ) -> ConnectedStreams | BroadcastConnectedStream:
        """Connects two streams, whose types may differ, for one function. The second may be a
        BroadcastStream."""
        if isinstance(ds, BroadcastStream):
            self.recorded.refuse_stranger(ds.input_stream.recorded, "connect()")
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, self._partner(ds, "connect()"))

    def join(self, other_stream: DataStream) -> JoinedStreams[DataStream]:
        """Joins records of this and another stream that have equal keys and are in the same window:
        ``.where(key).equal_to(key).window(assigner).apply(function)``."""
        return JoinedStreams(self, self._partner(other_stream, "join()"), self._stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams[DataStream]:
        """Like ``join``, but the function gets all records of a key and window of both streams at
        once, so outer joins are possible."""
        return CoGroupedStreams(self, self._partner(other_stream, "co_group()"), self._stream)

    def _partner(self, other: object, call: str) -> DataStream:
        if not isinstance(other, DataStream):
            raise refuse(f"{call} takes a stream, this is {other!r:.80}")
        self.recorded.refuse_stranger(other.recorded, call)
        return other

    def iterate(self, max_wait_time: Duration | timedelta | int | None = None) -> IterativeStream:
        """Begins a loop. ``close_with`` on the returned stream closes it: the records given to it
        go through the loop again.

        ``max_wait_time`` (a Duration, or milliseconds): how long the loop waits, after its input
        has ended and it is empty, for records that timers may still emit.

        >>> iteration = numbers.iterate()  # doctest: +SKIP
        >>> steps = iteration.map(lambda n: n - 1)  # doctest: +SKIP
        >>> iteration.close_with(steps.filter(lambda n: n > 0))  # doctest: +SKIP
        """
        return IterativeStream(self._env, iterate(self.recorded, max_wait_time))

    def cache(self) -> CachedDataStream:
        """This bounded stream, cached: the first job computes it, and later jobs read the cache."""
        return CachedDataStream(self._env, Cache(self.recorded))

    # -- to which subtask --------------------------------------------------------------------------

    def key_by(
        self, key_selector: object, *more: Any, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Sends all records of a key to one subtask. The key is a function of the record, a
        KeySelector, or the names of fields.

        >>> stream.key_by(lambda pair: pair[0])  # doctest: +SKIP
        >>> flights.key_by("carrier", "origin")  # doctest: +SKIP
        """
        return KeyedStream(
            self._env, key_verbs.key_stream(self.recorded, key_selector, more, key_type).stream
        )

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self, broadcast_state_descriptor: MapStateDescriptor, /, *more: MapStateDescriptor
    ) -> BroadcastStream: ...

    def broadcast(
        self, *broadcast_state_descriptors: MapStateDescriptor
    ) -> DataStream | BroadcastStream:
        """Sends every record to every subtask. With descriptors, returns a BroadcastStream for
        ``connect``, whose records write these states.

        >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())  # doctest: +SKIP
        >>> events.connect(changes.broadcast(rules)).process(Apply())  # doctest: +SKIP
        """
        if broadcast_state_descriptors:
            rows = broadcast_with_states(self.recorded, broadcast_state_descriptors)
            return BroadcastStream(self._stream(rows), broadcast_state_descriptors)
        return self._stream(routing.partitioned(self.recorded, BROADCAST, "broadcast()"))

    if not TYPE_CHECKING:  # mypy must report a missing attribute

        def __getattr__(self, name: str) -> NoReturn:
            if name in ("schema", "columns"):  # the property has raised that it knows none
                from flinkpy.datastream.results.looks import unknown_columns

                raise unknown_columns(self.recorded)
            raise no_such_method(self, name, KeyedStream)

        def __getitem__(self, key: Any) -> NoReturn:
            raise no_frame(key)

    def __repr__(self) -> str:
        from flinkpy.datastream.results.looks import summary

        return (
            f"<{type(self).__name__} behind {self.recorded.transformation.name!r}, "
            f"{summary(self.recorded)}>"
        )


class KeyedStream(KeyedVerbs["DataStream"], DataStream):
    """Returned by ``key_by``. A function object may keep state per key:
    ``runtime_context.get_state(...)`` in its ``open``.

    >>> sales.key_by(lambda sale: sale[0]).sum(1)  # doctest: +SKIP
    """

    class AccumulateType(Enum):
        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Puts the records of each key into windows.

        >>> stream.key_by(lambda bid: bid[0]).window(
        ...     SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))
        ... ).max(1)  # doctest: +SKIP
        """
        return WindowedStream(self, checked_assigner(self.recorded, window_assigner, "window()"))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of ``size`` records of a key. A new window begins with every ``slide``-th record
        or, if ``slide`` is 0, when the one before is full.

        A window is evaluated once, when it is full.

        Flink's Java API also evaluates sliding windows that are not full yet. For that use
        ``window(GlobalWindows.create())`` with ``CountEvictor.of(size)`` and
        ``CountTrigger.of(slide)``."""
        assigner, trigger = count_windows(size, slide, "count_window()")
        return WindowedStream(self, assigner).trigger(trigger)

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin[DataStream]:
        """Joins records of this and another keyed stream with equal keys, if the other's event time
        lies within an interval around this one's.

        >>> clicks.key_by(user).interval_join(orders.key_by(user)).between(
        ...     Time.minutes(0), Time.minutes(10)
        ... ).process(Sale())  # doctest: +SKIP
        """
        if not isinstance(self._partner(other_stream, "interval_join()"), KeyedStream):
            raise refuse(
                "interval_join() takes a keyed stream: call key_by(...) on the other stream too"
            )
        return IntervalJoin(self, other_stream, self._stream)

    def count(self, job_name: str | None = None) -> NoReturn:
        """Raises ProgramError: ``count`` is of a whole stream."""
        raise refuse(
            "count() counts the records of a whole stream: call it before key_by(...). "
            "How many each key has: "
            'aggregate(lit(1).count.alias("n")), or value_counts(column) '
            "before key_by(...)"
        )

    def mean(self, column: Any, job_name: str | None = None) -> NoReturn:
        """Raises ProgramError: ``mean`` is of a whole stream."""
        raise refuse(
            "mean() is that of a whole stream: call it before key_by(...). The mean of each key: "
            f'{_aggregate_of(column)}.avg.alias("mean")).to_pandas()'
        )

    def value_counts(self, column: str, job_name: str | None = None) -> NoReturn:
        """Raises ProgramError: ``value_counts`` is of a whole stream."""
        raise refuse(
            "value_counts() counts the values of a whole stream: call it before key_by(...). The "
            f"counts of each key: key_by(key, {column!r})"
            '.aggregate(lit(1).count.alias("n")).to_pandas()'
        )

    def describe(self, *columns: str, job_name: str | None = None) -> NoReturn:
        """Raises ProgramError: ``describe`` is of a whole stream."""
        raise refuse(
            "describe() describes a whole stream: call it before key_by(...). Figures of each key: "
            'aggregate(col("x").avg.alias("mean"), col("x").max.alias("most")).to_pandas()'
        )

    def cache(self) -> NoReturn:
        """Raises ProgramError: cache the stream before ``key_by``."""
        raise refuse("cache() is not for a keyed stream: call it before key_by(...)")


def _aggregate_of(column: object) -> str:
    return f'aggregate(col("{column}")' if isinstance(column, str) else f"aggregate(({column!r})"


class CachedDataStream(NoOperator, DataStream):
    """Returned by ``stream.cache()``. Its first job computes it and writes the cache. Streams
    derived from it after that job has ended read the cache.

    The cache is in files on this program's machine, and is deleted when the program ends. If this
    program cannot see the workers' files, each job computes the stream again.

    >>> squares = env.from_sequence(1, 100).map(lambda x: x * x).cache()  # doctest: +SKIP
    >>> list(squares.execute_and_collect())  # doctest: +SKIP
    >>> list(squares.filter(lambda x: x > 50).execute_and_collect())  # doctest: +SKIP
    """

    def __init__(self, env: StreamExecutionEnvironment, cache: Cache) -> None:
        super().__init__(env, cache.computing)
        self._cache = cache

    @property
    def recorded(self) -> RecordedStream:
        return self._cache.stream()

    def invalidate(self) -> None:
        """Deletes the cache; the next job that uses the stream computes it again."""
        self._cache.invalidate()

    def cache(self) -> CachedDataStream:
        """The stream itself: it is cached already."""
        return self

    def __repr__(self) -> str:
        return f"<CachedDataStream behind {self._cache.computing.transformation.name!r}>"


class IterativeStream(DataStream):
    """Returned by ``iterate``: the input and what comes back, with the parallelism of the input.

    After the input has ended, the loop runs until it is empty, and ``max_wait_time`` longer. So a
    job whose sources end also ends.

    Event time in the loop is the event time of the input. After the input has ended, the watermark
    is 2**62 or above, which is later than any timestamp. Records that come back keep their
    timestamps, and may be late. The way back is an unbounded queue in memory; while it is long, the
    loop takes no further input.

    Loops can follow each other, but cannot be nested. A program with a loop cannot have
    checkpoints, because they would lack the records on their way back, and it cannot run in runtime
    mode BATCH.

    >>> from flinkpy.datastream import StreamExecutionEnvironment
    >>> iteration = (
    ...     StreamExecutionEnvironment.get_execution_environment().from_collection([3]).iterate()
    ... )
    >>> fewer = iteration.map(lambda number: number - 1)
    >>> again = iteration.close_with(fewer.filter(lambda number: number > 0))
    >>> fewer.take(10)
    [2, 1, 0]
    """

    def __init__(self, env: StreamExecutionEnvironment, iteration: Iteration) -> None:
        super().__init__(env, iteration.stream)
        self._iteration = iteration

    def close_with(self, feedback_stream: DataStream) -> DataStream:
        """Sends the records of ``feedback_stream`` back to the beginning of the loop.

        The stream must be derived from this iteration, and have its parallelism. Returns
        ``feedback_stream``. Raises ProgramError for other streams, and if it is called twice."""
        if not isinstance(feedback_stream, DataStream):
            raise refuse(f"close_with() takes a stream, this is {feedback_stream!r:.80}")
        self._iteration.close_with(feedback_stream.recorded)
        return feedback_stream


class WindowedStream(KeyedWindows[DataStream]):
    """Returned by ``KeyedStream.window``: the records of each key in windows.

    >>> from flinkpy.common import Time
    >>> from flinkpy.datastream.window import TumblingEventTimeWindows
    >>> bids.key_by(lambda bid: bid[0]).window(TumblingEventTimeWindows.of(Time.seconds(10))).max(
    ...     1
    ... )  # doctest: +SKIP
    """

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(keyed_stream.recorded, window_assigner, keyed_stream._stream)
        self._env = keyed_stream.get_execution_environment()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that the stream belongs to."""
        return self._env


class AllWindowedStream(AllWindows[DataStream]):
    """Returned by ``DataStream.window_all``: all records in windows, in one subtask.

    >>> from flinkpy.common import Time
    >>> from flinkpy.datastream.window import TumblingEventTimeWindows
    >>> bids.window_all(TumblingEventTimeWindows.of(Time.seconds(10))).max(1)  # doctest: +SKIP
    """

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.recorded, window_assigner, data_stream._stream)
        self._env = data_stream.get_execution_environment()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that the stream belongs to."""
        return self._env


class ConnectedStreams(Connected[DataStream]):
    """Returned by ``connect``. The function has a method for each input; the methods share state
    through attributes of the function.

    >>> orders.connect(rates).map(Convert())  # doctest: +SKIP
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        super().__init__(stream1, stream2, stream1._stream)

    def key_by(
        self, key_selector1: object, key_selector2: object, key_type: TypeInformation | None = None
    ) -> ConnectedStreams:
        """Sends records of one key, from both streams, to one subtask."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type=key_type),
            self.stream2.key_by(key_selector2, key_type=key_type),
        )


class BroadcastStream(Broadcast[DataStream]):
    """Returned by ``stream.broadcast(descriptor, ...)``, for ``other.connect(...)``. The
    descriptors name the states that its elements write."""


class BroadcastConnectedStream(BroadcastConnected[DataStream]):
    """Returned by ``stream.connect(broadcast_stream)``."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        super().__init__(
            non_broadcast_stream,
            broadcast_stream,
            broadcast_state_descriptors,
            non_broadcast_stream._stream,
        )


class StreamExecutionEnvironment(Environment[DataStream]):
    """The environment of one program. Options come from the configuration file, environment
    variables, ``-D`` and the program's code; later ones win.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_parallelism(2).get_parallelism()
    2
    >>> env.from_collection([1, 2, 3]).map(lambda x: x + 1).print().get_name()
    'Sink: Print to Std. Out'
    >>> env.execute("add one")  # doctest: +SKIP
    """

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | Mapping[str, Any] | None = None,
    ) -> StreamExecutionEnvironment:
        """A new environment; where its jobs run is decided at ``execute`` (option
        ``execution.target``)."""
        return StreamExecutionEnvironment(configuration)

    def _as_stream(self, recorded: RecordedStream) -> DataStream:
        return DataStream(self, recorded)
