"""Keyed state and timers: sales per shop and hour, emitted once, when the hour is over.

    python examples/keyed_state.py

State and timers belong to the key of the current record: each shop has a map from hour to sum, and
a timer for the end of each hour in which it sold. Event time is the time of the sales: they may
come in any order within ten minutes, and the result is the same however fast they are read. At the
end of the input the last hours end too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.common import Duration, Types, WatermarkStrategy
from flinkpy.common.watermark_strategy import TimestampAssigner
from flinkpy.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import MapStateDescriptor

MINUTE = 60_000
SALES = [
    ("north", 5, 20),
    ("south", 58, 15),
    ("north", 62, 40),
    ("north", 55, 10),
    ("south", 75, 30),
    ("south", 70, 5),
    ("north", 130, 25),
]


class SaleTime(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int, int], record_timestamp: int) -> int:
        return value[1] * MINUTE


class HourlySales(KeyedProcessFunction):
    """Maps (shop, minute, amount) to (shop, hour, sum)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sums = runtime_context.get_map_state(
            MapStateDescriptor("sums", Types.INT(), Types.INT())
        )

    def process_element(self, value: tuple[str, int, int], ctx: Any) -> None:
        hour = value[1] // 60
        self.sums.put(hour, (self.sums.get(hour) or 0) + value[2])
        # Registering it again has no effect
        ctx.timer_service().register_event_time_timer((hour + 1) * 60 * MINUTE - 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[str, int, Any]]:
        hour = timestamp // (60 * MINUTE)
        yield ctx.get_current_key(), hour, self.sums.get(hour)
        self.sums.remove(hour)


def hourly_sales(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_minutes(10)
    ).with_timestamp_assigner(SaleTime())
    sales = env.from_collection(SALES).assign_timestamps_and_watermarks(strategy)
    return sales.key_by(lambda sale: sale[0]).process(
        HourlySales(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
    )


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    hourly_sales(environment).print()
    environment.execute("hourly sales")
