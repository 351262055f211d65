"""Patterns over streams: the order of events, time, late data, side outputs, state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.cep import (
    CEP,
    AfterMatchSkipStrategy,
    MatchContext,
    Pattern,
    PatternProcessFunction,
    PatternUpdate,
    TimedOutPartialMatchHandler,
)
from flinkpy.common import Configuration, Duration, WatermarkStrategy
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.core.options.checkpointing import RECOVERY_IGNORE_UNCLAIMED
from flinkpy.datastream import DataStream, ErrorPolicy, OutputTag, StreamExecutionEnvironment
from flinkpy.datastream.env.submission import stream_graph
from flinkpy.graph.plan import draw_operators
from flinkpy.testing import OneInputHarness
from tests.cep.pattern_texts import RandomPatterns, events_of, found_by, pattern_of, shown

TIMED_OUT, LATE = OutputTag("timed out"), OutputTag("late")
Event = tuple[str, str, int]  # key, event, time
ROCKSDB = {"state.backend.type": "rocksdb"}


class Show(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Matches and what timed out, each with its key, in one stream."""

    def process_match(self, match: Any, ctx: MatchContext) -> Iterator[Any]:
        yield shown_of_key("+", match, "")

    def process_timed_out_match(self, match: Any, ctx: MatchContext) -> None:
        ctx.output(TIMED_OUT, shown_of_key("-", match, f"@{ctx.timestamp()}"))


def shown_of_key(sign: str, match: dict[str, list[Event]], end: str) -> tuple[str, str]:
    key = next(iter(match.values()))[0][0]
    events = {name: [event for _, event, _ in events] for name, events in match.items()}
    return key, sign + shown(events) + end


def of_events(pattern: str, skip: str = "none") -> Pattern:
    """A pattern of texts, for events with key and time."""
    return pattern_of(pattern, skip, lambda event: event[1])


def harness(
    pattern: Pattern, configuration: dict[str, str] | None = None, **more: Any
) -> OneInputHarness:
    return OneInputHarness.of(
        lambda stream: stream.key_by(lambda event: event[0]).match(pattern).process(Show()),
        configuration=configuration or {},
        **more,
    )


def found_in(found: OneInputHarness) -> list[tuple[str, str]]:
    return [*found.output, *found.side_output(TIMED_OUT)]


A_THEN_B = "begin a where:A followed b where:B within:10"


def test_events_come_in_the_order_of_their_time_and_those_of_equal_time_as_they_came() -> None:
    with harness(of_events("begin a where:A next b where:B")) as found:
        found.push_all([("k", "B2", 5), ("k", "A1", 3)], [5, 3])
        found.push(("j", "A1", 5), 5)
        found.push(("j", "B2", 5), 5)
        assert found.output == []
        found.push_watermark(5)
        assert found.stamped_output == [(("k", "+a=A1;b=B2"), 5), (("j", "+a=A1;b=B2"), 5)]


def test_a_comparator_orders_events_of_equal_time() -> None:
    pattern = of_events("begin a where:A next b where:B")

    def compare(one: Event, other: Event) -> int:
        return int(one[1][1:]) - int(other[1][1:])

    with OneInputHarness.of(
        lambda stream: CEP.pattern(stream, pattern, compare).process(Show())
    ) as found:
        found.push_all([("k", "B2", 5), ("k", "A1", 5)], [5, 5])
        found.push_watermark(9)
        assert found.output == [("k", "+a=A1;b=B2")]


def test_late_events_are_counted_or_go_to_a_side_output() -> None:
    pattern = of_events("begin a where:A")
    with harness(pattern) as found:
        found.push_watermark(10)
        found.push_all([("k", "A1", 10), ("k", "A2", 11)], [10, 11])
        found.push_watermark(20)
        assert found.output == [("k", "+a=A2")]
        assert operator_of(found).late_records_dropped == 1
    with OneInputHarness.of(
        lambda stream: stream.match(pattern).side_output_late_data(LATE).process(Show())
    ) as found:
        found.push_watermark(10)
        found.push(("k", "A1", 10), 10)
        assert found.side_output(LATE) == [("k", "A1", 10)]


def operator_of(found: OneInputHarness) -> Any:
    return next(each for each in found._operators if hasattr(each, "late_records_dropped"))


