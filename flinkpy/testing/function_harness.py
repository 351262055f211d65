"""The harnesses that users create: for a function, by kind of input, or for a piece of stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.program.launch_context import is_pending, note_used
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream import functions as f
from flinkpy.datastream.streams.recorded import RowStream
from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)
from flinkpy.operators.base import InputStatus, SourceOperator, StreamOperator
from flinkpy.testing.harness import OperatorHarness, pickled
from flinkpy.testing.wiring import Origin, Piece

_METHODS: dict[type, str] = {
    f.MapFunction: "map",
    f.FlatMapFunction: "flat_map",
    f.FilterFunction: "filter",
    f.ReduceFunction: "reduce",
    f.ProcessFunction: "process",
    f.KeyedProcessFunction: "process",
    f.CoMapFunction: "map",
    f.CoFlatMapFunction: "flat_map",
    f.CoProcessFunction: "process",
    f.KeyedCoProcessFunction: "process",
}
_KEYED = (f.KeyedProcessFunction, f.KeyedCoProcessFunction, f.ReduceFunction)


class OneInputHarness(OperatorHarness):
    """Runs a function of one stream: a MapFunction, FlatMapFunction, FilterFunction or
    ProcessFunction.

    >>> from flinkpy.datastream import MapFunction
    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    >>> with OneInputHarness(Double()) as harness:
    ...     harness.push(4, timestamp=100)
    ...     harness.push_watermark(100)
    ...     harness.stamped_output, harness.watermarks
    ([(8, 100)], [100])

    Keyword arguments of all harnesses: ``parallelism``, ``subtask_index``, ``max_parallelism``
    (these decide which key groups it owns), ``configuration`` (options by key, such as
    ``state.backend.type``) and ``start_ms``, the time at which its clock starts."""

    def __init__(self, function: object, **options: Any) -> None:
        super().__init__(
            _recipe(1, lambda stream: _applied(stream, function, keyed=False)), **options
        )

    @classmethod
    def of(cls, build: Callable[[DataStream], DataStream], **options: Any) -> OneInputHarness:
        """Makes a harness of a piece of stream: ``build`` gets the input and returns the output.

        >>> with OneInputHarness.of(
        ...     lambda stream: stream.map(len).filter(lambda size: size > 1)
        ... ) as harness:
        ...     harness.push_all(["a", "bc"])
        ...     harness.output
        [2]
        """
        made = object.__new__(cls)
        OperatorHarness.__init__(made, _recipe(1, build), **options)
        return made

    def push(self, value: object, timestamp: int | None = None) -> None:
        """Pushes one element, with its event time in milliseconds if it has one."""
        self._push(0, [value], None if timestamp is None else [timestamp])

    def push_all(self, values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        """Pushes several elements as one batch."""
        self._push(0, values, timestamps)

    def push_watermark(self, timestamp: int) -> None:
        """Pushes a watermark: no element with this event time (in milliseconds) or an earlier one
        follows. Raises ValueError if it goes back."""
        self._push_watermark(0, timestamp)


class KeyedOneInputHarness(OneInputHarness):
    """Runs a function of a keyed stream, with state and timers: a KeyedProcessFunction,
    ReduceFunction or one of the others.

    >>> from flinkpy.datastream import KeyedProcessFunction
    >>> class Remind(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)
    ...
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), timestamp
    >>> with KeyedOneInputHarness(Remind(), lambda value: value) as harness:
    ...     harness.push("a", timestamp=5)
    ...     waiting = harness.num_event_time_timers
    ...     harness.push_watermark(1005)
    ...     waiting, harness.output
    (1, [('a', 1005)])
    """

    def __init__(self, function: object, key_selector: object, **options: Any) -> None:
        OperatorHarness.__init__(
            self,
            _recipe(1, lambda stream: _applied(stream.key_by(key_selector), function)),
            **options,
        )


class TwoInputHarness(OperatorHarness):
    """Runs a function of two connected streams: a CoMapFunction, CoFlatMapFunction or
    CoProcessFunction.

    >>> from flinkpy.datastream import CoMapFunction
    >>> class Names(CoMapFunction):
    ...     def map1(self, value):
    ...         return f"left {value}"
    ...
    ...     def map2(self, value):
    ...         return f"right {value}"
    >>> with TwoInputHarness(Names()) as harness:
    ...     harness.push1(1)
    ...     harness.push2(2)
    ...     harness.output
    ['left 1', 'right 2']
    """

    _number_of_inputs = 2

    def __init__(self, function: object, **options: Any) -> None:
        super().__init__(
            _recipe(2, lambda left, right: _applied(left.connect(right), function, keyed=False)),
            **options,
        )

    @classmethod
    def of(
        cls, build: Callable[[DataStream, DataStream], DataStream], **options: Any
    ) -> TwoInputHarness:
        """Makes a harness of a piece of stream: ``build`` gets both inputs and returns the output.
        For joins, co-groups, unions and broadcast state.

        >>> with TwoInputHarness.of(lambda left, right: left.map(str).union(right)) as harness:
        ...     harness.push1(1)
        ...     harness.push2("a")
        ...     harness.output
        ['1', 'a']
        """
        made = object.__new__(cls)
        OperatorHarness.__init__(made, _recipe(2, build), **options)
        return made

    def push1(self, value: object, timestamp: int | None = None) -> None:
        """Pushes an element into the first input."""
        self._push(0, [value], None if timestamp is None else [timestamp])

    def push2(self, value: object, timestamp: int | None = None) -> None:
        """Pushes an element into the second input."""
        self._push(1, [value], None if timestamp is None else [timestamp])

    def push_watermark1(self, timestamp: int) -> None:
        """Pushes a watermark into the first input. The operator sees the lower watermark of both
        inputs."""
        self._push_watermark(0, timestamp)

    def push_watermark2(self, timestamp: int) -> None:
        """Pushes a watermark into the second input."""
        self._push_watermark(1, timestamp)


class KeyedTwoInputHarness(TwoInputHarness):
    """Runs a function of two keyed streams, which share state and timers: a KeyedCoProcessFunction,
    CoMapFunction or CoFlatMapFunction.

    >>> from flinkpy.datastream import CoMapFunction
    >>> class Tell(CoMapFunction):
    ...     def map1(self, value):
    ...         return "number", value
    ...
    ...     def map2(self, value):
    ...         return "text", value
    >>> with KeyedTwoInputHarness(
    ...     Tell(), lambda number: number % 2, lambda text: len(text) % 2
    ... ) as harness:
    ...     harness.push1(1)
    ...     harness.push2("a")
    ...     harness.output
    [('number', 1), ('text', 'a')]
    """

    def __init__(
        self, function: object, key_selector1: object, key_selector2: object, **options: Any
    ) -> None:
        OperatorHarness.__init__(
            self,
            _recipe(
                2,
                lambda left, right: _applied(
                    left.connect(right).key_by(key_selector1, key_selector2), function
                ),
            ),
            **options,
        )


def _applied(stream: object, function: object, *, keyed: bool = True) -> DataStream:
    """Calls the stream's method for functions of that class with the function."""
    method = next(
        (
            name
            for kind, name in _METHODS.items()
            if isinstance(function, kind) and hasattr(stream, name)
        ),
        None,
    )
    if isinstance(function, _KEYED) and not keyed:
        raise ProgramError(
            f"{type(function).__name__} is a function of a keyed stream: use the Keyed… "
            "harness, with a key selector"
        )
    if method is None and isinstance(function, type):
        raise ProgramError(
            f"a harness takes a function object, not a class: write {function.__name__}()"
        )
    if method is None:
        raise ProgramError(
            f"a {type(function).__name__} cannot be run by this harness: pass an object "
            "of a function class of flinkpy.datastream, "
            "or use OneInputHarness.of(lambda stream: stream.map(...))"
        )
    made: DataStream = getattr(stream, method)(function)
    return made


