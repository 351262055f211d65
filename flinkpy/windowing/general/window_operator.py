"""The window operator: Flink's semantics for any assigner, trigger, evictor and function.

The operator puts each record into its windows and calls the trigger for each of them; timers call
it again. On FIRE it evaluates the window; on PURGE it removes the window's contents. When a window
ends (``window_lifetimes``), it removes its contents and state. Records that come even later are
counted, or go to a side output.

See also ``window_sets`` and ``merging_windows`` (which windows are open), ``firing`` (evaluates and
ends them) and ``contents``. Windows with default triggers run in the generated loops of
``aligned_loop`` and ``session_loop``.

State in the keyed backend: contents by key and window, the trigger's state, the function's
per-window state, and (in snapshots) timers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, cast

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import Guarding, OneInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore
from flinkpy.operators.functions import RuntimeContext, close_function, open_function
from flinkpy.operators.keyed_state import EndsKeys
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.user_errors import raise_told
from flinkpy.state.api import State
from flinkpy.state.backend import CurrentKey, KeyedStateBackend
from flinkpy.state.descriptors import StateDescriptor
from flinkpy.windowing.assigners import MergingWindowAssigner, WindowAssigner, no_timestamp
from flinkpy.windowing.evictors import TimestampedValue
from flinkpy.windowing.general.bound_trigger import BoundTrigger
from flinkpy.windowing.general.contents import (
    Contents,
    ContentsFunctions,
    ListContents,
    StoredContents,
)
from flinkpy.windowing.general.contexts import (
    AssignerContext,
    EvictorContext,
    FunctionContext,
    TriggerContext,
)
from flinkpy.windowing.general.evaluation import (
    Evaluation,
    EvictingEvaluation,
    bound_call,
    bound_clear,
    check_window_function,
)
from flinkpy.windowing.general.firing import WindowFiring
from flinkpy.windowing.general.guarded_call import guarded_call
from flinkpy.windowing.general.loops.aligned_loop import (
    aligned_loop,
    default_slicing,
    windows_ahead,
)
from flinkpy.windowing.general.loops.fast_path import FastPath, HandBack
from flinkpy.windowing.general.loops.session_loop import are_default_sessions, session_loop
from flinkpy.windowing.general.merging_windows import MERGING_WINDOWS, MergingWindows
from flinkpy.windowing.general.per_window.far_window_timers import window_timers
from flinkpy.windowing.general.per_window.namespaces import namespaced_state
from flinkpy.windowing.general.per_window.window_states import NoWindowState, WindowStates
from flinkpy.windowing.general.per_window.window_timers import Timer, WindowTimerService
from flinkpy.windowing.general.window_lifetimes import WindowLifetimes
from flinkpy.windowing.general.window_output import WindowOutput
from flinkpy.windowing.general.window_sets import PlainWindows, WindowSet
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.triggers import TriggerResult
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from flinkpy.windowing.windows import Window

# Names of state: key -> {window: ...}
CONTENTS, TRIGGER_STATE, WINDOW_STATE = "_windows", "_trigger state", "_window state"
# key -> {window: moments}, in snapshots only
EVENT_TIMERS = "_window event timers"
PROCESSING_TIMERS = "_window processing timers"

OF_WINDOWS = (
    "on_error() on windows is for the function of apply() or process(): reduce and aggregate "
    "have put a part of the record into the "
    "window when they raise. Check records in a map(...) with a policy before"
)


def single_key(record: object) -> int:
    """The key of all records of a stream without keys."""
    return 0


class _NoKeyedState:
    """Takes the place of the backend for the functions of reduce and aggregate, whose only state is
    the window's contents."""

    def state(self, descriptor: StateDescriptor) -> State:
        raise ProgramError(
            f"state {descriptor.name!r}: reduce and aggregate of windows have no keyed state "
            "beside what the window keeps for them; "
            "give them a ProcessWindowFunction that has"
        )


