"""The window operator: Flink's semantics for any assigner, trigger, evictor and function.

Each record is put into its windows, and the trigger asked for each of them; timers ask it again. Where it says FIRE the window is evaluated, where
it says PURGE its contents go. A window of event time is done with when the watermark has reached its last timestamp plus the allowed lateness,
one of processing time when its last millisecond is over: then contents, trigger state and window state go. Records that come later still are counted,
or sent to a side output. Windows that merge are in ``flinkpy.windowing.general.merging_windows``; windows with nothing special about them take the
loops of ``flinkpy.windowing.general.grid_loop`` and ``flinkpy.windowing.general.session_loop``. What becomes of windows that fire is in
``flinkpy.windowing.general.firing``.

State, in the keyed backend: contents by key and window, the trigger's state, the function's per-window state, and (in snapshots) timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, cast

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.codegen.generated import failure_in, forget_source
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, CheckpointBarrier, RowBatch
from flinkpy.core.errors import FlinkpyError, ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import RuntimeContext, close_function, open_function
from flinkpy.operators.keyed_state import EndsKeys
from flinkpy.operators.process.yielding import Results
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.rows.stateless import rows
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.api import State
from flinkpy.state.backend import CurrentKey, KeyedStateBackend
from flinkpy.state.descriptors import StateDescriptor
from flinkpy.windowing.assigners import MergingWindowAssigner, WindowAssigner, no_timestamp
from flinkpy.windowing.contexts import AssignerContext, EvictorContext, FunctionContext, TriggerContext
from flinkpy.windowing.evictors import Evictor, TimestampedValue
from flinkpy.windowing.general.contents import Contents, ListContents
from flinkpy.windowing.general.evaluation import Evaluation, EvictingEvaluation, bound_call, check_window_function
from flinkpy.windowing.general.firing import FiresWindows
from flinkpy.windowing.general.grid_loop import default_slicing, grid_loop, windows_ahead
from flinkpy.windowing.general.merging_windows import MergingWindows
from flinkpy.windowing.general.pages import MISSING, pages_over
from flinkpy.windowing.general.session_loop import are_default_sessions, session_loop
from flinkpy.windowing.general.window_state import NoWindowState, WindowStates
from flinkpy.windowing.general.window_timers import WindowTimers, WindowTimerService
from flinkpy.windowing.triggers import Trigger, TriggerResult
from flinkpy.windowing.window_functions import ProcessAllWindowFunction, ProcessWindowFunction

CONTINUE = TriggerResult.CONTINUE

CONTENTS, TRIGGER_STATE, WINDOW_STATE = "_windows", "_trigger state", "_window state"  # names of engine state: key -> {window: ...}
EVENT_TIMERS, PROCESSING_TIMERS = "_window event timers", "_window processing timers"  # key -> {window: moments}, in snapshots only


def the_one_key(record: Any) -> int:
    """The key of all records where there is none."""
    return 0


class _NoStateOfItsOwn:
    """Instead of keyed state, for the functions that windows keep state for."""

    def state(self, descriptor: StateDescriptor) -> State:
        raise ProgramError(f"state {descriptor.name!r}: reduce and aggregate of windows have no keyed state beside what the window keeps for them; "
                           "give them a ProcessWindowFunction that has")


class WindowOperator(FiresWindows, DropsLateRecords, EndsKeys, OneInputOperator):
    """``WindowOperator(key, assigner, trigger, evictor, contents, window_function, allowed_lateness, late_tag)``.

    - ``key``: where a record's key is; None: no keys, all records share their windows (the task must have parallelism 1);
    - ``assigner``: a WindowAssigner; ``trigger``: None for the assigner's default one; ``evictor``: None for none;
    - ``contents``: ``ReduceContents(function)``, ``AggregateContents(function)``, or ``ListContents()`` for all records;
    - ``window_function``: a WindowFunction or ProcessWindowFunction (``All...`` where there is no key), or a function ``(key, window, inputs)``
      (without a key ``(window, inputs)``) that returns results or None; None where the contents are themselves the result (reduce, aggregate);
    - ``allowed_lateness``: milliseconds; ``late_tag``: the OutputTag of the side output for records that came too late, else they are counted in
      ``late_records_dropped``, and in the metric numLateRecordsDropped.

    Results have the timestamp ``window.max_timestamp()``. ProgramError for parts that do not fit together.

    >>> from flinkpy.windowing.assigners import TumblingEventTimeWindows
    >>> count = lambda key, window, inputs: [(key, len(inputs))]
    >>> WindowOperator(KeySpec(lambda pair: pair[0]), TumblingEventTimeWindows(1000), window_function=count)
    <WindowOperator TumblingEventTimeWindows(1000, 0), EventTimeTrigger(), All records>
    """

    parks = True

    def __init__(
        self, key: KeySpec | None, assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any] | None = None,
        evictor: Evictor[Any, Any] | None = None, contents: Contents | None = None, window_function: Any = None, allowed_lateness: int = 0,
        late_tag: OutputTag | None = None,
    ) -> None:
        self.key = KeySpec(the_one_key) if key is None else key
        key_function(self.key)
        self.assigner, self.evictor = assigner, evictor
        self.trigger: Trigger[Any, Any] = assigner.get_default_trigger() if trigger is None else trigger
        self.contents = ListContents() if contents is None else contents
        self.window_function, self.is_keyed = window_function, key is not None
        self.allowed_lateness, self.late_tag = allowed_lateness, late_tag
        self._check()

    def _check(self) -> None:
        check_window_function(self.window_function, self.is_keyed)
        if self.window_function is None and isinstance(self.contents, ListContents):
            raise ProgramError("all records of a window are kept for a window function, and there is none")
        if isinstance(self.assigner, MergingWindowAssigner) and not self.trigger.can_merge():
            raise ProgramError(f"the windows of {self.assigner!r} merge, and {self.trigger!r} cannot: its can_merge() says False")
        lateness = self.allowed_lateness
        if isinstance(lateness, bool) or not isinstance(lateness, int) or lateness < 0:
            raise ProgramError(f"the allowed lateness is a whole number of milliseconds from 0 on, this is {lateness!r:.80}")

    # -- life ------------------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self._event_time = self.assigner.is_event_time()
        self._service = WindowTimerService(self.context.timers, self._on_processing_time)
        self._at = CurrentKey()  # its key is the window that trigger and function are asked about
        self._results = Results(True)
        self._late = RowBatch([], [])
        self._open_state()
        open_function(self.key.selector, self.context)
        open_function(self.contents.function, self.context, cast("KeyedStateBackend", _NoStateOfItsOwn()))
        open_function(self.window_function, self.context, self.backend)
        self._select = key_function(self.key)
        self._open_parts()
        self._open_loop()
        self._service.arm()

    def _open_state(self) -> None:
        values = self.backend.engine_values
        self._pages, self._trigger_pages, self._window_pages = (pages_over(values(name)) for name in (CONTENTS, TRIGGER_STATE, WINDOW_STATE))
        for timers, name in self._timers():
            saved = values(name)
            timers.restore(saved)
            saved.clear()

    def _timers(self) -> tuple[tuple[WindowTimers, str], ...]:
        return (self._service.event, EVENT_TIMERS), (self._service.processing, PROCESSING_TIMERS)

    def _open_parts(self) -> None:
        key, at, service = self.backend.current, self._at, self._service
        runtime_context = RuntimeContext(self.context, self.backend)
        self._assigner_context = AssignerContext(service, runtime_context)
        self._trigger_context = TriggerContext(service, key, at, WindowStates(self._trigger_pages, key, at), runtime_context)
        merges = isinstance(self.assigner, MergingWindowAssigner)
        self._window_states = WindowStates(self._window_pages, key, at)
        self._function_context = FunctionContext(service, at, NoWindowState() if merges else self._window_states, runtime_context)
        self._merging = MergingWindows(self) if merges else None
        self._element = self._element_alone if self._merging is None else self._merging.element
        plain = self.evictor is None
        self._slicing = default_slicing(self.assigner, self.trigger) if plain else None
        self._is_default = self._slicing is not None or (plain and are_default_sessions(self.assigner, self.trigger))

    def _open_loop(self) -> None:
        shared = not isinstance(self.assigner, MergingWindowAssigner) and (self._slicing is None or self._slicing.size != self._slicing.slide)
        names = self.contents.prepare(shared and not self.context.object_reuse)
        self._loop: Callable[..., None] | None = None
        if self._slicing is not None:
            self._loop = grid_loop(self._slicing, self.contents, names)
        elif self._is_default:
            self._loop = session_loop(self.assigner, self.contents, names)
        function = self.window_function
        call = None if function is None else bound_call(function, self.is_keyed, self._function_context)
        bases = (ProcessWindowFunction, ProcessAllWindowFunction)
        self._clear = function.clear if isinstance(function, bases) and type(function).clear not in (each.clear for each in bases) else None
        self._kept: Contents = self.contents
        if self.evictor is not None:
            self._kept = ListContents()
            asked = EvictorContext(self._service)
            self._evaluation: Evaluation = EvictingEvaluation(self.contents, call, self.context, self.evictor, asked)
            return
        ends_at_once = self._is_default and self.allowed_lateness == 0 and not shared
        self._evaluation = Evaluation(self.contents, call, not ends_at_once and not self.context.object_reuse, self.context)

    def close(self) -> None:
        if hasattr(self, "_service"):
            self._service.disarm()
        loop = getattr(self, "_loop", None)
        if loop is not None:
            forget_source(loop)
        try:
            for function in (self.window_function, self.contents.function):
                close_function(function)
        finally:
            super().close()
            close_function(self.key.selector)

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        tables = [(self.backend.engine_values(name), timers) for timers, name in self._timers()]
        for saved, timers in tables:
            saved.update(timers.by_key())
        try:
            return super().snapshot_state(barrier)
        finally:
            for saved, _ in tables:
                saved.clear()

    # -- records ---------------------------------------------------------------------------------------------------------------

    def process_batch(self, batch: Batch) -> Work:
        batch = rows(batch)
        stamps: Any = batch.timestamps
        if stamps is None:
            if self._event_time:
                raise no_timestamp(self.assigner)
            stamps = repeat(MIN_TIMESTAMP)
        yield from self._run(batch.values, stamps) if self._loop is None else self._run_loop(self._loop, batch.values, stamps)
        self._emit()
        self.backend.after_records(len(batch))

    def _run(self, values: list[Any], stamps: Any) -> Work:
        """The general way."""
        select, current, element, record = self._select, self.backend.current, self._element, None
        try:
            for record, stamp in zip(values, stamps):
                current.key = key = canonical_key(select(record))
                yield from element(key, record, stamp)
        except FlinkpyError:
            raise
        except Exception as error:
            raise user_code_error(error, self.context, record) from error

    def _run_loop(self, loop: Callable[..., None], values: list[Any], stamps: Any) -> Work:
        """The fast way, and the general one for the records it hands back. Where one of those parks the operator, the loop ends, and begins
        again behind it."""
        if self._event_time:
            time = self._service.watermark
        else:
            time = self._service.now_ms() - 1
            stamps = repeat(time + 1)
        self._coming: Iterator[Any] = iter(values)
        self._stamps: Iterator[int] = iter(stamps)
        while (unfinished := self._run_part(loop, time)) is not None:
            yield
            yield from unfinished
            self._coming, self._stamps = iter(self._left[0]), iter(self._left[1])

    def _run_part(self, loop: Callable[..., None], time: int) -> Work | None:
        """Up to the end, or the record that parks the operator: then what is left to do for it."""
        slicing, coming, stamps = self._slicing, self._coming, self._stamps
        self._unfinished: Work | None = None
        try:
            if slicing is not None:
                loop(coming, stamps, self._select, self._pages, {}, lambda start: windows_ahead(slicing, start, time), self._other, self._opened)
            elif self._merging is not None:
                loop(coming, stamps, self._select, self._pages, self._merging.pages, time, self._other, self._opened, self._moved)
        except Exception as error:
            failure = failure_in(loop, error.__traceback__)
            raise user_code_error(error, self.context, failure.variables.get("record") if failure else None) from error
        return self._unfinished

    def _other(self, key: Any, record: Any, stamp: int) -> None:
        """The general way for one record. If it parks the operator, the loop finds no record behind it: these are set aside."""
        self.backend.current.key = key = canonical_key(key)
        work = self._one(key, record, stamp)
        for _ in work:
            self._unfinished = work
            left = list(zip(self._coming, self._stamps))
            self._left = [record for record, _ in left], [stamp for _, stamp in left]
            return

    def _one(self, key: Any, record: Any, stamp: int) -> Work:
        try:
            yield from self._element(key, record, stamp)
        except FlinkpyError:
            raise
        except Exception as error:
            raise user_code_error(error, self.context, record) from error

    def _element_alone(self, key: Any, record: Any, stamp: int) -> Work:
        """One record into its windows, which do not merge."""
        skipped = True
        kept = TimestampedValue(record, stamp if stamp != MIN_TIMESTAMP else None) if self.evictor is not None else record
        for window in self.assigner.assign_windows(record, stamp, self._assigner_context):
            cleanup = self.cleanup_time(window)
            if self._event_time and cleanup <= self._service.watermark:
                continue
            skipped = False
            self.add(key, window, kept)
            self._at.key = window
            result = self.trigger.on_element(record, stamp, window, self._trigger_context)
            if result is not CONTINUE:
                yield from self.act(result, key, window, window)
            if cleanup != MAX_TIMESTAMP:
                self.register_cleanup(key, window)
        if skipped:
            self.skipped(record, stamp)

    def add(self, key: Any, window: Any, kept: Any) -> None:
        """A record to the contents kept under that window."""
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = {}
        contents = page.get(window, MISSING)
        page[window] = self._kept.first(kept) if contents is MISSING else self._kept.add(contents, kept)

    def skipped(self, record: Any, stamp: int) -> None:
        """A record that no window took: it is late, unless its assigner has no window for it."""
        if not self._event_time or stamp + self.allowed_lateness > self._service.watermark:
            return
        if self.late_tag is None:
            self.drop_late(1)
        else:
            self._late.values.append(record)
            assert self._late.timestamps is not None
            self._late.timestamps.append(stamp)

    # -- time ------------------------------------------------------------------------------------------------------------------

    def register_cleanup(self, key: Any, window: Any) -> None:
        """A timer for the window's end of life. At the end of time there is none: all ends then."""
        time = self.cleanup_time(window)
        if time == MAX_TIMESTAMP:
            return
        if self._event_time:
            self._service.event.add(time, key, window)
        else:
            self._service.add_processing(time, key, window)

    def _opened(self, key: Any, window: Any) -> None:
        """A new window of the default trigger: its timer, and the one for its end of life."""
        if self._event_time:
            last = window.max_timestamp()
            self._service.event.add(last, key, window)
            if self.allowed_lateness:
                self.register_cleanup(key, window)
        else:
            self._service.add_processing(window.max_timestamp(), key, window)

    def _moved(self, key: Any, before: Any, window: Any) -> None:
        """A session of the default trigger became longer: its timers go with its end."""
        timers = self._service.event if self._event_time else self._service.processing
        timers.remove(before[1] - 1, key, before)
        if self._event_time and self.allowed_lateness:
            timers.remove(self.cleanup_time(before), key, before)
        self._opened(key, window)

    def __repr__(self) -> str:
        evictor = "" if self.evictor is None else f", {type(self.evictor).__name__}"
        return f"<WindowOperator {self.assigner!r}, {self.trigger!r}{evictor}, {self.contents.name}>"
