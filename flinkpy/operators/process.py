"""Process functions and co-functions: user code with a context, side outputs, and (keyed) timers.

What a function yields is gathered per batch: plain values for the main output, ``(OutputTag, value)`` pairs for side outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from flinkpy.common.output_tag import OutputTag
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, CheckpointBarrier, RowBatch, Watermark
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator, OperatorContext, Output, StreamOperator, TwoInputOperator
from flinkpy.operators.errors import user_code_error
from flinkpy.operators.functions import KeyedProcessContext, ProcessContext, TimeDomain, TimerContext, close_function, method_of, open_function
from flinkpy.operators.given_out import GivenOut
from flinkpy.operators.key_selectors import close_selectors, open_selectors
from flinkpy.operators.keyed import key_function
from flinkpy.operators.keyed_calls import KeyedCalls
from flinkpy.operators.keyed_stages import with_key
from flinkpy.operators.keyed_state import EndsKeys, KeyedStateOperator, may_ask_for_state
from flinkpy.operators.stateless import rows
from flinkpy.operators.timers import KeyedTimerService, TimerQueue, UnkeyedTimerService

EVENT_TIMERS, PROCESSING_TIMERS = "_event timers", "_processing timers"  # the names of their state


class Results:
    """Gathers what a function gives, in order; main and side outputs are taken apart once per batch."""

    __slots__ = ("stamps", "values")

    def __init__(self, stamped: bool) -> None:
        self.values: list[Any] = []
        self.stamps: list[int] | None = [] if stamped else None

    def emit(self, output: Output) -> None:
        """Passes everything on."""
        if not self.values:
            return
        if not may_hold_tags(self.values):
            output.emit(RowBatch(self.values, self.stamps))
            return
        batches = self._by_tag()
        main = batches.pop(None, None)
        for tag_id, batch in batches.items():  # before the main output's consumers may change what stands in both
            output.emit_side(tag_id, batch)
        if main is not None:
            output.emit(main)

    def _by_tag(self) -> dict[Any, RowBatch]:
        """The side outputs by their ids, and the main output, if there is any, under None."""
        batches: dict[Any, RowBatch] = {None: RowBatch([], None if self.stamps is None else [])}
        conversions: dict[OutputTag, Callable[[Any], Any] | None] = {}
        for position, result in enumerate(self.values):
            tag_id = None
            if type(result) is tuple and len(result) == 2 and isinstance(result[0], OutputTag):
                tag, result = result
                if tag not in conversions:
                    conversions[tag] = None if tag.type_info is None else tag.type_info.conversion()
                convert, tag_id = conversions[tag], tag.tag_id
                result = result if convert is None else convert(result)
            batch = batches.get(tag_id)
            if batch is None:
                batch = batches[tag_id] = RowBatch([], None if self.stamps is None else [])
            batch.values.append(result)
            if self.stamps is not None and batch.timestamps is not None:
                batch.timestamps.append(self.stamps[position])
        return {tag_id: batch for tag_id, batch in batches.items() if batch.values}


def may_hold_tags(values: list[Any]) -> bool:
    """Whether one of the results could be ``(OutputTag, value)``; looks at all of them at once, by type."""
    if not OutputTag.exists:
        return False
    kinds = set(map(type, values))
    if tuple not in kinds:
        return False
    if len(kinds) > 1:
        return any(type(value) is tuple and len(value) == 2 and isinstance(value[0], OutputTag) for value in values)
    try:
        return any(issubclass(kind, OutputTag) for kind in set(map(type, map(itemgetter(0), values))))
    except IndexError:  # an empty tuple among them
        return True


ProcessElement = Callable[[Any, Any], "Iterable[Any] | None"]


class FunctionOperator(StreamOperator):
    """Holds one user function over the operator's life."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.given_out = GivenOut(context.object_reuse)

    def open(self) -> None:
        open_function(self.function, self.context)

    def close(self) -> None:
        close_function(self.function)

    def run_function(self, process: ProcessElement, batch: Batch, context: Any) -> None:
        """Calls it for each record of the batch and emits what it gives."""
        batch = rows(batch)
        results = Results(batch.timestamps is not None)
        take, value = self.given_out.way_into(results.values), None
        try:
            if batch.timestamps is None:
                context._timestamp = None
                for value in batch.values:
                    given = process(value, context)
                    if given is not None:
                        take(given)
            else:
                for value, context._timestamp in zip(batch.values, batch.timestamps):
                    given = process(value, context)
                    if given is not None:
                        take(given)
                        stamp_new(results, context._timestamp)
        except Exception as error:
            raise user_code_error(error, self.context, value) from error
        self.given_out.look_at(results.values)
        results.emit(self.output)


def stamp_new(results: Results, timestamp: int) -> None:
    """The results that have no timestamp yet get this one."""
    stamps = results.stamps
    if stamps is not None:
        missing = len(results.values) - len(stamps)
        if missing == 1:
            stamps.append(timestamp)
        elif missing:
            stamps.extend([timestamp] * missing)


