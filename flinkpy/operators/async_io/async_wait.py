"""Asynchronous I/O (Flink's AsyncWaitOperator): calls a function for each record without waiting, and emits the results as they come.

Records wait in three places: batches that have not begun (``_waiting``: the operator is not available while there are any), calls under way,
and the queue that knows which results may go out (``output_queues``). All of it runs in the task's thread; only the function itself runs
elsewhere (``event_loop``), and its outcomes come back as mail.

Timeouts need one timer for all records: calls begin in the order of their deadlines, so only the oldest is looked at.

Other than in Flink, a pending retry is not rushed when the input ends: the task waits for it as for any call, within the timeout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.elements import Batch, ControlElement, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.errors import EngineError
from flinkpy.operators.async_io.async_functions import AsyncFunctionDescriptor
from flinkpy.operators.async_io.output_queues import ElementQueue, Entry, OrderedQueue, UnorderedQueue
from flinkpy.operators.async_io.retry import Retries
from flinkpy.operators.base import BatchForm, OneInputOperator
from flinkpy.operators.chain.output_isolation import private
from flinkpy.operators.context import TimerHandle
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.rows.stateless import rows
from flinkpy.operators.user_errors import bounded_repr, user_code_error

if TYPE_CHECKING:
    from flinkpy.operators.async_io.event_loop import CallLoop, Deliver, Invoke, Outcome

LoopFactory: TypeAlias = "Callable[[str, Invoke, Deliver], CallLoop]"
IN_FLIGHT = "_records in flight"  # the name of the state: (value, timestamp or None)
ROUNDING_S = 1e-6  # a deadline this near counts as reached

_UNORDERED = AsyncFunctionDescriptor.OutputMode.UNORDERED


def event_loop_thread(name: str, invoke: Invoke, deliver: Deliver) -> CallLoop:
    """An event loop in a thread of its own; asyncio is imported where it is needed only."""
    from flinkpy.operators.async_io.event_loop import EventLoopThread

    return EventLoopThread(name, invoke, deliver)


def _as_they_are(given: Any) -> Any:
    return given


def _all_private(given: Any) -> Any:
    return [private(each) for each in given] if isinstance(given, (list, tuple)) else given


class AsyncWaitOperator(OneInputOperator):
    """Carries an AsyncFunctionDescriptor out."""

    batch_form = BatchForm.AS_IN_STREAM

    def __init__(self, descriptor: AsyncFunctionDescriptor, create_loop: LoopFactory = event_loop_thread) -> None:
        self.descriptor, self._create_loop = descriptor, create_loop
        self._loop: CallLoop | None = None
        self._on_available: Callable[[], None] | None = None

    # -- life -----------------------------------------------------------------------------------------------------------------

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def open(self) -> None:
        descriptor = self.descriptor
        self._queue: ElementQueue = UnorderedQueue() if descriptor.output_mode is _UNORDERED else OrderedQueue()
        self._waiting: deque[RowBatch | ControlElement] = deque()
        self._begun = 0  # records of the first waiting batch
        self._deadlines: dict[Entry, float] = {}  # of calls under way, the oldest first; empty without a timeout
        self._pauses: dict[Entry, TimerHandle] = {}  # before another attempt
        self._timer: TimerHandle | None = None
        self._finishing = False
        retries = Retries(descriptor.async_retry_strategy)
        self._retries = None if retries.never else retries
        open_function(descriptor.async_function, self.context)
        name = f"async {self.context.name} ({self.context.task.subtask_index + 1}/{self.context.task.parallelism})"
        self._own = _as_they_are if self.context.object_reuse else _all_private
        self._loop = self._create_loop(name, self._invoke, self._deliver)
        self._saved = self.context.operator_state.engine_list(IN_FLIGHT)
        self._waiting.extend(RowBatch([value], None if stamp is None else [stamp]) for value, stamp in self._saved.get())
        self._saved.clear()
        self.context.operator_state.before_snapshot(self._save)
        self._begin_waiting()

    def finish(self) -> None:
        self._finishing = True

    def close(self) -> None:
        """Ends the calls first, so that none uses what the function's ``close`` gives back."""
        loop, self._loop = self._loop, None
        if loop is not None:
            for timer in (self._timer, *self._pauses.values()):
                if timer is not None:
                    timer.cancel()
            loop.close()
        close_function(self.descriptor.async_function)

    def _save(self, checkpoint_id: int, timestamp_ms: int) -> None:
        """A checkpoint begins. Kept are all records whose results have not gone out, in order: their calls are made again after a
        restore. Watermarks between them are not, as another parallelism would put them in front of other subtasks' records; leaving one
        out only makes event time wait for the next."""
        begun, saved = self._begun, [(element.value, element.timestamp) for element in self._queue if isinstance(element, Entry)]
        for element in self._waiting:
            if isinstance(element, RowBatch):
                saved += islice(zip(element.values, element.timestamps or repeat(None, len(element))), begun, None)
                begun = 0
        self._saved.update(saved)

    # -- input ------------------------------------------------------------------------------------------------------------------

    @property
    def available(self) -> bool:
        """Whether another call may begin."""
        return not self._waiting and self._queue.records < self.descriptor.capacity

    @property
    def drained(self) -> bool:
        """Whether nothing that came in is still to go out."""
        return not self._queue.records and not self._waiting

    def process_batch(self, batch: Batch) -> None:
        self._waiting.append(rows(batch))
        if len(self._waiting) == 1:
            self._begin_waiting()

    def process_watermark(self, watermark: Watermark) -> None:
        self._put_control(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self._put_control(status)

    def _put_control(self, element: ControlElement) -> None:
        waiting = self._waiting
        if waiting and type(element) is Watermark and type(waiting[-1]) is Watermark:
            waiting[-1] = element
        elif waiting:
            waiting.append(element)
        else:
            self._pass_on(element)

    def _pass_on(self, element: ControlElement) -> None:
        """Behind the records under way; at once where there are none."""
        if self._queue.records:
            self._queue.put_control(element)
        else:
            self.output.emit_control(element)

    def _begin_waiting(self) -> None:
        """Begins calls for what waits, as far as the capacity goes."""
        queue, waiting, entries = self._queue, self._waiting, []
        while waiting:
            element = waiting[0]
            if not isinstance(element, RowBatch):
                waiting.popleft()
                self._pass_on(element)
                continue
            begun, room = self._begun, self.descriptor.capacity - queue.records
            if room <= 0:
                break
            stamps = element.timestamps
            values = element.values[begun : begun + room]
            for entry in map(Entry, values, [None] * len(values) if stamps is None else stamps[begun : begun + room]):
                queue.put(entry)
                entries.append(entry)
            self._begun = begun + len(values)
            if self._begun == len(element):
                waiting.popleft()
                self._begun = 0
        if entries:
            self._begin(entries)

    def _begin(self, entries: list[Entry]) -> None:
        timeout_s = self.descriptor.timeout_s
        if timeout_s:
            self._deadlines.update(dict.fromkeys(entries, self.context.clock.monotonic() + timeout_s))
            if self._timer is None:
                self._timer = self.context.timers.call_later(timeout_s, self._look_for_timeouts)
        self._calls().submit(entries)

    async def _invoke(self, value: Any) -> Any:
        """In the event loop's thread: before another call changes what this one gave, it is copied."""
        return self._own(await self.descriptor.invoke(value))

    # -- outcomes ---------------------------------------------------------------------------------------------------------------

    def _deliver(self, outcomes: list[Outcome]) -> None:
        """In the event loop's thread."""
        self.context.run_in_task(partial(self._outcomes, outcomes))

    def _outcomes(self, outcomes: list[Outcome]) -> None:
        if self._loop is None:
            return
        complete, deadlines, retries = self._queue.complete, self._deadlines, self._retries
        for entry, result, error in outcomes:
            if entry.results is not None:
                continue  # too late: its time was over
            results = result if type(result) is list or error is not None else self._as_list(result, entry)
            if retries is not None and self._tried_again(retries, entry, results, error):
                continue
            if error is not None:
                raise user_code_error(error, self.context, entry.value) from error
            complete(entry, results)
            deadlines.pop(entry, None)
        self._go_on()

    def _as_list(self, result: Any, entry: Entry) -> list[Any]:
        """None is no result; one that was not put into a list is most likely a mistake."""
        if result is None:
            return []
        if isinstance(result, (list, tuple, set, frozenset)):
            return list(result)
        wrong = TypeError(f"an asynchronous function gives a list of results, this is {bounded_repr(result, 60)}: write [result] for a single one")
        raise user_code_error(wrong, self.context, entry.value)

    def _tried_again(self, retries: Retries, entry: Entry, results: list[Any], error: BaseException | None) -> bool:
        try:
            delay_ms = retries.delay_ms(entry.attempts, results, error)
        except Exception as raised:
            raise user_code_error(raised, self.context, entry.value) from raised
        if delay_ms is None:
            return False
        self._pauses[entry] = self.context.timers.call_later(delay_ms / 1000, partial(self._try_again, entry))
        return True

    def _try_again(self, entry: Entry) -> None:
        del self._pauses[entry]
        entry.attempts += 1
        self._calls().submit([entry])

    def _look_for_timeouts(self) -> None:
        self._timer = None
        now, late = self.context.clock.monotonic(), []
        for entry, deadline in self._deadlines.items():
            if deadline > now + ROUNDING_S:
                self._timer = self.context.timers.call_later(deadline - now, self._look_for_timeouts)
                break
            late.append(entry)
        if late:
            self._calls().cancel(late)
            for entry in late:
                self._timed_out(entry)
            self._go_on()

    def _timed_out(self, entry: Entry) -> None:
        del self._deadlines[entry]
        pause = self._pauses.pop(entry, None)
        if pause is not None:
            pause.cancel()
        try:
            results = self._own(self.descriptor.results_after_timeout(entry.value))
        except Exception as error:
            raise user_code_error(error, self.context, entry.value) from error
        self._queue.complete(entry, results if type(results) is list else self._as_list(results, entry))

    # -- output -----------------------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Something was finished: emits what may go out, begins what waits, and says so."""
        was_available = self.available
        self._emit()
        self._begin_waiting()
        if self._on_available is not None and (self.drained if self._finishing else self.available and not was_available):
            self._on_available()

    def _emit(self) -> None:
        """One batch between two control elements, however many records were finished."""
        output = self.output
        values: list[Any] = []
        stamps: list[int] | None = None
        for element in self._queue.take():
            if type(element) is not Entry:
                if values:
                    output.emit(RowBatch(values, stamps))
                    values = []
                output.emit_control(element)  # type: ignore[arg-type]  # not an Entry
                continue
            results, stamp = element.results, element.timestamp
            if not results:
                continue
            if values and (stamps is None) is not (stamp is None):  # records with and without timestamps do not share a batch
                output.emit(RowBatch(values, stamps))
                values = []
            if not values:
                stamps = None if stamp is None else []
            values += results
            if stamps is not None:
                stamps += [stamp] * len(results)  # type: ignore[list-item]  # not None, or this would be another batch
        if values:
            output.emit(RowBatch(values, stamps))

    def _calls(self) -> CallLoop:
        if self._loop is None:
            raise EngineError(f"{self.context.name} is not open")
        return self._loop

    def __repr__(self) -> str:
        state = "not open" if self._loop is None else f"{self._queue!r}, {len(self._waiting)} elements waiting"
        return f"<AsyncWaitOperator {self.descriptor!r}: {state}>"