def test_what_times_out_is_given_when_its_time_comes_also_for_keys_that_never_come_again() -> None:
    with harness(of_events(A_THEN_B)) as found:
        found.push_all([("k", "A1", 1), ("j", "A1", 3)], [1, 3])
        found.push_watermark(10)
        assert operator_of(found).measures(0)["numPartialMatches"] == 2
        found.push_watermark(11)
        assert found.side_output(TIMED_OUT) == [("k", "-a=A1@11")]
        found.push_watermark(100)
        assert found.side_output(TIMED_OUT)[1:] == [("j", "-a=A1@13")]
        assert operator_of(found).measures(0)["numPartialMatches"] == 0
        assert found.num_keyed_state_entries() == 0


def test_the_next_partial_match_of_a_key_times_out_when_its_own_time_comes() -> None:
    with harness(of_events(A_THEN_B)) as found:
        found.push_all([("k", "A1", 1), ("k", "A3", 3)], [1, 3])
        for watermark, timed_out in ((11, ["-a=A1@11"]), (12, []), (13, ["-a=A3@13"])):
            found.clear_output()
            found.push_watermark(watermark)
            assert [text for _, text in found.side_output(TIMED_OUT)] == timed_out


def test_a_key_that_has_passed_leaves_nothing_though_nobody_asks_for_timeouts() -> None:
    with OneInputHarness.of(
        lambda stream: (
            stream.key_by(lambda event: event[0])
            .match(of_events("begin a where:A followed b where:B within:6400"))
            .select(len)
        )
    ) as found:
        for number in range(1000):
            found.push((number, "A1", number), number)
        found.push_watermark(999)
        assert found.num_keyed_state_entries() == 1000
        found.push_watermark(9000)
        assert found.num_keyed_state_entries() == 0
        assert len(operator_of(found)._matcher.calendar) == 0


def test_a_pattern_that_ends_with_not_followed_by_is_complete_when_its_time_is_up() -> None:
    with harness(of_events("begin a where:A notfollowed b where:B within:10")) as found:
        found.push_all([("k", "A1", 1), ("j", "A1", 2), ("j", "B1", 4)], [1, 2, 4])
        found.push_watermark(50)
        assert found.stamped_output == [(("k", "+a=A1"), 11)]


def test_in_processing_time_events_count_when_they_come_and_a_timer_times_out() -> None:
    with OneInputHarness.of(
        lambda stream: (
            stream.key_by(lambda event: event[0])
            .match(of_events(A_THEN_B))
            .in_processing_time()
            .process(Show())
        )
    ) as found:
        found.set_processing_time(100)
        found.push(("k", "A1", 0))
        found.set_processing_time(109)
        found.push(("k", "B1", 0))
        assert found.output == [("k", "+a=A1;b=B1")]
        found.push(("k", "A2", 0))
        found.set_processing_time(119)
        assert found.side_output(TIMED_OUT) == []
        found.set_processing_time(120)
        assert found.side_output(TIMED_OUT) == [("k", "-a=A2@119")]


def test_select_and_flat_select_with_what_timed_out() -> None:
    pattern = of_events(A_THEN_B)
    with OneInputHarness.of(
        lambda stream: stream.match(pattern).flat_select(
            lambda match: [match["a"][0][1], match["b"][0][1]],
            timeout_tag=TIMED_OUT,
            timeout_function=lambda match, time: [len(match), time],
        )
    ) as found:
        found.push_all([("k", "A1", 1), ("k", "B2", 2), ("k", "A3", 3)], [1, 2, 3])
        found.push_watermark(99)
        assert found.output == ["A1", "B2"]
        assert found.side_output(TIMED_OUT) == [1, 13]


