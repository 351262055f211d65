"""MiniBatchAssigner: batches become fewer and larger ones, for operators that work by the batch.

Whatever is computed over a batch is a mini-batch of Flink's, so an option for them changes only how
large batches are while more input is there than is processed. What is gathered goes on when it is
old or large enough, and at once when no input is there, in front of a watermark and a barrier, and
at the end: a row waits for others only where these come."""

from __future__ import annotations

import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import ColumnBatch, Watermark, WatermarkStatus
from flinkpy.operators.base import Work
from flinkpy.relational.relational_operator import RelationalOperator, with_schema


class GatherRowsOperator(RelationalOperator):
    """Gathers up to ``most_rows`` rows, for at most ``latency_ms``."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, latency_ms: int, most_rows: int, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.latency_ms = latency_ms
        self.most_rows = most_rows

    def open(self) -> None:
        self._held: list[ColumnBatch] = []
        self._rows = 0
        self._since_ms = 0  # when the first of them came

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        if not batch.data.num_columns:
            return batch  # nothing to put together
        now_ms = self.context.timers.now_ms()
        if not self._held:
            self._since_ms = now_ms
        self._held.append(batch)
        self._rows += len(batch)
        if self._rows >= self.most_rows or now_ms - self._since_ms >= self.latency_ms:
            return self._taken()
        return None

    def _taken(self) -> ColumnBatch | None:
        held, self._held, self._rows = self._held, [], 0
        if len({str(each.data.schema) for each in held}) > 1:  # some have encoded columns
            held = [each.with_columns(with_schema(each.data, self.schema)) for each in held]
        return ColumnBatch.concat(held) if held else None

    def _give(self) -> None:
        batch = self._taken()
        if batch is not None:
            self.output.emit(batch)

    def input_pauses(self) -> None:
        self._give()

    def process_watermark(self, watermark: Watermark) -> Work | None:
        self._give()
        return super().process_watermark(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self._give()
        super().process_watermark_status(status)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        self._give()

    def finish(self) -> None:
        self._give()
