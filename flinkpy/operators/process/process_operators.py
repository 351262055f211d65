"""Process functions and co-functions: user code with a context, side outputs and, on keyed streams,
timers.

A function's results are emitted while it still yields (``flinkpy.operators.yielding``):
plain values to the main output, ``(OutputTag, value)`` pairs to side outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import (
    BatchForm,
    Guarding,
    OneInputOperator,
    StreamOperator,
    TwoInputOperator,
    Work,
)
from flinkpy.operators.functions import (
    KeyedProcessContext,
    ProcessContext,
    TimeDomain,
    TimerContext,
    close_function,
    method_of,
    open_function,
)
from flinkpy.operators.key_selectors import close_selectors, open_selectors
from flinkpy.operators.keyed_state import EndsKeys, KeyedStateOperator, may_ask_for_state
from flinkpy.operators.output.output_isolation import not_idle, private
from flinkpy.operators.process.far_key_timers import timer_queue
from flinkpy.operators.process.key_timers import KeyedTimerService, UnkeyedTimerService
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.rows.keyed_stages import with_key
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import Keyed, emit_results, keyed_by

# the names of the timers' state
EVENT_TIMERS = "_event timers"
PROCESSING_TIMERS = "_processing timers"


ProcessElement = Callable[[Any, Any], "Iterable[Any] | None"]


class FunctionOperator(StreamOperator):
    """Opens, calls and closes one user function."""

    keeps_timestamps = True
    emits_changes = INSERT_ONLY  # what a function makes of an update is a new record
    parks = True

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(self) -> None:
        open_function(self.function, self.context)

    def close(self) -> None:
        close_function(self.function)

    def run_function(self, process: ProcessElement, batch: Batch, context: Any) -> Work:
        """Calls the function for each record of the batch and emits the results."""
        batch = rows(batch)
        return emit_results(process, batch.values, batch.timestamps, context, self)


class UnkeyedFunctionOperator(FunctionOperator):
    """Runs a function without a key, which may ask for the time."""

    batch_form = BatchForm.AS_IN_STREAM

    def open(self) -> None:
        self.timer_service = UnkeyedTimerService(self.context.timers)
        self._process_context = ProcessContext(self.timer_service)
        super().open()

    def process_watermark(self, watermark: Watermark) -> None:
        self.timer_service.watermark = watermark.timestamp
        super().process_watermark(watermark)


class KeyedFunctionOperator(EndsKeys, FunctionOperator):
    """Runs a function with a current key, state and timers. Timers are saved with the state of
    their key."""

    timer_service: KeyedTimerService
    _has_timers = False

    @property
    def fired_timers(self) -> int:
        return self.timer_service.fired_timers if self._has_timers else 0

    def open(self) -> None:
        current = self.backend.current
        self.timer_service = service = KeyedTimerService(
            self.context.timers,
            current,
            self._on_processing_time,
            timer_queue(self.backend, EVENT_TIMERS),
            timer_queue(self.backend, PROCESSING_TIMERS),
        )
        self._has_timers = True
        self.make_contexts()
        open_function(self.function, self.context, self.backend)
        service.arm()

    def keyed_by(self, key: KeySpec) -> Keyed:
        """How the key is set for each record of an input with that key; call it when the function
        is open. A key that cannot be hashed fails where state is looked up. With a function that
        keeps no state it would go unnoticed, so there it is checked for each record."""
        stateless = not self.backend.statistics.keys
        clock = self.context.clock.time_ns if self.backend.expires else None
        return keyed_by(self.backend.current, key_function(key), hashes=stateless, clock=clock)

    def make_contexts(self) -> None:
        """Makes the contexts for the function's methods; called before the function is opened."""
        service, current = self.timer_service, self.backend.current
        self._process_context: Any = KeyedProcessContext(service, current)
        self._timer_context: Any = TimerContext(service, current)

    def close(self) -> None:
        if self._has_timers:
            self.timer_service.disarm()
        super().close()

    def run_keyed(self, keyed: Keyed, process: ProcessElement, batch: Batch) -> Work:
        """Sets the key and calls the function for each record of the batch; emits the results."""
        batch = rows(batch)
        yield from emit_results(
            process, batch.values, batch.timestamps, self._process_context, self, keyed=keyed
        )
        self._end_batch(len(batch))

    def _end_batch(self, records: int) -> None:
        self.backend.after_records(records)
        self.timer_service.after_batch()

    def process_watermark(self, watermark: Watermark) -> Work:
        self.timer_service.watermark = watermark.timestamp
        yield from self._fire(
            self.timer_service.event_timers.due(watermark.timestamp), TimeDomain.EVENT_TIME
        )
        self._end_batch(0)
        super().process_watermark(watermark)

    def end_key(self) -> Work:
        service = self.timer_service
        queues = (
            (service.event_timers, TimeDomain.EVENT_TIME),
            (service.processing_timers, TimeDomain.PROCESSING_TIME),
        )
        registered = [queue.registered() if len(queue) else set() for queue, _ in queues]
        if not any(registered):
            return
        service.watermark = MAX_TIMESTAMP
        for (queue, domain), known in zip(queues, registered):
            yield from self._fire(_those_known(queue.due(MAX_TIMESTAMP), known), domain)
        service.watermark = MIN_TIMESTAMP
        for queue, _ in queues:
            for _ in queue.due(MAX_TIMESTAMP):
                pass

    def _on_processing_time(self, due: Iterator[tuple[int, Any]]) -> None:
        self.do(self._fire_and_arm(due))

    def _fire_and_arm(self, due: Iterator[tuple[int, Any]]) -> Work:
        yield from self._fire(due, TimeDomain.PROCESSING_TIME)
        self._end_batch(0)
        self.timer_service.fired()

    def _fire(self, due: Iterator[tuple[int, Any]], domain: TimeDomain) -> Work:
        """Calls ``on_timer`` for each timer, earliest first."""
        self._timer_context._domain = domain
        # results get the timer's time, which _on_timer sets
        stamps = repeat(None) if domain is TimeDomain.EVENT_TIME else None
        return emit_results(
            self._on_timer, due, stamps, self._timer_context, self, endless=True, names_record=False
        )

    def _on_timer(self, timer: tuple[int, Any], context: Any) -> Iterable[Any] | None:
        context._timestamp, self.backend.current.key = timer
        given: Iterable[Any] | None = self.function.on_timer(timer[0], context)
        return given


