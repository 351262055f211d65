"""What is read of metrics, at one moment: frozen values, numbers and texts, that travel to the
JobManager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from flinkpy.core.ids import ExecutionAttemptId, OperatorId
from flinkpy.metrics.definitions import Kind
from flinkpy.metrics.metricbase import Counter, Histogram, Meter, Metric

V = TypeVar("V")
Value = float | str
Statistics = Mapping[str, float]  # of a histogram or distribution: count, min, max, mean and more


class OwnReading(NamedTuple):
    """One metric of the program. ``name`` has the groups, ``cache.region.eu.hits``; ``logical`` is
    without the values of groups with a key, ``("cache", "region", "hits")``, which are the
    ``labels``."""

    name: str
    logical: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    kind: Kind
    value: Value | Statistics


@dataclass(frozen=True)
class OperatorReading:
    """One operator of a task. ``values`` are the engine's metrics, by their names in the table."""

    operator_id: OperatorId
    name: str
    values: Mapping[str, float]
    own: tuple[OwnReading, ...] = ()


@dataclass(frozen=True)
class TaskReading:
    """One task, and the operators of its chain, head first."""

    attempt_id: ExecutionAttemptId
    job_name: str
    task_name: str
    values: Mapping[str, float | Statistics] = field(default_factory=dict)
    operators: tuple[OperatorReading, ...] = ()

    def flat_values(self) -> dict[str, float]:
        """The task's own, as numbers: a histogram has one for each of its statistics."""
        found: dict[str, float] = {}
        for name, value in self.values.items():
            found |= (
                {f"{name}_{statistic}": number for statistic, number in value.items()}
                if isinstance(value, Mapping)
                else {name: value}
            )
        return found


@dataclass(frozen=True)
class ProcessReading:
    """One process: its own metrics, and its tasks."""

    values: Mapping[str, float] = field(default_factory=dict)
    tasks: tuple[TaskReading, ...] = ()


def without_rates(reading: TaskReading) -> TaskReading:
    """The last reading of a task that has ended: what it counted, and its last state, without
    rates."""
    operators = tuple(
        replace(
            each,
            values=_lasting(each.values),
            own=tuple(own for own in each.own if own.kind is not Kind.METER),
        )
        for each in reading.operators
    )
    return replace(reading, values=_lasting(reading.values), operators=operators)


def _lasting(values: Mapping[str, V]) -> dict[str, V]:
    return {
        name: value for name, value in values.items() if not name.endswith(("PerSecond", "Rate"))
    }


def read_own(metric: Metric) -> OwnReading | None:
    """The metric's value now; None of one that was not registered in a group. Raises what a gauge
    raises."""
    place = metric.place
    if place is None:
        return None
    return OwnReading(
        ".".join((*place.groups, place.name)),
        (*place.logical, place.name),
        place.labels,
        _kind(metric),
        _travelling(metric.value()),
    )


def _kind(metric: Metric) -> Kind:
    if isinstance(metric, Counter):
        return Kind.COUNTER
    if isinstance(metric, Meter):
        return Kind.METER
    return Kind.HISTOGRAM if isinstance(metric, Histogram) else Kind.GAUGE


def _travelling(value: Any) -> Value | Statistics:
    """A number, the numbers of a mapping, or text: the program's own classes stay in its
    process."""
    if isinstance(value, Mapping):
        return {
            str(name): float(number)
            for name, number in value.items()
            if isinstance(number, (int, float))
        }
    try:
        number = float(value)  # numpy's numbers, too
    except (TypeError, ValueError, OverflowError):  # an int may be larger than all floats
        return str(value)
    return value if isinstance(value, (bool, int, float)) else number


def flat(name: str, kind: Kind, value: Value | Statistics) -> Iterator[tuple[str, Value]]:
    """The metric under Flink's names: a meter is its rate, and a histogram has a name for each of
    its statistics.

    >>> list(flat("sizes", Kind.HISTOGRAM, {"min": 1, "p99": 7}))
    [('sizes_min', 1), ('sizes_p99', 7)]
    """
    if not isinstance(value, Mapping):
        yield name, value
    elif kind is Kind.METER:
        yield name, value.get("rate", 0.0)
    else:
        for statistic, number in value.items():
            yield f"{name}_{statistic}", number
