"""Patterns that come, change and go while a job runs: what they find, versions, state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from flinkpy.cep import (
    CEP,
    AfterMatchSkipStrategy,
    DynamicMatchContext,
    Pattern,
    PatternProcessFunction,
    PatternUpdate,
    RefusedPattern,
    TimedOutPartialMatchHandler,
)
from flinkpy.cep.dynamic import event_steps
from flinkpy.columns.rowwise import evaluate
from flinkpy.common import Configuration, Duration, WatermarkStrategy
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from flinkpy.table.expressions import col
from flinkpy.testing import TwoInputHarness
from tests.cep.pattern_texts import (
    RandomPatterns,
    Text,
    condition_of,
    events_of,
    found_by,
    pattern_of,
    shown,
)

TIMED_OUT, REFUSED = OutputTag("timed out"), OutputTag("refused")
ROCKSDB = {"state.backend.type": "rocksdb"}


class Event(NamedTuple):
    key: str
    event: str
    time: int
    letter: str
    number: int


def event(key: str, text: str, time: int) -> Event:
    return Event(key, text, time, text[0], int(text[1:]))


def text_of(each: Event) -> str:
    return each.event


class Show(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Matches and what timed out, with pattern and key."""

    def process_match(self, match: Any, ctx: Any) -> Iterator[Any]:
        yield self.shown(match, ctx, "+", "")

    def process_timed_out_match(self, match: Any, ctx: Any) -> None:
        ctx.output(TIMED_OUT, self.shown(match, ctx, "-", f"@{ctx.timestamp()}"))

    def shown(self, match: Any, ctx: DynamicMatchContext, sign: str, end: str) -> Any:
        key = next(iter(match.values()))[0].key
        return ctx.pattern_id(), key, sign + shown(match, text_of) + end


def harness(*initial: PatternUpdate, **more: Any) -> TwoInputHarness:
    return TwoInputHarness.of(
        lambda events, updates: (
            events.key_by(lambda each: each.key)
            .match_dynamic(updates, initial)
            .side_output_refused_patterns(REFUSED)
            .process(Show())
        ),
        **more,
    )


def push(found: TwoInputHarness, *events: Event) -> None:
    for each in events:
        found.push1(each, each.time)


def given_by(found: TwoInputHarness) -> list[Any]:
    return [*found.output, *found.side_output(TIMED_OUT)]


def operator_of(found: TwoInputHarness) -> Any:
    return next(each for each in found._operators if hasattr(each, "late_records_dropped"))


# -- what is found ---------------------------------------------------------------------------------


def by_columns(letters: str, text: Text) -> Any:
    """The conditions of the texts as expressions, where they can be."""
    if letters.startswith("^"):
        return condition_of(letters, text)
    if len(letters) == 1:
        return (col("letter") == letters) & (col("number") > 0)
    first, *others = [col("letter") == letter for letter in letters]
    for other in others:
        first = first | other
    return first if len(letters) % 2 else col("letter").in_(*letters)


def drawn(seed: int) -> tuple[list[PatternUpdate], list[Event]]:
    """Some random patterns, and events of some keys."""
    texts = RandomPatterns(seed)
    keys = random.Random(seed)
    updates: list[PatternUpdate] = []
    while len(updates) < 4:
        skip, pattern, events = texts.case()
        condition = keys.choice([condition_of, by_columns])
        try:
            update = PatternUpdate(
                f"p{len(updates)}", 1, pattern_of(pattern, skip, text_of, condition)
            )
            CEP.draw(update.pattern)  # type: ignore[arg-type]  # it has one
        except ProgramError:
            continue
        updates.append(update)
    return updates, [
        event(keys.choice("xyz"), text, time) for text, time in events_of(events) if text
    ]


def alone(updates: list[PatternUpdate], events: list[Event]) -> list[Any]:
    """What the interpreted form finds for each pattern in each key."""
    found = []
    for update in updates:
        assert update.pattern is not None
        for key in "xyz":
            of_key: list[Any] = [(each, each.time) for each in events if each.key == key]
            texts = found_by(update.pattern, [*of_key, (None, 1000)], text_of)
            found += [(update.id, key, text) for text in texts]
    return sorted(found)


