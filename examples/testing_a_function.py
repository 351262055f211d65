"""How to test a program: its function in a harness, with time that the test sets, and the whole job
with a source that plays a script.

    python examples/testing_a_function.py           # or: pytest examples/testing_a_function.py

No test waits or sleeps. docs/testing.md describes the harnesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.common import Types
from flinkpy.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.testing import (
    At,
    CollectingSink,
    KeyedOneInputHarness,
    ScriptedSource,
    Watermark,
    embedded_environment,
)

MINUTE = 60_000


class Changed(KeyedProcessFunction):
    """(sensor, value): emits a value when the sensor has kept it for a minute."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.STRING()))
        self.due = runtime_context.get_state(ValueStateDescriptor("due", Types.LONG()))

    def process_element(self, value: tuple[str, str], ctx: Any) -> None:
        if value[1] != self.value.value():
            self.value.update(value[1])
            self.due.update(ctx.timestamp() + MINUTE)
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + MINUTE)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if timestamp == self.due.value():  # else it has changed since
            yield ctx.get_current_key(), self.value.value()


def stable(readings: DataStream) -> DataStream:
    return readings.key_by(lambda reading: reading[0]).process(Changed())


def test_a_value_counts_when_it_has_stayed_for_a_minute() -> None:
    with KeyedOneInputHarness(Changed(), lambda reading: reading[0]) as harness:
        harness.push(("door", "open"), timestamp=0)
        harness.push(("door", "closed"), timestamp=30_000)
        harness.push_watermark(MINUTE)
        assert harness.output == []
        harness.push_watermark(30_000 + MINUTE)
        assert harness.output == [("door", "closed")]


def test_timers_survive_a_failure() -> None:
    with KeyedOneInputHarness(Changed(), lambda reading: reading[0]) as harness:
        harness.push(("door", "open"), timestamp=0)
        with harness.restore(harness.snapshot()) as restored:
            restored.push_watermark(MINUTE)
            assert restored.output == [("door", "open")]


def test_the_job_gives_what_stayed() -> None:
    env, sink = embedded_environment(), CollectingSink()
    script = [
        At(0, ("door", "open")),
        Watermark(MINUTE),
        At(70_000, ("door", "closed")),
        At(80_000, ("door", "open")),
        Watermark(2 * MINUTE),
    ]
    stable(env.from_source(ScriptedSource(script))).sink_to(sink)
    env.execute()
    assert sink.values == [("door", "open"), ("door", "open")]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name.replace('_', ' ')}: passed")
