"""What a job gives that failed and went on from a checkpoint is what it gives undisturbed: nothing
twice, nothing lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import OutputTag, Time, Types, WatermarkStrategy
from flinkpy.datastream import (
    BroadcastProcessFunction,
    DataStream,
    ErrorPolicy,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.async_data_stream import AsyncDataStream
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.datastream.functions import AsyncFunction
from flinkpy.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.table.expressions import col
from tests.checkpoints.paced import PacedSource, failing_at, failures

COUNT = 240
# (key, number) at a time
RECORDS: list[tuple[Any, int]] = [((number % 7, number), number * 10) for number in range(COUNT)]
FAILING = [(number % 7, number) for number in (61, 62, 150)]


def environment(parallelism: int, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.program.values.update(
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 9,
            "restart-strategy.fixed-delay.delay": "1 ms",
            **options,
        }
    )
    return env


def source(
    env: StreamExecutionEnvironment, records: list[tuple[Any, int]] = RECORDS, pace: int = 10
) -> Any:
    return env.from_source(
        PacedSource(records, pace, env.get_parallelism()),
        WatermarkStrategy.for_monotonous_timestamps(),
        "paced",
    )


class InOrder(KeyedProcessFunction):
    """Gathers the values of each key, gives those of each half second in order when it is over, and
    counts their digits."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_list_state(
            ListStateDescriptor("waiting", Types.PICKLED_BYTE_ARRAY())
        )
        self.digits = runtime_context.get_map_state(
            MapStateDescriptor("digits", Types.INT(), Types.LONG())
        )
        self.given = runtime_context.get_state(ValueStateDescriptor("given", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.waiting.add((ctx.timestamp(), value[1]))
        ctx.timer_service().register_event_time_timer((ctx.timestamp() // 500 + 1) * 500)
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        waiting = list(self.waiting.get())
        due = sorted(number for at, number in waiting if at < timestamp)
        self.waiting.update([each for each in waiting if each[0] >= timestamp])
        for number in due:
            self.digits.put(number % 10, (self.digits.get(number % 10) or 0) + 1)
        self.given.update((self.given.value() or 0) + len(due))
        yield ctx.get_current_key(), timestamp, due, sorted(self.digits.items()), self.given.value()


class InWindow(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().start, sorted(element[1] for element in elements)


class Later(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [("later", value)]


class Rules(BroadcastProcessFunction):
    RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        rules = ctx.get_broadcast_state(self.RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])
        yield "rule", value[0], rules.get(value[0])


def keyed(stream: DataStream) -> Any:
    return stream.key_by(lambda pair: pair[0])


Program = Callable[[StreamExecutionEnvironment, Callable[[Any], Any]], Any]


def by_key(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    return keyed(source(env).map(fails)).process(InOrder())


def running_sum(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    return keyed(source(env).map(fails)).sum(1)


def reduced_lists(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    """A reduce that changes what it was given, and gives it back."""

    def appended(one: list[Any], other: list[Any]) -> list[Any]:
        one[1].extend(other[1])
        return one

    return keyed(source(env).map(fails).map(lambda pair: [pair[0], [pair[1]]])).reduce(appended)


def tumbling(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    return (
        keyed(source(env).map(fails))
        .window(TumblingEventTimeWindows.of(Time.milliseconds(400)))
        .sum(1)
    )


def sliding(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    windows = SlidingEventTimeWindows.of(Time.milliseconds(400), Time.milliseconds(100))
    return keyed(source(env).map(fails)).window(windows).reduce(lambda a, b: (a[0], a[1] + b[1]))


def all_records(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    return (
        keyed(source(env).map(fails))
        .window(SlidingEventTimeWindows.of(Time.milliseconds(400), Time.milliseconds(200)))
        .process(InWindow())
    )


def sessions(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    few = keyed(source(env).map(fails).filter(lambda pair: pair[1] % 40 < 15))
    return few.window(EventTimeSessionWindows.with_gap(Time.milliseconds(100))).process(InWindow())


def joined(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    one = source(env).map(fails)
    other = source(env, [((key, -number), at) for (key, number), at in RECORDS])
    windows = TumblingEventTimeWindows.of(Time.milliseconds(300))
    return (
        one.join(other)
        .where(lambda pair: pair[0])
        .equal_to(lambda pair: pair[0])
        .window(windows)
        .apply(lambda a, b: (a, b))
    )


def interval_joined(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    one = source(env).map(fails)
    other = source(env, [((key, -number), at) for (key, number), at in RECORDS])
    return (
        keyed(one)
        .interval_join(keyed(other))
        .between(Time.milliseconds(-100), Time.milliseconds(100))
        .process(lambda a, b, ctx: [(a, b)])
    )


def later(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    return AsyncDataStream.unordered_wait(source(env).map(fails), Later(), Time.seconds(60), 5)


def dead_letters(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    """What three operators divert, and what they do not."""

    def picky(pair: Any) -> Any:
        return pair if pair[1] % 5 else 1 // 0

    tag = OutputTag("failed")
    policy = ErrorPolicy.divert(tag, retries=1)
    mapped = source(env).map(fails).map(picky).on_error(policy)
    processed = keyed(mapped).process(Counting()).on_error(policy)
    waited = AsyncDataStream.unordered_wait(processed, Choosy(), Time.seconds(60), 5).on_error(
        ErrorPolicy.divert(tag)
    )
    return waited.union(
        *(
            stream.get_side_output(tag).map(
                lambda letter: (letter.record, letter.exception, letter.timestamp, letter.calls)
            )
            for stream in (mapped, processed, waited)
        )
    )


class Counting(KeyedProcessFunction):
    """Fails for every third record, when it has been counted; gives the count of each key at the
    end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.seen.update((self.seen.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10**6)
        if value[1] % 3 == 0:
            raise KeyError(value[0])
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), 1000 + (self.seen.value() or 0)


class Choosy(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value[1] // (value[1] % 4)]


def unions(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    one = source(env).map(fails)
    return keyed(one.union(source(env, RECORDS[:50], 5).rebalance())).sum(1)


def rules(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    """What a rule comes to is the same in all subtasks; records pass."""
    told = (
        source(env, RECORDS[:40], 4)
        .map(lambda pair: pair)
        .set_parallelism(1)
        .broadcast(Rules.RULES)
    )
    return (
        source(env)
        .map(fails)
        .connect(told)
        .process(Rules())
        .filter(lambda found: found[0] != "rule")
    )


def in_columns(stream: DataStream) -> Any:
    """Its pairs as columns k and n, with their timestamps."""
    pairs = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])
    return stream.map(lambda pair: pair, pairs).select("k", "n")


def columns(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    return in_columns(source(env).map(fails)).key_by("k").sum("n")


def column_aggregates(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    """Running figures over columns come by the batch; the last of each key is the same."""
    return in_columns(source(env).map(fails)).key_by("k").aggregate(col("n").sum.alias("total"))


def column_windows(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    windows = SlidingEventTimeWindows.of(Time.milliseconds(400), Time.milliseconds(200))
    found = in_columns(source(env).map(fails)).key_by("k").window(windows)
    return found.aggregate(col("n").sum.alias("total"), col("n").max.alias("largest"))


def column_joins(env: StreamExecutionEnvironment, fails: Callable[[Any], Any]) -> Any:
    other = in_columns(source(env, [((key, -number), at) for (key, number), at in RECORDS])).select(
        col("k").alias("of"), col("n").alias("m")
    )
    joined = in_columns(source(env).map(fails)).join(other).where("k").equal_to("of")
    return joined.window(TumblingEventTimeWindows.of(Time.milliseconds(300))).select("k", "n", "m")


def all_of_them(found: list[Any]) -> Any:
    return sorted(map(repr, found))


def last_of_keys(found: list[Any]) -> Any:
    """Of running results, whose order among several subtasks is by chance: how many there are, and
    the last of each key."""
    last: dict[int, Any] = {}
    for key, total in found:
        total = sorted(total) if isinstance(total, list) else total
        last[key] = max(
            last.get(key, total),
            total,
            key=lambda each: len(each) if isinstance(each, list) else each,
        )
    return len(found), sorted(last.items())


PROGRAMS: list[tuple[Program, Callable[[list[Any]], Any]]] = [
    *(
        (program, all_of_them)
        for program in (
            by_key,
            tumbling,
            sliding,
            all_records,
            sessions,
            joined,
            interval_joined,
            later,
            rules,
            dead_letters,
            column_windows,
            column_joins,
        )
    ),
    *((program, last_of_keys) for program in (running_sum, reduced_lists, unions, columns)),
    (column_aggregates, lambda found: last_of_keys(found)[1]),
]


def results(
    program: Program, env: StreamExecutionEnvironment, fails: Callable[[Any], Any]
) -> list[Any]:
    with program(env, fails).execute_and_collect() as found:
        return list(found)


@pytest.mark.wide(but=("2-rocksdb",))
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(("program", "told"), PROGRAMS, ids=lambda each: each.__name__.strip("<>"))
def test_a_job_that_failed_gives_what_one_gives_that_did_not(
    program: Program,
    told: Callable[[list[Any]], Any],
    parallelism: int,
    backend: str,
    tmp_path: Path,
) -> None:
    undisturbed = results(program, environment(parallelism), lambda record: record)
    found = results(
        program,
        environment(parallelism, **{"state.backend.type": backend}),
        failing_at(tmp_path, *FAILING),
    )
    assert failures(tmp_path) == len(FAILING)
    assert told(found) == told(undisturbed)
    assert len(found) > 5


def test_files_are_seen_once(tmp_path: Path) -> None:
    env = environment(2, **{"execution.checkpointing.dir": str(tmp_path / "checkpoints")})
    stream = (
        keyed(source(env).map(failing_at(tmp_path / "failed", *FAILING)))
        .sum(1)
        .map(str, Types.STRING())
    )
    stream.sink_to(FileSink(tmp_path / "out"))
    env.execute()
    lines = [
        line for part in (tmp_path / "out").iterdir() for line in part.read_text().splitlines()
    ]
    assert failures(tmp_path / "failed") == len(FAILING)
    assert len(lines) == COUNT
    assert {key: max(found) for key, found in grouped(lines).items()} == totals()
    assert list((tmp_path / "checkpoints").iterdir()) == []


def totals() -> dict[int, int]:
    """The sum of each key when all records have come."""
    found: dict[int, int] = {}
    for key, number in (record for record, _ in RECORDS):
        found[key] = found.get(key, 0) + number
    return found


def grouped(lines: list[str]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for line in lines:
        key, total = line.strip("()").split(", ")
        found.setdefault(int(key), []).append(int(total))
    return found


def test_a_folder_for_checkpoints_is_that_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flinkpy.datastream.env.submission import _with_checkpoints, stream_graph

    monkeypatch.chdir(tmp_path)
    env = environment(1, **{"execution.checkpointing.dir": "here"})
    env.from_sequence(1, 3).print()
    assert _with_checkpoints(env.program, stream_graph(env.program, None))[
        "execution.checkpointing.dir"
    ] == str(tmp_path / "here")
