"""The meaning of patterns, as a table with results by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cep import (
    ConditionContext,
    IterativeCondition,
    MalformedPatternError,
    Pattern,
    SimpleCondition,
)
from flinkpy.cep.automaton.after_match import SkipError
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.core.errors import ProgramError
from flinkpy.table.expressions import col
from flinkpy.testing import PatternHarness
from tests.cep import user_patterns
from tests.cep.pattern_texts import events_of, found_by, pattern_of

TABLE = Path(__file__).with_name("cases.tsv")
CASES = [
    line.rstrip("\n").split("\t")
    for line in TABLE.read_text().splitlines()
    if line and not line.startswith("#")
]


def test_every_pattern_of_the_table_finds_what_the_table_says() -> None:
    assert len(CASES) >= 150
    wrong = []
    for pattern, skip, events, wanted in CASES:
        found = " ".join(found_by(pattern_of(pattern, skip), events_of(events)))
        if found != wanted:
            wrong.append(f"{pattern} | {skip} | {events}\n  wanted {wanted}\n  found  {found}")
    assert wrong == [], "\n".join(wrong)


def test_what_a_user_of_flinks_cep_writes_finds_what_the_page_says() -> None:
    assert len(user_patterns.CASES) == 100
    wrong = []
    for pattern, events, wanted in user_patterns.CASES:
        found = "|".join(map(in_short, found_by(pattern, events_of(events))))
        if sorted(found.split("|")) != sorted(wanted.split("|")):
            wrong.append(f"{pattern} | {events}\n  wanted {wanted}\n  found  {found}")
    assert wrong == [], "\n".join(wrong)


def in_short(found: str) -> str:
    """``+a=A1,A2;b=B1`` as ``A1 A2 B1``, and what timed out as ``-A1@6``."""
    match, at, time = found[1:].partition("@")
    events = " ".join(part.partition("=")[2].replace(",", " ") for part in match.split(";"))
    return events if found[0] == "+" else f"-{events}{at}{time}"


REFUSED = {
    "begin a plus times:2": "one quantifier",
    "begin a times:2 plus": "one quantifier",
    "begin a more:2 range:1:2": "one quantifier",
    "begin a plus greedy next b optional": "cannot follow one that is greedy",
    "begin a next a": "stands twice",
    "begin a next ( begin b next a )": "stands twice",
    "begin a optional notnext b next c": "optional",
    "begin a optional notfollowed b next c": "optional",
    "begin a range:0:2 notfollowed b next c": "optional",
    "begin a optional optional": "twice",
    "begin a range:0:2 optional": "twice",
    "begin a next b until:A": "until(...) belongs behind",
    "begin a times:2 until:A": "until(...) belongs behind",
    "begin a plus until:A until:B": "twice",
    "begin a notnext b plus": "not_ steps",
    "begin a notfollowed b times:2": "not_ steps",
    "begin a notnext b optional": "not_ step",
    "begin a notnext b greedy": "not_ steps",
    "begin ( begin a ) greedy": "groups",
    "begin ( begin a ) plus greedy": "groups",
    "begin a greedy": "belongs behind",
    "begin a plus combinations greedy": "exclude each other",
    "begin a combinations": "belongs behind",
    "begin a consecutive": "belongs behind",
    "begin a plus combinations consecutive": "one of",
    "begin a plus consecutive combinations": "one of",
    "begin a plus combinations combinations": "one of",
    "begin a times:0": "at least once",
    "begin a more:0": "at least once",
    "begin a range:3:2": "no range",
    "begin a range:0:0": "no range",
    "begin a notfollowed b": "needs within",
    "begin a next b gap:9 within:5": "cannot be longer",
    "begin ( begin a optional ) plus": "may be empty",
    "begin ( begin a optional followed b range:0:2 ) more:2 followed c": "may be empty",
}


@pytest.mark.parametrize("text", REFUSED)
def test_patterns_that_mean_nothing_are_refused_at_the_line_of_the_program(text: str) -> None:
    with pytest.raises(MalformedPatternError) as error:
        compiled(pattern_of(text))
    assert REFUSED[text] in str(error.value)
    assert "/tests/cep/" in str(error.value)


def test_a_skip_strategy_must_name_a_step_outside_of_groups() -> None:
    for skip in ("first:x", "last:b"):
        with pytest.raises(MalformedPatternError, match="it has 'a'"):
            compiled(pattern_of("begin a next ( begin b )", skip))


def test_a_skip_strategy_that_throws_fails_when_there_is_nothing_to_skip_to() -> None:
    pattern = "begin a where:A optional next b where:B"
    with pytest.raises(SkipError, match="the first event"):
        found_by(pattern_of(pattern, "first:a:throw"), events_of("A1 B2"))
    with pytest.raises(SkipError, match="no event of that name"):
        found_by(pattern_of(pattern, "first:a:throw"), events_of("C1 B2"))
    last = pattern_of("begin a where:A next b where:B", "last:b:throw")
    assert found_by(last, events_of("A1 B2")) == ["+a=A1;b=B2"]


async def later(event: object) -> bool:
    return True


def yielding(event: object) -> Iterator[bool]:
    yield True


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (later, "async def"),
        (yielding, "is a generator"),
        (lambda: True, "takes 0 arguments"),
        (lambda event, ctx, more: True, "takes 3 arguments"),
        ("price > 5", "is no condition"),
    ],
)
def test_what_is_no_condition_is_refused(condition: object, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Pattern.begin("a").where(condition)


def test_conditions_can_be_expressions_and_classes() -> None:
    class Cheap(SimpleCondition):
        def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
            return bool(value["price"] < 5)

    class Higher(IterativeCondition):
        def filter(self, value: Any, ctx: ConditionContext) -> bool:
            before: Any = ctx.get_events_for_pattern("cheap")[0]
            return bool(value["price"] > before["price"])

    pattern = Pattern.begin("cheap").where(Cheap()).next("higher").where(Higher())
    harness = PatternHarness(pattern.next("dear").where(col("price") > 90))
    for price in (3, 4, 99, 2):
        harness.process({"price": price})
    assert [list(match) for match in harness.matches] == [["cheap", "higher", "dear"]]
