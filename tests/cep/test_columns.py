"""Patterns over columns find what the interpreted form finds in the same rows, and make objects of
no more events than can matter."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkpy.cep import MatchContext, Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import CELL, EVENT, Found
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.matching import pending_columns
from flinkpy.cep.matching.calendar import Calendar
from flinkpy.cep.matching.candidates import Candidates
from flinkpy.cep.matching.expression_conditions import ExpressionConditions
from flinkpy.cep.matching.generated_loop import expressions_of
from flinkpy.cep.matching.pending_columns import PendingColumns
from flinkpy.cep.matching.pending_events import PendingEvents
from flinkpy.cep.matching.places import is_expression, with_rows
from flinkpy.cep.matching.row_candidates import row_candidates
from flinkpy.cep.matching.row_matcher import RowMatcher
from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.common import Configuration, Duration, Row, Types, WatermarkStrategy
from flinkpy.common.types import LateValues, late_rows
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.datastream import OutputTag, StreamExecutionEnvironment
from flinkpy.table.expressions import col
from flinkpy.testing import OneInputHarness
from tests.cep import pattern_texts as texts
from tests.cep.pattern_texts import RandomPatterns, TextOfRow, events_of, pattern_of
from tests.conftest import PROFILE

END = 10_000
ROCKSDB = {"state.backend.type": "rocksdb"}


def drawn(seed: int) -> tuple[Any, pa.RecordBatch]:
    """An automaton, and events of some keys in columns."""
    cases = RandomPatterns(seed)
    while True:
        skip, pattern, events = cases.case()
        try:
            automaton = compiled(pattern_of(pattern, skip, TextOfRow(seed)))
        except ProgramError:
            continue
        keys = random.Random(seed)
        given = [(keys.choice("xyz"), event, time) for event, time in events_of(events) if event]
        columns = {
            "key": [key for key, _, _ in given],
            "letter": [event[0] for _, event, _ in given],
            "number": [int(event[1:]) for _, event, _ in given],
            "time": [time for _, _, time in given],
        }
        return automaton, pa.RecordBatch.from_pydict(columns)


def interpreted(automaton: Any, data: pa.RecordBatch, gives: bool) -> list[Found]:
    matcher = RowMatcher(Interpreter(automaton, lambda: 0, gives), Calendar(1), generated=False)
    rows = rows_of_batch(data)
    keys, times = [row.key for row in rows], [row.time for row in rows]
    return flat(chain(matcher.take(keys, times, rows), matcher.advance(END)))


def matcher_of(automaton: Any, gives: bool = True) -> RowMatcher:
    return RowMatcher(Interpreter(automaton, lambda: 0, gives), Calendar(1))


class InColumns:
    """A subtask that finds a pattern in columns."""

    def __init__(self, automaton: Any, matcher: RowMatcher) -> None:
        conditions = ExpressionConditions(expressions_of(automaton))
        self.matcher = matcher
        places = all(map(is_expression, automaton.conditions())) and self.matcher.is_generated
        self.pending = PendingColumns(Candidates(automaton), conditions, ("key",), places)
        self.objects = 0

    def add(self, data: pa.RecordBatch) -> None:
        self.pending.add(data, data.column("time").to_numpy().astype(np.int64))

    def advance(self, now: int) -> list[Found]:
        found: list[Found] = []
        for due in self.pending.until(now, self.matcher.runs, keys_of):
            self.objects += len(due.events)
            found += flat(self.matcher.take(due.keys, due.times, due.events, due.truths))
        return list(with_rows([*found, *flat(self.matcher.advance(now))], lambda row: row))


def flat(found: Iterable[Iterable[Found]]) -> list[Found]:
    return list(chain.from_iterable(found))


def keys_of(rows: list[Any]) -> list[str]:
    return [row.key for row in rows]


class OverRows:
    """A subtask that finds a pattern in rows, and leaves out those that cannot matter."""

    def __init__(self, automaton: Any, matcher: RowMatcher) -> None:
        self.matcher = matcher
        self.pending = PendingEvents(due=row_candidates(automaton))

    def add(self, data: pa.RecordBatch) -> None:
        self.pending.add(data.column("time").to_pylist(), rows_of_batch(data))

    def advance(self, now: int) -> list[Found]:
        times, rows = self.pending.until(now)
        return [
            *flat(self.matcher.take([row.key for row in rows], times, rows)),
            *flat(self.matcher.advance(now)),
        ]


def shown(found: list[Found]) -> list[str]:
    return sorted(map(repr, found))


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_columns, "_AT_ONCE", 3)


def compare(seed: int) -> None:
    automaton, data = drawn(seed)
    gives = seed % 2 == 0  # also what timed out
    wanted = shown(interpreted(automaton, data, gives))
    matcher = matcher_of(automaton, gives)  # one for all, as generating its loop takes longest
    for make in (InColumns, OverRows):
        for find in (found_at_once, found_by_key, found_one_by_one, found_in_batches):
            assert shown(find(make(automaton, matcher), data, random.Random(seed))) == wanted, find
            matcher.forget_all()
            assert matcher.partial_matches == len(matcher.calendar) == 0


Subtask: TypeAlias = InColumns | OverRows


def found_at_once(subtask: Subtask, data: pa.RecordBatch, batches: random.Random) -> list[Found]:
    subtask.add(data)
    return subtask.advance(END)


def found_by_key(subtask: Subtask, data: pa.RecordBatch, batches: random.Random) -> list[Found]:
    """As subtasks with one key each find it."""
    found: list[Found] = []
    for key in "xyz":
        of_key = data.filter(pc.equal(data.column("key"), key))
        if of_key.num_rows:
            found += found_at_once(subtask, of_key, batches)
    return found


def found_one_by_one(subtask: Subtask, data: pa.RecordBatch, batches: random.Random) -> list[Found]:
    found: list[Found] = []
    times = data.column("time").to_pylist()
    for at, time in enumerate(times):
        subtask.add(data.slice(at, 1))
        if at + 1 == len(times) or times[at + 1] > time:
            found += subtask.advance(time)
    return [*found, *subtask.advance(END)]


def found_in_batches(subtask: Subtask, data: pa.RecordBatch, batches: random.Random) -> list[Found]:
    """With a watermark that is behind the events."""
    found: list[Found] = []
    begin = 0
    for at, time in enumerate(data.column("time").to_pylist(), 1):
        if at == data.num_rows or batches.random() < 0.3:
            subtask.add(data.slice(begin, at - begin))
            begin = at
            found += subtask.advance(time - batches.randint(1, 4))
    return [*found, *subtask.advance(END)]


def test_columns_and_rows_find_what_the_interpreted_form_finds() -> None:
    for seed in range(20):
        compare(seed)


@pytest.mark.wide
@pytest.mark.parametrize("part", range(4))
def test_columns_and_rows_find_the_same_over_more_patterns(part: int) -> None:
    """With ``make explore`` over 20,000 patterns that are drawn anew."""
    explores = PROFILE == "explore"
    first = random.randrange(10**9) if explores else 1000 + 30 * part
    for seed in range(first, first + (5000 if explores else 30)):
        compare(seed)


# -- streams ---------------------------------------------------------------------------------------

TIMED_OUT, LATE = OutputTag("timed out"), OutputTag("late")
NAMES = ["key", "letter", "number", "time"]
ROW = Types.ROW_NAMED(NAMES, [Types.STRING(), Types.STRING(), Types.INT(), Types.LONG()])
Event = tuple[str, str, int, int]
A_THEN_B = (
    Pattern.begin("a").where(col("letter") == "A").followed_by("b").where(col("letter") == "B")
).within(Duration.of_millis(10))


class Show(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Matches and what timed out, as texts."""

    def process_match(self, match: Any, ctx: MatchContext) -> Iterator[Any]:
        yield f"+{texts.shown(match, TEXT)}"

    def process_timed_out_match(self, match: Any, ctx: MatchContext) -> None:
        ctx.output(TIMED_OUT, f"-{texts.shown(match, TEXT)}@{ctx.timestamp()}")


