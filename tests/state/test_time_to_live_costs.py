"""How often state that expires looks at the clock and at its entries: as seldom as its rules
allow."""

from __future__ import annotations

from typing import Any

import pytest

from flinkpy.core.clock import ManualClock
from flinkpy.datastream import KeyedProcessFunction
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.testing import KeyedOneInputHarness
from tests.state.helpers import backend, seconds
from tests.state_bytes import keyed_bytes

pytestmark = pytest.mark.usefixtures("each_backend")


def looked_at(of: Any) -> int:
    return int(of._tables["value"].cleanup.looked_at)


def test_entries_are_not_looked_at_before_the_first_of_them_can_have_expired() -> None:
    clock = ManualClock(7)
    of = backend(clock)
    state: Any = of.state(_value(seconds(10).cleanup_incrementally(5, False).build()))
    for key in range(100):
        of.current.key = key
        state.update(key)
    clock.advance(9.9)
    for _ in range(100):
        state.value()
    before = looked_at(of)
    for _ in range(1000):
        state.value()
    assert looked_at(of) == before
    clock.advance(0.2)
    of.current.key = "another"
    for _ in range(100):
        state.value()
    assert list(of.keys("value")) == []


def test_what_is_touched_again_keeps_a_round_from_coming_back_too_early() -> None:
    clock = ManualClock(7)
    of = backend(clock)
    state: Any = of.state(_value(seconds(10).cleanup_incrementally(100, False).build()))
    for key in ("early", "late"):
        of.current.key = key
        state.update(key)
        clock.advance(4)
    clock.advance(3)  # 11 s after the early one, 7 s after the late one
    of.current.key = "nobody"
    for _ in range(3):
        state.value()
    assert list(of.keys("value")) == ["late"]
    clock.advance(3)
    for _ in range(3):
        state.value()
    assert list(of.keys("value")) == []


def test_restored_entries_are_looked_at_though_nothing_is_known_of_them() -> None:
    clock = ManualClock(7)
    config = seconds(10).cleanup_incrementally(100, False).build()
    of = backend(clock)
    of.current.key = "k"
    first: Any = of.state(_value(config))
    first.update(1)
    saved = keyed_bytes(of)
    clock.advance(60)
    again = backend(clock)
    again.restore(saved)
    state: Any = again.state(_value(config))
    again.current.key = "another"
    for _ in range(3):
        state.value()
    assert list(again.keys("value")) == []


def _value(config: Any) -> ValueStateDescriptor:
    descriptor = ValueStateDescriptor("value")
    descriptor.enable_time_to_live(config)
    return descriptor


class Counting:
    """A clock that counts how often it is asked."""

    def __init__(self, clock: Any) -> None:
        self._clock, self.asked = clock, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def time_ns(self) -> int:
        self.asked += 1
        return int(self._clock.time_ns())


class Busy(KeyedProcessFunction):
    """Touches its state many times for each record."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(_value(seconds(1).build()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        for _ in range(10):
            self.seen.update((self.seen.value() or 0) + 1)
        yield self.seen.value()
        ctx.timer_service().register_processing_time_timer(
            ctx.timer_service().current_processing_time() + 2000
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self.seen.value()


def test_the_clock_is_read_once_for_a_record_and_anew_for_the_next_and_for_timers() -> None:
    with KeyedOneInputHarness(Busy(), lambda value: "k") as harness:
        operator: Any = harness._operators[0]
        clock = Counting(harness.clock)
        operator.context.clock = clock
        operator._keyed = operator.keyed_by(operator.key)
        harness.push_all([1, 2, 3])
        assert clock.asked == 3
        assert harness.output == [10, 20, 30]
        harness.set_processing_time(999)
        harness.push(4)
        harness.set_processing_time(2001)
        assert harness.output[3:] == [40, None]
        assert operator.backend.current.now_ns is None
