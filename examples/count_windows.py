"""Count windows, triggers and evictors: means of measurements, emitted after a number of records,
not after a time.

    python examples/count_windows.py

An assigner assigns each record to windows, a trigger decides when a window is evaluated, an evictor
removes records before or after that. A count window is one such combination. A window that never
gets full emits nothing, in PyFlink and in flinkpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flinkpy.common import Types
from flinkpy.datastream import DataStream, KeyedStream, StreamExecutionEnvironment, WindowFunction
from flinkpy.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    GlobalWindows,
    PurgingTrigger,
)

MEASURED = [
    ("a", 1.0),
    ("b", 10.0),
    ("a", 2.0),
    ("a", 3.0),
    ("b", 20.0),
    ("a", 4.0),
    ("a", 5.0),
    ("b", 90.0),
    ("b", 30.0),
]
MEAN = Types.TUPLE([Types.STRING(), Types.DOUBLE()])


class Mean(WindowFunction):
    def apply(self, key: str, window: Any, inputs: Iterable[Any]) -> Iterator[tuple[str, float]]:
        values = [value for _, value in inputs]
        yield key, sum(values) / len(values)


def measured(env: StreamExecutionEnvironment) -> KeyedStream:
    return env.from_collection(MEASURED, MEAN).key_by(lambda pair: pair[0])


def means_of_two(stream: KeyedStream) -> DataStream:
    """The mean of every two records."""
    return stream.count_window(2).apply(Mean(), MEAN)


def moving_means(stream: KeyedStream) -> DataStream:
    """With every second record, the mean of the last three, or of as many as there are."""
    windows = (
        stream.window(GlobalWindows.create())
        .trigger(CountTrigger.of(2))
        .evictor(CountEvictor.of(3))
    )
    return windows.apply(Mean(), MEAN)


def difference(old: tuple[str, float], new: tuple[str, float]) -> float:
    return abs(new[1] - old[1])


def means_near_the_last(stream: KeyedStream) -> DataStream:
    """The mean of those of every four records that differ from the last one by less than 25."""
    windows = (
        stream.window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(4)))
        .evictor(DeltaEvictor.of(25.0, difference))
    )
    return windows.apply(Mean(), MEAN)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = measured(env)
    means_of_two(stream).print("of two")
    moving_means(stream).print("moving")
    means_near_the_last(stream).print("near the last")
    env.execute("count windows")


if __name__ == "__main__":
    main()
