"""The table of levels: what happens as a worker's memory fills up, and empties again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.runtime.memory.memory_levels import (
    COLLECT_EACH_S,
    FAIL_EACH_S,
    LEVELS,
    SHRINK_EACH_S,
    MemoryAction,
    MemoryLevel,
    MemoryPressure,
)

COLLECT, SHRINK, GROW = MemoryAction.COLLECT_GARBAGE, MemoryAction.SHRINK, MemoryAction.GROW
REST, WAKE = MemoryAction.REST_SOURCES, MemoryAction.WAKE_SOURCES
FAIL = MemoryAction.FAIL_LARGEST


def told(*measured: tuple[float, int], rest_s: float = 60.0) -> list[list[MemoryAction]]:
    """What is to be done when so many per cent are used at these times."""
    pressure = MemoryPressure(100, rest_s)
    return [pressure.measured(now_s, used) for now_s, used in measured]


@pytest.mark.parametrize(
    ("measured", "actions"),
    [
        ([(0, 79)], [[]]),
        ([(0, 80), (1, 81), (2, 79), (3, 70)], [[COLLECT], [], [GROW], []]),
        ([(0, 80), (SHRINK_EACH_S, 80), (SHRINK_EACH_S + 1, 80)], [[COLLECT], [SHRINK], []]),
        ([(0, 80), (COLLECT_EACH_S, 80)], [[COLLECT], [COLLECT]]),
        # a garbage collection may take long: it is not repeated because memory was free meanwhile
        ([(0, 80), (1, 10), (SHRINK_EACH_S, 80)], [[COLLECT], [GROW], [SHRINK]]),
        ([(0, 89), (1, 90), (2, 86), (3, 85)], [[COLLECT], [REST], [], []]),
        ([(0, 90), (1, 85), (2, 84), (3, 89)], [[COLLECT, REST], [], [WAKE], []]),
        ([(0, 96), (1, 97)], [[COLLECT, REST], [FAIL]]),
        ([(0, 120), (0.25, 120), (0.5, 10)], [[COLLECT, REST, FAIL], [], [GROW, WAKE]]),
        ([(0, 98), (FAIL_EACH_S, 98)], [[COLLECT, REST, FAIL], [SHRINK, FAIL]]),
    ],
)
def test_each_level_has_its_own_actions(
    measured: list[tuple[float, int]], actions: list[list[MemoryAction]]
) -> None:
    assert told(*measured) == actions


def test_sources_that_rest_in_vain_end_with_a_failure() -> None:
    """State that does not shrink would let them rest for ever, and nobody would know."""
    found = told((0, 91), (29, 91), (30, 88), (31, 88), (59, 88), (60, 88), (61, 80), rest_s=30)
    assert [each for actions in found for each in actions if each is not SHRINK] == [
        COLLECT,
        REST,
        FAIL,
        COLLECT,
        FAIL,
        WAKE,
    ]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 120)), max_size=60))
def test_sources_rest_and_wake_in_turn_and_nothing_fails_while_there_is_room(
    steps: list[tuple[int, int]],
) -> None:
    pressure, now_s, rests, failed_s = MemoryPressure(100, 60.0), 0.0, False, -1e9
    shares = {rule.level: (rule.begins, rule.ends) for rule in LEVELS}
    begins, ends = shares[MemoryLevel.RESTING]
    for quarters, used in steps:
        now_s += quarters / 4
        actions = pressure.measured(now_s, used)
        assert len(set(actions)) == len(actions)
        if REST in actions or WAKE in actions:
            assert (REST in actions) is not rests
            rests = not rests
        assert rests is (used >= 100 * (ends if rests else begins))
        if FAIL in actions:
            assert rests
            assert now_s - failed_s >= FAIL_EACH_S
            failed_s = now_s
        if used < 80:
            assert pressure.level is MemoryLevel.FREE
            assert not {SHRINK, COLLECT, FAIL} & set(actions)
        if used >= 97:
            assert pressure.level is MemoryLevel.FAILING