class WindowOperator(DropsLateRecords, EndsKeys, OneInputOperator):
    """``WindowOperator(key, windows, contents, window_function)``.

    - ``key``: how to get a record's key; None: no keys, all records share their windows (the task
      must have parallelism 1);
    - ``contents``: ``ReduceContents(function)``, ``AggregateContents(function)``, or
      ``ListContents()`` for all records;
    - ``window_function``: a WindowFunction or ProcessWindowFunction (``All...`` without a key), or
      a function ``(key, window, inputs)`` (without a key ``(window, inputs)``) that returns results
      or None; None if the contents are themselves the result (reduce, aggregate).

    Results have the timestamp ``window.max_timestamp()``. Raises ProgramError for parts that do not
    fit together.

    >>> from flinkpy.windowing.assigners import TumblingEventTimeWindows
    >>> count = lambda key, window, inputs: [(key, len(inputs))]
    >>> windows = WindowingStrategy(TumblingEventTimeWindows(1000))
    >>> WindowOperator(KeySpec(lambda pair: pair[0]), windows, window_function=count)
    <WindowOperator TumblingEventTimeWindows(1000, 0), EventTimeTrigger(), All records>
    """

    parks = True
    guarding = Guarding.BY_ITSELF
    error_policy = ErrorPolicy()

    def __init__(
        self,
        key: KeySpec | None,
        windows: WindowingStrategy,
        contents: Contents | None = None,
        window_function: object = None,
    ) -> None:
        self.key = KeySpec(single_key) if key is None else key
        key_function(self.key)
        self.windows, self.trigger = windows, windows.effective_trigger
        self.contents = ListContents() if contents is None else contents
        self.window_function, self.is_keyed = window_function, key is not None
        self._check()

    def _check(self) -> None:
        check_window_function(self.window_function, self.is_keyed)
        if self.window_function is None and isinstance(self.contents, ListContents):
            raise ProgramError(
                "all records of a window are kept for a window function, and there is none"
            )
        self.windows.check()

    def set_error_policy(self, policy: ErrorPolicy) -> None:
        """Sets what happens to windows whose function raises."""
        if self.window_function is None or not isinstance(self.contents, ListContents):
            raise ProgramError(OF_WINDOWS)
        self.error_policy = policy

    @property
    def fired_timers(self) -> int:
        # it is there from ``open`` on
        return self._service.fired_timers if hasattr(self, "_service") else 0

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        self._service = WindowTimerService(
            self.context.timers,
            self._on_processing_time,
            window_timers(self.backend, EVENT_TIMERS),
            window_timers(self.backend, PROCESSING_TIMERS),
        )
        self._lifetimes = WindowLifetimes(
            self._service, self.windows.assigner.is_event_time(), self.windows.allowed_lateness
        )
        self._output = WindowOutput(self.output, self.windows.late_tag)
        open_function(self.key.selector, self.context)
        open_function(
            self.contents.function, self.context, cast("KeyedStateBackend", _NoKeyedState())
        )
        open_function(self.window_function, self.context, self.backend)
        self._select = key_function(self.key)
        self._open_parts()
        self._service.arm()

    def _open_parts(self) -> None:
        """Makes what the windows of this operator need, each part with its own state."""
        assigner, evictor = self.windows.assigner, self.windows.evictor
        service = self._service
        lifetimes = self._lifetimes
        key = self.backend.current
        window = CurrentKey()
        contents, self._trigger_state, self._window_state = (
            namespaced_state(self.backend, name) for name in (CONTENTS, TRIGGER_STATE, WINDOW_STATE)
        )
        runtime_context = RuntimeContext(self.context, self.backend)
        trigger_states = WindowStates(self._trigger_state, key, window)
        self._assigner_context = AssignerContext(service, runtime_context)
        self._trigger = BoundTrigger(
            self.trigger,
            TriggerContext(service, key, window, trigger_states, runtime_context),
            window,
            self._trigger_state,
        )

        slicing = default_slicing(assigner, self.trigger) if evictor is None else None
        self._is_default = slicing is not None or (
            evictor is None and are_default_sessions(assigner, self.trigger)
        )
        merges = isinstance(assigner, MergingWindowAssigner)
        shared = not merges and (slicing is None or slicing.size != slicing.slide)
        functions = self.contents.bind(shared and not self.context.object_reuse)
        self._contents = StoredContents(
            contents, functions if evictor is None else ListContents().bind(False)
        )
        self._windows: WindowSet = PlainWindows(lifetimes)
        if isinstance(assigner, MergingWindowAssigner):
            merging = namespaced_state(self.backend, MERGING_WINDOWS)
            self._windows = MergingWindows(
                assigner, merging, self._contents, self._trigger, lifetimes
            )
        self._fast_path = self._make_fast_path(slicing, functions)

        states: KeyedStateStore = (
            NoWindowState() if merges else WindowStates(self._window_state, key, window)
        )
        context = FunctionContext(service, window, states, runtime_context)
        evaluation = self._make_evaluation(functions, context, shared)
        self._firing = WindowFiring(
            key,
            window,
            self._windows,
            self._contents,
            self._window_state,
            self._trigger,
            lifetimes,
            evaluation,
            bound_clear(self.window_function, context),
            self._output,
            self._flush,
            self.context.batch_records,
        )

    def _make_evaluation(
        self, functions: ContentsFunctions, context: FunctionContext, shared: bool
    ) -> Evaluation:
        call = (
            None
            if self.window_function is None
            else bound_call(self.window_function, self.is_keyed, context)
        )
        if call is not None and not self.error_policy.fails_at_once:
            call = guarded_call(call, self.error_policy, self.is_keyed, self.context)
        evictor = self.windows.evictor
        if evictor is not None:
            return EvictingEvaluation(
                functions, call, self.context, evictor, EvictorContext(self._service)
            )
        ends_at_once = self._is_default and self.windows.allowed_lateness == 0 and not shared
        return Evaluation(
            functions, call, not ends_at_once and not self.context.object_reuse, self.context
        )

    def _make_fast_path(
        self, slicing: Slicing | None, functions: ContentsFunctions
    ) -> FastPath | None:
        """The generated loop for default triggers; None for other windows."""
        select = self._select
        contents = self._contents.state
        lifetimes = self._lifetimes
        windows = self._windows
        opened, moved = lifetimes.register_default, lifetimes.move_default
        if slicing is not None:
            loop = aligned_loop(slicing, self.contents, functions.names)

            def run(records: object, timestamps: object, time: int, hand_back: HandBack) -> None:
                loop(
                    records,
                    timestamps,
                    select,
                    contents.mapping,
                    {},
                    lambda start: windows_ahead(slicing, start, time),
                    hand_back,
                    opened,
                )

        elif self._is_default and isinstance(windows, MergingWindows):
            loop = session_loop(self.windows.assigner, self.contents, functions.names)
            sessions = windows.state

            def run(records: object, timestamps: object, time: int, hand_back: HandBack) -> None:
                loop(
                    records,
                    timestamps,
                    select,
                    contents.mapping,
                    sessions.mapping,
                    time,
                    hand_back,
                    opened,
                    moved,
                )

        else:
            return None
        return FastPath(loop, run, self._process_one, self.context)

    def close(self) -> None:
        if hasattr(self, "_service"):
            self._service.disarm()
        fast_path = getattr(self, "_fast_path", None)
        if fast_path is not None:
            fast_path.close()
        try:
            for function in (self.window_function, self.contents.function):
                close_function(function)
        finally:
            super().close()
            close_function(self.key.selector)

    # -- records -----------------------------------------------------------------------------------

    def process_batch(self, batch: Batch) -> Work:
        batch = rows(batch)
        timestamps: Any = batch.timestamps
        if timestamps is None:
            if self._lifetimes.event_time:
                raise no_timestamp(self.windows.assigner)
            timestamps = repeat(MIN_TIMESTAMP)
        if self._fast_path is None:
            yield from self._process_all(batch.values, timestamps)
        elif self._lifetimes.event_time:
            yield from self._fast_path.run(batch.values, timestamps, self._service.watermark)
        else:  # a record's time is the clock's
            now = self._service.now_ms()
            yield from self._fast_path.run(batch.values, repeat(now), now - 1)
        self._end_batch(len(batch))

    def _process_all(self, values: list[Any], timestamps: Any) -> Work:
        """Processes a batch in the general way."""
        select, current, record = self._select, self.backend.current, None
        try:
            for record, timestamp in zip(values, timestamps):
                current.key = key = canonical_key(select(record))
                yield from self._process_element(key, record, timestamp)
        except BaseException as error:
            raise_told(error, self.context, record)

    def _process_one(self, key: object, record: object, timestamp: int) -> Work:
        """Processes a record that the fast path hands back, in the general way."""
        self.backend.current.key = key = canonical_key(key)
        try:
            yield from self._process_element(key, record, timestamp)
        except BaseException as error:
            raise_told(error, self.context, record)

    def _process_element(self, key: object, record: object, timestamp: int) -> Work:
        """Puts a record into its windows and calls the trigger for each."""
        taken = False
        kept = (
            record
            if self.windows.evictor is None
            else TimestampedValue(record, timestamp if timestamp != MIN_TIMESTAMP else None)
        )
        assigner = self.windows.assigner
        windows: Any = assigner.assign_windows(record, timestamp, self._assigner_context)
        if type(windows) is not list:
            _check_windows(windows, assigner)
        for assigned in windows:
            place = self._windows.place(key, assigned)
            if place is None:
                continue
            window, namespace = place
            taken = True
            self._contents.add(key, namespace, kept)
            result = self._trigger.on_element(record, timestamp, window)
            if result is not TriggerResult.CONTINUE:
                yield from self._firing.act(result, key, window, namespace)
            self._lifetimes.register_cleanup(key, window)
        if not taken and self._lifetimes.is_late(timestamp):
            if self.windows.late_tag is None:
                self.drop_late(1)
            else:
                self._output.add_late(record, timestamp)

    # -- time --------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        self._service.watermark = watermark.timestamp
        yield from self._fire(self._service.event.due(watermark.timestamp), True)
        super().process_watermark(watermark)

    def end_key(self) -> Work:
        service = self._service
        service.watermark = MAX_TIMESTAMP
        yield from self._fire(service.event.all_there_are(), True)
        yield from self._fire(service.processing.all_there_are(), False)
        service.watermark = MIN_TIMESTAMP
        service.event.clear()

    def _on_processing_time(self, due: Iterator[tuple[int, Timer]]) -> None:
        self.do(self._service.firing(self._fire(due, False)))

    def _fire(self, due: Iterator[tuple[int, Timer]], event_time: bool) -> Work:
        """Does what timers that are due bring about."""
        by_default = self._is_default and event_time == self._lifetimes.event_time
        try:
            yield from (
                self._firing.fire_by_default(due)
                if by_default
                else self._firing.fire_by_trigger(due, event_time)
            )
        except BaseException as error:
            raise_told(error, self.context)
        self._end_batch(0)

    def _end_batch(self, records: int) -> None:
        self._flush()
        self.backend.after_records(records)
        self._service.after_batch()

    def _flush(self) -> None:
        """Emits what was gathered."""
        self._output.emit()

    def __repr__(self) -> str:
        windows = self.windows
        evictor = "" if windows.evictor is None else f", {type(windows.evictor).__name__}"
        parts = f"{windows.assigner!r}, {self.trigger!r}{evictor}, {self.contents.name}"
        return f"<WindowOperator {parts}>"


def _check_windows(windows: object, assigner: WindowAssigner[Any, Any]) -> None:
    if not isinstance(windows, Iterable) or isinstance(windows, Window):
        raise TypeError(
            f"{type(assigner).__name__}.assign_windows() gives a list of windows, [] for none; "
            f"this is {windows!r:.80}"
        )