TEXT = TextOfRow(0)


def same(event: Any) -> Any:
    return event


def in_columns(stream: Any) -> Any:
    return stream.map(same, output_type=ROW).select(*NAMES)


def harness(pattern: Pattern = A_THEN_B, key: str = "key", **more: Any) -> OneInputHarness:
    def build(stream: Any) -> Any:
        matched = in_columns(stream).key_by(key).match(pattern)
        return matched.side_output_late_data(LATE).process(Show())

    return OneInputHarness.of(build, **more)


def push(subtask: OneInputHarness, *events: Event) -> None:
    subtask.push_all(list(events), [time for *_, time in events])


def test_a_stream_of_columns_has_late_events_timeouts_and_results_as_one_of_rows() -> None:
    with harness() as found:
        assert "ColumnPatternOperator" in repr(found._operators)
        push(found, ("k", "B", 3, 7), ("k", "A", 1, 5), ("j", "A", 2, 6), ("j", "C", 9, 20))
        found.push_watermark(15)
        assert found.stamped_output == [("+a=A1;b=B3", 7)]
        push(found, ("j", "B", 4, 15), ("j", "B", 5, 16))
        found.push_watermark(30)
        assert found.side_output(TIMED_OUT) == ["-a=A2@16"]
        assert [tuple(row) for row in found.side_output(LATE)] == [("j", "B", 4, 15)]
        assert found.num_keyed_state_entries() == 0


