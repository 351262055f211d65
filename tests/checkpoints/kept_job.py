"""The job whose savepoints are kept under ``kept/<version>``, and restored by every later flinkpy
(``test_kept_savepoints.py``).

It has every kind of state. What it keeps are values of Python's and flinkpy's own classes, so that
only their forms have to last. Run this file to write the savepoints of a new version: a new folder,
never an old one again::

    python -m tests.checkpoints.kept_job

The job fails at a record in its middle; its last checkpoint, what its file sink had shown until
then, and what an undisturbed run shows are kept."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import flinkpy
from flinkpy.common import Row, Time, Types, WatermarkStrategy
from flinkpy.common.time import Duration
from flinkpy.connectors.memory.ranges import RangeSplit
from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import (
    UNTIL_WOKEN,
    NothingYet,
    SequentialReader,
    SplitReader,
)
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, RowBatch, SavepointFormatType
from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.datastream.functions import AggregateFunction, CheckpointedFunction, MapFunction
from flinkpy.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.state.canonical.rewriting import rewrite
from flinkpy.table.expressions import col
from tests.checkpoints.paced import visible_lines

KEPT = Path(__file__).parent / "kept"
OUT = Path("/tmp/flinkpy-kept/out")  # the savepoints name it, so it is the same in every run
COUNT, PACE, FAILS_AT = 120, 10, 75
FORMS = {"native": SavepointFormatType.NATIVE, "canonical": SavepointFormatType.CANONICAL}


class PacedNumbers(Source[RangeSplit]):
    """The numbers up to ``COUNT``, in one split; after every ``PACE`` the reader waits until a
    checkpoint is complete."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[RangeSplit], checkpoint: Any = None
    ) -> SplitEnumerator[RangeSplit]:
        return SplitQueue(context, lambda parallelism: [RangeSplit("all", 0, COUNT)], checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[RangeSplit]:
        return _PacedReader(context)


class _PacedReader(SequentialReader[RangeSplit]):
    def __init__(self, context: ReaderContext) -> None:
        super().__init__(context, lambda split: _PacedSplit(split, self))
        self.context, self.left = context, PACE

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.left = PACE
        self.context.wake_up()


class _PacedSplit(SplitReader[RangeSplit]):
    def __init__(self, split: RangeSplit, reader: _PacedReader) -> None:
        self._split, self._reader = split, reader

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        split, reader = self._split, self._reader
        if split.start >= split.end:
            return None
        if not reader.left:
            return UNTIL_WOKEN
        numbers = range(split.start, min(split.start + reader.left, split.end))
        reader.left -= len(numbers)
        self._split = replace(split, start=numbers.stop)
        return RowBatch(list(numbers), [number * 100 for number in numbers])

    def snapshot(self) -> RangeSplit:
        return self._split


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: float, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class States(KeyedProcessFunction):
    """A state of each kind, and two timers behind the last record, at which it tells what they
    hold."""

    def open(self, runtime_context: RuntimeContext) -> None:
        row = Types.ROW_NAMED(["day", "at"], [Types.SQL_DATE(), Types.LONG()])
        expiring = ValueStateDescriptor("expiring", Types.STRING())
        expiring.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_days(36500)).build())
        self.last = runtime_context.get_state(ValueStateDescriptor("last", row))
        self.expiring = runtime_context.get_state(expiring)
        self.undeclared = runtime_context.get_state(ValueStateDescriptor("undeclared"))
        self.numbers = runtime_context.get_list_state(
            ListStateDescriptor("numbers", Types.DOUBLE())
        )
        self.digits = runtime_context.get_map_state(
            MapStateDescriptor("digits", Types.STRING(), Types.LONG())
        )
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
        )
        accumulator = Types.TUPLE([Types.DOUBLE(), Types.LONG()])
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), accumulator)
        )

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[Any]:
        key, number = value
        self.last.update(Row(day=date(2024, 1, 1 + number % 28), at=number))
        self.expiring.update(f"{key} {number}")
        self.undeclared.update(
            {"nan": float("nan"), "zero": -0.0, "big": 1 << 70, "number": number, "nothing": None}
        )
        self.numbers.add(number if number % 2 else number / 2)
        digit = str(number % 10)
        self.digits.put(digit, (self.digits.get(digit) or 0) + 1)
        self.total.add(number)
        self.mean.add(float(number))
        ctx.timer_service().register_event_time_timer(COUNT * 100 + number % 2)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield (
            "states",
            ctx.get_current_key(),
            timestamp,
            self.last.value(),
            self.expiring.value(),
            self.undeclared.value(),
            list(self.numbers.get()),
            sorted(self.digits.items()),
            self.total.get(),
            self.mean.get(),
        )


class InWindow(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[tuple[str, int]]) -> Iterable[Any]:
        yield "session", key, context.window().start, sorted(number for _, number in elements)


