"""What the JobMaster knows of one subtask's counters and accumulators: the latest reading of its
latest attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from flinkpy.actors.execution_graph_info import TimeShares
from flinkpy.actors.gateways import OperatorDetails
from flinkpy.core.ids import OperatorId
from flinkpy.graph.deployment import TaskMetrics
from flinkpy.metrics.definitions import ENTRIES, OF_CHANGES, STATE_BYTES
from flinkpy.metrics.live import opened
from flinkpy.metrics.readings import TaskReading, without_rates
from flinkpy.metrics.shown_accumulators import Shown, shown

_RECORDS = {"numRecordsIn", "numRecordsOut"}
_TOLD = {ENTRIES, STATE_BYTES, *OF_CHANGES, *_RECORDS}


class SubtaskMetrics:
    """``metrics`` is the latest reading, ``counted_ms`` when it came."""

    APART_MS = 200  # two readings closer together than this give no usable rate

    def __init__(self, attempts_kept: int = 16) -> None:
        self._attempts_kept = attempts_kept
        self.metrics: TaskMetrics | None = None
        self.counted_ms = 0
        self.shares = TimeShares()
        # the last readings of the attempts before, by attempt
        self.earlier: dict[int, TaskMetrics] = {}
        self._earlier_shown: dict[int, Shown] = {}  # their accumulators
        self._before: TaskMetrics | None = None
        self._final: dict[str, Any] | None = None  # the accumulators of an attempt that has ended

    def record_reading(
        self, metrics: TaskMetrics, now_ms: int, final: dict[str, Any] | None = None
    ) -> None:
        """Records a reading; with ``final`` accumulators it is the attempt's last one. A reading
        older than the known one changes nothing."""
        if self.metrics is not None and _age(metrics, final) < _age(self.metrics, self._final):
            return
        if self.metrics is None or self.metrics.attempt_id != metrics.attempt_id:
            if self.metrics is not None:
                self._keep(self.metrics)
            self._before = None
            self.shares = TimeShares()
        self.metrics = metrics
        self.counted_ms = now_ms
        self._final = final
        self._look_at_time()

    def _keep(self, metrics: TaskMetrics) -> None:
        number = metrics.attempt_id.attempt
        self.earlier[number], self._earlier_shown[number] = (
            replace(metrics, accumulators=b""),
            shown(self.accumulators()),
        )
        if len(self.earlier) > self._attempts_kept:
            oldest = min(self.earlier)
            del self.earlier[oldest], self._earlier_shown[oldest]

    def _look_at_time(self) -> None:
        latest, before = self.metrics, self._before
        assert latest is not None
        if self._final is not None:
            self.shares = TimeShares()
        elif before is None:
            self._before = latest
            self.shares = _shares(
                TaskMetrics(latest.attempt_id),
                latest,
                latest.busy_ms + latest.back_pressured_ms + latest.idle_ms,
            )
        elif latest.read_ms - before.read_ms >= self.APART_MS:
            self._before = latest
            self.shares = _shares(before, latest, latest.read_ms - before.read_ms)

    def accumulators(self) -> dict[str, Any]:
        """Returns the accumulators of the subtask's functions; they include the values of the
        functions' metrics."""
        if self._final is not None:
            return self._final
        return opened(self.metrics.accumulators) if self.metrics is not None else {}

    def shown_by_attempt(self, current: dict[str, Any]) -> dict[int, Shown]:
        """The accumulators of each known attempt for people; ``current`` are those of the current
        one."""
        return (
            self._earlier_shown
            if self.metrics is None
            else {**self._earlier_shown, self.metrics.attempt_id.attempt: shown(current)}
        )

    @property
    def last(self) -> TaskReading | None:
        """What the current attempt told at its end."""
        reading = None if self.metrics is None or self._final is None else self.metrics.reading
        return None if reading is None else without_rates(reading)


def _age(metrics: TaskMetrics, final: dict[str, Any] | None) -> tuple[int, bool, int]:
    return metrics.attempt_id.attempt, final is not None, metrics.read_ms


def _shares(before: TaskMetrics, latest: TaskMetrics, elapsed_ms: int) -> TimeShares:
    def share(since: int, until: int) -> int:
        return min(1000, max(0, until - since) * 1000 // max(1, elapsed_ms))

    return TimeShares(
        share(before.busy_ms, latest.busy_ms),
        share(before.back_pressured_ms, latest.back_pressured_ms),
        share(before.idle_ms, latest.idle_ms),
    )


def operator_details(counted: Iterable[TaskMetrics]) -> Iterator[OperatorDetails]:
    """The operators that have state, or rows that change, in the order of their chain; summed over
    the subtasks of the vertex."""
    names: dict[OperatorId, str] = {}
    sums: dict[OperatorId, dict[str, float]] = {}
    for metrics in counted:
        for operator in () if metrics.reading is None else metrics.reading.operators:
            names[operator.operator_id] = operator.name
            told = sums.setdefault(operator.operator_id, {})
            for name in _TOLD & operator.values.keys():
                told[name] = told.get(name, 0) + operator.values[name]
    for operator_id, values in sums.items():
        if values.keys() > _RECORDS:
            yield OperatorDetails(names[operator_id], values)
