"""Watermarks of several splits read side by side: each has a generator of its own, and the least of them counts.

One generator for all would take the greatest timestamp of the fastest split for the progress of the slowest, whose records would be late.
A split that is idle does not count; when all are, so is the reader. A split that has ended is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ControlElement, Watermark, WatermarkStatus
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator


class WatermarkMultiplexer:
    """One watermark and one status out of those of the splits, purely. The watermark never goes back."""

    def __init__(self) -> None:
        self._watermarks: dict[str, int] = {}
        self._idle: set[str] = set()
        self.watermark, self.idle = MIN_TIMESTAMP, False

    def add(self, split: str) -> list[Watermark | WatermarkStatus]:
        """A split begins: it holds the others back until it has a watermark."""
        self._watermarks[split] = MIN_TIMESTAMP
        return self._combined()

    def remove(self, split: str) -> list[Watermark | WatermarkStatus]:
        """It has ended."""
        self._watermarks.pop(split, None)
        self._idle.discard(split)
        return self._combined()

    def update(self, split: str, element: ControlElement) -> list[Watermark | WatermarkStatus]:
        """What the split's own generator says; gives what goes out."""
        if isinstance(element, Watermark):
            self._watermarks[split] = max(self._watermarks[split], element.timestamp)
        elif isinstance(element, WatermarkStatus):
            (self._idle.add if element.idle else self._idle.discard)(split)
        return self._combined()

    def _combined(self) -> list[Watermark | WatermarkStatus]:
        if not self._watermarks:
            return []  # between two splits: neither further nor idle
        active = [watermark for split, watermark in self._watermarks.items() if split not in self._idle]
        outcome: list[Watermark | WatermarkStatus] = []
        if self.idle is bool(active):
            self.idle = not active
            outcome.append(WatermarkStatus(self.idle))
        if active and min(active) > self.watermark:
            self.watermark = min(active)
            outcome.append(Watermark(self.watermark))
        return outcome

    def __repr__(self) -> str:
        return f"<WatermarkMultiplexer at {self.watermark} over {len(self._watermarks)} splits, {len(self._idle)} idle>"


class _SplitOutput(Output):
    """Passes records on and combines watermarks."""

    def __init__(self, output: Output, combine: Callable[[ControlElement], list[Watermark | WatermarkStatus]]) -> None:
        self._output, self._combine = output, combine

    @property
    def emit(self) -> Callable[[Batch], None]:
        return self._output.emit

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._output.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        for combined in self._combine(element):
            self._output.emit_control(combined)


class SplitWatermarks:
    """Stamps the batches of each split, and makes the reader's watermarks."""

    def __init__(self, strategy: WatermarkStrategy, context: OperatorContext, output: Output) -> None:
        self._strategy, self._context, self._output = strategy, context, output
        self._multiplexer = WatermarkMultiplexer()
        self._splits: dict[str, TimestampsAndWatermarksOperator] = {}

    def process_batch(self, split: str, batch: Batch) -> None:
        """A batch of that split, which begins here at the latest."""
        stamping = self._splits.get(split)
        if stamping is None:
            stamping = self.begin(split)
        stamping.process_batch(batch)

    def begin(self, split: str) -> TimestampsAndWatermarksOperator:
        """From now on the others wait for its watermark."""
        stamping = self._splits[split] = TimestampsAndWatermarksOperator(self._strategy)
        self._emit(self._multiplexer.add(split))
        stamping.setup(self._context, _SplitOutput(self._output, lambda element: self._multiplexer.update(split, element)))
        stamping.open()
        return stamping

    def end(self, split: str) -> None:
        """The split's last watermark counts, then nobody waits for it any more."""
        stamping = self._splits.pop(split, None)
        if stamping is not None:
            stamping.finish()
            stamping.close()
            self._emit(self._multiplexer.remove(split))

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
        """How far the slowest split that is not idle has come; what was read but not emitted yet counts."""
        return min((stamping.event_time for stamping in self._splits.values() if not stamping.idle), default=self._multiplexer.watermark)

    @property
    def idle(self) -> bool:
        return self._multiplexer.idle
