"""Watermarks of several splits that one reader reads concurrently: each split has its own
generator, and the least watermark counts.

A single generator would take the fastest split's timestamps for everybody's progress, and the
records of slower splits would be late. An idle split does not count. When all splits are idle, so
is the reader. A split that has ended is forgotten."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ControlElement, Watermark, WatermarkStatus
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator


class WatermarkMultiplexer:
    """Combines the watermarks and statuses of the splits into one of each. It is pure, and its
    watermark never goes back."""

    def __init__(self) -> None:
        self._watermarks: dict[str, int] = {}
        self._idle: set[str] = set()
        self.watermark, self.idle = MIN_TIMESTAMP, False

    def add_split(self, split: str) -> list[Watermark | WatermarkStatus]:
        """Adds a split. It holds the others back until it has a watermark."""
        self._watermarks[split] = MIN_TIMESTAMP
        return self._combined()

    def remove_split(self, split: str) -> list[Watermark | WatermarkStatus]:
        """Removes a split that has ended."""
        self._watermarks.pop(split, None)
        self._idle.discard(split)
        return self._combined()

    def update(self, split: str, element: ControlElement) -> list[Watermark | WatermarkStatus]:
        """Takes an element from the split's generator; returns the elements to emit."""
        if isinstance(element, Watermark):
            self._watermarks[split] = max(self._watermarks[split], element.timestamp)
        elif isinstance(element, WatermarkStatus):
            (self._idle.add if element.idle else self._idle.discard)(split)
        return self._combined()

    def _combined(self) -> list[Watermark | WatermarkStatus]:
        if not self._watermarks:
            return []  # between two splits: neither progress nor idleness
        active = [
            watermark for split, watermark in self._watermarks.items() if split not in self._idle
        ]
        outcome: list[Watermark | WatermarkStatus] = []
        if self.idle is bool(active):
            self.idle = not active
            outcome.append(WatermarkStatus(self.idle))
        if active and min(active) > self.watermark:
            self.watermark = min(active)
            outcome.append(Watermark(self.watermark))
        return outcome

    def __repr__(self) -> str:
        return (
            f"<WatermarkMultiplexer at {self.watermark} over {len(self._watermarks)} splits, "
            f"{len(self._idle)} idle>"
        )


class _SplitOutput(Output):
    """The output of one split's generator: passes records on, and combines watermarks."""

    def __init__(
        self, output: Output, combine: Callable[[ControlElement], list[Watermark | WatermarkStatus]]
    ) -> None:
        self._output, self._combine = output, combine

    def emit(self, batch: Batch) -> None:
        self._output.emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._output.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        for combined in self._combine(element):
            self._output.emit_control(combined)


class SplitWatermarks:
    """Assigns timestamps to the batches of each split, and generates the reader's watermarks."""

    def __init__(
        self, strategy: WatermarkStrategy, context: OperatorContext, output: Output
    ) -> None:
        self._strategy = strategy
        self._context = context
        self._output = output
        self._multiplexer = WatermarkMultiplexer()
        self._splits: dict[str, TimestampsAndWatermarksOperator] = {}

    def process_batch(self, split: str, batch: Batch) -> None:
        """Processes a batch of the split, and adds the split if it is new."""
        stamping = self._splits.get(split)
        if stamping is None:
            stamping = self.begin_split(split)
        stamping.process_batch(batch)

    def begin_split(self, split: str) -> TimestampsAndWatermarksOperator:
        """Adds the split; from now on the others wait for its watermark."""
        stamping = self._splits[split] = TimestampsAndWatermarksOperator(self._strategy)
        self._emit(self._multiplexer.add_split(split))
        stamping.setup(
            self._context,
            _SplitOutput(self._output, lambda element: self._multiplexer.update(split, element)),
        )
        stamping.open()
        return stamping

    def end_split(self, split: str) -> None:
        """Removes the split. Its last watermark still counts; after that the others do not wait for
        it."""
        stamping = self._splits.pop(split, None)
        if stamping is not None:
            stamping.finish()
            stamping.close()
            self._emit(self._multiplexer.remove_split(split))

    def finish(self) -> None:
        for stamping in self._splits.values():
            stamping.finish()

    def close(self) -> None:
        for stamping in self._splits.values():
            stamping.close()

    def _emit(self, elements: list[Watermark | WatermarkStatus]) -> None:
        for element in elements:
            self._output.emit_control(element)

    @property
    def event_time(self) -> int:
        """The event time of the slowest split that is not idle, including records that were read
        but not emitted yet."""
        return min(
            (stamping.event_time for stamping in self._splits.values() if not stamping.idle),
            default=self._multiplexer.watermark,
        )

    @property
    def idle(self) -> bool:
        return self._multiplexer.idle