def _those_known(
    due: Iterator[tuple[int, Any]], known: set[tuple[int, Any]]
) -> Iterator[tuple[int, Any]]:
    for timer in due:
        if timer in known:
            known.discard(timer)
            yield timer


class ProcessOperator(UnkeyedFunctionOperator, OneInputOperator):
    """Runs a ProcessFunction."""

    guarding = Guarding.BY_RECORD

    def process_batch(self, batch: Batch) -> Work:
        return self.run_function(self.function.process_element, batch, self._process_context)


class KeyedProcessOperator(KeyedFunctionOperator, OneInputOperator):
    """Runs a KeyedProcessFunction."""

    guarding = Guarding.BY_RECORD

    def __init__(self, function: Any, key: KeySpec) -> None:
        super().__init__(function)
        key_function(key)
        self.key = key

    def open(self) -> None:
        open_function(self.key.selector, self.context)
        super().open()
        self._keyed = self.keyed_by(self.key)

    def close(self) -> None:
        try:
            super().close()
        finally:
            close_function(self.key.selector)

    def process_batch(self, batch: Batch) -> Work:
        return self.run_keyed(self._keyed, self.function.process_element, batch)


class CoProcessOperator(UnkeyedFunctionOperator, TwoInputOperator):
    """Runs a CoProcessFunction."""

    guarding = Guarding.BY_RECORD

    def process_batch1(self, batch: Batch) -> Work:
        return self.run_function(self.function.process_element1, batch, self._process_context)

    def process_batch2(self, batch: Batch) -> Work:
        return self.run_function(self.function.process_element2, batch, self._process_context)