def test_an_event_at_which_a_condition_raises_is_named() -> None:
    pattern = Pattern.begin("a").where(lambda event: 1 // event[2] > 0)
    with harness(pattern) as found:
        found.push_all([("k", "A", 1), ("k", "B", 0)], [1, 2])
        with pytest.raises(UserCodeError) as error:
            found.push_watermark(5)
    assert error.value.record == "('k', 'B', 0)"


def test_a_match_whose_function_raises_becomes_a_dead_letter_with_a_policy() -> None:
    failed = OutputTag("failed")
    with OneInputHarness.of(
        lambda stream: (
            stream.match(of_events("begin a where:AB"))
            .select(lambda match: 10 // int(match["a"][0][1][1:]))
            .on_error(ErrorPolicy.divert(failed))
        )
    ) as found:
        found.push_all([("k", "A0", 1), ("k", "B2", 2)], [1, 2])
        found.push_watermark(9)
        assert found.output == [5]
        (letter,) = found.side_output(failed)
        assert (letter.record, letter.exception) == ({"a": [("k", "A0", 1)]}, "ZeroDivisionError")


def test_too_many_partial_matches_fail_with_key_pattern_and_events() -> None:
    pattern = of_events("begin a where:A plus combinations followed b where:B")
    bound = {"cep.max-partial-matches-per-key": "20"}
    with harness(pattern, bound) as found:
        found.push_all([("k", f"A{at}", at) for at in range(1, 9)], list(range(1, 9)))
        with pytest.raises(ProgramError, match=r"key 'k' has \d+ partial matches .*'a', 'b'"):
            found.push_watermark(9)


def test_a_function_may_change_its_match_and_others_do_not_see_it() -> None:
    def taken(match: dict[str, list[list[int]]]) -> list[int]:
        first = match["a"][0]
        first.append(0)
        return first

    pattern = Pattern.begin("a").followed_by_any("b")
    with OneInputHarness.of(lambda stream: stream.match(pattern).select(taken)) as found:
        found.push_all([[1], [2], [3]], [1, 2, 3])
        found.push_watermark(3)
        assert found.output == [[1, 0], [1, 0], [2, 0]]


# -- state -----------------------------------------------------------------------------------------


def drawn(seed: int) -> tuple[Pattern, list[Event]]:
    texts = RandomPatterns(seed)
    while True:
        skip, pattern, events = texts.case()
        try:
            made = of_events(pattern, skip)
            harness(made).close()
        except ProgramError:
            continue
        keys = random.Random(seed)
        return made, [
            (keys.choice("xyz"), event, time) for event, time in events_of(events) if event
        ]


def alone(pattern: Pattern, events: list[Event]) -> list[tuple[str, str]]:
    """What the interpreted form finds in each key, without stream and operator."""
    found = []
    for key in "xyz":
        of_key = [(event, event[2]) for event in events if event[0] == key]
        found += [
            (key, text)
            for text in found_by(pattern, [*of_key, (None, 1000)], lambda event: event[1])
        ]
    return sorted(found)


@pytest.mark.wide(but=("7",))
@pytest.mark.parametrize("seed", range(12))
def test_matches_do_not_depend_on_batches_snapshots_backends_and_parallelism(seed: int) -> None:
    pattern, events = drawn(seed)
    wanted = alone(pattern, events)
    with harness(pattern) as found:
        found.push_all(events, [time for *_, time in events])
        found.push_watermark(1000)
        assert sorted(found_in(found)) == wanted
    # one by one, and after each event the state goes to another backend and parallelism
    subtasks = [harness(pattern)]
    given: list[tuple[str, str]] = []
    for at, event in enumerate(events):
        subtask = subtasks[owner(event[0], len(subtasks))]
        subtask.push(event, event[2])
        if at + 1 == len(events) or events[at + 1][2] > event[2]:
            for each in subtasks:
                each.push_watermark(event[2])
        subtasks, given = moved(subtasks, given, 1 + at % 3, ROCKSDB if at % 2 else {})
    for each in subtasks:
        each.push_watermark(1000)
        given += found_in(each)
        each.close()
    assert sorted(given) == wanted


def owner(key: str, parallelism: int) -> int:
    return channel_of_key_group(key_group(key, 128), 128, parallelism)


def moved(
    subtasks: list[OneInputHarness],
    given: list[tuple[str, str]],
    parallelism: int,
    configuration: dict[str, str],
) -> tuple[list[OneInputHarness], list[tuple[str, str]]]:
    saved = [each.snapshot() for each in subtasks]
    for each in subtasks:
        given = given + found_in(each)
        each.close()
    return [
        subtasks[0].restore(
            *saved, parallelism=parallelism, subtask_index=at, configuration=configuration
        )
        for at in range(parallelism)
    ], given


def test_a_long_match_is_saved_without_nested_calls() -> None:
    pattern = of_events("begin c where:C followed a where:A plus greedy followed b where:B")
    with harness(pattern) as found:
        events = [("k", "C0", 0), *(("k", f"A{at}", at) for at in range(1, 3000))]
        found.push_all(events, [time for *_, time in events])
        found.push_watermark(3000)
        saved = found.snapshot()
    with found.restore(saved) as again:
        again.push(("k", "B1", 3001), 3001)
        again.push_watermark(3001)
        assert [text.count(",") for _, text in again.output] == [2998]


def test_the_time_of_the_last_event_of_a_partial_match_is_saved() -> None:
    with harness(of_events("begin a where:A followed b where:B followed c where:C gap:5")) as found:
        found.push_all([("k", "A1", 1), ("k", "B4", 4)], [1, 4])
        found.push_watermark(4)
        saved = found.snapshot()
    with found.restore(saved) as again:
        again.push(("k", "C8", 8), 8)
        again.push_watermark(8)
        assert again.output == [("k", "+a=A1;b=B4;c=C8")]


def test_state_of_a_pattern_that_lost_a_state_is_refused() -> None:
    with harness(of_events("begin a where:A followed b where:B followed c where:C")) as found:
        found.push_all([("k", "A1", 1), ("k", "B1", 2)], [1, 2])
        found.push_watermark(2)
        saved = found.snapshot()
    with harness(of_events("begin a where:A followed d where:B")) as other:
        pass
    with pytest.raises(ProgramError, match="states c, which the pattern of this program does not"):
        other.restore(saved)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_of_a_pattern_that_lost_a_state_is_dropped_if_that_is_allowed(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is in a state that the changed pattern has, too, goes on."""
    with harness(of_events("begin a where:A followed b where:B followed c where:C")) as found:
        events = [("k", "A1", 1), ("k", "B2", 2), ("k", "A3", 3), ("other", "A3", 3)]
        found.push_all([*events, ("other", "B4", 4)], [1, 2, 3, 3, 4])
        found.push_watermark(4)
        saved = found.snapshot()
    options = {RECOVERY_IGNORE_UNCLAIMED.key: "true", "state.backend.type": backend}
    with harness(of_events("begin a where:A followed b where:B")) as other:
        pass
    with other.restore(saved, configuration=options) as again:
        assert "2 partial matches in the states c, which the pattern" in caplog.text
        again.push_all([("k", "B5", 5), ("k", "C6", 6), ("other", "B6", 6)], [5, 6, 6])
        again.push_watermark(6)
        assert again.output == [("k", "+a=A3;b=B5")]


# -- jobs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_job_finds_the_same_in_streaming_and_in_batch(mode: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration({"execution.runtime-mode": mode})
    )
    env.set_parallelism(2)
    events = [(key, f"{'ABC'[at % 3]}{at}", at) for at in range(40) for key in "xyz"]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda event, _: event[2]
    )
    pattern = of_events("begin a where:A next b where:B plus within:30", "past")
    stream: DataStream = env.from_collection(events).assign_timestamps_and_watermarks(strategy)
    found = stream.key_by(lambda event: event[0]).match(pattern).process(Show())
    assert sorted(found.execute_and_collect()) == sorted(
        row for row in alone(pattern, events) if row[1].startswith("+")
    )


def test_the_plan_shows_the_automaton_below_it() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream: DataStream = env.from_collection([("k", "A1", 1)])
    found = stream.match(of_events("begin a where:A next b")).in_processing_time().select(len)
    found.match_dynamic(
        stream, [PatternUpdate("p", 7, Pattern.begin("x").next("y"))]
    ).in_processing_time().select(lambda pattern, match: pattern)
    drawing = draw_operators(stream_graph(env.program, None))
    for text in (
        "'Pattern'",
        "    b\n      take     -> match",
        "p, version 7",
        "      take     -> y",
    ):
        assert text in drawing


def test_events_without_timestamps_are_refused_with_the_line() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([1, 2])
    pattern = Pattern.begin("a", AfterMatchSkipStrategy.skip_to_next()).within(
        Duration.of_seconds(1)
    )
    with pytest.raises(ProgramError, match=r"test_pattern_streams.py.*in_processing_time"):
        stream.match(pattern).select(len)
    for wrong, hint in (("a", "takes a Pattern"),):
        with pytest.raises(ProgramError, match=hint):
            stream.match(wrong)  # type: ignore[arg-type]
