"""Metrics, and the groups that name them. All calls, including those that read values, must come
from the task's thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from flinkpy.core.clock import Clock
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.coroutines import refuse_coroutines

M = TypeVar("M", bound="Metric")

QUANTILES = {
    "median": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p98": 0.98,
    "p99": 0.99,
    "p999": 0.999,
}


class Place(NamedTuple):
    """Where a metric is registered: its operator, the groups below that, and its name. ``logical``
    are the groups without the values of groups with a key; ``labels`` are those keys and values."""

    operator: str
    groups: tuple[str, ...]
    name: str
    logical: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


class Metric(ABC):
    """Something that has a value at any time."""

    place: Place | None = None  # set when it is registered

    @abstractmethod
    def value(self) -> Any:
        """The value: a number, or a mapping of names to numbers."""


class Counter(Metric):
    """A number that goes up and down.

    >>> late = Counter()
    >>> late.inc()
    >>> late.inc(5)
    >>> late.dec()
    >>> late.get_count()
    5
    """

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def value(self) -> int:
        return self._count


class Meter(Metric):
    """Counts events, and measures how many there were per second over the last
    ``time_span_in_seconds``. Raises ProgramError for a time span below 1."""

    def __init__(self, clock: Clock, time_span_in_seconds: int = 60) -> None:
        if (
            isinstance(time_span_in_seconds, bool)
            or not isinstance(time_span_in_seconds, int)
            or time_span_in_seconds < 1
        ):
            raise ProgramError(
                f"a meter's time span is in seconds from 1 on, this is {time_span_in_seconds!r}"
            )
        self._clock, self._span = clock, time_span_in_seconds
        self._count = 0
        self._marks: deque[tuple[int, int]] = deque()  # second, events in it

    def mark_event(self, value: int = 1) -> None:
        """Notes that ``value`` events happened now."""
        self._count += value
        second = int(self._clock.monotonic())
        if self._marks and self._marks[-1][0] == second:
            value += self._marks.pop()[1]
        self._marks.append((second, value))
        self._forget(second)

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """The number of events per second."""
        self._forget(int(self._clock.monotonic()))
        return sum(events for _, events in self._marks) / self._span

    def _forget(self, second: int) -> None:
        while self._marks and self._marks[0][0] <= second - self._span:
            self._marks.popleft()

    def value(self) -> dict[str, float]:
        return {"count": self._count, "rate": self.get_rate()}


class Distribution(Metric):
    """The distribution of a number: the count, minimum, maximum and mean of its values.

    >>> sizes = Distribution()
    >>> sizes.update(3)
    >>> sizes.update(5)
    >>> sizes.value()
    {'count': 2, 'min': 3, 'max': 5, 'mean': 4.0}
    """

    def __init__(self) -> None:
        self._count, self._sum = 0, 0.0
        self._min: float | None = None
        self._max: float | None = None

    def update(self, value: float) -> None:
        self._count += 1
        self._sum += value
        self._min = value if self._min is None or value < self._min else self._min
        self._max = value if self._max is None or value > self._max else self._max

    def value(self) -> dict[str, float | None]:
        return {
            "count": self._count,
            "min": self._min,
            "max": self._max,
            "mean": self._sum / self._count if self._count else None,
        }


class Histogram(Metric):
    """The distribution of a number, with Flink's statistics: the count and the extremes of all
    values; mean, standard deviation and quantiles of the last ``HISTORY``.

    >>> ages = Histogram()
    >>> for age in (4, 1, 2, 3):
    ...     ages.update(age)
    >>> told = ages.value()
    >>> [told[name] for name in ("count", "min", "max", "mean", "median", "p99")]
    [4, 1, 4, 2.5, 3, 4]
    """

    HISTORY = 128

    def __init__(self) -> None:
        self._count = 0
        self._min = self._max = 0.0
        self._last: deque[float] = deque(maxlen=self.HISTORY)

    def update(self, value: float) -> None:
        self._min = min(self._min, value) if self._count else value
        self._max = max(self._max, value) if self._count else value
        self._count += 1
        self._last.append(value)

    def get_count(self) -> int:
        return self._count

    def value(self) -> dict[str, float]:
        """Flink's statistics by their names; before the first value only the count."""
        from statistics import fmean, pstdev  # every program imports this module, few read it

        last = sorted(self._last)
        if not last:
            return {"count": 0}
        quantiles = {
            name: last[min(len(last) - 1, int(len(last) * quantile))]
            for name, quantile in QUANTILES.items()
        }
        return {
            "count": self._count,
            "min": self._min,
            "max": self._max,
            "mean": fmean(last),
            "stddev": pstdev(last),
            **quantiles,
        }


