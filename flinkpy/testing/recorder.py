"""Records the output of a piece of stream for a test."""

from __future__ import annotations

from typing import Any

from flinkpy.core.elements import Batch, ControlElement, RowBatch, Watermark


class Recorder:
    """The elements emitted, in order."""

    def __init__(self) -> None:
        self.elements: list[tuple[Any, int | None] | ControlElement] = []
        self.sides: dict[str, list[Any]] = {}

    def take(self, batch: Batch) -> None:
        rows = batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist()
        stamps = (
            [None] * len(rows)
            if batch.timestamps is None
            else [int(stamp) for stamp in batch.timestamps]
        )
        self.elements.extend(zip(rows, stamps))

    def take_side(self, tag_id: str, batch: Batch) -> None:
        self.sides.setdefault(tag_id, []).extend(
            batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist()
        )

    @property
    def stamped(self) -> list[tuple[Any, int | None]]:
        return [element for element in self.elements if isinstance(element, tuple)]

    @property
    def watermarks(self) -> list[int]:
        return [element.timestamp for element in self.elements if isinstance(element, Watermark)]
