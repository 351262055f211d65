"""The generated loop finds what the interpreted form finds, over random patterns and events."""

from __future__ import annotations

import random
import traceback
from itertools import chain
from typing import Any

import pytest

from flinkpy.cep import Pattern
from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import Found
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.matching.calendar import Calendar
from flinkpy.cep.matching.generated_loop import GeneratedLoop, taken_before, waiting_states
from flinkpy.cep.matching.pending_events import PendingEvents
from flinkpy.cep.matching.row_candidates import row_candidates
from flinkpy.cep.matching.row_matcher import RowMatcher
from flinkpy.core.errors import ProgramError
from tests.cep.pattern_texts import RandomPatterns, events_of, pattern_of
from tests.conftest import PROFILE

Given = tuple[str, str, int]


def drawn(seed: int) -> tuple[Any, list[Given], list[int]]:
    """An automaton, events of some keys in their order, and where batches end."""
    texts = RandomPatterns(seed)
    while True:
        skip, pattern, events = texts.case()
        try:
            automaton = compiled(pattern_of(pattern, skip))
        except ProgramError:
            continue
        keys = random.Random(seed)
        given = [(keys.choice("xyz"), event, time) for event, time in events_of(events) if event]
        return automaton, given, sorted(keys.sample(range(len(given)), 2))


def found_in(
    automaton: Any, events: list[Given], ends: list[int], generated: bool, gives: bool = True
) -> list[Found]:
    """``gives``: also what timed out."""
    matcher = RowMatcher(Interpreter(automaton, lambda: 0, gives), Calendar(1), generated=generated)
    found: list[Found] = []
    begin = 0
    for end in [*ends, len(events)]:
        # all events of one time come together, as they do between two watermarks
        while 0 < end < len(events) and events[end][2] == events[end - 1][2]:
            end += 1
        part = events[begin:end]
        if part:
            keys, values, times = zip(*part)
            found += chain.from_iterable(matcher.take(keys, times, values))
            found += chain.from_iterable(matcher.advance(times[-1]))
        begin = max(begin, end)
    found += chain.from_iterable(matcher.advance(10_000))
    assert len(matcher.calendar) == 0
    assert matcher.partial_matches == sum(map(len, matcher.runs.values()))
    return found


def compare(seed: int) -> None:
    automaton, events, ends = drawn(seed)
    wanted = found_in(automaton, events, [], generated=False)
    assert found_in(automaton, events, [], generated=True) == wanted
    in_batches = found_in(automaton, events, ends, generated=True)
    one_by_one = found_in(automaton, events, list(range(len(events))), generated=True)
    assert sorted(map(repr, in_batches)) == sorted(map(repr, wanted))
    assert sorted(map(repr, one_by_one)) == sorted(map(repr, wanted))


def test_the_generated_loop_finds_what_the_interpreted_form_finds() -> None:
    for seed in range(60):
        compare(seed)


@pytest.mark.wide
@pytest.mark.parametrize("part", range(4))
def test_the_generated_loop_finds_the_same_over_more_patterns(part: int) -> None:
    """With ``make explore`` over 20,000 patterns that are drawn anew."""
    explores = PROFILE == "explore"
    first = random.randrange(10**9) if explores else 1000 + 100 * part
    for seed in range(first, first + (5000 if explores else 100)):
        compare(seed)


def test_what_ends_without_a_word_ends_in_the_loop_as_in_the_interpreted_form() -> None:
    """Also where a complete match waits behind it."""
    compared = 0
    for seed in range(260):
        texts = RandomPatterns(seed)
        skip, pattern, _ = texts.case()
        try:
            automaton = compiled(pattern_of(pattern, skip))
        except ProgramError:
            continue
        if Interpreter(automaton, lambda: 0, False).within_of_quiet:
            events = longer(texts)
            wanted = found_in(automaton, events, [], generated=False, gives=False)
            assert found_in(automaton, events, [], generated=True, gives=False) == wanted
            compared += 1
    assert compared > 20


def longer(texts: RandomPatterns) -> list[Given]:
    """More events of two keys, in the order of their time."""
    found: list[Given] = []
    for _ in range(2):
        begin = found[-1][2] if found else 0
        found += [
            (texts.random.choice("xxy"), event, begin + time)
            for event, time in events_of(texts.events())
            if event
        ]
    return found


def test_a_pattern_with_states_that_are_never_reached_has_a_loop_that_finds_what_it_means() -> None:
    """Flink's compiler makes such a state behind a step that may be left out and follows a step
    that must not come."""
    text = "begin a where:A notfollowed b where:B followed c where:^a where:C more:2 optional"
    automaton = compiled(pattern_of(text + " next d where:AB"))
    never = set(waiting_states(automaton)) - set(taken_before(automaton))
    assert [state.name for state in never] == ["c:1"]
    events = [
        ("x", event, at)
        for at, event in enumerate(["A1", "D2", "C3", "B4", "A5", "C6", "C7", "B8", "A9", "A9"])
    ]
    found = found_in(automaton, events, [], generated=True)
    assert found == found_in(automaton, events, [], generated=False)
    assert len(found) > 1


