"""User functions: the classes that a program derives from when a lambda is not enough, with
PyFlink's names and signatures.

flinkpy calls ``open(runtime_context)`` of every function before its first record and ``close()`` at
the end, also after a failure. What cannot be pickled (connections, locks, models) belongs in
``open``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Protocol, TypeAlias, cast

from flinkpy.core.codegen.idle_results import refuse_idle
from flinkpy.core.elements import Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.options.compatibility import registered_files
from flinkpy.core.program.program_line import refuse, with_line
from flinkpy.metrics.metricbase import MetricGroup
from flinkpy.metrics.reported import metrics_of
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.function_contexts.checkpointed import initialize_function
from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore, S
from flinkpy.operators.function_contexts.no_key import NoKey
from flinkpy.operators.function_contexts.sink_context import SinkContext
from flinkpy.state.backend import CurrentKey, KeyedStateBackend
from flinkpy.state.descriptors import StateDescriptor


class RuntimeContext(KeyedStateStore):
    """Where a function runs: its subtask, the parallelism, the job's parameters; on a keyed stream
    also its state."""

    def __init__(self, context: OperatorContext, backend: KeyedStateBackend | None = None) -> None:
        self._context, self._backend = context, backend

    def _state(
        self, descriptor: StateDescriptor, wanted: type[StateDescriptor], kind: type[S], call: str
    ) -> S:
        if not isinstance(descriptor, wanted):
            raise refuse(f"{call} takes a {wanted.__name__}, this is {descriptor!r:.80}")
        if self._backend is None:
            raise refuse(
                f"state {descriptor.name!r}: {call} keeps state per key, but "
                f"{self._context.name} runs on a stream without keys; "
                "call key_by(...) before it"
            )
        try:
            return cast("S", self._backend.state(descriptor))
        except ProgramError as error:
            raise with_line(error) from None

    def get_task_name(self) -> str:
        """The name of the task: the names of its operators, joined."""
        return self._context.task.task_name

    def get_task_name_with_subtasks(self) -> str:
        """The task's name with the subtask's number and the attempt: ``Map (1/2)#0``."""
        return self._context.task.subtask_name

    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""
        return self._context.task.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups."""
        return self._context.task.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """The index of this subtask, from 0."""
        return self._context.task.subtask_index

    def get_attempt_number(self) -> int:
        """The number of this attempt; 0 for the first."""
        return self._context.task.attempt_id.attempt

    def get_job_parameter(self, key: str, default_value: object = None) -> Any:
        """A value of the job's configuration: an option of the engine, or one of the program's own,
        with or without ``user.`` before its key."""
        values = self._context.configuration
        return values.get(key, values.get(f"user.{key}", default_value))

    def add_accumulator(self, name: str, accumulator: object) -> None:
        """Adds an accumulator: any mutable object that can be pickled. The job's result has its
        last value, merged over all subtasks with ``merge(other)``. Raises ProgramError if the task
        already has an accumulator of that name."""
        if name in self._context.accumulators:
            raise ProgramError(
                f"accumulator {name!r} exists already in this task: give each one a name of its own"
            )
        self._context.accumulators[name] = accumulator

    def get_accumulator(self, name: str) -> Any:
        """The accumulator of that name in this task, or None."""
        return self._context.accumulators.get(name)

    def get_cached_file(self, name: str) -> str:
        """The path of a file or folder that the program registered with
        ``env.register_cached_file(path, name)``, as it was when the job was submitted. Waits until
        it is on this worker, where it is once for all subtasks, which must not change it. Raises
        ProgramError if there is none of that name, ResourceUnavailableError if it cannot be brought
        here. Flink: ``getDistributedCache().getFile(name)``.

        >>> model = Path(runtime_context.get_cached_file("model")).read_bytes()  # doctest: +SKIP
        """
        if self._context.cached_file is not None:
            return self._context.cached_file(name)
        for registered, path, _ in registered_files(self._context.configuration):
            if registered == name:
                return path
        raise ProgramError(
            f"there is no cached file {name!r}; give it to env.register_cached_file(path, {name!r})"
        )

    def get_metrics_group(self) -> MetricGroup:
        """The group of this function's metrics, named by operator and subtask. The job's result has
        their last values (``get_metrics()``).

        >>> self.late = runtime_context.get_metrics_group().counter("late")  # doctest: +SKIP
        """
        scope = (self._context.name, str(self._context.task.subtask_index))
        return MetricGroup(
            metrics_of(self._context.accumulators),
            scope,
            self._context.clock,
            operator=str(self._context.operator_id),
        )

    def __repr__(self) -> str:
        return f"<RuntimeContext of {self._context.name} in {self.get_task_name_with_subtasks()}>"


class Function(ABC):  # noqa: B024  # abstract: subclasses have the abstract methods
    """The base class of all user functions."""

    def __class_getitem__(cls, parameters: object) -> Any:
        """The class itself: PyFlink programs may write type parameters, as in
        ``ProcessWindowFunction[tuple, tuple, str, TimeWindow]``."""
        return cls

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called before the first record, to acquire what the function needs."""

    def close(self) -> None:
        """Called after the last record or after a failure, to release it."""