class UnkeyedFunctionOperator(FunctionOperator):
    """A function that may ask for the time."""

    def open(self) -> None:
        self._timer_service = UnkeyedTimerService(self.context.timers)
        self._process_context = ProcessContext(self._timer_service)
        super().open()

    def process_watermark(self, watermark: Watermark) -> None:
        self._timer_service.watermark = watermark.timestamp
        super().process_watermark(watermark)


class KeyedFunctionOperator(EndsKeys, FunctionOperator):
    """A function with a current key, state and timers. Timers are saved with the state of their key."""

    def open(self) -> None:
        current = self.backend.current
        self._timer_service = service = KeyedTimerService(self.context.timers, current, self._on_processing_time)
        self.make_contexts()
        for queue, name in self._timer_queues():
            saved = self.backend.engine_values(name)
            queue.restore(saved)
            saved.clear()
        open_function(self.function, self.context, self.backend)
        service.arm()

    def keyed_calls(self, key: KeySpec) -> KeyedCalls:
        """The loop over an input keyed so, once the function is open. A key that cannot be hashed fails where state is looked up; a function that
        keeps none would never notice, so there it is looked for."""
        keeps_state = bool(set(self.backend.statistics.keys) - {EVENT_TIMERS, PROCESSING_TIMERS})
        return KeyedCalls(key_function(key), self.context, self.backend.current, hashes=not keeps_state, expires=self.backend.expires)

    def make_contexts(self) -> None:
        """Before the function is opened: what its methods will get."""
        service, current = self._timer_service, self.backend.current
        self._process_context: Any = KeyedProcessContext(service, current)
        self._timer_context: Any = TimerContext(service, current)

    def close(self) -> None:
        service = getattr(self, "_timer_service", None)
        if service is not None:
            service.disarm()
        super().close()

    def _timer_queues(self) -> tuple[tuple[TimerQueue, str], ...]:
        return (self._timer_service.event_timers, EVENT_TIMERS), (self._timer_service.processing_timers, PROCESSING_TIMERS)

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        tables = [(self.backend.engine_values(name), queue) for queue, name in self._timer_queues()]
        for saved, queue in tables:
            saved.update(queue.by_key())
        try:
            return super().snapshot_state(barrier)
        finally:
            for saved, _ in tables:
                saved.clear()

    def run_keyed(self, calls: KeyedCalls, process: ProcessElement, batch: Batch) -> None:
        """Calls it for each record of the batch, the key set first, and emits what it gives."""
        batch = rows(batch)
        results = Results(batch.timestamps is not None)
        calls.run(batch, process, self._process_context, self.given_out.way_into(results.values), partial(stamp_new, results))
        self.given_out.look_at(results.values)
        results.emit(self.output)
        self.backend.after_records(len(batch))

    def process_watermark(self, watermark: Watermark) -> None:
        self._timer_service.watermark = watermark.timestamp
        self._fire(self._timer_service.event_timers.due(watermark.timestamp), TimeDomain.EVENT_TIME)
        super().process_watermark(watermark)

    def end_key(self) -> None:
        service = self._timer_service
        queues = ((service.event_timers, TimeDomain.EVENT_TIME), (service.processing_timers, TimeDomain.PROCESSING_TIME))
        registered = [queue.registered() if len(queue) else set() for queue, _ in queues]
        if not any(registered):
            return
        service.watermark = MAX_TIMESTAMP
        for (queue, domain), known in zip(queues, registered):
            self._fire(_those_known(queue.due(MAX_TIMESTAMP), known), domain)
        service.watermark = MIN_TIMESTAMP
        for queue, _ in queues:
            for _ in queue.due(MAX_TIMESTAMP):
                pass

    def _on_processing_time(self, due: Iterator[tuple[int, Any]]) -> None:
        self._fire(due, TimeDomain.PROCESSING_TIME)

    def _fire(self, due: Iterator[tuple[int, Any]], domain: TimeDomain) -> None:
        """Calls ``on_timer`` for each, earliest first; what they give goes on in batches."""
        context, current, limit = self._timer_context, self.backend.current, self.context.batch_records
        context._domain = domain
        results, given_out = Results(domain is TimeDomain.EVENT_TIME), self.given_out
        take = given_out.way_into(results.values)
        try:
            for timestamp, key in due:
                current.key, context._timestamp = key, timestamp
                given = self.function.on_timer(timestamp, context)
                if given is not None:
                    take(given)
                    stamp_new(results, timestamp)
                if len(results.values) >= limit:
                    given_out.look_at(results.values)
                    results.emit(self.output)
                    results = Results(domain is TimeDomain.EVENT_TIME)
                    take = given_out.way_into(results.values)
        except Exception as error:
            raise user_code_error(error, self.context) from error
        given_out.look_at(results.values)
        results.emit(self.output)