class Gauge(Metric):
    """A function that is called for the value when the metric is read."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def value(self) -> Any:
        return self._function()


class MetricGroup:
    """Names metrics: by operator and subtask, and by what ``add_group`` adds. Each name stands for
    one metric: asking again returns the same metric, and raises ProgramError if it is of another
    kind.

    >>> from flinkpy.core.clock import SYSTEM_CLOCK
    >>> group = MetricGroup({}, ("Map", "0"), SYSTEM_CLOCK).add_group("cache")
    >>> group.counter("hits").inc()
    >>> group.get_metric_identifier("hits")
    'Map.0.cache.hits'
    """

    def __init__(
        self,
        metrics: dict[str, Metric],
        scope: tuple[str, ...],
        clock: Clock,
        variables: Mapping[str, str] | None = None,
        operator: str = "",
        groups: tuple[str, ...] = (),
        logical: tuple[str, ...] = (),
    ) -> None:
        self._metrics = metrics
        self._scope = scope
        self._clock = clock
        self._variables = dict(variables or {})
        self._operator = operator
        self._groups = groups
        self._logical = logical

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group below this one. With ``extra`` it is two levels below, named by a key and its
        value, which also become a variable of the group. Raises ProgramError unless they are text
        that is not empty."""
        below = (name,) if extra is None else (name, extra)
        for each in below:
            if not isinstance(each, str) or not each:
                raise ProgramError(
                    f"a group of metrics is named by text that is not empty, this is {each!r:.80}"
                )
        variables = self._variables if extra is None else {**self._variables, f"<{name}>": extra}
        return MetricGroup(
            self._metrics,
            (*self._scope, *below),
            self._clock,
            variables,
            self._operator,
            (*self._groups, *below),
            (*self._logical, name),
        )

    def counter(self, name: str) -> Counter:
        return self._register(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Adds a gauge, whose value is ``obj()``; the function should be quick. Raises ProgramError
        unless it can be called."""
        if not callable(obj):
            raise ProgramError(
                f"gauge {name!r} takes a function without arguments, this is {obj!r:.80}"
            )
        refuse_coroutines(obj, f"gauge {name!r}")
        self._register(name, Gauge, lambda: Gauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._register(name, Meter, lambda: Meter(self._clock, time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        return self._register(name, Distribution, Distribution)

    def histogram(self, name: str) -> Histogram:
        """A distribution with quantiles."""
        return self._register(name, Histogram, Histogram)

    def get_scope_components(self) -> list[str]:
        """The parts of a metric's name before the last."""
        return list(self._scope)

    def get_all_variables(self) -> dict[str, str]:
        """The keys and values of the groups that ``add_group(key, value)`` made."""
        return dict(self._variables)

    def get_metric_identifier(self, metric_name: str) -> str:
        """The name of the metric in the job's result."""
        return ".".join((*self._scope, metric_name))

    def _register(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        if not isinstance(name, str) or not name:
            raise ProgramError(f"a metric's name is text that is not empty, this is {name!r:.80}")
        identifier = self.get_metric_identifier(name)
        found = self._metrics.get(identifier)
        if found is None:
            found = make()
            labels = tuple((key.strip("<>"), value) for key, value in self._variables.items())
            found.place = Place(self._operator, self._groups, name, self._logical, labels)
            self._metrics[identifier] = found
        if not isinstance(found, kind):
            raise ProgramError(
                f"metric {identifier!r} is a {type(found).__name__} already; give the "
                f"{kind.__name__} another name"
            )
        return found