class MapFunction(Function):
    """Turns each value into one value. Unlike a lambda it may have ``open`` and, on a keyed stream,
    state."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The result for one value."""


class FlatMapFunction(Function):
    """Turns each value into any number of values."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """The results for one value: yield them, or return an iterable; None counts as empty."""


class FilterFunction(Function):
    """Decides which values are kept."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether to keep the value."""


class ReduceFunction(Function):
    """Combines two values of a key or window into one."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combines the two values into one of the same type; ``value1`` is the result so far."""


class MapPartitionFunction(Function):
    """Maps all records of a partition: ``full_window_partition().map_partition(...)``."""

    @abstractmethod
    def map_partition(self, values: Iterator[Any]) -> Iterable[Any]:
        """Yields, or returns as an iterable, any number of results."""


class AggregateFunction(Function):
    """Gathers values in an accumulator, and makes a result from it. ``add`` may change the
    accumulator in place and return it."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """A new, empty accumulator."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with the value added."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any: ...

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Both accumulators combined into one."""


class KeySelector(Function):
    """Extracts the key of a value."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The value's key: a number, text, bytes, date, enum, or a tuple of these."""

    def __call__(self, value: object) -> Any:
        """The same as ``get_key``: the writers that partition by key call plain functions."""
        return self.get_key(value)


class Partitioner(Function):
    """Decides which channel a key goes to: ``stream.partition_custom(partitioner,
    key_selector)``."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """The channel for the key, from 0 to ``num_partitions - 1``."""


class CoMapFunction(Function):
    """Turns each value of two connected streams into one value; each stream has its own method."""

    @abstractmethod
    def map1(self, value: Any) -> Any: ...

    @abstractmethod
    def map2(self, value: Any) -> Any: ...


class CoFlatMapFunction(Function):
    """Turns each value of two connected streams into any number of values; each stream has its own
    method."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None: ...

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None: ...


# -- process functions -----------------------------------------------------------------------------


class TimerService(Protocol):
    """Gives the time, and sets timers for the current key (timers only in keyed process
    functions)."""

    def current_processing_time(self) -> int:
        """Milliseconds since 1970-01-01 UTC, by the machine's clock."""

    def current_watermark(self) -> int:
        """The current watermark: how far event time has advanced, in milliseconds since 1970-01-01
        UTC."""

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Has ``on_timer`` called when the machine's clock passes ``timestamp``. Registering the
        same timer again has no effect."""

    def register_event_time_timer(self, timestamp: int) -> None:
        """Has ``on_timer`` called when the watermark reaches ``timestamp``. Registering the same
        timer again has no effect."""

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Deletes the timer; does nothing if there is none."""

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Deletes the timer; does nothing if there is none."""


class ProcessContext:
    """What a process function can ask about the current record. One object serves all records: do
    not keep it."""

    __slots__ = ("_timer_service", "_timestamp")

    def __init__(self, timer_service: TimerService) -> None:
        self._timer_service = timer_service
        self._timestamp: int | None = None

    def timestamp(self) -> int | None:
        """The record's event time in milliseconds, or None."""
        return self._timestamp

    def timer_service(self) -> TimerService:
        return self._timer_service


class KeyedProcessContext(ProcessContext):
    """A ProcessContext that also knows the current key."""

    __slots__ = ("_current",)

    def __init__(self, timer_service: TimerService, current: CurrentKey) -> None:
        super().__init__(timer_service)
        self._current = current

    def get_current_key(self) -> Any:
        return self._current.key