def _those_known(due: Iterator[tuple[int, Any]], known: set[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    for timer in due:
        if timer in known:
            known.discard(timer)
            yield timer


class ProcessOperator(UnkeyedFunctionOperator, OneInputOperator):
    """A ProcessFunction."""

    def process_batch(self, batch: Batch) -> None:
        self.run_function(self.function.process_element, batch, self._process_context)


class KeyedProcessOperator(KeyedFunctionOperator, OneInputOperator):
    """A KeyedProcessFunction."""

    def __init__(self, function: Any, key: KeySpec) -> None:
        super().__init__(function)
        key_function(key)
        self.key = key

    def open(self) -> None:
        open_function(self.key.selector, self.context)
        super().open()
        self._calls = self.keyed_calls(self.key)

    def close(self) -> None:
        try:
            super().close()
        finally:
            close_function(self.key.selector)

    def process_batch(self, batch: Batch) -> None:
        self.run_keyed(self._calls, self.function.process_element, batch)


class CoProcessOperator(UnkeyedFunctionOperator, TwoInputOperator):
    """A CoProcessFunction."""

    def process_batch1(self, batch: Batch) -> None:
        self.run_function(self.function.process_element1, batch, self._process_context)

    def process_batch2(self, batch: Batch) -> None:
        self.run_function(self.function.process_element2, batch, self._process_context)


class KeyedCoProcessOperator(KeyedFunctionOperator, TwoInputOperator):
    """A KeyedCoProcessFunction; both inputs share keys and timers."""

    def __init__(self, function: Any, key1: KeySpec, key2: KeySpec) -> None:
        super().__init__(function)
        key_function(key1)
        key_function(key2)
        self.keys = key1, key2

    def open(self) -> None:
        open_selectors(self.keys, self.context)
        super().open()
        self._calls = self.keyed_calls(self.keys[0]), self.keyed_calls(self.keys[1])

    def close(self) -> None:
        try:
            super().close()
        finally:
            close_selectors(self.keys)

    def process_batch1(self, batch: Batch) -> None:
        self.run_keyed(self._calls[0], self.function.process_element1, batch)

    def process_batch2(self, batch: Batch) -> None:
        self.run_keyed(self._calls[1], self.function.process_element2, batch)


class CoFunctionOperator(KeyedStateOperator, TwoInputOperator):
    """A function with a method for each input, without context; where both streams are keyed it may keep state, which both methods share."""

    methods: tuple[str, str]

    def __init__(self, function: Any, keys: tuple[KeySpec, KeySpec] | None = None) -> None:
        self.function, self.keys = function, keys
        for key in keys or ():
            key_function(key)

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.given_out = GivenOut(context.object_reuse)

    def open(self) -> None:
        open_selectors(self.keys or (), self.context)
        open_function(self.function, self.context, self.backend if self.keys is not None else None)
        first, second = (method_of(self.function, method) for method in self.methods)
        if self.keys is not None and may_ask_for_state(self.function):
            first, second = (with_key(each, key_function(key), self.backend) for each, key in zip((first, second), self.keys))
        self._first, self._second = first, second

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        return super().snapshot_state(barrier) if self.keys is not None else StreamOperator.snapshot_state(self, barrier)

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_selectors(self.keys or ())

    def process_batch1(self, batch: Batch) -> None:
        self.apply(self._first, rows(batch))

    def process_batch2(self, batch: Batch) -> None:
        self.apply(self._second, rows(batch))

    @abstractmethod
    def apply(self, function: Callable[[Any], Any], batch: RowBatch) -> None:
        """Calls it for each record and emits what it gives."""


class CoMapOperator(CoFunctionOperator):
    """A CoMapFunction: one value for each; None is none."""

    methods = ("map1", "map2")

    def apply(self, function: Callable[[Any], Any], batch: RowBatch) -> None:
        results: list[Any] = []
        take = self.given_out.way_into(results)
        value: Any = None
        try:
            for value in batch.values:
                take(map(function, (value,)))
        except Exception as error:
            raise user_code_error(error, self.context, value) from error
        stamps = batch.timestamps
        if type(None) in set(map(type, results)):
            stamps = None if stamps is None else [stamp for stamp, result in zip(stamps, results) if result is not None]
            results = [result for result in results if result is not None]
        self.given_out.look_at(results)
        self.output.emit(RowBatch(results, stamps))


class CoFlatMapOperator(CoFunctionOperator):
    """A CoFlatMapFunction: any number of values for each."""

    methods = ("flat_map1", "flat_map2")

    def apply(self, function: Callable[[Any], Any], batch: RowBatch) -> None:
        results = Results(batch.timestamps is not None)
        take = self.given_out.way_into(results.values)
        value: Any = None
        try:
            for position, value in enumerate(batch.values):
                given = function(value)
                if given is not None:
                    take(given)
                    if batch.timestamps is not None:
                        stamp_new(results, batch.timestamps[position])
        except Exception as error:
            raise user_code_error(error, self.context, value) from error
        self.given_out.look_at(results.values)
        results.emit(self.output)