def test_what_waits_is_saved_as_rows_and_goes_on_over_columns_and_over_rows() -> None:
    events = [("k", "A", 1, 5), ("k", "C", 2, 6), ("j", "A", 3, 7), ("k", "B", 4, 8)]
    with harness() as found:
        push(found, *events)
        found.push_watermark(5)
        saved = found.snapshot()

    def finish(again: OneInputHarness) -> list[Any]:
        push(again, ("j", "B", 5, 8), ("j", "B", 6, 9))
        again.push_watermark(100)
        return sorted(again.output)

    wanted = ["+a=A1;b=B4", "+a=A3;b=B5"]
    subtasks = [
        found.restore(saved, parallelism=3, subtask_index=at, configuration={} if at else ROCKSDB)
        for at in range(3)
    ]
    moved = [subtask.snapshot() for subtask in subtasks]
    assert sorted(text for subtask in subtasks for text in finish(subtask)) == [*wanted]
    with found.restore(*moved) as again:
        assert finish(again) == wanted
    with OneInputHarness.of(
        lambda stream: (
            stream.map(same)
            .map(same)
            .map(same)  # as many operators as in front of the pattern over columns
            .key_by(lambda event: event.key)
            .match(A_THEN_B)
            .process(Show())
        )
    ) as rows:
        pass
    with rows.restore(saved) as again:
        again.push_watermark(100)
        assert again.output == wanted[:1]


def test_in_processing_time_columns_count_when_they_come() -> None:
    with OneInputHarness.of(
        lambda stream: in_columns(stream).match(A_THEN_B).in_processing_time().process(Show())
    ) as found:
        found.set_processing_time(100)
        found.push_all([("k", "A", 1, 0), ("j", "B", 2, 0), ("k", "A", 3, 0)])
        assert found.output == ["+a=A1;b=B2"]
        found.set_processing_time(111)
        assert found.side_output(TIMED_OUT) == ["-a=A3@110"]


def test_an_expression_that_fails_fails_only_at_the_event_that_is_asked() -> None:
    divides = 12 % col("number") == 0
    pattern = Pattern.begin("a").where(col("letter") == "A").where(divides)
    with harness(pattern) as found:
        push(found, ("k", "B", 0, 1), ("k", "A", 3, 2), ("k", "A", 5, 3))
        found.push_watermark(3)
        assert found.output == ["+a=A3"]
        push(found, ("k", "A", 0, 4))
        with pytest.raises(UserCodeError) as error:
            found.push_watermark(4)
    assert "letter='A', number=0" in str(error.value.record)


@pytest.mark.parametrize(
    ("condition", "hint"),
    [(col("lettre") == "A", "did you mean 'letter'"), (col("number") + 1, "needs a truth value")],
)
def test_a_condition_that_columns_cannot_answer_is_refused_with_the_line(
    condition: Any, hint: str
) -> None:
    with pytest.raises(ProgramError, match=rf"(?s)test_columns.py.*{hint}"):
        harness(Pattern.begin("a").where(condition))


