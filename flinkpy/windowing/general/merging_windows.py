"""Windows that merge, in the window operator: when a record joins windows, their contents, trigger state and timers become those of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import Work
from flinkpy.windowing.evictors import TimestampedValue
from flinkpy.windowing.general.merging_window_set import Merge, MergingWindowSet
from flinkpy.windowing.general.namespaces import MISSING, pages_over, take
from flinkpy.windowing.triggers import TriggerResult

if TYPE_CHECKING:
    from flinkpy.windowing.general.window_operator import WindowOperator

MERGING_WINDOWS = "_merging windows"  # key -> {window: the window its contents are kept under}


class MergingWindows:
    """The open windows of all keys of an operator."""

    def __init__(self, operator: WindowOperator) -> None:
        self._operator = operator
        self.pages = pages_over(operator.backend.engine_values(MERGING_WINDOWS))

    def state_window(self, key: Any, window: Any) -> Any:
        """Under which window the contents are kept; None where the window is not open any more."""
        page = self.pages.get(key)
        return None if page is None else page.get(window)

    def retire(self, key: Any, window: Any) -> None:
        """The window is done with."""
        take(self.pages, key, window)

    def element(self, key: Any, record: Any, stamp: int) -> Work:
        """One record into its windows, after they were merged with those it meets."""
        operator = self._operator
        skipped = True
        kept = TimestampedValue(record, stamp if stamp != MIN_TIMESTAMP else None) if operator.evictor is not None else record
        for window in operator.assigner.assign_windows(record, stamp, operator._assigner_context):
            actual, state_window = self._place(key, window)
            if state_window is None:
                continue
            skipped = False
            operator.add(key, state_window, kept)
            operator._at.key = actual
            result = operator.trigger.on_element(record, stamp, actual, operator._trigger_context)
            if result is not TriggerResult.CONTINUE:
                yield from operator.act(result, key, actual, state_window)
            operator.register_cleanup(key, actual)
        if skipped:
            operator.skipped(record, stamp)

    def _place(self, key: Any, window: Any) -> tuple[Any, Any]:
        """The window the record is in after all merging, and where its contents are kept: None if it is late."""
        operator = self._operator
        windows: MergingWindowSet[Any] = MergingWindowSet(operator.assigner, self.pages.get(key))  # type: ignore[arg-type]  # it is merging
        actual, merges = windows.add(window)
        for merge in merges:
            self._merge(key, merge)
        state_window = windows.state_window(actual)
        if operator._event_time and operator.cleanup_time(actual) <= operator._service.watermark:
            windows.retire(actual)
            state_window = None
        if windows.changed:
            if len(windows):
                self.pages[key] = windows.snapshot()
            elif key in self.pages:
                del self.pages[key]
        return actual, state_window

    def _merge(self, key: Any, merge: Merge[Any]) -> None:
        operator, context = self._operator, self._operator._trigger_context
        self._refuse_past(merge.result)
        operator._at.key, context.merged = merge.result, merge.merged
        operator.trigger.on_merge(merge.result, context)
        for window in merge.merged:
            if window != merge.result:
                operator._at.key = window
                operator.trigger.clear(window, context)
                take(operator._trigger_pages, key, window)
                self._delete_cleanup(key, window)
        contents = take(operator._pages, key, merge.state_window)
        for absorbed in merge.absorbed:
            other = take(operator._pages, key, absorbed)
            contents = other if contents is MISSING else contents if other is MISSING else operator._kept.merge(contents, other)
        if contents is not MISSING:
            operator._pages.setdefault(key, {})[merge.state_window] = contents

    def _refuse_past(self, result: Any) -> None:
        """Windows of an assigner that merges into the past would never be evaluated."""
        operator = self._operator
        service = operator._service
        if operator._event_time and operator.cleanup_time(result) <= service.watermark:
            raise ProgramError(f"{operator.assigner!r} merged windows into {result!r}, which the watermark {service.watermark} has passed: "
                               "a merged window must not end before those it is made of")
        if not operator._event_time and result.max_timestamp() < service.now_ms():
            raise ProgramError(f"{operator.assigner!r} merged windows into {result!r}, which the clock {service.now_ms()} has passed: "
                               "a merged window must not end before those it is made of")

    def _delete_cleanup(self, key: Any, window: Any) -> None:
        operator = self._operator
        time = operator.cleanup_time(window)
        if time != MAX_TIMESTAMP:
            timers = operator._service.event if operator._event_time else operator._service.processing
            timers.remove(time, key, window)
