"""The generated loop finds what the interpreted form finds, over random patterns and events."""

from __future__ import annotations

import random
from typing import Any

import pytest

from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import Found
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.matching.calendar import Calendar
from flinkpy.cep.matching.row_matcher import RowMatcher
from flinkpy.core.errors import ProgramError
from tests.cep.pattern_texts import RandomPatterns, events_of, pattern_of

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


def found_in(automaton: Any, events: list[Given], ends: list[int], generated: bool) -> list[Found]:
    matcher = RowMatcher(Interpreter(automaton, lambda: 0), Calendar(1), generated=generated)
    found: list[Found] = []
    begin = 0
    for end in [*ends, len(events)]:
        # all events of one time come together, as they do between two watermarks
        while 0 < end < len(events) and events[end][2] == events[end - 1][2]:
            end += 1
        part = events[begin:end]
        if part:
            keys, values, times = zip(*part)
            found += matcher.take(keys, times, values)
            found += matcher.advance(times[-1])
        begin = max(begin, end)
    found += matcher.advance(10_000)
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
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        compare(seed)


def test_the_loop_of_a_simple_pattern_has_its_conditions_inlined() -> None:
    from flinkpy.cep import Pattern
    from flinkpy.cep.matching.generated_loop import GeneratedLoop

    pattern = Pattern.begin("small").where(lambda event: event[1] < 1)
    loop = GeneratedLoop(
        Interpreter(compiled(pattern.next("big").where(lambda event: event[1] > 9)), lambda: 0)
    )
    assert len(loop.inlined) == 2