class TimeDomain(Enum):
    """The time that a timer was set on."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class TimerContext(KeyedProcessContext):
    """What ``on_timer`` can ask about the timer: its time, its key and its time domain."""

    __slots__ = ("_domain",)

    def __init__(self, timer_service: TimerService, current: CurrentKey) -> None:
        super().__init__(timer_service, current)
        self._domain = TimeDomain.EVENT_TIME

    def time_domain(self) -> TimeDomain:
        """``TimeDomain.EVENT_TIME`` or ``TimeDomain.PROCESSING_TIME``."""
        return self._domain


class ProcessFunction(Function):
    """Sees each value with its context. Results are yielded; ``yield output_tag, value`` sends to a
    side output."""

    Context: TypeAlias = ProcessContext

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any] | None: ...


class KeyedProcessFunction(Function):
    """Sees each value of a keyed stream with its context: time, key, state, timers. ``yield
    output_tag, value`` sends to a side output."""

    Context: TypeAlias = KeyedProcessContext
    OnTimerContext: TypeAlias = TimerContext

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessContext) -> Iterable[Any] | None: ...

    def on_timer(self, timestamp: int, ctx: TimerContext) -> Iterable[Any] | None:
        """Called when a timer registered with ``ctx.timer_service()`` fires; the key is the one it
        was registered for."""


class CoProcessFunction(Function):
    """Sees each value of two connected streams with its context."""

    Context: TypeAlias = ProcessContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: ProcessContext) -> Iterable[Any] | None: ...

    @abstractmethod
    def process_element2(self, value: Any, ctx: ProcessContext) -> Iterable[Any] | None: ...


class KeyedCoProcessFunction(Function):
    """Sees each value of two connected keyed streams with its context. Both sides share the state
    and the timers of a key."""

    Context: TypeAlias = KeyedProcessContext
    OnTimerContext: TypeAlias = TimerContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedProcessContext) -> Iterable[Any] | None: ...

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedProcessContext) -> Iterable[Any] | None: ...

    def on_timer(self, timestamp: int, ctx: TimerContext) -> Iterable[Any] | None:
        """Called when a timer registered with ``ctx.timer_service()`` fires; the key is the one it
        was registered for."""


# -- sources and sinks of the older kind -----------------------------------------------------------


class SourceContext(Protocol):
    """Takes what a :class:`SourceFunction` reads. Its calls block under back-pressure."""

    def collect(self, value: Any) -> None: ...

    def collect_with_timestamp(self, value: Any, timestamp: int) -> None: ...

    def emit_watermark(self, watermark: Watermark | int) -> None:
        """No record with a timestamp at or below this one (milliseconds) follows."""

    def mark_as_temporarily_idle(self) -> None: ...

    def get_checkpoint_lock(self) -> Any:
        """A lock for a source that is a CheckpointedFunction. Hold it (``with
        ctx.get_checkpoint_lock():``) over ``collect`` and the change of state that belongs to it,
        so that no barrier comes between the two."""


class SourceFunction(Function):
    """A source that may block. ``run`` has a thread of its own, and returns when there is no more
    to read, or after ``cancel``."""

    @abstractmethod
    def run(self, ctx: SourceContext) -> None: ...

    @abstractmethod
    def cancel(self) -> None:
        """Called from another thread: makes ``run`` return soon."""


class SinkFunction(Function):
    """Writes each value to its destination: ``stream.add_sink(function)``."""

    Context: TypeAlias = SinkContext

    @abstractmethod
    def invoke(self, value: Any, context: Any = None) -> None:
        """Writes one value. An ``invoke`` with a second parameter gets a context, which knows the
        value's event time, the watermark and the processing time."""


# -- how operators hold functions ------------------------------------------------------------------


def method_of(function: object, name: str) -> Callable[..., Any]:
    """The method ``name`` of a function object, or else the callable itself; raises ProgramError
    for anything else."""
    method = getattr(function, name, None)
    if isinstance(function, type) and issubclass(function, Function):
        raise ProgramError(
            f"a function object is needed, not its class: write {function.__name__}()"
        )
    if method is not None and (isinstance(function, Function) or not callable(function)):
        return cast("Callable[..., Any]", method)
    if callable(function):
        return cast("Callable[..., Any]", function)
    raise ProgramError(
        f"{function!r:.80} can be neither called nor does it have {name}(): pass a function, "
        f"a lambda, or an object with {name}()"
    )


_BEFORE_RECORDS = NoKey(
    "there is no record yet, and so no key: open() takes the state, the methods that get "
    "records read and write it"
)


def open_function(
    function: object, context: OperatorContext, backend: KeyedStateBackend | None = None
) -> None:
    """Calls ``open`` of a function object, after a CheckpointedFunction got its state back. On
    keyed streams ``open`` may ask for state. Plain callables have no ``open``."""
    if isinstance(backend, KeyedStateBackend):
        backend.current.key = _BEFORE_RECORDS
    if function is not None:
        context.functions.append(function)
    runtime_context = RuntimeContext(context, backend)
    initialize_function(function, context, runtime_context)
    if isinstance(function, Function):
        refuse_idle(cast("Any", function).open(runtime_context), "open()")


def close_function(function: object) -> None:
    """Calls ``close`` if it is a function object."""
    if isinstance(function, Function):
        refuse_idle(cast("Any", function).close(), "close()")
