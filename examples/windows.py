"""Event-time windows: the requests per page, in tumbling, sliding and session windows, with late
requests.

    python examples/windows.py

The watermark is two seconds behind the latest request. A request behind the watermark is late. For
another ten seconds after the end of its minute it is still counted, and the minute's result is
emitted again; later requests go to a side output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flinkpy.common import Time, Types, WatermarkStrategy
from flinkpy.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from flinkpy.datastream import (
    DataStream,
    KeyedStream,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

REQUESTS = [
    ("home", 5),
    ("home", 58),
    ("help", 61),
    ("home", 59),
    ("home", 64),
    ("home", 30),
    ("help", 73),
    ("home", 40),
    ("home", 125),
]
TOO_LATE = OutputTag("too late", Types.TUPLE([Types.STRING(), Types.INT()]))  # (page, second)
COUNTED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT()])


class TwoSecondsBehind(WatermarkGenerator):
    """Emits a watermark after every request, so that the machine's speed does not decide what is
    late."""

    latest = -1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.latest = max(self.latest, event_timestamp)
        output.emit_watermark(self.latest - 2000 - 1)


class Count(ProcessWindowFunction):
    """(page, begin, end, requests), times in seconds."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        yield key, window.start // 1000, window.end // 1000, sum(1 for _ in elements)


def requests(env: StreamExecutionEnvironment) -> KeyedStream:
    by_second = WatermarkStrategy.for_generator(TwoSecondsBehind).with_timestamp_assigner(
        lambda request: request[1] * 1000
    )
    stream = env.from_collection(REQUESTS, Types.TUPLE([Types.STRING(), Types.INT()]))
    return (
        stream.assign_timestamps_and_watermarks(by_second)
        .set_parallelism(1)
        .key_by(lambda request: request[0])
    )


def minutes(pages: KeyedStream) -> DataStream:
    windows = (
        pages.window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .allowed_lateness(10_000)
        .side_output_late_data(TOO_LATE)
    )
    return windows.process(Count(), COUNTED)


def every_half_minute(pages: KeyedStream) -> DataStream:
    return pages.window(SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(30))).process(
        Count(), COUNTED
    )


def visits(pages: KeyedStream) -> DataStream:
    """Requests less than twenty seconds apart."""
    return pages.window(EventTimeSessionWindows.with_gap(Time.seconds(20))).process(
        Count(), COUNTED
    )


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    pages = requests(env)
    told = minutes(pages)
    told.print("minute")
    told.get_side_output(TOO_LATE).print("too late")
    every_half_minute(pages).print("every half minute")
    visits(pages).print("visit")
    env.execute("windows")


if __name__ == "__main__":
    main()