def _recipe(inputs: int, build: Callable[..., DataStream]) -> bytes:
    env = StreamExecutionEnvironment.get_execution_environment()
    starts = [
        SourceTransformation(
            id=-1 - number, name=f"input {number + 1} of the harness", operator=_HarnessInput()
        )
        for number in range(inputs)
    ]
    has_others = is_pending()
    built = build(*(DataStream(env, RowStream(env.program, start)) for start in starts))
    if not has_others:
        note_used()  # nobody calls execute() for what a harness runs
    if not isinstance(built, DataStream):
        raise ProgramError(f"a harness is built of what gives a DataStream, this is {built!r:.80}")
    return pickled(_Gathered(starts).piece(built.recorded.transformation), "the harness's function")


class _HarnessInput(SourceOperator):
    """Where the harness pushes records in; it never runs."""

    def emit_next(self) -> InputStatus:
        return InputStatus.END_OF_INPUT


class _Gathered:
    """Collects the operators between the harness's inputs and the end of a stream, each after those
    it reads from."""

    def __init__(self, starts: Sequence[Transformation]) -> None:
        self._origins: dict[Transformation, tuple[Origin, ...]] = {
            start: (Origin(-1 - number),) for number, start in enumerate(starts)
        }
        self._piece = Piece([], [], ())

    def piece(self, end: Transformation) -> Piece:
        """Returns all operators that lead to the end."""
        ends = self._origins_of(end)
        if not self._piece.operators:
            raise ProgramError("there is no operator to test: apply one to the stream")
        return self._piece._replace(ends=ends)

    def _origins_of(self, transformation: Transformation) -> tuple[Origin, ...]:
        found = self._origins.get(transformation)
        if found is None:
            found = self._origins[transformation] = self._look_behind(transformation)
        return found

    def _look_behind(self, here: Transformation) -> tuple[Origin, ...]:
        origins = [self._origins_of(each) for each in here.inputs]
        if isinstance(here, (OneInputTransformation, TwoInputTransformation)):
            assert isinstance(here.operator, StreamOperator)
            self._piece.operators.append(here.operator)
            self._piece.inputs.append(tuple(origins))
            return (Origin(len(self._piece.operators) - 1),)
        if isinstance(here, SideOutputTransformation):
            return tuple(origin._replace(tag_id=here.tag_id) for origin in origins[0])
        if not isinstance(here, (PartitionTransformation, UnionTransformation)):
            raise ProgramError(
                f"a harness has no sources but its own inputs; {here.name!r} is a "
                f"{type(here).__name__}: run it in a job"
            )
        return tuple(origin for of_input in origins for origin in of_input)
