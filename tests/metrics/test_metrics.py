"""Counting and measuring, without a job."""

from __future__ import annotations

import doctest
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import ProgramError
from flinkpy.metrics import Histogram, Metric, MetricGroup, counter_rates, metricbase, readings
from flinkpy.metrics.counter_rates import SPAN_S, Rate
from flinkpy.metrics.definitions import BY_NAME, DEFINITIONS, Kind
from flinkpy.metrics.metricbase import QUANTILES, Place
from flinkpy.metrics.readings import read_own
from flinkpy.metrics.reported import ACCUMULATOR, metrics_of, reported, without_metrics


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def group(clock: ManualClock) -> MetricGroup:
    return MetricGroup({}, ("Map", "0"), clock)


def test_the_examples_run() -> None:
    assert (
        sum(doctest.testmod(module).failed for module in (metricbase, counter_rates, readings)) == 0
    )


def test_one_name_is_one_metric(group: MetricGroup) -> None:
    group.counter("late").inc(3)
    group.counter("late").dec()
    assert group.counter("late").get_count() == 2


def test_a_name_cannot_be_two_kinds_of_metric(group: MetricGroup) -> None:
    group.counter("late")
    with pytest.raises(
        ProgramError, match=r"metric 'Map.0.late' is a Counter already; give the Meter another name"
    ):
        group.meter("late")


def test_groups_of_key_and_value_are_variables(group: MetricGroup) -> None:
    below = group.add_group("cache").add_group("region", "eu")
    assert below.get_scope_components() == ["Map", "0", "cache", "region", "eu"]
    assert below.get_all_variables() == {"<region>": "eu"}


def test_a_meters_rate_is_that_of_its_time_span(group: MetricGroup, clock: ManualClock) -> None:
    meter = group.meter("events", 10)
    meter.mark_event(20)
    clock.advance(5)
    meter.mark_event(10)
    assert (meter.get_rate(), meter.get_count()) == (3.0, 30)
    clock.advance(6)
    assert (meter.get_rate(), meter.get_count()) == (1.0, 30)


def test_a_distribution_of_nothing_has_no_mean(group: MetricGroup) -> None:
    assert group.distribution("sizes").value() == {
        "count": 0,
        "min": None,
        "max": None,
        "mean": None,
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda group: group.gauge("g", 5), "takes a function without arguments"),
        (lambda group: group.meter("m", 0), "seconds from 1 on"),
        (lambda group: group.counter(""), "text that is not empty"),
        (lambda group: group.add_group(5), "named by text that is not empty, this is 5"),
        (lambda group: group.add_group("k", ""), "named by text"),
        (lambda group: group.add_group(None), "named by text"),
    ],
)
def test_what_is_no_metric_is_refused(group: MetricGroup, call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ProgramError, match=message):
        call(group)


def test_metrics_travel_as_values_and_programs_do_not_see_them_among_accumulators(
    clock: ManualClock,
) -> None:
    accumulators = {"own": 1}
    group = MetricGroup(metrics_of(accumulators), ("Map", "0"), clock)
    group.counter("n").inc()
    group.gauge("broken", lambda: 1 / 0)  # left out: counting must not fail a task
    sent = reported(accumulators)
    assert sent[ACCUMULATOR] == [("Map.0.n", 1)]
    assert without_metrics(sent) == ({"own": 1}, {"Map.0.n": 1})
    assert reported({"own": 1}) == {"own": 1}


@given(st.lists(st.integers(0, 10_000), max_size=3 * Histogram.HISTORY))
def test_a_histograms_quantiles_are_of_the_last_values_and_its_extremes_of_all(
    values: list[int],
) -> None:
    histogram = Histogram()
    for value in values:
        histogram.update(value)
    found = histogram.value()
    assert found["count"] == len(values)
    if values:
        last = sorted(values[-Histogram.HISTORY :])
        assert (found["min"], found["max"]) == (min(values), max(values))
        quantiles = [found[name] for name in QUANTILES]
        assert [last[0], *quantiles, last[-1]] == sorted([last[0], *quantiles, last[-1]])
        assert (
            sum(one < found["median"] for one in last)
            <= len(last) / 2
            <= sum(one <= found["median"] for one in last)
        )
        assert min(last) <= found["mean"] <= max(last)
        assert found["stddev"] <= max(last) - min(last)


def test_a_metric_knows_its_operator_its_groups_and_their_labels(clock: ManualClock) -> None:
    metrics: dict[str, Metric] = {}
    MetricGroup(metrics, ("Map", "0"), clock, operator="a1").add_group("cache").add_group(
        "region", "eu"
    ).histogram("ages")
    assert metrics["Map.0.cache.region.eu.ages"].place == Place(
        "a1", ("cache", "region", "eu"), "ages", ("cache", "region"), (("region", "eu"),)
    )


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (3, 3),
        (2.5, 2.5),
        (True, True),
        ("ready", "ready"),
        (Decimal("1.5"), 1.5),
        ({"a": 1, "b": None, "c": "x"}, {"a": 1.0}),
        (object, str(object)),
        pytest.param(10**400, str(10**400), id="beyond all floats"),
        (10**30, 10**30),
    ],
)
def test_what_a_gauge_gives_is_read_as_a_number_or_as_text(
    clock: ManualClock, value: object, read: object
) -> None:
    metrics: dict[str, Metric] = {}
    MetricGroup(metrics, ("Map", "0"), clock).gauge("g", lambda: value)
    found = read_own(metrics["Map.0.g"])
    assert found is not None
    assert (found.name, found.kind, found.value) == ("g", Kind.GAUGE, read)


@given(st.lists(st.tuples(st.floats(0.01, 30), st.integers(0, 100)), max_size=50))
def test_a_rate_is_over_ten_seconds_or_since_the_reading_before_them(
    steps: list[tuple[float, int]],
) -> None:
    now, count, read, rate = 0.0, 0, [(0.0, 0)], Rate(0.0)
    for after, counted in steps:
        now, count = now + after, count + counted
        found = rate.per_second(now, count)
        assert any(abs(found - (count - before) / (now - at)) < 1e-6 for at, before in read)
        assert (
            found
            <= max(
                (count - before) / (now - at) for at, before in read if now - at >= min(SPAN_S, now)
            )
            + 1e-6
        )
        read.append((now, count))


def test_each_definition_is_there_once_and_a_rate_is_that_of_a_counter() -> None:
    assert len(BY_NAME) == len(DEFINITIONS)
    for each in DEFINITIONS:
        assert each.meaning.endswith(".")
        if each.rate_of and each.rate_of != "mailboxMails":
            assert BY_NAME[each.scope, each.rate_of].kind is Kind.COUNTER
