"""Records that came too late and were dropped: counted, and reported in the metric Flink has for them."""

from __future__ import annotations

from flinkpy.operators.base import StreamOperator
from flinkpy.operators.functions import RuntimeContext

DROPPED = "numLateRecordsDropped"  # the metric's name in Flink


class DropsLateRecords(StreamOperator):
    """Counts in ``late_records_dropped``, since the operator was opened. It gathers records by their times, so each of them counts."""

    takes_updates = False
    late_records_dropped = 0

    def drop_late(self, count: int) -> None:
        """So many more were dropped; the metric is there from the first one on."""
        if count:
            self.late_records_dropped += count
            RuntimeContext(self.context).get_metrics_group().counter(DROPPED).inc(count)
