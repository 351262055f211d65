"""Asynchronous I/O (Flink's AsyncWaitOperator): calls a function for each record without waiting
for it, and emits results as they arrive.

A record is in one of three places: in a batch whose calls have not begun (``_waiting``; while it is
not empty the operator is not available), in a call under way (``calls``), or in the queue that
decides which results may be emitted (``output_queues``). All of this runs in the task's thread.
Only the function itself runs elsewhere (``event_loop``), and its outcomes come back as mail.

Unlike in Flink, a pending retry is not brought forward when the input ends: the task waits for it
as for any call, within the timeout."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import Batch, ControlElement, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.users_values import bounded_repr
from flinkpy.operators.async_io.async_functions import AsyncFunctionDescriptor
from flinkpy.operators.async_io.calls import CallsUnderWay
from flinkpy.operators.async_io.output_queues import (
    ElementQueue,
    Entry,
    OrderedQueue,
    Queued,
    UnorderedQueue,
)
from flinkpy.operators.async_io.retry import Retries
from flinkpy.operators.base import BatchForm, Guarding, OneInputOperator
from flinkpy.operators.context import Output
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.guarding.dead_letters import Letters
from flinkpy.operators.output.output_isolation import private
from flinkpy.operators.row_batches import rows, single_row
from flinkpy.operators.user_errors import user_code_error

if TYPE_CHECKING:
    # imports asyncio
    from flinkpy.operators.async_io.event_loop import CallLoop, Deliver, Invoke, Outcome

LoopFactory: TypeAlias = "Callable[[str, Invoke, Deliver], CallLoop]"
IN_FLIGHT = "_records in flight"  # the name of the state: (value, timestamp or None)

_UNORDERED = AsyncFunctionDescriptor.OutputMode.UNORDERED


def event_loop_thread(name: str, invoke: Invoke, deliver: Deliver) -> CallLoop:
    """An event loop in a thread of its own; asyncio is imported only when one is made."""
    from flinkpy.operators.async_io.event_loop import EventLoopThread

    return EventLoopThread(name, invoke, deliver)


def _as_they_are(given: object) -> Any:
    return given


def _all_private(given: object) -> Any:
    return [private(each) for each in given] if isinstance(given, (list, tuple)) else given


class AsyncWaitOperator(OneInputOperator):
    """Runs the function of an AsyncFunctionDescriptor."""

    batch_form = BatchForm.AS_IN_STREAM
    guarding = Guarding.BY_ITSELF
    error_policy = ErrorPolicy()

    def __init__(
        self, descriptor: AsyncFunctionDescriptor, create_loop: LoopFactory = event_loop_thread
    ) -> None:
        self.descriptor, self._create_loop = descriptor, create_loop
        self._calls: CallsUnderWay | None = None  # set between ``open`` and ``close``
        self._on_available: Callable[[], None] | None = None

    def set_error_policy(self, policy: ErrorPolicy) -> None:
        """Sets what happens to records whose calls raise or time out."""
        if policy.retries:
            raise ProgramError(
                "on_error(): an asynchronous function has retries of its own, with pauses: "
                "give AsyncDataStream an "
                "AsyncRetryStrategy, and leave the policy's out"
            )
        self.error_policy = policy

    # -- life --------------------------------------------------------------------------------------

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def open(self) -> None:
        descriptor, context = self.descriptor, self.context
        self._queue: ElementQueue = (
            UnorderedQueue() if descriptor.output_mode is _UNORDERED else OrderedQueue()
        )
        self._waiting: deque[RowBatch | ControlElement] = deque()
        self._begun = 0  # how many records of the first waiting batch have calls
        self._finishing = False
        retries = Retries(descriptor.async_retry_strategy)
        self._retries = None if retries.never else retries
        open_function(descriptor.async_function, context)
        name = f"async {context.name} ({context.task.subtask_index + 1}/{context.task.parallelism})"
        self._own = _as_they_are if context.object_reuse else _all_private
        self._letters = Letters(self.error_policy, context)
        # a dead letter has what came in
        self._given = (
            _as_they_are if context.object_reuse or self.error_policy.tag is None else private
        )
        loop = self._create_loop(name, self._invoke, self._deliver)
        self._calls = CallsUnderWay(
            loop, context.clock, context.timers, descriptor.timeout_s, self._timed_out
        )
        self._saved = context.operator_state.engine_list(IN_FLIGHT)
        self._waiting.extend(single_row(value, stamp) for value, stamp in self._saved.get())
        self._saved.clear()
        context.operator_state.before_snapshot(self._save)
        self._begin_waiting()

    def finish(self) -> None:
        self._finishing = True

    def close(self) -> None:
        """Ends the calls before it closes the function, so that no call uses what the function's
        ``close`` releases."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.close()
        close_function(self.descriptor.async_function)

    def _save(self, checkpoint_id: int, timestamp_ms: int) -> None:
        """Called when a checkpoint begins: saves in order all records whose results have not been
        emitted; after a restore they are called again. The watermarks between them are not saved:
        with another parallelism they might overtake records of other subtasks, and without them
        event time only waits for the next watermark."""
        begun = self._begun
        saved = [
            (element.value, element.timestamp)
            for element in self._queue
            if isinstance(element, Entry)
        ]
        for element in self._waiting:
            if isinstance(element, RowBatch):
                saved += islice(
                    zip(element.values, element.timestamps or repeat(None, len(element))),
                    begun,
                    None,
                )
                begun = 0
        self._saved.update(saved)

    # -- input -------------------------------------------------------------------------------------

    @property
    def available(self) -> bool:
        """Whether new calls may begin."""
        return not self._waiting and self._queue.records < self.descriptor.capacity

    @property
    def drained(self) -> bool:
        """Whether the results of all records have been emitted."""
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
        """Emits the element after the records under way; at once if there are none."""
        if self._queue.records:
            self._queue.put_control(element)
        else:
            self.output.emit_control(element)

    def _begin_waiting(self) -> None:
        """Begins calls for the waiting batches, as far as the capacity allows."""
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
            for entry in map(
                Entry,
                values,
                [None] * len(values) if stamps is None else stamps[begun : begun + room],
            ):
                queue.put(entry)
                entries.append(entry)
            self._begun = begun + len(values)
            if self._begun == len(element):
                waiting.popleft()
                self._begun = 0
        if entries:
            self._open_calls().begin(entries)

    async def _invoke(self, value: object) -> Any:
        """Runs in the event loop's thread; copies the result there, before another call can change
        it."""
        return self._own(await self.descriptor.invoke(self._given(value)))

    # -- outcomes ----------------------------------------------------------------------------------

    def _deliver(self, outcomes: list[Outcome]) -> None:
        """Runs in the event loop's thread."""
        self.context.run_in_task(partial(self._process_outcomes, outcomes))

    def _process_outcomes(self, outcomes: list[Outcome]) -> None:
        calls, retries = self._calls, self._retries
        if calls is None:
            return
        complete, finished = self._queue.complete, calls.finished
        for entry, result, error in outcomes:
            if entry.results is not None:
                continue  # the outcome came after the timeout
            results = (
                result
                if type(result) is list or error is not None
                else self._as_list(result, entry)
            )
            if retries is not None:
                delay_ms = self._retry_delay_ms(retries, entry, results, error)
                if delay_ms is not None:
                    calls.try_again_in(delay_ms / 1000, entry)
                    continue
            if error is not None:
                results = self._diverted(entry, error)
            complete(entry, results)
            finished(entry)
        self._emit_and_begin()

    def _as_list(self, result: object, entry: Entry) -> list[Any]:
        """The results as a list; None counts as empty. Raises for a single value outside a list,
        which is most likely a mistake."""
        if result is None:
            return []
        if isinstance(result, (list, tuple, set, frozenset)):
            return list(result)
        wrong = TypeError(
            "an asynchronous function gives a list of results, this is "
            f"{bounded_repr(result, 60)}: write [result] for a single one"
        )
        return self._diverted(entry, wrong)

    def _diverted(self, entry: Entry, error: BaseException) -> list[Any]:
        """No results, and a dead letter for the record, which goes out when its results would;
        raises the error if the policy diverts none."""
        if self.error_policy.tag is None or not isinstance(error, Exception):
            raise user_code_error(error, self.context, entry.value) from error
        entry.letter = self._letters.letter(
            error, entry.value, entry.timestamp, calls=entry.attempts
        )
        return []

    def _retry_delay_ms(
        self, retries: Retries, entry: Entry, results: list[Any], error: BaseException | None
    ) -> float | None:
        try:
            return retries.delay_ms(entry.attempts, results, error)
        except BaseException as raised:
            raise user_code_error(raised, self.context, entry.value) from raised

    def _timed_out(self, entries: list[Entry]) -> None:
        for entry in entries:
            try:
                results = self._own(self.descriptor.results_after_timeout(self._given(entry.value)))
            except Exception as error:
                results = self._diverted(entry, error)
            self._queue.complete(
                entry, results if type(results) is list else self._as_list(results, entry)
            )
        self._emit_and_begin()

    def _emit_and_begin(self) -> None:
        """Called when calls have finished: emits what may be emitted, begins waiting calls, and
        tells the task if the operator has become available or, at the end, drained."""
        was_available = self.available
        self.emit_finished(self._queue.take())
        self._begin_waiting()
        if self._on_available is not None and (
            self.drained if self._finishing else self.available and not was_available
        ):
            self._on_available()

    def emit_finished(self, elements: Iterable[Queued]) -> None:
        """Emits the results of entries, and the control elements between them."""
        _emit(elements, self.output, self._letters.side_output)

    def _open_calls(self) -> CallsUnderWay:
        if self._calls is None:
            raise EngineError(f"{self.context.name} is not open")
        return self._calls

    def __repr__(self) -> str:
        state = (
            "not open"
            if self._calls is None
            else f"{self._queue!r}, {len(self._waiting)} elements waiting"
        )
        return f"<AsyncWaitOperator {self.descriptor!r}: {state}>"


def _emit(elements: Iterable[Queued], output: Output, side_output: str) -> None:
    """Emits all results between two control elements as one batch; dead letters to the side
    output."""
    values: list[Any] = []
    stamps: list[int] | None = None
    for element in elements:
        if type(element) is not Entry:
            if values:
                output.emit(RowBatch(values, stamps))
                values = []
            output.emit_control(element)  # type: ignore[arg-type]  # not an Entry
            continue
        results, stamp = element.results, element.timestamp
        if not results:
            if element.letter is not None:
                output.emit_side(side_output, single_row(element.letter, stamp))
            continue
        # records with and without timestamps do not share a batch
        if values and (stamps is None) is not (stamp is None):
            output.emit(RowBatch(values, stamps))
            values = []
        if not values:
            stamps = None if stamp is None else []
        values += results
        if stamps is not None:
            stamps += [stamp] * len(results)  # type: ignore[list-item]  # not None, see above
    if values:
        output.emit(RowBatch(values, stamps))
