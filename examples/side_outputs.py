"""Side outputs and connected streams: parses readings, sends bad lines to a side output, and joins
both streams in one log.

    python examples/side_outputs.py

A process function yields values for its main output and ``(tag, value)`` pairs for a side output.
The two streams have different types; ``connect`` processes them together without a common type, and
a CoMapFunction has a method for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.common import Types
from flinkpy.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from flinkpy.datastream.functions import CoMapFunction, ProcessFunction

READINGS = ["kitchen 21.5", "cellar 12", "roof warm", "kitchen 22.0", "", "roof -3.5"]
REJECTED = OutputTag("rejected", Types.STRING())


class Parse(ProcessFunction):
    """Parses lines of "place degrees" as (place, degrees); sends other lines to the side output,
    unchanged."""

    def process_element(self, value: str, ctx: Any) -> Iterator[Any]:
        place, _, degrees = value.partition(" ")
        try:
            yield place, float(degrees)
        except ValueError:
            yield REJECTED, value


class Log(CoMapFunction):
    """Makes a line of text for each reading, and for each line that was rejected."""

    def map1(self, value: tuple[str, float]) -> str:
        place, degrees = value
        return f"{place}: {degrees:.1f} °C"

    def map2(self, value: str) -> str:
        return f"rejected: {value!r}"


def log_of(env: StreamExecutionEnvironment, lines: list[str]) -> DataStream:
    """The log of these lines; the order between readings and rejected lines is undefined."""
    readings = env.from_collection(lines, Types.STRING()).process(
        Parse(), Types.TUPLE([Types.STRING(), Types.DOUBLE()])
    )
    return readings.connect(readings.get_side_output(REJECTED)).map(Log(), Types.STRING())


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    log_of(env, READINGS).print()
    env.execute("side outputs")


if __name__ == "__main__":
    main()
