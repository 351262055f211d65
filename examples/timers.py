"""Timers: reports sensors that fall silent, and again when they come back.

    python examples/timers.py

Every reading within a minute of the last one postpones the alarm: the timer is deleted, and a new
one registered for a minute later. A timer fires when event time has passed it: when other readings,
or the end of the input, show that the minute is over. The sensor's own next reading may be
processed before that; then the timer, whose minute is over, is left to fire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.common import Duration, Types, WatermarkStrategy
from flinkpy.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import ValueStateDescriptor

# (sensor, second)
READINGS = [
    ("roof", 0),
    ("cellar", 10),
    ("roof", 40),
    ("cellar", 90),
    ("roof", 95),
    ("roof", 150),
    ("roof", 200),
]
SILENCE_MS = 60_000


class Silence(KeyedProcessFunction):
    """(sensor, "silent since" or "back at", second)"""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.alarm = runtime_context.get_state(
            ValueStateDescriptor("time of the alarm", Types.LONG())
        )

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterator[Any]:
        alarm, now = self.alarm.value(), ctx.timestamp()
        if alarm is not None and now < alarm:
            ctx.timer_service().delete_event_time_timer(alarm)
        elif alarm is not None:
            yield value[0], "back at", now // 1000
        ctx.timer_service().register_event_time_timer(now + SILENCE_MS)
        self.alarm.update(now + SILENCE_MS)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), "silent since", (timestamp - SILENCE_MS) // 1000


def silences(env: StreamExecutionEnvironment) -> DataStream:
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(5)
    ).with_timestamp_assigner(lambda reading: reading[1] * 1000)
    readings = env.from_collection(
        READINGS, Types.TUPLE([Types.STRING(), Types.INT()])
    ).assign_timestamps_and_watermarks(in_order)
    # A sensor's readings must stay in order, and several subtasks would overtake each other
    readings.set_parallelism(1)
    return readings.key_by(lambda reading: reading[0]).process(
        Silence(), Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])
    )


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    silences(environment).print()
    environment.execute("silent sensors")
