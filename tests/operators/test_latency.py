"""Latency markers: what operators make of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import LatencyMarker, Watermark
from flinkpy.metrics.reported import metrics_of
from flinkpy.operators.event_time.latency import HISTORY, LatencyHistogram, latency_identifier
from flinkpy.operators.rows.stateless import FilterOperator, MapOperator
from tests.operators.harness import ChainHarness, linear


def test_every_operator_of_a_chain_keeps_the_latency_and_the_marker_goes_on() -> None:
    harness = ChainHarness(linear(MapOperator(str), FilterOperator(bool)))
    marked = harness.timers.now_ms()
    harness.timers.advance(0.042)
    markers = [LatencyMarker(marked, "source", 0), LatencyMarker(marked, "source", 1), LatencyMarker(marked, "other", 0)]
    for marker in markers:
        harness.control(marker)
    assert harness.writers[0].elements == markers
    metrics = metrics_of(harness.accumulators)
    for operator in ("op 0", "op 1"):
        found = metrics[latency_identifier(operator, 0, "source")].value()
        assert (found["count"], found["min"], found["max"]) == (2, 42, 42)
        assert metrics[latency_identifier(operator, 0, "other")].value()["count"] == 1


def test_a_marker_keeps_its_place_behind_what_was_emitted() -> None:
    harness = ChainHarness(linear(MapOperator(str)))
    marker = LatencyMarker(0, "source", 0)
    harness.push([1])
    harness.control(Watermark(7))
    harness.control(marker)
    harness.push([2])
    assert [type(element).__name__ for element in harness.writers[0].elements] == ["RowBatch", "Watermark", "LatencyMarker", "RowBatch"]


def test_a_clock_that_went_back_counts_as_no_time() -> None:
    harness = ChainHarness(linear(MapOperator(str)))
    harness.control(LatencyMarker(harness.timers.now_ms() + 5, "source", 0))
    assert metrics_of(harness.accumulators)[latency_identifier("op 0", 0, "source")].value()["max"] == 0


@given(st.lists(st.integers(0, 10_000), max_size=3 * HISTORY))
def test_quantiles_are_of_the_last_values_and_extremes_of_all(latencies: list[int]) -> None:
    histogram = LatencyHistogram()
    for latency in latencies:
        histogram.update(latency)
    found = histogram.value()
    assert found["count"] == len(latencies)
    if latencies:
        last = sorted(latencies[-HISTORY:])
        assert (found["min"], found["max"]) == (min(latencies), max(latencies))
        assert last[0] <= found["p50"] <= found["p95"] <= found["p99"] <= last[-1]
        assert sum(one < found["p50"] for one in last) <= len(last) / 2 <= sum(one <= found["p50"] for one in last)
