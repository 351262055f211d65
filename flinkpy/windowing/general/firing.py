"""Windows of the window operator that fire: they are evaluated when a trigger says so or a timer is due, and end when their time is over.

A window's function may yield without end. What it yielded so far goes on, and the operator parks (``flinkpy.operators.process.parking``): what is
left to be done for the window (its evictor, its purge, its end) is done when the function is through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, RowBatch, Watermark
from flinkpy.core.errors import FlinkpyError
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.process.yielding import Results
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.backend import CurrentKey
from flinkpy.windowing.contexts import FunctionContext, TriggerContext
from flinkpy.windowing.general.evaluation import Evaluation
from flinkpy.windowing.general.merging_windows import MergingWindows
from flinkpy.windowing.general.pages import MISSING, take, write_back
from flinkpy.windowing.general.window_timers import Timer, WindowTimerService
from flinkpy.windowing.triggers import Trigger, TriggerResult


class FiresWindows(KeyedStateOperator, StreamOperator):
    """What the window operator does with windows that fire."""

    trigger: Trigger[Any, Any]
    allowed_lateness: int
    late_tag: OutputTag | None
    _event_time: bool
    _is_default: bool  # whether the trigger is the one that the windows come with
    _service: WindowTimerService
    _at: CurrentKey
    _trigger_context: TriggerContext
    _function_context: FunctionContext
    _merging: MergingWindows | None
    _evaluation: Evaluation
    _clear: Callable[[Any], None] | None
    _results: Results
    _late: RowBatch
    _pages: dict[Any, Any]
    _trigger_pages: dict[Any, Any]
    _window_pages: dict[Any, Any]

    def cleanup_time(self, window: Any) -> int:
        """When the window is done with."""
        last: int = window.max_timestamp()
        return min(last + self.allowed_lateness, MAX_TIMESTAMP) if self._event_time else last

    # -- by a trigger ----------------------------------------------------------------------------------------------------------

    def act(self, result: TriggerResult, key: Any, window: Any, state_window: Any) -> Work:
        """What the trigger says is done. ``state_window``: under which the contents are kept."""
        if result is not TriggerResult.PURGE:
            page = self._pages.get(key)
            contents = MISSING if page is None else page.get(state_window, MISSING)
            if page is not None and contents is not MISSING:
                begun = self._evaluation.evaluate(self._results, key, window, contents)
                yield from self._go_on()
                left = self._evaluation.left(begun, window)
                if left is MISSING:
                    take(self._pages, key, state_window)
                elif left is not contents:
                    page[state_window] = left
        if result is not TriggerResult.FIRE:
            take(self._pages, key, state_window)

    def _go_on(self) -> Work:
        """Passes on what a function yields while it yields. What was changed is written back only when the window is through."""
        evaluation = self._evaluation
        try:
            while evaluation.rest is not None:
                results, self._results = self._results, Results(True)
                results.emit(self.output)
                yield
                evaluation.go_on(self._results)
        finally:
            evaluation.rest = None  # a generator that is not asked again is closed

    # -- by a timer ------------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        self._service.watermark = watermark.timestamp
        yield from self._fire(self._service.event.due(watermark.timestamp), True)
        super().process_watermark(watermark)

    def end_key(self) -> Work:
        service = self._service
        service.watermark = MAX_TIMESTAMP
        for timers in (service.event, service.processing):
            yield from self._fire(timers.all_there_are(), timers is service.event)
        service.watermark = MIN_TIMESTAMP
        service.event.clear()

    def _on_processing_time(self, due: Iterator[tuple[int, Timer]]) -> None:
        self.do(self._service.firing(self._fire(due, False)))

    def _fire(self, due: Iterator[tuple[int, Timer]], event: bool) -> Work:
        """What due timers bring about, earliest first."""
        try:
            yield from self._fire_default(due) if self._is_default and event == self._event_time else self._fire_asking(due, event)
        except FlinkpyError:
            raise
        except Exception as error:
            raise user_code_error(error, self.context) from error
        self._emit()

    def _fire_asking(self, due: Iterator[tuple[int, Timer]], event: bool) -> Work:
        """Asks the trigger what is to be done."""
        current, limit, ends = self.backend.current, self.context.batch_records, event == self._event_time
        trigger = self.trigger.on_event_time if event else self.trigger.on_processing_time
        for moment, (key, window) in due:
            state_window = window if self._merging is None else self._merging.state_window(key, window)
            if state_window is None:
                continue  # a timer that its trigger left behind
            current.key, self._at.key = key, window
            result = trigger(moment, window, self._trigger_context)
            if result is not TriggerResult.CONTINUE:
                yield from self.act(result, key, window, state_window)
            if ends and moment == self.cleanup_time(window):
                self._end(key, window, state_window)
            if len(self._results.values) >= limit:
                self._emit()
                yield

    def _fire_default(self, due: Iterator[tuple[int, Timer]]) -> Work:
        """The same for default triggers, whose timers are the end of a window and the end of its life, without asking them."""
        current, at, pages, limit, results = self.backend.current, self._at, self._pages, self.context.batch_records, self._results
        lateness, evaluation, merging = self.allowed_lateness if self._event_time else 0, self._evaluation, self._merging
        for moment, (key, window) in due:
            home = window if merging is None else merging.state_window(key, window)
            page = pages.get(key)
            if page is None or home not in page:
                continue
            current.key, at.key = key, window
            last = window[1] - 1  # all these are TimeWindows
            if moment == last:
                evaluation.evaluate(results, key, window, page[home])
                if evaluation.rest is not None:
                    yield from self._go_on()
                    results = self._results
            if moment == last + lateness or moment == MAX_TIMESTAMP:
                del page[home]
                if not page:
                    del pages[key]
                self._forget(key, window)
                if merging is not None:
                    merging.retire(key, window)
            if len(results.values) >= limit:
                self._emit()
                yield
                results = self._results

    def _end(self, key: Any, window: Any, state_window: Any) -> None:
        """Forgets a window."""
        take(self._pages, key, state_window)
        self.trigger.clear(window, self._trigger_context)
        self._forget(key, window)
        if self._trigger_pages:
            take(self._trigger_pages, key, window)
        if self._merging is not None:
            self._merging.retire(key, window)

    def _forget(self, key: Any, window: Any) -> None:
        """What the window's function keeps for it."""
        if self._clear is not None:
            self._clear(self._function_context)
        if self._window_pages:
            take(self._window_pages, key, window)

    # -- results ---------------------------------------------------------------------------------------------------------------

    def _emit(self) -> None:
        """Passes on what was gathered, and writes back what was changed."""
        results, late = self._results, self._late
        self._results = Results(True)
        results.emit(self.output)
        if late.values and self.late_tag is not None:
            self._late = RowBatch([], [])
            self.output.emit_side(self.late_tag.tag_id, late)
        for pages in self._all_pages():
            write_back(pages)

    def _all_pages(self) -> Sequence[dict[Any, Any]]:
        pages = [self._pages, self._trigger_pages, self._window_pages]
        return pages if self._merging is None else [*pages, self._merging.pages]
