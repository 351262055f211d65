"""Kill a worker while this runs: afterwards each number is still counted once.

    flinkpy run -t ray examples/nothing_is_lost.py      # for some twenty seconds
    pkill -9 -f ray::TaskExecutorProcess                # meanwhile, in another terminal

`python examples/nothing_is_lost.py` is the same without workers that could be killed. Every half
second a checkpoint saves the counts, and how far the source has read. After a failure the job goes
on from the last one. The sink shows what a checkpoint has when it is complete, so no count is seen
twice."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from flinkpy.common import WatermarkStrategy
from flinkpy.connectors.sources import DataGeneratorSource
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink

KEYS = 10


def write_counts(env: StreamExecutionEnvironment, folder: Path, numbers: int, rate: float) -> None:
    """For each number a line: its last digit, and how many numbers with this digit there were so
    far."""
    env.enable_checkpointing(500)
    source = DataGeneratorSource(lambda number: number, numbers, rate)
    counts = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .map(lambda number: (number % KEYS, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
    )
    counts.map(lambda pair: f"{pair[0]} {pair[1]}").sink_to(FileSink(folder, "text"))
    env.execute("nothing is lost")


def verdict(folder: Path, numbers: int) -> str:
    """What is wrong with the lines, or that nothing is."""
    found = Counter(line for file in folder.glob("*.txt") for line in file.read_text().splitlines())
    wanted = {f"{number % KEYS} {number // KEYS + 1}" for number in range(numbers)}
    lost, twice = wanted - found.keys(), [line for line, times in found.items() if times > 1]
    return (
        f"{len(lost)} counts are lost, {len(twice)} came twice"
        if lost or twice
        else f"{numbers} numbers, each counted once"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts that survive a failure.")
    parser.add_argument("--numbers", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=5_000.0, help="numbers a second")
    parser.add_argument(
        "--folder", type=Path, help="for the results; all machines of the cluster must see it"
    )
    arguments = parser.parse_args()

    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="nothing-is-lost-"))
    write_counts(
        StreamExecutionEnvironment.get_execution_environment(),
        folder,
        arguments.numbers,
        arguments.rate,
    )
    said = verdict(folder, arguments.numbers)
    print(said)
    sys.exit("lost" in said)


if __name__ == "__main__":
    main()
