"""A job whose tasks fail all the time, embedded: some random task each second, with a checkpoint
every 200 ms.

    python -m benchmarks.failing_tasks [SECONDS] [SEED]

Tasks fail at a record, where a function is opened, and where a checkpoint is taken. Windows go to
files, running counts come back to the program; in the end both must be exactly what plain Python
computes. It runs by itself, and not among the benchmarks, because it measures nothing."""

from __future__ import annotations

import ast
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from flinkpy.cluster.launch import submitted_jobs
from flinkpy.common import Time, WatermarkStrategy
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.datastream import (
    CheckpointedFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import TumblingEventTimeWindows

RATE, KEYS, WINDOW_MS = 1000, 23, 250
UNSTABLE = 6  # subtasks of functions that fail, at a parallelism of two
WHERE = ("record", "record", "record", "snapshot", "open")
Pair = tuple[int, int]


class Unstable(MapFunction, CheckpointedFunction):
    """Gives back what it gets. Each attempt fails at a random time."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def initialize_state(self, context: Any) -> None:
        self._fails_at = float("inf")

    def open(self, context: RuntimeContext) -> None:
        chance = random.Random(
            f"{self._seed} {context.get_index_of_this_subtask()} {time.monotonic()}"
        )
        self._where = chance.choice(WHERE)
        self._fails_at = time.monotonic() + chance.expovariate(1 / UNSTABLE)
        if self._where == "open" and chance.random() < 0.3:
            raise RuntimeError("failed in open")

    def map(self, value: Any) -> Any:
        if time.monotonic() > self._fails_at and self._where != "snapshot":
            raise RuntimeError("failed at a record")
        return value

    def snapshot_state(self, context: Any) -> None:
        if time.monotonic() > self._fails_at:
            raise RuntimeError("failed at a checkpoint")


class Restarts(logging.Handler):
    """Counts them, and says how many there were from time to time."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reasons: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        if "restarts" in record.getMessage():
            self.reasons[record.getMessage().splitlines()[0].rpartition("Error: ")[2]] += 1
            if self.reasons.total() % 20 == 0:
                print(f"{self.reasons.total()} restarts", flush=True)


def run(seconds: int, seed: int, folder: Path) -> tuple[list[Pair], list[Pair]]:
    """What was collected, and what lies in the files."""
    env = StreamExecutionEnvironment.get_execution_environment(
        {
            "execution.target": "embedded",
            "execution.checkpointing.interval": "200 ms",
            "execution.checkpointing.dir": str(folder / "checkpoints"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "50 ms",
            "restart-strategy.fixed-delay.attempts": 1_000_000,
        }
    )
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda pair, _: pair[1]
    )
    pairs = env.generate(lambda index: (index % KEYS, index), count=RATE * seconds, rate=RATE).map(
        Unstable(seed)
    )
    keyed = pairs.assign_timestamps_and_watermarks(strategy).key_by(lambda pair: pair[0])
    sums = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))).reduce(
        lambda a, b: (a[0], a[1] + b[1])
    )
    sums.map(Unstable(seed + 1)).sink_to(FileSink(folder / "out"))
    counts = (
        keyed.map(lambda pair: (pair[0], 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    with counts.map(Unstable(seed + 2)).execute_and_collect("failing tasks") as results:
        collected = sorted(results)
    assert submitted_jobs()[-1].status().name == "FINISHED"
    lines = [
        line for path in (folder / "out").glob("*.txt") for line in path.read_text().splitlines()
    ]
    return collected, sorted(ast.literal_eval(line) for line in lines)


def wanted(records: int) -> tuple[list[Pair], list[Pair]]:
    sums: Counter[Pair] = Counter()
    for index in range(records):
        sums[index % KEYS, index // WINDOW_MS] += index
    per_key = Counter(index % KEYS for index in range(records))
    counts = [(key, number) for key, count in per_key.items() for number in range(1, count + 1)]
    return sorted(counts), sorted((key, total) for (key, _), total in sums.items())


def difference(name: str, found: list[Pair], expected: list[Pair]) -> bool:
    """Prints what is twice and what is missing; True if something is."""
    more, fewer = Counter(found) - Counter(expected), Counter(expected) - Counter(found)
    if more or fewer:
        print(f"{name}: {more.total()} too many, for example {list(more)[:5]}")
        print(f"{name}: {fewer.total()} missing, for example {list(fewer)[:5]}")
    return bool(more or fewer)


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    restarts = Restarts()
    logging.getLogger("flinkpy.jobmaster").addHandler(restarts)
    logging.getLogger("flinkpy").addHandler(logging.NullHandler())
    print(f"{seconds} s of records, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.monotonic()
        collected, written = run(seconds, seed, folder)
        counts, sums = wanted(RATE * seconds)
        left = [
            str(path)
            for part in ("out", "checkpoints")
            for path in (folder / part).rglob("*")
            if part == "checkpoints" or path.name[0] == "."
        ]
        print(
            f"{time.monotonic() - started:.0f} s, {restarts.reasons.total()} restarts: "
            f"{dict(restarts.reasons)}"
        )
        wrong = [
            difference("collected", collected, counts),
            difference("files", written, sums),
            bool(left),
        ]
    print(f"left behind: {left}" if left else "nothing left behind")
    print("WRONG" if any(wrong) else "exact")
    raise SystemExit(any(wrong))


if __name__ == "__main__":
    main()