class KeyedCoProcessOperator(KeyedFunctionOperator, TwoInputOperator):
    """Runs a KeyedCoProcessFunction; both inputs share keys and timers."""

    guarding = Guarding.BY_RECORD

    def __init__(self, function: Any, key1: KeySpec, key2: KeySpec) -> None:
        super().__init__(function)
        key_function(key1)
        key_function(key2)
        self.keys = key1, key2

    def open(self) -> None:
        open_selectors(self.keys, self.context)
        super().open()
        self._keyed = self.keyed_by(self.keys[0]), self.keyed_by(self.keys[1])

    def close(self) -> None:
        try:
            super().close()
        finally:
            close_selectors(self.keys)

    def process_batch1(self, batch: Batch) -> Work:
        return self.run_keyed(self._keyed[0], self.function.process_element1, batch)

    def process_batch2(self, batch: Batch) -> Work:
        return self.run_keyed(self._keyed[1], self.function.process_element2, batch)


class CoFunctionOperator(KeyedStateOperator, TwoInputOperator):
    """Runs a function that has a method for each input and no context. If both streams are keyed,
    it may keep state, which both methods share."""

    batch_form = BatchForm.BY_KEY
    guarding = Guarding.BY_RECORD
    methods: tuple[str, str]

    def __init__(self, function: Any, keys: tuple[KeySpec, KeySpec] | None = None) -> None:
        self.function, self.keys = function, keys
        if keys is None:
            self.batch_form = BatchForm.AS_IN_STREAM
        for key in keys or ():
            key_function(key)

    def open(self) -> None:
        open_selectors(self.keys or (), self.context)
        open_function(self.function, self.context, self.backend if self.keys is not None else None)
        first, second = (method_of(self.function, method) for method in self.methods)
        if self.keys is not None and may_ask_for_state(self.function):
            first, second = (
                with_key(each, key_function(key), self.backend)
                for each, key in zip((first, second), self.keys)
            )
        self._first, self._second = first, second

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_selectors(self.keys or ())

    def process_batch1(self, batch: Batch) -> Work | None:
        self.backend.between_batches()
        return self.apply(self._first, rows(batch))

    def process_batch2(self, batch: Batch) -> Work | None:
        self.backend.between_batches()
        return self.apply(self._second, rows(batch))

    @abstractmethod
    def apply(self, function: Callable[[Any], Any], batch: RowBatch) -> Work | None:
        """Calls the function for each record and emits the results."""


class CoMapOperator(CoFunctionOperator):
    """Runs a CoMapFunction: one result for each record; None means no result."""

    methods = ("map1", "map2")

    def apply(self, function: Callable[[Any], Any], batch: RowBatch) -> None:
        results: list[Any] = []
        private_one = not_idle if self.context.object_reuse else private
        value: Any = None
        try:
            for value in batch.values:
                results.append(private_one(function(value)))
        except BaseException as error:
            raise user_code_error(error, self.context, value) from error
        stamps = batch.timestamps
        if type(None) in set(map(type, results)):
            stamps = (
                None
                if stamps is None
                else [stamp for stamp, result in zip(stamps, results) if result is not None]
            )
            results = [result for result in results if result is not None]
        self.output.emit(RowBatch(results, stamps))


class CoFlatMapOperator(CoFunctionOperator):
    """Runs a CoFlatMapFunction: any number of results for each record."""

    parks = True
    methods = ("flat_map1", "flat_map2")

    def apply(self, function: Callable[[Any], Any], batch: RowBatch) -> Work:
        at = ProcessContext(UnkeyedTimerService(self.context.timers))
        return emit_results(
            lambda value, at: function(value), batch.values, batch.timestamps, at, self
        )
