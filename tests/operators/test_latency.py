"""Latency markers: what operators make of them."""

from __future__ import annotations

from flinkpy.core.elements import LatencyMarker, Watermark
from flinkpy.metrics.latency import latency_identifier
from flinkpy.metrics.reported import metrics_of
from flinkpy.operators.rows.stateless import FilterOperator, MapOperator
from tests.operators.harness import ChainHarness, linear


def test_every_operator_of_a_chain_keeps_the_latency_and_the_marker_goes_on() -> None:
    harness = ChainHarness(linear(MapOperator(str), FilterOperator(bool)))
    marked = harness.timers.now_ms()
    harness.timers.advance(0.042)
    markers = [
        LatencyMarker(marked, "source", 0),
        LatencyMarker(marked, "source", 1),
        LatencyMarker(marked, "other", 0),
    ]
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
    assert [type(element).__name__ for element in harness.writers[0].elements] == [
        "RowBatch",
        "Watermark",
        "LatencyMarker",
        "RowBatch",
    ]


def test_a_clock_that_went_back_counts_as_no_time() -> None:
    harness = ChainHarness(linear(MapOperator(str)))
    harness.control(LatencyMarker(harness.timers.now_ms() + 5, "source", 0))
    assert (
        metrics_of(harness.accumulators)[latency_identifier("op 0", 0, "source")].value()["max"]
        == 0
    )