def test_the_loop_of_a_simple_pattern_has_its_conditions_inlined() -> None:
    pattern = Pattern.begin("small").where(lambda event: event[1] < 1)
    loop = GeneratedLoop(
        Interpreter(compiled(pattern.next("big").where(lambda event: event[1] > 9)), lambda: 0)
    )
    assert len(loop.inlined) == 2


def first_and_last(event: Any, ctx: Any) -> Any:
    return (
        ctx.get_events_for_pattern("a")[0],
        ctx.get_events_for_pattern("a")[-1],
        ctx.get_events_for_pattern("a"),
        ctx.get_events_for_pattern("b"),
        ctx.get_events_for_pattern("other"),
    ) == event


def test_events_that_a_condition_asks_for_are_read_from_the_cells_where_they_are_known() -> None:
    pattern = Pattern.begin("a").times(2).consecutive().next("b").next("c").where(first_and_last)
    events = [1, 2, 3, (1, 2, [1, 2], [3], []), 5]
    found = [
        next(RowMatcher(interpreter, Calendar(1), generated=made).take("kkkkk", range(5), events))
        for interpreter in (Interpreter(compiled(pattern), lambda: 0),)
        for made in (True, False)
    ]
    assert found[0] == found[1]
    assert [each.match["a"] for each in found[0]] == [[1, 2]]
    loop = GeneratedLoop(Interpreter(compiled(pattern), lambda: 0))
    assert loop._chains[next(state for state in loop._chains if state.name == "c")] == (
        "b",
        "a",
        "a",
    )


def test_a_condition_that_asks_for_events_and_raises_is_named_with_its_event() -> None:
    pattern = (
        Pattern.begin("a").next("b").where(lambda e, ctx: ctx.get_events_for_pattern("a")[0] > e)
    )
    matcher = RowMatcher(Interpreter(compiled(pattern), lambda: 0), Calendar(1))
    with pytest.raises(TypeError) as raised:
        list(matcher.take("kk", [1, 2], [1, "x"]))
    fault = matcher.at_fault(raised.value)
    assert fault.event == "x"
    assert fault.error.__traceback__ is not None
    frames = traceback.extract_tb(fault.error.__traceback__)
    assert frames[-1].filename == __file__


@pytest.mark.parametrize("generated", [True, False])
def test_what_was_found_before_a_condition_raised_is_given(generated: bool) -> None:
    pattern = Pattern.begin("a").where(lambda e: e > 1).next("b").where(lambda e: e < 9)
    interpreter = Interpreter(compiled(pattern), lambda: 0)
    matcher = RowMatcher(interpreter, Calendar(1), generated=generated)
    given = matcher.take("kkk", [1, 2, 3], [2, 3, "x"])
    found = next(given)
    with pytest.raises(TypeError):
        next(given)
    assert [each.match for each in found] == [{"a": [2], "b": [3]}]


# -- what can matter -------------------------------------------------------------------------------


def is_large(event: Any) -> Any:
    return event[1] > 5


def test_only_rows_that_can_matter_are_sorted() -> None:
    large = Pattern.begin("a").where(is_large).followed_by("b").where(is_large)
    pending = PendingEvents(due=row_candidates(compiled(large)))
    pending.add([3, 1, 2, 9], [("k", 7), ("k", 6), ("k", 1), ("k", 8)])
    pending.add([4], [("k", "no number")])  # whoever asks for it will see that it fails
    assert pending.until(5) == ([1, 3, 4], [("k", 6), ("k", 7), ("k", "no number")])
    assert pending.until(9) == ([9], [("k", 8)])


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern.begin("a").followed_by("b").where(is_large),
        Pattern.begin("a").where(is_large).next("b").where(is_large),
        Pattern.begin("a").where(is_large).followed_by("b").where(lambda e, ctx: e in ctx),
        Pattern.begin("a").where(is_large).followed_by("b").where(lambda e: print(e)),
    ],
)
def test_rows_are_not_looked_at_before_where_any_of_them_may_matter(pattern: Pattern) -> None:
    assert row_candidates(compiled(pattern)) is None


def test_many_events_are_ordered_as_few_are() -> None:
    times = [1_000_000 + (at * 7919) % 5000 // 3 for at in range(3000)]
    few, many = PendingEvents(), PendingEvents()
    many.add(times, range(3000))
    order = sorted(range(3000), key=times.__getitem__)
    assert many.until(2_000_000) == ([times[at] for at in order], order)
    many.add([*times, 10_000_000], range(3001))
    assert many.until(20_000_000)[1] == [*order, 3000]
    few.add([2, 1, 1], "abc")
    assert few.until(5) == ([1, 1, 2], ["b", "c", "a"])
