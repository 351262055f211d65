"""Late records that operators drop: counted, and reported in Flink's metric for them."""

from __future__ import annotations

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.functions import RuntimeContext

DROPPED = "numLateRecordsDropped"  # the metric's name in Flink


class DropsLateRecords(StreamOperator):
    """Counts dropped records in ``late_records_dropped`` since it was opened. It groups records by
    their time, so updates are not allowed as input."""

    takes_changes = INSERT_ONLY
    late_records_dropped = 0

    def measures(self, now_ms: int) -> dict[str, float]:
        return {**super().measures(now_ms), DROPPED: self.late_records_dropped}

    def drop_late(self, count: int) -> None:
        """Counts ``count`` dropped records; the metric exists from the first one on."""
        if count:
            self.late_records_dropped += count
            RuntimeContext(self.context).get_metrics_group().counter(DROPPED).inc(count)
