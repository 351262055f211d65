from __future__ import annotations

from flinkpy.core.clock import ManualClock
from flinkpy.runtime.loop.yield_policy import LONG_S, SKIPPED_AT_FIRST, SKIPPED_AT_MOST, YieldPolicy


class Machine:
    """How long the processor stays away, and how often it was given away."""

    def __init__(self, away_s: float) -> None:
        self.clock = ManualClock()
        self.away_s = away_s
        self.yields = 0
        self.yield_policy = YieldPolicy(self.clock, self._yield)

    def _yield(self) -> None:
        self.yields += 1
        self.clock.advance(self.away_s)

    def maybe_yield(self, times: int) -> int:
        """How many of these calls yielded."""
        before = self.yields
        for _ in range(times):
            self.yield_policy.has_slept = True
            self.yield_policy.maybe_yield()
        return self.yields - before


def test_on_a_quiet_machine_every_call_yields() -> None:
    assert Machine(LONG_S / 10).maybe_yield(1000) == 1000


def test_after_a_long_absence_the_processor_is_kept_for_some_calls() -> None:
    machine = Machine(2 * LONG_S)
    assert machine.maybe_yield(1) == 1
    assert machine.maybe_yield(SKIPPED_AT_FIRST) == 0
    assert machine.maybe_yield(1) == 1


def test_on_a_busy_machine_one_call_in_a_thousand_yields() -> None:
    machine = Machine(2 * LONG_S)
    machine.maybe_yield(4 * SKIPPED_AT_MOST)
    assert machine.maybe_yield(10 * (SKIPPED_AT_MOST + 1)) == 10


def test_when_the_machine_is_quiet_again_every_call_yields_again() -> None:
    machine = Machine(2 * LONG_S)
    machine.maybe_yield(4 * SKIPPED_AT_MOST)
    machine.away_s = 0.0
    machine.maybe_yield(2 * SKIPPED_AT_MOST)
    assert machine.maybe_yield(1000) == 1000


def test_what_is_rarely_long_is_soon_forgotten() -> None:
    machine = Machine(2 * LONG_S)
    machine.maybe_yield(1 + SKIPPED_AT_FIRST)
    machine.away_s = 0.0
    machine.maybe_yield(1)
    machine.away_s = 2 * LONG_S
    machine.maybe_yield(1)
    assert machine.maybe_yield(SKIPPED_AT_FIRST) == 0
    assert machine.maybe_yield(1) == 1
