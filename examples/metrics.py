"""Metrics and accumulators: how many lines were no numbers, and how the numbers were distributed, told when the job has ended.

    python examples/metrics.py

Metrics belong to a subtask and stand under its operator's name; an accumulator is one value for the whole job, put together of all subtasks' ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkpy.common import JobExecutionResult, Types
from flinkpy.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment

LINES = ["12", "7", "seven", "9", "", "12", "1e3"]


class Shortest:
    """The shortest line that was no number: any object will do that pickles, and knows how to ``merge``."""

    def __init__(self) -> None:
        self.line: str | None = None

    def add(self, line: str) -> None:
        self.line = line if self.line is None else min(self.line, line, key=len)

    def merge(self, other: Shortest) -> None:
        if other.line is not None:
            self.add(other.line)


class Parse(FlatMapFunction):
    """Lines to whole numbers."""

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
