"""Programs with keyed state, state that belongs to no key, timers, broadcast state, unions and
patterns. No two records of a key have the same event time, so what a pattern finds does not depend
on which split comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.cep import (
    AfterMatchSkipStrategy,
    DynamicMatchContext,
    MatchContext,
    Pattern,
    PatternProcessFunction,
    PatternUpdate,
    TimedOutPartialMatchHandler,
)
from flinkpy.common import Duration, Row, RowKind, Types
from flinkpy.datastream import (
    CheckpointedFunction,
    DataStream,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    Partitioner,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkpy.table.expressions import col
from flinkpy.testing.simulation.programs.program_inputs import Fragile, keyed_lists, read, write


def key_of(record: Any) -> Any:
    return record[0]


def running_counts(env: StreamExecutionEnvironment) -> None:
    """How many records of its key have come, with each of them."""
    counts = (
        read(env, "input", keyed_lists(4, 30, 7))
        .map(Fragile("a map"))
        .uid("map")
        .map(lambda record: (record[0], 1))
        .uid("ones")
        .key_by(key_of)
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
        .uid("counts")
    )
    write(counts)


CHANGING = Types.ROW_NAMED(["key", "number"], [Types.STRING(), Types.LONG()])


def _changed(record: Any) -> Row:
    """The record as a row, whose kind its number says."""
    return Row.of_kind(RowKind(record[1] % len(RowKind)), key=record[0], number=record[1])


def columnar_changes(env: StreamExecutionEnvironment) -> None:
    """Rows whose kinds go as columns over an exchange."""
    changes = (
        read(env, "input", keyed_lists(4, 30, 7))
        .map(_changed, output_type=CHANGING)
        .uid("changes")
        .select(col("key"), (col("number") + 0).alias("number"))
        .key_by("key")
        .filter(col("number") % 5 < 4)
        .map(Fragile("a map"), output_type=CHANGING)
        .uid("map")
        .map(lambda row: (row.key, row.number, str(row.get_row_kind())))
        .uid("shown")
    )
    write(changes)


class Remind(KeyedProcessFunction):
    """Keeps each record until a timer some time behind it; then gives all that were kept, in order,
    and how many there were before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept = runtime_context.get_list_state(
            ListStateDescriptor("kept", Types.PICKLED_BYTE_ARRAY())
        )
        self.times = runtime_context.get_map_state(
            MapStateDescriptor("times", Types.LONG(), Types.INT())
        )
        self.given = runtime_context.get_state(ValueStateDescriptor("given", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        time = ctx.timestamp()
        assert time is not None
        due = (time // 50 + 1) * 50
        self.kept.add((due, value[1]))
        self.times.put(due, (self.times.get(due) or 0) + 1)
        ctx.timer_service().register_event_time_timer(due)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        Fragile("a timer")(timestamp)
        kept = list(self.kept.get())
        given = self.given.value() or 0
        due = sorted(number for when, number in kept if when <= timestamp)
        self.kept.update([each for each in kept if each[0] > timestamp])
        self.given.update(given + len(due))
        yield ctx.get_current_key(), timestamp, due, given, self.times.get(timestamp)
        self.times.remove(timestamp)


def timers(env: StreamExecutionEnvironment) -> None:
    """Records that wait for event-time timers."""
    write(
        read(env, "input", keyed_lists(3, 40, 5), timed=True)
        .key_by(key_of)
        .process(Remind())
        .uid("timers")
    )


class ByNumber(Partitioner):
    """The channel is part of the record."""

    def partition(self, key: Any, num_partitions: int) -> int:
        return int(key) % num_partitions


class CountsOfSubtask(MapFunction, CheckpointedFunction):
    """Which of all records of its subtask each one is. Half of the state is a list, the other half
    a union of which each subtask takes its part."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.saved = store.get_list_state(ListStateDescriptor("count", Types.INT()))
        self.all_saved = store.get_union_list_state(
            ListStateDescriptor("counts", Types.PICKLED_BYTE_ARRAY())
        )
        self.count = sum(self.saved.get())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.count_of_union = sum(
            count for subtask, count in self.all_saved.get() if subtask == self.subtask
        )

    def map(self, value: object) -> Any:
        Fragile("a count")(value)
        self.count += 1
        self.count_of_union += 1
        return self.subtask, self.count, self.count_of_union

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.saved.update([self.count])
        self.all_saved.update([(self.subtask, self.count_of_union)])


def operator_counts(env: StreamExecutionEnvironment) -> None:
    """State that belongs to no key: a list, and a union."""
    write(
        read(env, "input", keyed_lists(4, 30, 7))
        .partition_custom(ByNumber(), lambda record: record[1])
        .map(CountsOfSubtask())
        .uid("counts")
    )


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
SEEN = ListStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY())


class Meet(KeyedBroadcastProcessFunction):
    """Each record with each rule, whichever comes first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_list_state(SEEN)

    def process_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[Any]:
        Fragile("a rule")(value)
        self.seen.add(value[1])
        for name in sorted(ctx.get_broadcast_state(RULES).keys()):
            yield name, value

    def process_broadcast_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], value[1])
        found: list[Any] = []
        ctx.apply_to_keyed_state(
            SEEN, lambda key, seen: found.extend((key, number) for number in seen.get())
        )
        for record in found:
            yield value[0], record


def broadcast_rules(env: StreamExecutionEnvironment) -> None:
    """Keyed records, and rules that all subtasks have."""
    rules = read(
        env, "rules", [[((f"rule-{number}", number), 0) for number in range(5)]]
    ).set_parallelism(1)
    records = read(env, "input", keyed_lists(3, 20, 5))
    write(records.key_by(key_of).connect(rules.broadcast(RULES)).process(Meet()).uid("meet"))


def unions(env: StreamExecutionEnvironment) -> None:
    """Two sources in one stream, which is split up and joined again before its records are
    counted."""
    left = read(env, "left", keyed_lists(2, 25, 5))
    right = read(env, "right", keyed_lists(3, 15, 5, 50_000))
    both = left.union(right.map(Fragile("the right side")).uid("right map"))
    even = both.filter(lambda record: record[1] % 2 == 0).uid("even")
    odd = both.filter(lambda record: record[1] % 2 == 1).rebalance()
    ones = (
        even.union(odd.map(lambda record: record).uid("odd map"))
        .map(lambda record: (record[0], 1))
        .uid("ones")
    )
    write(ones.key_by(key_of).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("counts"))


# -- patterns --------------------------------------------------------------------------------------

TIMED_OUT = OutputTag("timed out")


class Show(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Matches, and what timed out, as plain values."""

    def __init__(self, name: str) -> None:
        self.name = name

    def process_match(self, match: Any, ctx: MatchContext) -> Iterator[Any]:
        Fragile("a match")(match)
        yield self.name, self.shown(match), ctx.timestamp()

    def process_timed_out_match(self, match: Any, ctx: MatchContext) -> None:
        ctx.output(TIMED_OUT, (self.name, "timed out", self.shown(match), ctx.timestamp()))

    def shown(self, match: Any) -> Any:
        return tuple((name, tuple(events)) for name, events in match.items())


class ShowDynamic(Show):
    """The same with the id of the pattern that found it."""

    def process_match(self, match: Any, ctx: MatchContext) -> Iterator[Any]:
        assert isinstance(ctx, DynamicMatchContext)
        for shown in super().process_match(match, ctx):
            yield ctx.pattern_id(), *shown


def is_first(record: Any) -> bool:
    return bool(record[1] % 3 == 0)


def is_second(record: Any) -> bool:
    return bool(record[1] % 3 == 1)


def is_last(record: Any) -> bool:
    return bool(record[1] % 7 == 0)


def grows(record: Any, ctx: Any) -> bool:
    """Larger than all that were taken before."""
    return all(record[1] % 100 > each[1] % 100 for each in ctx.get_events_for_pattern("second"))


def _growing() -> Pattern:
    """Some that grow, until one ends them; what was found drops what overlaps."""
    pattern = Pattern.begin("first", AfterMatchSkipStrategy.skip_past_last_event()).where(is_first)
    pattern = (
        pattern.followed_by("second").where(is_second).where(grows).one_or_more().until(is_last)
    )
    return pattern.followed_by("last").where(is_last).within(Duration.of_millis(130))


def _missing() -> Pattern:
    """A first one without a second one in time: complete when its time is up."""
    pattern = Pattern.begin("first").where(is_first)
    return pattern.not_followed_by("second").where(is_second).within(Duration.of_millis(30))


def _pair() -> Pattern:
    pattern = Pattern.begin("first").where(is_first).followed_by("last").where(is_last)
    return pattern.within(Duration.of_millis(90))


def _both(found: DataStream) -> DataStream:
    return found.union(found.get_side_output(TIMED_OUT))


def patterns(env: StreamExecutionEnvironment) -> None:
    """Two patterns with time-outs: one that iterates and skips, one that ends with what must not
    come."""
    records = read(env, "input", keyed_lists(3, 40, 5), timed=True).key_by(key_of)
    growing = records.match(_growing()).process(Show("growing")).uid("growing")
    missing = records.match(_missing()).process(Show("missing")).uid("missing")
    write(_both(growing).union(_both(missing)))


def dynamic_patterns(env: StreamExecutionEnvironment) -> None:
    """Patterns that are replaced while they run, by themselves: what was begun may finish, so what
    is found does not depend on when."""
    again = [
        (PatternUpdate(name, version, pattern, finish=True), 0)
        for version in (2, 3, 4)
        for name, pattern in (("missing", _missing()), ("pair", _pair()))
    ]
    updates = read(env, "patterns", [again]).set_parallelism(1)
    first = [PatternUpdate("missing", 1, _missing()), PatternUpdate("pair", 1, _pair())]
    records = read(env, "input", keyed_lists(3, 40, 5), timed=True).key_by(key_of)
    found = records.match_dynamic(updates, first).process(ShowDynamic("dynamic")).uid("dynamic")
    write(_both(found))
