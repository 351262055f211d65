"""Gathers the results of windows, and late records, and emits them together."""

from __future__ import annotations

from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import RowBatch
from flinkpy.operators.context import Output
from flinkpy.operators.yielding import Results


class WindowOutput:
    """Gathers results and late records. ``results`` is a new object after each ``emit_results``."""

    def __init__(self, output: Output, late_tag: OutputTag | None) -> None:
        self._output, self._late_tag = output, late_tag
        self.results = Results(True)
        self._late_values: list[Any] = []
        self._late_timestamps: list[int] = []

    def add_late(self, record: object, timestamp: int) -> None:
        """Adds a record for the side output of late records."""
        self._late_values.append(record)
        self._late_timestamps.append(timestamp)

    def emit_results(self) -> None:
        results, self.results = self.results, Results(True)
        results.emit(self._output)

    def emit(self) -> None:
        """Emits the results and the late records."""
        self.emit_results()
        if self._late_values and self._late_tag is not None:
            late = RowBatch(self._late_values, self._late_timestamps)
            self._late_values = []
            self._late_timestamps = []
            self._output.emit_side(self._late_tag.tag_id, late)