def compare(seed: int) -> None:
    updates, events = drawn(seed)
    with harness(*updates) as found:
        push(found, *events)
        found.push_watermark1(1000)
        assert sorted(given_by(found)) == alone(updates, events), seed
        assert operator_of(found).measures(0)["numPartialMatches"] == sum(
            len(runs)
            for kept in operator_of(found)._matcher.runs.values()
            for runs in kept.values()
        )


@pytest.mark.parametrize("often", [1, event_steps.OFTEN], ids="generated after {}".format)
def test_each_pattern_finds_what_it_finds_alone(
    often: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_steps, "OFTEN", often)
    for seed in range(4 * often % 7, 4 * often % 7 + 4):
        compare(seed)


@pytest.mark.wide
@pytest.mark.parametrize("often", [1, event_steps.OFTEN], ids="generated after {}".format)
def test_each_of_many_patterns_finds_what_it_finds_alone(
    often: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_steps, "OFTEN", often)
    for seed in range(1000, 1080):
        compare(seed)


def small_then(letter: str, version: int = 1, finish: bool = False) -> PatternUpdate:
    """An A, then a letter, within ten milliseconds."""
    pattern = Pattern.begin("a").where(col("letter") == "A")
    pattern = pattern.followed_by("b").where(col("letter") == letter)
    return PatternUpdate("p", version, pattern.within(Duration.of_millis(10)), finish)


ASKED: list[str] = []


def asked_is_a(each: Event) -> bool:
    ASKED.append(each.event)
    return each.letter == "A"


def test_a_condition_that_patterns_share_is_asked_once_for_an_event() -> None:
    ASKED.clear()
    pattern = Pattern.begin("a").where(asked_is_a)
    updates = [PatternUpdate(f"p{at}", 1, pattern.followed_by(f"b{at}")) for at in range(5)]
    with harness(*updates) as found:
        push(found, event("x", "A1", 1), event("x", "B2", 2), event("x", "A3", 2))
        found.push_watermark1(5)
        assert len(found.output) == 5
        assert ASKED == ["A1", "B2", "A3"]


@pytest.mark.parametrize("value", [None, "text", True, float("nan"), 1 << 60, 7.5])
def test_the_filter_lets_pass_what_a_comparison_of_any_value_finds(value: Any) -> None:
    """Also of values that it does not look up: then the expression itself is asked."""
    wanted = []
    patterns = [col("v") > 7, col("v") >= 7.5, col("v") < 9, col("v") == 7.5, col("v").in_(1, 7.5)]
    patterns += [col("v") == "text", col("v") == True, (col("v") > 7) & (col("v") > 1)]  # noqa: E712
    patterns += [col("v") <= 7.5, col("v") < 7.5, col("v") > 7.5, col("v") != 7.5]
    patterns += [col("missing") == 1, col("v").is_null]
    found = []
    for at, condition in enumerate(patterns):
        update = PatternUpdate("p", 1, Pattern.begin("a").where(condition))
        with TwoInputHarness.of(partial(with_values, update)) as alone:
            alone.push1({"v": value}, 1)
            try:
                alone.push_watermark1(1)
                found.append((at, len(alone.output)))
            except UserCodeError:
                found.append((at, -1))
        wanted.append((at, holds(condition, {"v": value, "missing": None})))
    assert found == wanted


def with_values(update: PatternUpdate, events: DataStream, updates: DataStream) -> DataStream:
    stream = events.match_dynamic(updates, [update])
    return stream.select(lambda pattern, match: match["a"][0]["v"])


def holds(condition: Any, fields: dict[str, Any]) -> int:
    try:
        return int(evaluate(condition, fields) is True)
    except TypeError:
        return -1


# -- updates ---------------------------------------------------------------------------------------


