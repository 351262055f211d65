"""Asynchronous I/O (Flink's AsyncWaitOperator): calls a function for each record without waiting, and emits the results as they come.

Records wait in three places: batches that have not begun (``_waiting``: the operator is not available while there are any), calls under way,
and the queue that knows which results may go out (``async_queue``). All of it runs in the task's thread; only the function itself runs
elsewhere (``async_loop``), and its outcomes come back as mail.

Timeouts need one timer for all records: calls begin in the order of their deadlines, so only the oldest is looked at.

Other than in Flink, a pending retry is not rushed when the input ends: the task waits for it as for any call, within the timeout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.elements import Batch, CheckpointBarrier, ControlElement, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.errors import FlinkpyError
from flinkpy.operators.async_functions import AsyncFunctionDescriptor
from flinkpy.operators.async_queue import ElementQueue, Entry, OrderedQueue, UnorderedQueue
from flinkpy.operators.async_retry import Retries
from flinkpy.operators.async_state import Saved, dump, load, saved_form
from flinkpy.operators.base import OneInputOperator, TimerHandle
from flinkpy.operators.errors import bounded_repr, user_code_error
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.stateless import rows

if TYPE_CHECKING:
    from flinkpy.operators.async_loop import CallLoop, Deliver, Invoke, Outcome

LoopFactory: TypeAlias = "Callable[[str, Invoke, Deliver], CallLoop]"
ROUNDING_S = 1e-6  # a deadline this near counts as reached

_UNORDERED = AsyncFunctionDescriptor.OutputMode.UNORDERED


def event_loop_thread(name: str, invoke: Invoke, deliver: Deliver) -> CallLoop:
    """An event loop in a thread of its own; asyncio is imported where it is needed only."""
    from flinkpy.operators.async_loop import EventLoopThread

    return EventLoopThread(name, invoke, deliver)


class AsyncWaitOperator(OneInputOperator):
    """Carries an AsyncFunctionDescriptor out."""

    def __init__(self, descriptor: AsyncFunctionDescriptor, create_loop: LoopFactory = event_loop_thread) -> None:
        self.descriptor, self._create_loop = descriptor, create_loop
        self._loop: CallLoop | None = None
        self._restored: list[Saved] = []
        self._on_available: Callable[[], None] | None = None

    # -- life -----------------------------------------------------------------------------------------------------------------

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def initialize_state(self, restored: bytes | None) -> None:
        self._restored = load(restored) if restored is not None else []

    def open(self) -> None:
        descriptor = self.descriptor
        self._queue: ElementQueue = UnorderedQueue() if descriptor.output_mode is _UNORDERED else OrderedQueue()
        self._waiting: deque[RowBatch | ControlElement] = deque()
        self._begun = 0  # records of the first waiting batch
        self._deadlines: dict[Entry, float] = {}  # of calls under way, the oldest first; empty without a timeout
        self._pauses: dict[Entry, TimerHandle] = {}  # before another attempt
        self._timer: TimerHandle | None = None
        self._finishing = self._was_unavailable = False
        retries = Retries(descriptor.async_retry_strategy)
        self._retries = None if retries.never else retries
        open_function(descriptor.async_function, self.context)
        name = f"async {self.context.name} ({self.context.task.subtask_index + 1}/{self.context.task.parallelism})"
        self._loop = self._create_loop(name, descriptor.invoke, self._deliver)
        restored, self._restored = self._restored, []
        for element in restored:
            self._waiting.append(element if isinstance(element, Watermark) else
                                 RowBatch([element[0]], None if element[1] is None else [element[1]]))
        self._go_on()

    def finish(self) -> None:
        self._finishing = True

    def close(self) -> None:
        """Ends the calls first, so that none uses what the function's ``close`` gives back."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        for timer in (self._timer, *self._pauses.values()):
            if timer is not None:
                timer.cancel()
        loop.close()
        close_function(self.descriptor.async_function)

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        elements, begun = saved_form(self._queue), self._begun
        for element in self._waiting:
            if isinstance(element, RowBatch):
                elements += zip(element.values[begun:], (element.timestamps or [None] * len(element))[begun:])
                begun = 0
            elif isinstance(element, Watermark):
                elements.append(element)
        return dump(elements, self.context.name)

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
        elif self._queue.records:
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
                self._queue.put_control(element)
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
        self._require_loop().submit(entries)

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
        self._require_loop().submit([entry])

    def _look_for_timeouts(self) -> None:
        self._timer = None
        now, late = self.context.clock.monotonic(), []
        for entry, deadline in self._deadlines.items():
            if deadline > now + ROUNDING_S:
                self._timer = self.context.timers.call_later(deadline - now, self._look_for_timeouts)
                break
            late.append(entry)
        if late:
            self._require_loop().cancel(late)
            for entry in late:
                self._timed_out(entry)
            self._go_on()

    def _timed_out(self, entry: Entry) -> None:
        del self._deadlines[entry]
        pause = self._pauses.pop(entry, None)
        if pause is not None:
            pause.cancel()
        try:
            results = self.descriptor.results_after_timeout(entry.value)
        except Exception as error:
            raise user_code_error(error, self.context, entry.value) from error
        self._queue.complete(entry, results if type(results) is list else self._as_list(results, entry))

    # -- output -----------------------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Something was finished: emits what may go out, begins what waits, and says so."""
        was_available = self._was_available
        self._emit()
        self._begin_waiting()
        if not self._queue.records:
            self._emit()  # control elements that waited behind the last record
        self._was_available = self.available
        if self._on_available is not None and ((self._was_available and not was_available) or (self._finishing and self.drained)):
            self._on_available()

    def _emit(self) -> None:
        """One batch between two control elements, however many records were finished."""
        output, values, stamps = self.output, [], []
        for element in self._queue.take():
            if type(element) is not Entry:
                output.emit(_batch(values, stamps))
                values, stamps = [], []
                output.emit_control(element)
                continue
            results, stamp = element.results or (), element.timestamp
            if stamp is None and not stamps:
                values += results
            elif stamp is None or len(stamps) != len(values):  # records with and without timestamps do not share a batch
                output.emit(_batch(values, stamps))
                values, stamps = list(results), [] if stamp is None else [stamp] * len(results)
            else:
                values += results
                stamps += [stamp] * len(results)
        output.emit(_batch(values, stamps))
