"""The job that is disturbed: running counts, windowed sums and a windowed join, each into files and
into a log.

Its sources are as a broker's topics: records come due by the clock, whatever happens to the job,
which finds those that it has missed waiting. In the undisturbed run all are due at once. Results do
not depend on that."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kills.journal import Journal
from benchmarks.kills.kafka_topics import KafkaTopics
from benchmarks.kills.transaction_log import TransactionLog, TransactionSink
from flinkpy.common import Time, WatermarkStrategy
from flinkpy.connectors.memory.datagen import DataGeneratorSource, GeneratingReader, StrideSplit
from flinkpy.connectors.source_api.enumerators import SplitShares
from flinkpy.connectors.source_api.readers import NothingYet, SequentialReader
from flinkpy.connectors.source_api.source import (
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.clock import Clock
from flinkpy.core.elements import Batch
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.datastream.window import TumblingEventTimeWindows

KEYS, WINDOW_MS = 31, 500
RESULTS = ("counts", "sums", "pairs")
LOOK_S = 0.05


@dataclass(frozen=True)
class Input:
    """``count`` records in each of two topics, of which ``rate`` a second come due from
    ``begun_ms`` on. If a file is to release them, the last one comes due, with all that are left,
    when this file is there."""

    count: int
    rate: float
    begun_ms: int
    released: str | None = None

    @property
    def undisturbed(self) -> Input:
        return Input(self.count, self.rate, 0)

    def due(self, now_ms: int) -> int:
        """How many of the records have come due."""
        by_clock = int((now_ms - self.begun_ms) / 1000 * self.rate)
        if self.released is None:
            return min(by_clock, self.count)
        return self.count if os.path.exists(self.released) else min(by_clock, self.count - 1)


class Topic(DataGeneratorSource):
    """(key, event time in milliseconds, name) for each record of the input."""

    def __init__(self, name: str, records: Input) -> None:
        rate = records.rate
        super().__init__(
            lambda index: (index * 7 % KEYS, int(index / rate * 1000), f"{name}{index}"),
            records.count,
        )
        self._records = records

    def create_enumerator(
        self, context: SplitEnumeratorContext[StrideSplit], checkpoint: Any = None
    ) -> SplitEnumerator[StrideSplit]:
        def discover(parallelism: int) -> list[StrideSplit]:
            return [
                StrideSplit(str(first), first, parallelism, self._records.count)
                for first in range(parallelism)
            ]

        return SplitShares(context, discover, checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[StrideSplit]:
        return SequentialReader(
            context, lambda split: _DueReader(split, self._make_rows, self._records, context.clock)
        )

    def without_data(self) -> Source[StrideSplit]:
        return self


class _DueReader(GeneratingReader):
    """Gives what has come due."""

    def __init__(self, split: StrideSplit, make: Any, records: Input, clock: Clock) -> None:
        super().__init__(split, make)
        self._records, self._clock = records, clock

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        if self._next >= self._records.count:
            return None
        due = self._records.due(self._clock.time_ms())
        if self._next >= due:
            return NothingYet(LOOK_S)
        return super().next_batch(min(limit, (due - self._next - 1) // self._split.step + 1))


def build(
    env: StreamExecutionEnvironment, records: Input, folder: Path, kafka: KafkaTopics | None = None
) -> None:
    """Each result goes to ``folder/RESULT/files`` and ``folder/RESULT/log``, as lines of text."""
    if kafka is not None:
        kafka.add_to(env)
    folder.mkdir(parents=True, exist_ok=True)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1]
    )
    orders = env.from_source(Topic("o", records), strategy, "orders").uid("orders")
    payments = env.from_source(Topic("p", records), strategy, "payments").uid("payments")

    def window() -> TumblingEventTimeWindows:
        return TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))

    ones = orders.map(lambda record: (record[0], 1))
    counts = ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    keyed = orders.key_by(lambda record: record[0])
    sums = keyed.window(window()).reduce(lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2])))
    joined = (
        orders.join(payments).where(lambda record: record[0]).equal_to(lambda record: record[0])
    )
    pairs = joined.window(window()).apply(lambda order, payment: (order[0], order[2], payment[2]))
    journal = Journal(str(folder / "journal"))
    for name, stream in zip(RESULTS, (counts, sums, pairs)):
        _write(stream, name, folder / name, journal)


def _write(stream: DataStream, name: str, folder: Path, journal: Journal) -> None:
    texts = stream.map(lambda record: " ".join(map(str, record)))
    texts.sink_to(FileSink(folder / "files")).uid(f"{name} in files")
    texts.sink_to(TransactionSink(folder / "log", name, journal)).uid(f"{name} in a log")


def written(folder: Path) -> dict[str, Counter[str]]:
    """How often each line can be seen, in each of the outputs."""
    outputs: dict[str, Counter[str]] = {}
    for name in RESULTS:
        files = (
            path
            for path in (folder / name / "files").glob("*.txt")
            if not path.name.startswith(".")
        )
        outputs[f"{name} in files"] = Counter(
            line for path in files for line in path.read_text().splitlines()
        )
        outputs[f"{name} in the log"] = Counter(TransactionLog(folder / name / "log").read())
    return outputs


def differences(found: dict[str, Counter[str]], expected: dict[str, Counter[str]]) -> list[str]:
    """What is missing in an output, and what is there too often."""
    told = []
    for name, lines in expected.items():
        missing, twice = lines - found[name], found[name] - lines
        if missing:
            told.append(
                f"{name}: {missing.total()} of {lines.total()} lines are missing: "
                f"{sorted(missing)[:5]} …"
            )
        if twice:
            told.append(f"{name}: {twice.total()} lines are too many: {sorted(twice)[:5]} …")
    return told


def is_committing(folder: Path) -> bool:
    """Whether a checkpoint is under way: a sink has prepared a transaction for it, and not
    committed it."""
    return any(TransactionLog(folder / name / "log").prepared() for name in RESULTS)


def unfinished(folder: Path) -> list[str]:
    """Files and transactions that nobody will commit any more."""
    hidden = [str(path) for name in RESULTS for path in (folder / name / "files").rglob(".*")]
    return hidden + [
        path for name in RESULTS for path in TransactionLog(folder / name / "log").unfinished()
    ]
