"""Watermark generators that look at whole batches."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from flinkpy.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext


class BatchWatermarkGenerator(WatermarkGenerator):
    """Is called once for each batch. What it emits goes out behind the batch, which is not cut."""

    def open(self, context: OperatorContext) -> None:
        """Called before the first batch."""

    @abstractmethod
    def on_batch(self, batch: Batch, output: WatermarkOutput) -> None:
        """Called with every batch."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        raise NotImplementedError("on_batch takes the records of a batch together")

    def close(self) -> None:
        """Called when no more batches come."""
