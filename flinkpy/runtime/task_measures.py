"""Reads the metrics of one task. Nothing is computed before somebody asks: the counters are those
that the data path keeps anyway.

The engine's own counters are read from any thread, also while a function does not return. What the
program's functions count, and what operators and connectors tell of themselves, is read in the
task's thread, and told as it was last read."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from flinkpy.core.clock import Clock
from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.ids import OperatorId
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.metrics.counter_rates import Rate
from flinkpy.metrics.definitions import IN, MANAGED_USED, OUT, Scope, of_scope
from flinkpy.metrics.metricbase import Histogram
from flinkpy.metrics.readings import OperatorReading, OwnReading, Statistics, TaskReading, read_own
from flinkpy.metrics.reported import metrics_of
from flinkpy.network.port import Traffic
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.runtime.loop.busy_time import Waiting
from flinkpy.runtime.stream_task import StreamTask

LOG = engine_logger(__name__)

_RATES = {
    scope: [(each.name, each.rate_of) for each in of_scope(scope) if each.rate_of]
    for scope in (Scope.TASK, Scope.OPERATOR)
}
_TIMES = {
    "busyTimeMsPerSecond": "accumulateBusyTimeMs",
    "idleTimeMsPerSecond": "accumulateIdleTimeMs",
    "backPressuredTimeMsPerSecond": "accumulateBackPressuredTimeMs",
    "softBackPressuredTimeMsPerSecond": "accumulateBackPressuredTimeMs",
}
MAILS = "mailboxMails"  # a counter that is told as a rate only


class TaskMeasures:
    """Measures one attempt whose task runs. ``initialization_ms`` is how long it took until it
    ran."""

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        task: StreamTask,
        clock: Clock,
        initialization_ms: int,
    ) -> None:
        self._descriptor = descriptor
        self._task = task
        self._clock = clock
        self._initialization_ms = initialization_ms
        self._began_s = clock.monotonic()
        self._rates: dict[tuple[OperatorId | None, str], Rate] = {}
        self._lock = threading.Lock()  # of the rates: two who ask at once
        self._told: dict[OperatorId, Mapping[str, float]] = {}  # by operators of themselves
        self._own: dict[str, list[OwnReading]] = {}  # by operator
        self._latency = Histogram()
        self._mail_sent_s: float | None = None
        self._warned: set[str] = set()

    # -- in the task's thread ----------------------------------------------------------------------

    def read_in_task(self) -> None:
        """Reads what only the task's thread may: the functions' metrics, and what operators tell of
        themselves."""
        self.read_operators()
        self.read_functions()

    def read_operators(self) -> None:
        """Reads what operators tell of themselves."""
        chain = self._task.chain
        assert chain is not None
        now_ms = self._clock.time_ms()
        for operator in chain.operators:
            try:
                self._told[operator.context.operator_id] = operator.measures(now_ms)
            except Exception as error:  # a metric must not fail a task
                self._warn(operator.context.name, error)

    def read_functions(self) -> None:
        """Reads the functions' metrics alone, also when the operators are closed."""
        own: dict[str, list[OwnReading]] = {}
        for identifier, metric in list(metrics_of(self._task.accumulators).items()):
            try:
                found = read_own(metric)
            except Exception as error:  # a gauge calls the program
                self._warn(identifier, error)
                continue
            if found is not None and metric.place is not None:
                own.setdefault(metric.place.operator, []).append(found)
        self._own = own

    def _warn(self, name: str, error: Exception) -> None:
        if name not in self._warned:
            self._warned.add(name)
            LOG.warning("metric %s is not told: %s: %s", name, type(error).__name__, error)

    def send_mail(self) -> None:
        """Finds out how long a mail waits for the task's thread, unless one is on its way. From any
        thread."""
        if self._mail_sent_s is None:
            sent = self._mail_sent_s = self._clock.monotonic()
            self._task.run_in_task(lambda: self._mail_came(sent))

    def _mail_came(self, sent_s: float) -> None:
        self._latency.update(round((self._clock.monotonic() - sent_s) * 1000, 3))
        self._mail_sent_s = None

    # -- from any thread ---------------------------------------------------------------------------

    def last_told(self) -> list[tuple[str, Mapping[str, float]]]:
        """What each operator has told of itself when it was last asked, with its name."""
        told = dict(self._told)
        chain = self._task.chain
        names = (
            {}
            if chain is None
            else {
                operator.context.operator_id: operator.context.name for operator in chain.operators
            }
        )
        return [(names.get(each, str(each)), values) for each, values in told.items()]

    def read(self) -> TaskReading:
        descriptor, chain = self._descriptor, self._task.chain
        assert chain is not None
        with self._lock:
            now_s = self._clock.monotonic()
            return TaskReading(
                descriptor.attempt_id,
                descriptor.job_name,
                descriptor.task_name,
                self._of_task(chain, now_s),
                tuple(self._of_operators(chain, now_s)),
            )

    def _of_task(self, chain: OperatorChain, now_s: float) -> dict[str, float | Statistics]:
        task, time = self._task, self._task.time
        came = sum((gate.traffic() for gate in task.gates), Traffic())
        written = chain.metrics.traffic_out()
        counted: dict[str, float] = {
            "numRecordsIn": chain.metrics.records_in,
            "numRecordsOut": chain.metrics.records_out,
            "numBytesIn": came.local_bytes + came.remote_bytes,
            "numBytesInLocal": came.local_bytes,
            "numBytesInRemote": came.remote_bytes,
            "numBytesOut": written.local_bytes,
            "numBuffersInLocal": came.local_batches,
            "numBuffersInRemote": came.remote_batches,
            "numBuffersOut": written.local_batches,
            "accumulateBusyTimeMs": int(time.busy * 1000),
            "accumulateIdleTimeMs": int(time.waited(Waiting.INPUT) * 1000),
            "accumulateBackPressuredTimeMs": int(time.waited(Waiting.OUTPUT) * 1000),
            MAILS: task.processor.mails_processed,
        }
        rates = {
            name: self._rate(None, name, counted[of], now_s) for name, of in _RATES[Scope.TASK]
        }
        shares = {
            name: min(1000, round(self._rate(None, name, counted[of], now_s)))
            for name, of in _TIMES.items()
        }
        counted.pop(MAILS)
        return {
            **counted,
            **rates,
            **shares,
            "hardBackPressuredTimeMsPerSecond": 0,
            "isBackPressured": int(time.reason is Waiting.OUTPUT),
            "initializationTime": self._initialization_ms,
            "mailboxLatencyMs": self._latency.value(),
            "mailboxQueueSize": len(task.mailbox),
            "numFiredTimers": sum(operator.fired_timers for operator in chain.operators),
            **_buffers(IN, "in", "input", came),
            **_buffers(OUT, "out", "output", written),
            **task.input.event_time_and_barriers(),
        }

    def _of_operators(self, chain: OperatorChain, now_s: float) -> list[OperatorReading]:
        found: list[OperatorReading] = []
        now_ms = self._clock.time_ms()
        counted, watermarks = chain.metrics.of_operators(), chain.metrics.watermarks()
        kinds = chain.metrics.kinds_of_operators()
        for operator, (operator_id, records_in, records_out), by_kind, (came, went) in zip(
            chain.operators, counted, kinds, watermarks
        ):
            values: dict[str, float] = {
                "numRecordsIn": records_in,
                "numRecordsOut": records_out,
                **by_kind,
                **self._told.get(operator_id, {}),
            }
            if operator.memory_weights:
                values[MANAGED_USED] = operator.context.memory.reserved
            if operator.is_sink:
                values["numRecordsSend"] = records_in
            if "numLateRecordsDropped" in values and came != MIN_TIMESTAMP:
                values["watermarkLatency"] = max(0, now_ms - came)
            reached = {"currentInputWatermark": came, "currentOutputWatermark": went}
            values |= {
                name: watermark for name, watermark in reached.items() if watermark != MIN_TIMESTAMP
            }
            values |= {
                name: self._rate(operator_id, name, values[of], now_s)
                for name, of in _RATES[Scope.OPERATOR]
                if of in values
            }
            own = tuple(
                each for each in self._own.get(str(operator_id), ()) if each.name not in values
            )
            found.append(OperatorReading(operator_id, operator.context.name, values, own))
        return found

    def _rate(self, operator_id: OperatorId | None, name: str, count: float, now_s: float) -> float:
        rate = self._rates.get((operator_id, name))
        if rate is None:
            rate = self._rates[operator_id, name] = Rate(self._began_s)
        return round(rate.per_second(now_s, count), 3)


def _buffers(scope: str, pool: str, queue: str, traffic: Traffic) -> dict[str, float]:
    return {
        f"{scope}Buffers.{pool}PoolUsage": round(traffic.segments_in_use / traffic.segments, 4)
        if traffic.segments
        else 0.0,
        f"{scope}Buffers.{queue}QueueLength": traffic.queued,
    }
