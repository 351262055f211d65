"""An asynchronous operator whose calls come back when the test says so: no event loop, no thread,
no waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import (
    CheckpointBarrier,
    ControlElement,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.operators.async_io.async_functions import AsyncFunction, AsyncFunctionDescriptor
from flinkpy.operators.async_io.async_wait import AsyncWaitOperator
from flinkpy.operators.async_io.output_queues import Entry
from flinkpy.operators.async_io.retry import NO_RETRY_STRATEGY, AsyncRetryStrategy
from flinkpy.operators.functions import RuntimeContext
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.harness import ChainHarness, linear

ORDERED = AsyncFunctionDescriptor.OutputMode.ORDERED
UNORDERED = AsyncFunctionDescriptor.OutputMode.UNORDERED
SECOND = timedelta(seconds=1)
AGAIN = AsyncRetryStrategy.fixed_delay(
    2, 100, lambda results: not results, lambda error: isinstance(error, ConnectionError)
)


async def never_called(value: Any) -> list[Any]:
    raise AssertionError(f"the test answers, not the function ({value})")


class Patient(AsyncFunction):
    """Has an answer for those whose time is over, and writes down its life."""

    def __init__(self) -> None:
        self.life: list[str] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.life.append(f"open in {runtime_context.get_index_of_this_subtask()}")

    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]

    def timeout(self, value: Any) -> list[Any]:
        return [("late", value)]

    def close(self) -> None:
        self.life.append("close")


class HandLoop:
    """A CallLoop: ``calls`` are under way."""

    def __init__(
        self, deliver: Callable[[list[tuple[Entry, Any, BaseException | None]]], None]
    ) -> None:
        self._deliver = deliver
        self.calls: list[Entry] = []
        self.begun: list[Any] = []  # values, in the order of their calls
        self.cancelled: list[Any] = []
        self.closed = False

    def submit(self, entries: Sequence[Entry]) -> None:
        self.calls += entries
        self.begun += [entry.value for entry in entries]

    def cancel(self, entries: Sequence[Entry]) -> None:
        self.cancelled += [entry.value for entry in entries]

    def close(self) -> None:
        self.closed = True

    def _entry(self, value: Any) -> Entry:
        entry = next(entry for entry in self.calls if entry.value == value)
        self.calls.remove(entry)
        return entry

    def answer(self, *values: Any, with_: Callable[[Any], Any] = lambda value: [value]) -> None:
        """These calls come back together."""
        self._deliver([(self._entry(value), with_(value), None) for value in values])

    def fail(self, value: Any, error: BaseException) -> None:
        self._deliver([(self._entry(value), None, error)])


class AsyncHarness(ChainHarness):
    """One asynchronous operator, open. ``signals`` counts how often it said that it can go on."""

    def __init__(
        self,
        function: AsyncFunction | Callable[[Any], Awaitable[Any]] = never_called,
        *,
        mode: AsyncFunctionDescriptor.OutputMode = ORDERED,
        capacity: int = 2,
        timeout: timedelta | int = 0,
        strategy: AsyncRetryStrategy = NO_RETRY_STRATEGY,
        restored: SavedState | None = None,
        policy: ErrorPolicy | None = None,
    ) -> None:
        descriptor = AsyncFunctionDescriptor(function, timeout, capacity, strategy, mode)
        self.loops: list[HandLoop] = []
        self.operator = AsyncWaitOperator(descriptor, self._create_loop)
        if policy is not None:
            self.operator.set_error_policy(policy)
        super().__init__(linear(self.operator), open_it=False)
        self.operator.initialize_state(restored)
        self.signals = 0
        self.operator.set_listener(self._signalled)
        self.chain.open()

    def _create_loop(self, name: str, invoke: Any, deliver: Any) -> HandLoop:
        self.loops.append(HandLoop(deliver))
        return self.loops[-1]

    def _signalled(self) -> None:
        self.signals += 1

    @property
    def loop(self) -> HandLoop:
        return self.loops[-1]

    def is_available(self) -> bool:
        """A call, as a type checker takes what a property said to hold for good."""
        return self.operator.available

    def watermark(self, timestamp: int) -> None:
        self.chain.control(Watermark(timestamp))

    def snapshot(self) -> SavedState:
        return self.operator.freeze_state(CheckpointBarrier(1, 0)).write()

    @property
    def under_way(self) -> list[Any]:
        return [entry.value for entry in self.loop.calls]

    @property
    def elements(self) -> list[Any]:
        """Records (with their timestamps, where they have any) and control elements, in order."""
        found: list[Any] = []
        for element in self.writers[0].elements:
            if isinstance(element, RowBatch):
                found += (
                    element.values
                    if element.timestamps is None
                    else zip(element.values, element.timestamps)
                )
            else:
                assert isinstance(element, (Watermark, WatermarkStatus, LatencyMarker))
                found.append(element.timestamp if isinstance(element, Watermark) else element)
        return found

    @property
    def batches(self) -> list[int]:
        return [
            len(element) for element in self.writers[0].elements if isinstance(element, RowBatch)
        ]

    def control(self, element: ControlElement) -> None:
        self.chain.control(element)