def test_a_new_version_drops_what_the_old_one_began_or_lets_it_finish() -> None:
    for finish, wanted in ((False, ["a=A2;b=C3"]), (True, ["a=A1;b=B3", "a=A2;b=C3"])):
        with harness(small_then("B")) as found:
            push(found, event("x", "A1", 1))
            found.push_watermark1(1)
            found.push2(small_then("C", 2, finish))
            push(found, event("x", "A2", 2), event("x", "B3", 3), event("x", "C3", 3))
            found.push_watermark1(5)
            assert [text for _, _, text in found.output] == [f"+{each}" for each in wanted]
            assert operator_of(found).measures(0)["numPatterns"] == 1 + finish
            found.push_watermark1(100)
            found.snapshot()
            assert operator_of(found).measures(0)["numPatterns"] == 1
            assert found.num_keyed_state_entries() == 0


@pytest.mark.parametrize("order", range(6))
def test_the_highest_version_counts_whatever_the_order_of_updates(order: int) -> None:
    updates = [small_then("B", 1), PatternUpdate("p", 2), small_then("C", 3)]
    random.Random(order).shuffle(updates)
    for last, wanted in ((None, ["+a=A1;b=C3"]), (PatternUpdate("p", 3), [])):
        with harness() as found:
            for each in [*updates, *([] if last is None else [last])]:
                found.push2(each)
            push(found, event("x", "A1", 1), event("x", "B2", 2), event("x", "C3", 3))
            found.push_watermark1(5)
            assert [text for _, _, text in found.output] == wanted


def test_an_update_comes_as_value_tuple_or_text() -> None:
    update = small_then("B")
    for given in (update, ("p", 1, update.pattern), update.to_json()):
        with harness() as found:
            found.push2(given)
            push(found, event("x", "A1", 1), event("x", "B2", 2))
            found.push_watermark1(5)
            assert [text for _, _, text in found.output] == ["+a=A1;b=B2"]


def test_what_is_refused_is_reported_and_the_version_before_goes_on() -> None:
    circle = Pattern.begin("a").next(Pattern.begin("b").optional()).one_or_more()
    skip = AfterMatchSkipStrategy.skip_to_last("b").throw_exception_on_miss()
    wrong: list[tuple[Any, str]] = [
        (("p", 2, circle), "a group in a loop may be empty"),
        (("p", 2, Pattern.begin("a", skip).next("b")), "must not fail it"),
        (("p", "two", circle), "a whole number as version"),
        ('{"id": "p", "version": 2, "pattern": {"steps": []}}', "at least one step"),
        ('{"id": "p"}', "no update of a pattern"),
        (
            '{"id": "p", "version": 2, "pattern": {"steps": [{"name": "a", "where": "exit()"}]}}',
            "exit",
        ),
        (17, "no update of a pattern"),
    ]
    with harness(small_then("B")) as found:
        for each, _ in wrong:
            found.push2(each)
        refused: list[RefusedPattern] = found.side_output(REFUSED)
        assert len(refused) == len(wrong)
        for report, (_, reason) in zip(refused, wrong):
            assert reason in report.reason
        assert (refused[0].id, refused[0].version) == ("p", 2)
        assert operator_of(found).measures(0)["numPatternsRefused"] == len(wrong)
        push(found, event("x", "A1", 1), event("x", "B2", 2))
        found.push_watermark1(5)
        assert [text for _, _, text in found.output] == ["+a=A1;b=B2"]


def test_a_pattern_is_the_same_after_json() -> None:
    compared = 0
    for seed in range(40):
        skip, text, _ = RandomPatterns(seed).case()
        try:
            pattern = pattern_of(text, skip, text_of, by_columns)
            CEP.draw(pattern)
            again = CEP.from_json(CEP.to_json(pattern))
        except ProgramError:  # it is none, or has a condition that is no expression
            continue
        assert CEP.draw(again) == CEP.draw(pattern)
        compared += 1
    assert compared > 10
    with pytest.raises(ProgramError, match="no JSON"):
        CEP.from_json('{"steps": [{"group": ' * 3000)


