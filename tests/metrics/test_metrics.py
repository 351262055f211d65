"""Counting and measuring, without a job."""

from __future__ import annotations

import doctest

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import ProgramError
from flinkpy.metrics import MetricGroup, metricbase
from flinkpy.metrics.reported import ACCUMULATOR, metrics_of, reported, without_metrics


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def group(clock: ManualClock) -> MetricGroup:
    return MetricGroup({}, ("Map", "0"), clock)


def test_the_examples_run() -> None:
    assert doctest.testmod(metricbase).failed == 0


def test_one_name_is_one_metric(group: MetricGroup) -> None:
    group.counter("late").inc(3)
    group.counter("late").dec()
    assert group.counter("late").get_count() == 2


def test_a_name_cannot_be_two_kinds_of_metric(group: MetricGroup) -> None:
    group.counter("late")
    with pytest.raises(ProgramError, match=r"metric 'Map.0.late' is a Counter already; give the Meter another name"):
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
    assert group.distribution("sizes").value() == {"count": 0, "min": None, "max": None, "mean": None}


@pytest.mark.parametrize(("call", "message"), [
    (lambda group: group.gauge("g", 5), "takes a function without arguments"), (lambda group: group.meter("m", 0), "seconds from 1 on"),
    (lambda group: group.counter(""), "text that is not empty"),
])
def test_what_is_no_metric_is_refused(group: MetricGroup, call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ProgramError, match=message):
        call(group)


def test_metrics_travel_as_values_and_programs_do_not_see_them_among_accumulators(clock: ManualClock) -> None:
    accumulators = {"own": 1}
    group = MetricGroup(metrics_of(accumulators), ("Map", "0"), clock)
    group.counter("n").inc()
    group.gauge("broken", lambda: 1 / 0)  # left out: counting must not fail a task
    sent = reported(accumulators)
    assert sent[ACCUMULATOR] == [("Map.0.n", 1)]
    assert without_metrics(sent) == ({"own": 1}, {"Map.0.n": 1})
    assert reported({"own": 1}) == {"own": 1}