class Both(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
        yield "joined", left[1], right[1]


class Rules(BroadcastProcessFunction):
    FACTORS = MapStateDescriptor("factors", Types.LONG(), Types.DOUBLE())

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[Any]:
        if value[1] > FAILS_AT + PACE:  # by then all rules are known, from the savepoint
            yield (
                "ruled",
                value[1],
                value[1] * ctx.get_broadcast_state(self.FACTORS).get(value[1] % 3),
            )

    def process_broadcast_element(self, value: tuple[int, float], ctx: Any) -> Iterable[Any]:
        ctx.get_broadcast_state(self.FACTORS).put(*value)
        return ()


class Listing(MapFunction, CheckpointedFunction):
    """Keeps what it has seen in a list and the largest in a union list; tells the largest of all
    subtasks before the savepoint."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.seen = store.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.largest = store.get_union_list_state(
            ListStateDescriptor("largest", Types.TUPLE([Types.STRING(), Types.LONG()]))
        )
        self.before = max((number for _, number in self.largest.get()), default=-1)
        self.restored = context.is_restored()
        self.count = len(list(self.seen.get()))
        self.most = -1

    def map(self, value: tuple[str, int]) -> Any:
        self.seen.add(value[1])
        self.most = max(self.most, value[1])
        return "listed", value[1], self.before if self.restored else None

    def snapshot_state(self, context: Any) -> None:
        self.largest.update([("most", self.most)])


def build(env: StreamExecutionEnvironment, fails: Callable[[int], int]) -> None:
    """The whole job. All that is kept has a uid."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    numbers = (
        env.from_source(PacedNumbers(), strategy, "numbers")
        .uid("numbers")
        .set_parallelism(1)
        .map(fails)
        .set_parallelism(1)
    )
    pairs = (
        numbers.map(lambda number: ("abcde"[number % 5], number)).set_parallelism(1).uid("pairs")
    )
    keyed = pairs.key_by(lambda pair: pair[0])
    rules = (
        env.from_collection([(0, 0.5), (1, 1.5), (2, -2.0)])
        .uid("rules")
        .set_parallelism(1)
        .broadcast(Rules.FACTORS)
    )
    columns = (
        pairs.map(lambda pair: pair, Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()]))
        .set_parallelism(1)
        .select("k", "n")
    )
    tumbling = TumblingEventTimeWindows.of(Time.seconds(3))
    sliding = SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2))
    told = [
        keyed.process(States()).uid("states"),
        keyed.sum(1).uid("sums").map(lambda pair: ("sum", *pair)),
        keyed.window(tumbling).sum(1).uid("slices").map(lambda pair: ("slice", *pair)),
        keyed.window(sliding)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .uid("sliding")
        .map(lambda pair: ("sliding", *pair)),
        pairs.filter(lambda pair: pair[1] % 12 < 8)
        .key_by(lambda pair: pair[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(700)))
        .process(InWindow())
        .uid("sessions"),
        columns.key_by("k")
        .window(tumbling)
        .aggregate(col("n").max.alias("most"))
        .uid("columns")
        .map(lambda row: ("columns", row["k"], row["most"])),
        keyed.interval_join(
            pairs.filter(lambda pair: pair[1] % 4 == 0).key_by(lambda pair: pair[0])
        )
        .between(Time.milliseconds(-1500), Time.milliseconds(0))
        .process(Both())
        .uid("joined"),
        pairs.connect(rules).process(Rules()).uid("ruled"),
        pairs.rescale()
        .map(Listing())
        .uid("listed")
        .filter(lambda told: told[1] > FAILS_AT + PACE)
        .map(lambda told: ("listed", told[1])),
    ]
    lines = told[0].union(*told[1:]).map(repr, Types.STRING())
    lines.sink_to(FileSink(OUT)).uid("out")


def environment(parallelism: int, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.set_max_parallelism(16)
    env.enable_checkpointing(10)
    env.program.values.update({"restart-strategy.type": "none", **options})
    return env


@contextmanager
def folder_of_results() -> Iterator[Path]:
    """``OUT``, empty, and nobody else's until the end."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with open(OUT.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir()
        yield OUT


def shown() -> list[str]:
    """The lines that can be seen."""
    return sorted(visible_lines(OUT))


def run_rest(savepoint: Path, parallelism: int, backend: str) -> list[str]:
    """Starts from a kept savepoint, and gives all lines that are shown at the end: those before it
    and those behind it."""
    with folder_of_results(), tempfile.TemporaryDirectory() as checkpoints:
        for part in (savepoint.parent / "out").iterdir():
            shutil.copy(part, OUT / part.name)
        env = environment(
            parallelism,
            **{
                "execution.state-recovery.path": str(savepoint),
                "state.backend.type": backend,
                "execution.checkpointing.dir": checkpoints,
            },
        )
        build(env, lambda number: number)
        env.execute("kept")
        return shown()


def _fails(number: int) -> int:
    if number == FAILS_AT:
        raise ValueError("here the savepoint is")
    return number


def write(folder: Path) -> None:
    """Writes the savepoints of this version, and what is shown at the end."""
    folder.mkdir(parents=True)
    with folder_of_results(), tempfile.TemporaryDirectory() as checkpoints:
        options = {
            "execution.checkpointing.dir": checkpoints,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
        env = environment(2, **options)
        build(env, _fails)
        try:
            env.execute("kept")
        except JobExecutionError as error:
            if "here the savepoint is" not in str(error):
                raise
        (job,) = Path(checkpoints).iterdir()
        (checkpoint,) = job.iterdir()
        for form, format_type in FORMS.items():
            rewrite(str(checkpoint), str(folder / form), format_type)
        shutil.copytree(OUT, folder / "out")
    with folder_of_results(), tempfile.TemporaryDirectory() as checkpoints:
        env = environment(2, **{"execution.checkpointing.dir": checkpoints})
        build(env, lambda number: number)
        env.execute("kept")
        (folder / "wanted.txt").write_text("\n".join(shown()) + "\n")


if __name__ == "__main__":
    write(KEPT / flinkpy.__version__)
    print(f"wrote {KEPT / flinkpy.__version__}")