def test_an_event_at_which_a_condition_raises_is_named_with_the_pattern() -> None:
    with harness(
        PatternUpdate("p", 3, Pattern.begin("a").where(lambda each: 1 // each.number))
    ) as found:
        push(found, event("x", "A0", 1))
        with pytest.raises(UserCodeError, match="version 3 of the pattern 'p'") as error:
            found.push_watermark1(5)
    assert "A0" in str(error.value.record)


# -- state -----------------------------------------------------------------------------------------


def test_matches_do_not_depend_on_snapshots_backends_and_parallelism() -> None:
    moving(5)


@pytest.mark.wide
def test_matches_of_many_patterns_do_not_depend_on_snapshots() -> None:
    for seed in range(2000, 2015):
        moving(seed)


def moving(seed: int) -> None:
    """After each event the state goes to another backend and parallelism. The patterns come
    before the first event; one is replaced by itself, and what it has begun may finish."""
    updates, events = drawn(seed)
    subtasks = [harness()]
    for update in updates:
        subtasks[0].push2(update)
    given: list[Any] = []
    for at, each in enumerate(events):
        subtasks[owner(each.key, len(subtasks))].push1(each, each.time)
        if at + 1 == len(events) or events[at + 1].time > each.time:
            for subtask in subtasks:
                subtask.push_watermark1(each.time)
        saved = [subtask.snapshot() for subtask in subtasks]
        for subtask in subtasks:
            given += given_by(subtask)
            subtask.close()
        parallelism = 1 + at % 3
        subtasks = [
            subtasks[0].restore(
                *saved,
                parallelism=parallelism,
                subtask_index=index,
                configuration=ROCKSDB if at % 2 else {},
            )
            for index in range(parallelism)
        ]
    for subtask in subtasks:
        subtask.push_watermark1(1000)
        given += given_by(subtask)
        subtask.close()
    assert sorted(given) == alone(updates, events)


def test_what_an_old_version_has_begun_may_finish_in_another_subtask() -> None:
    """Also of a version that the updates do not have any more, whichever subtask had it."""
    key = next(each for each in "abcdefghijklm" if owner(each, 3) == 2)
    with harness(parallelism=2) as first, harness(parallelism=2, subtask_index=1) as second:
        before = (first, second)
        for subtask in before:
            subtask.push2(small_then("B"))
        push(before[owner(key, 2)], event(key, "A1", 1))  # the other one has nothing to finish
        for subtask in before:
            subtask.push_watermark1(1)
            subtask.push2(small_then("C", 2, finish=True))
        saved = [subtask.snapshot() for subtask in before]
    found = []
    for at in range(3):
        with first.restore(*saved, parallelism=3, subtask_index=at) as after:
            if at == 2:
                push(after, event(key, "B2", 2))
            after.push_watermark1(2)
            found += after.output
            patterns = operator_of(after)._matcher.patterns
            assert [each.number for each in patterns] == ([2, 1] if at == 2 else [2])
    assert found == [("p", key, "+a=A1;b=B2")]


def owner(key: str, parallelism: int) -> int:
    return channel_of_key_group(key_group(key, 128), 128, parallelism)


# -- jobs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_quiet_stream_of_patterns_does_not_hold_event_time_up(mode: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration({"execution.runtime-mode": mode})
    )
    env.set_parallelism(2)
    events = [event(key, f"{'ABC'[at % 3]}{at}", at) for at in range(9) for key in "xyz"]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda each, _: each.time
    )
    updates = env.from_collection([small_then("C", 2).to_json()])
    found = (
        env.from_collection(events)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda each: each.key)
        .match_dynamic(updates, [small_then("C")])
        .select(lambda pattern, match: (pattern, match["a"][0].key, match["b"][0].time))
    )
    wanted = {("p", key, time) for key in "xyz" for time in (2, 5, 8)}
    assert set(found.execute_and_collect()) == wanted


def test_initial_patterns_are_refused_while_the_program_is_built() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([1, 2])
    circle = Pattern.begin("a").next(Pattern.begin("b").optional()).one_or_more()
    with pytest.raises(ProgramError, match=r"test_dynamic_patterns.py.*may be empty"):
        stream.match_dynamic(stream, [PatternUpdate("p", 1, circle)])
    with pytest.raises(ProgramError, match="takes a stream of updates"):
        stream.match_dynamic(circle)  # type: ignore[arg-type]