def test_only_events_that_can_matter_become_objects() -> None:
    rising = (
        Pattern.begin("a").where(col("letter") == "A").followed_by("b").where(col("letter") == "B")
    )
    automaton = compiled(rising)
    subtask = InColumns(automaton, matcher_of(automaton))
    letters = ["A", "C", "B", "C", "B", "B", "C", "A"]
    keys = ["x", "x", "x", "y", "y", "x", "x", "y"]
    subtask.add(
        pa.RecordBatch.from_pydict(
            {"key": keys, "letter": letters, "number": list(range(8)), "time": list(range(8))}
        )
    )
    assert len(subtask.advance(END)) == 1
    # both As, and the first B of x behind its A: then x has no partial match any more
    assert subtask.objects == 3


@pytest.mark.wide(but=("STREAMING-3",))
@pytest.mark.parametrize(("mode", "parallelism"), [("STREAMING", 3), ("BATCH", 2)])
def test_a_job_over_columns_finds_what_one_over_rows_finds(mode: str, parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration({"execution.runtime-mode": mode})
    )
    env.set_parallelism(parallelism)
    data = pa.table(
        {
            "key": [f"k{at % 7}" for at in range(300)],
            "letter": ["ABCD"[at * at // 7 % 4] for at in range(300)],
            "number": list(range(300)),
            "time": [at + (at * 5) % 4 for at in range(300)],
        }
    )
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    columns = env.from_arrow(data, 16).assign_timestamps_and_watermarks(
        by_time.with_timestamp_assigner(col("time"))
    )
    rows = columns.map(lambda row: row)
    found = [
        sorted(
            stream.match(A_THEN_B)
            .select(lambda match: texts.shown(match, TEXT))
            .execute_and_collect()
        )
        for stream in (columns.key_by("key"), rows.key_by(lambda row: row.key))
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 5


def test_events_of_several_batches_are_kept_aside_in_one_order_and_saved_as_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_columns, "_AT_ONCE", 10)
    above = col("number") > 5
    pattern = Pattern.begin("a").where(above).followed_by("b").where(above)
    automaton = compiled(pattern.within(Duration.of_millis(50)))
    subtask = InColumns(automaton, matcher_of(automaton))
    for numbers, times in (([7, 1, 9], [5, 2, 1]), ([8, 6], [3, 4])):
        keys = ["x"] * len(numbers)
        letters = ["l"] * len(numbers)
        subtask.add(
            pa.RecordBatch.from_arrays(
                [pa.array(each) for each in (keys, letters, numbers, times)],
                names=["key", "letter", "number", "time"],
            )
        )
    (due,) = subtask.pending.until(10, subtask.matcher.runs, keys_of)
    assert due.times == [1, 3, 4, 5]
    aside, _ = due.events[0]
    assert [aside.event(number).number for _, number in due.events] == [9, 8, 6, 7]
    found = flat(subtask.matcher.take(due.keys, due.times, due.events, due.truths))
    kept = pickle.loads(pickle.dumps(subtask.matcher.runs["x"]))
    assert [run[CELL][EVENT].number for run in kept] == [7]
    pairs = [(each.match["a"][0], each.match["b"][0]) for each in with_rows(found, list)]
    assert [(one.number, other["number"]) for one, other in pairs] == [(9, 8), (8, 6), (6, 7)]
    assert pairs[0][0] == Row(key="x", letter="l", number=9, time=1)
    pairs[0][0].number = 3
    assert pairs[0][0] == Row(key="x", letter="l", number=3, time=1)


def test_rows_of_a_match_are_made_when_a_function_looks_at_one_of_them() -> None:
    made: list[int] = []

    def values() -> list[list[Any]]:
        made.append(1)
        return [[1, "a"], [2, "b"]]

    one, other = late_rows(("n", "text"), 2, LateValues(values))
    assert not made
    assert pickle.loads(pickle.dumps(other)) == Row(n=2, text="b")
    assert copy.deepcopy(one) == one == Row(n=1, text="a")
    assert repr(one) == "Row(n=1, text='a')"
    one.set_field_names(["m", "t"])
    assert one.m == 1
    assert made == [1]
