"""Metrics and accumulators: counts bad lines, and shows the distribution of the numbers, after the
job has ended.

    python examples/metrics.py

A metric belongs to a subtask and has its operator's name in front; an accumulator is one value for
the whole job, merged from all subtasks."""

from __future__ import annotations

from collections.abc import Iterator

from flinkpy.common import JobExecutionResult, Types
from flinkpy.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment

LINES = ["12", "7", "seven", "9", "", "12", "1e3"]


class Shortest:
    """The shortest line that is not a number. Any object that pickles and has ``merge`` can be an
    accumulator's value."""

    def __init__(self) -> None:
        self.line: str | None = None

    def add(self, line: str) -> None:
        self.line = line if self.line is None else min(self.line, line, key=len)

    def merge(self, other: Shortest) -> None:
        if other.line is not None:
            self.add(other.line)


class Parse(FlatMapFunction):
    """Parses lines as whole numbers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self.bad = group.counter("bad lines")
        self.sizes = group.distribution("sizes")
        self.shortest = Shortest()
        runtime_context.add_accumulator("shortest bad line", self.shortest)

    def flat_map(self, line: str) -> Iterator[int]:
        if not line.isdigit():
            self.bad.inc()
            self.shortest.add(line)
            return
        self.sizes.update(int(line))
        yield int(line)


def count(env: StreamExecutionEnvironment) -> JobExecutionResult:
    env.from_collection(LINES, Types.STRING()).flat_map(Parse(), Types.INT()).name("Parse").print()
    return env.execute("numbers")


if __name__ == "__main__":
    result = count(StreamExecutionEnvironment.get_execution_environment())
    for name, value in sorted(result.get_metrics().items()):
        print(name, value)
    print(f"the shortest bad line was {result.get_accumulator_result('shortest bad line').line!r}")
