"""The methods of windowed streams: the settings of windows, and the calls that return a stream
again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Generic, TypeVar

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.time import Time, to_milliseconds
from flinkpy.common.typeinfo import TypeInformation, Types
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import check_arity, check_function, check_type, located, refuse
from flinkpy.datastream.streams.operator_settings import OperatorSettings
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.datastream.verbs.key_verbs import Keyed, field_position
from flinkpy.datastream.windowed.columnar_windows import ColumnarWindow, are_aggregates
from flinkpy.datastream.windowed.typed_windows import typed_call
from flinkpy.datastream.windowed.window_choice import WindowCall, choose_operator
from flinkpy.windowing.assigners import MergingWindowAssigner, WindowAssigner
from flinkpy.windowing.evictors import Evictor
from flinkpy.windowing.triggers import Trigger
from flinkpy.windowing.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from flinkpy.windowing.windowing_strategy import WindowingStrategy

S = TypeVar("S", bound=OperatorSettings)
Self = TypeVar("Self", bound="Windowed[Any]")


class Windowed(Generic[S]):
    """The methods of windows with and without keys. ``as_stream`` makes the public stream for a
    recorded one. Invalid arguments raise ProgramError."""

    _apply_kind: type[f.Function]
    _process_kind: type[f.Function]
    _other_kinds: tuple[type[f.Function], ...]
    _elsewhere: str  # the windows that the other kinds of functions are for

    def __init__(
        self,
        stream: RecordedStream,
        window_assigner: WindowAssigner[Any, Any],
        as_stream: Callable[[RecordedStream], S],
    ) -> None:
        self._stream = stream
        self._windows = WindowingStrategy(window_assigner)
        self._as_stream = as_stream
        self._key = stream.key if self._is_by_key else None

    _is_by_key: bool

    def get_input_type(self) -> TypeInformation:
        """The declared type of the records."""
        return self._stream.shown_type()

    # -- how ---------------------------------------------------------------------------------------

    def trigger(self: Self, trigger: Trigger[Any, Any]) -> Self:
        """Sets when windows are evaluated, in place of the assigner's default trigger. For windows
        that merge, the trigger must support merging."""
        if not isinstance(trigger, Trigger):
            raise refuse(f"trigger() takes a Trigger object, this is {trigger!r:.80}")
        assigner = self._windows.assigner
        if isinstance(assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise refuse(
                f"trigger(): the windows of {assigner!r} merge, and {trigger!r} cannot: "
                "its can_merge() says False"
            )
        self._windows = replace(self._windows, trigger=trigger)
        return self

    def evictor(self: Self, evictor: Evictor[Any, Any]) -> Self:
        """Sets an evictor, which removes records from a window when it is evaluated. All records of
        a window are kept until then, even for ``reduce`` and ``aggregate``."""
        if not isinstance(evictor, Evictor):
            raise refuse(f"evictor() takes an Evictor object, this is {evictor!r:.80}")
        self._windows = replace(self._windows, evictor=evictor)
        return self

    def allowed_lateness(self: Self, time_ms: int | Time | timedelta) -> Self:
        """Sets how long after its end (milliseconds, or a Time) an event-time window still takes
        records. Each late record makes it fire again.

        Processing-time windows have no late records.
        """
        span = to_milliseconds(time_ms) if isinstance(time_ms, (Time, timedelta)) else time_ms
        if isinstance(span, bool) or not isinstance(span, int):
            raise refuse(
                f"allowed_lateness() takes milliseconds or a Time, this is {time_ms!r:.80}"
            )
        if span < 0:
            raise refuse(f"allowed_lateness(): the lateness cannot be negative, this is {span} ms")
        self._windows = replace(self._windows, allowed_lateness=span)
        return self

    def side_output_late_data(self: Self, output_tag: OutputTag) -> Self:
        """Sends late records to a side output instead of dropping them: ``get_side_output(tag)`` of
        the result."""
        if not isinstance(output_tag, OutputTag):
            raise refuse(f"side_output_late_data() takes an OutputTag, this is {output_tag!r:.80}")
        known = self._windows.late_tag
        if known is not None:
            raise refuse(f"side_output_late_data(): late records go to {known!r} already")
        self._windows = replace(self._windows, late_tag=output_tag)
        return self

    # -- what --------------------------------------------------------------------------------------

    def reduce(
        self,
        reduce_function: object,
        window_function: object = None,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Reduces the records of a window to one, as they arrive. A window function gets that
        record as its only input."""
        check_function(reduce_function, f.ReduceFunction, "reduce", 2, "reduce()")
        self._check_function(window_function, "reduce()")
        given = check_type(output_type, "reduce()")
        return self._call(
            WindowCall(
                self._key,
                self._windows,
                kind="reduce",
                function=reduce_function,
                window_function=window_function,
            ),
            self._declared() if window_function is None and given is None else given,
        )

    def aggregate(
        self,
        aggregate_function: object,
        window_function: object = None,
        accumulator_type: object = None,
        output_type: object = None,
        *more: Any,
    ) -> S:
        """Adds a window's records to the accumulator of an AggregateFunction as they arrive, and
        emits its result. A window function gets the result as its only input.

        On columns it takes any number of aggregate expressions. It outputs, for each window and
        key, the key's columns, the aggregates, ``window_start`` and ``window_end``.

        >>> from flinkpy.table.expressions import col
        >>> windowed.aggregate(
        ...     col("price").max.alias("highest"), col("price").count.alias("bids")
        ... )  # doctest: +SKIP
        """
        arguments = aggregate_function, window_function, accumulator_type, output_type, *more
        if are_aggregates(arguments):
            return self._as_stream(
                self._columnar().aggregate(tuple(each for each in arguments if each is not None))
            )
        if more:
            raise refuse(
                "aggregate() takes an AggregateFunction, a window function and two types, "
                f"this is one argument more: {more[0]!r:.80}"
            )
        missing = [
            name
            for name in ("create_accumulator", "add", "get_result")
            if not callable(getattr(aggregate_function, name, None))
        ]
        if isinstance(aggregate_function, type) or missing:
            raise refuse(
                f"aggregate() takes an AggregateFunction object, this is {aggregate_function!r:.80}"
            )
        self._check_function(window_function, "aggregate()")
        check_type(accumulator_type, "aggregate()")
        return self._call(
            WindowCall(
                self._key,
                self._windows,
                kind="aggregate",
                function=aggregate_function,
                window_function=window_function,
            ),
            check_type(output_type, "aggregate()"),
        )

    def apply(self, window_function: object, output_type: TypeInformation | None = None) -> S:
        """Calls a window function with all records of a window."""
        self._check_function(window_function, "apply()", needed=self._apply_kind)
        return self._call(
            WindowCall(self._key, self._windows, kind="all", window_function=window_function),
            check_type(output_type, "apply()"),
        )

    def process(
        self, process_window_function: object, output_type: TypeInformation | None = None
    ) -> S:
        """Calls a process function with all records of a window and a context, which has state and
        side outputs."""
        self._check_function(process_window_function, "process()", needed=self._process_kind)
        return self._call(
            WindowCall(
                self._key, self._windows, kind="all", window_function=process_window_function
            ),
            check_type(output_type, "process()"),
        )

    def sum(self, position_to_sum: int | str = 0) -> S:
        """The sum of a field over a window; the other fields are those of the first record."""
        return self._built_in("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> S:
        """The minimum of a field over a window; the other fields are those of the first record."""
        return self._built_in("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> S:
        """The maximum of a field over a window; the other fields are those of the first record."""
        return self._built_in("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> S:
        """The record of a window with the smallest value of a field; the first of several."""
        return self._built_in("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> S:
        """The record of a window with the largest value of a field; the first of several."""
        return self._built_in("max_by", position_to_max_by)

    def count(self) -> S:
        """The number of records in each window, as plain numbers; to get the key as well, use
        ``aggregate`` with a window function.

        On columns it outputs the key's columns, ``count``, ``window_start`` and ``window_end``."""
        columns = self._columnar().count()
        if columns is not None:
            return self._as_stream(columns)
        return self._call(WindowCall(self._key, self._windows, kind="count"), Types.LONG())

    # -- how it becomes a stream -------------------------------------------------------------------

    def _built_in(self, kind: str, wanted: int | str) -> S:
        position = field_position(self._stream, kind, wanted)
        columns = self._columnar().field(kind, position)
        if columns is not None:
            return self._as_stream(columns)
        return self._call(
            WindowCall(self._key, self._windows, kind=kind, position=position), self._declared()
        )

    def _declared(self) -> TypeInformation | None:
        return None if self._stream.is_columnar else self._stream.output_type

    def _columnar(self) -> ColumnarWindow:
        by_key = None if self._key is None else Keyed(self._stream, self._key)
        return ColumnarWindow(self._stream, by_key, self._windows, repr(self))

    def _check_function(
        self, function: object, call: str, needed: type[f.Function] | None = None
    ) -> None:
        """Refuses anything but a window function for this kind of stream. None passes if none is
        ``needed``; a plain function is called like ``apply``."""
        if function is None and needed is None:
            return
        kinds = (
            f"a {self._apply_kind.__name__} or a {self._process_kind.__name__}"
            if needed is None
            else f"a {needed.__name__}"
        )
        if isinstance(function, type):
            raise refuse(
                f"{call} takes a function object, not a class: write {function.__name__}()"
            )
        accepted = (self._apply_kind, self._process_kind) if needed is None else (needed,)
        if isinstance(function, accepted):
            return
        if (
            isinstance(function, f.Function)
            or not callable(function)
            or self._apply_kind not in accepted
        ):
            hint = (
                f"; {type(function).__name__} is for windows {self._elsewhere}"
                if isinstance(function, self._other_kinds)
                else ""
            )
            raise refuse(f"{call} takes {kinds} here, this is {function!r:.80}{hint}")
        check_arity(function, 3 if self._key is not None else 2, call)

    def _call(self, call: WindowCall, output_type: TypeInformation | None) -> S:
        rows = self._stream.as_rows()
        with located():
            operator = choose_operator(typed_call(call, output_type))
        windows = self._windows
        result = rows.apply(type(windows.assigner).__name__, operator, output_type, self._key)
        parts = [
            windows.assigner,
            "default trigger" if windows.trigger is None else windows.trigger,
            windows.evictor,
            call.kind,
        ]
        result.transformation.description = (
            f"Window({', '.join(str(part) for part in parts if part is not None)})"
        )
        if self._key is None:
            result.make_non_parallel()
        return self._as_stream(result)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._windows.assigner!r}>"


class KeyedWindows(Windowed[S]):
    """The verbs of WindowedStream."""

    _apply_kind, _process_kind = WindowFunction, ProcessWindowFunction
    _other_kinds = (AllWindowFunction, ProcessAllWindowFunction)
    _elsewhere = "without keys (window_all)"
    _is_by_key = True


class AllWindows(Windowed[S]):
    """The verbs of AllWindowedStream."""

    _apply_kind, _process_kind = AllWindowFunction, ProcessAllWindowFunction
    _other_kinds, _elsewhere = (WindowFunction, ProcessWindowFunction), "of a keyed stream"
    _is_by_key = False
