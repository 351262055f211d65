"""Accumulators of a running task: read now and then, and never more than a small part of the
time."""

from __future__ import annotations

import threading
from typing import Any

from flinkpy.core.clock import ManualClock
from flinkpy.metrics import Counter
from flinkpy.metrics.live import SHARE, LiveAccumulators, opened
from flinkpy.metrics.reported import ACCUMULATOR


class Slow:
    """Takes so long to be pickled."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def __reduce__(self) -> tuple[Any, ...]:
        self.clock.advance(self.seconds)
        return str, ("slow",)


def test_metrics_are_told_as_values_beside_the_accumulators() -> None:
    live, late = LiveAccumulators(ManualClock()), Counter()
    late.inc(3)
    assert live.read({"n": 1, ACCUMULATOR: {"Map.0.late": late}})
    assert opened(live.last_reading) == {"n": 1, ACCUMULATOR: [("Map.0.late", 3)]}


def test_what_cannot_travel_is_left_out_and_the_rest_is_told() -> None:
    live = LiveAccumulators(ManualClock())
    assert live.read({"n": 1, "lock": threading.Lock()})
    assert opened(live.last_reading) == {"n": 1}


def test_reading_takes_a_small_part_of_the_time_however_large_the_accumulators_are() -> None:
    clock = ManualClock()
    live = LiveAccumulators(clock)
    readings = 0
    began = clock.monotonic()
    for number in range(1000):
        clock.advance(1)
        readings += live.read({"n": number, "slow": Slow(clock, 3)})
    assert 3 * readings / (clock.monotonic() - began) < 1.1 * SHARE
    assert readings > 10


def test_bytes_nobody_can_open_tell_nothing() -> None:
    assert opened(b"") == opened(b"nonsense") == {}
