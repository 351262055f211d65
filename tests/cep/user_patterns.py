"""A hundred patterns as somebody writes them who knows Flink's CEP, with their matches, which were
predicted from the page of patterns and from Flink's before anything ran.

Of three the prediction was wrong, and the page says more now of the first two: what ends a loop
before it has begun, what the time of ``times(n, within)`` bounds, and how far time has come at the
end of the events of one.

An event is a letter and a number; ``A1@5`` has the time 5, without one it is the event's place. A
match is its events in the order of the steps' names; ``-A1@6`` timed out at 6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.cep import AfterMatchSkipStrategy as Skip
from flinkpy.cep import Pattern, WithinType
from flinkpy.common import Duration


def letter(letters: str) -> Callable[[str], bool]:
    return lambda event: event[0] in letters


def ms(milliseconds: int) -> Duration:
    return Duration.of_millis(milliseconds)


def number(event: str) -> int:
    return int(event[1:])


def begin(name: str, letters: str | None = None, skip: Skip | None = None) -> Pattern:
    return Pattern.begin(name, skip).where(letter(letters or name.upper()))


a, b, c, d = letter("A"), letter("B"), letter("C"), letter("D")
GAP = WithinType.PREVIOUS_AND_CURRENT


def rising(name: str) -> Callable[[str, Any], bool]:
    return lambda event, ctx: number(event) > number(ctx.get_events_for_pattern(name)[-1])


def sum_below(name: str, most: int) -> Callable[[str, Any], bool]:
    return lambda event, ctx: (
        event[0] == "A"
        and sum(map(number, ctx.get_events_for_pattern(name))) + number(event) < most
    )


def b_then_c(skip: Skip) -> Pattern:
    """Flink's page: ``b+ c``."""
    return begin("b", "B", skip).one_or_more().consecutive().next("c").where(c)


def greedy_page(skip: Skip) -> Pattern:
    """Flink's page: ``(a | b | c) (b | c) c+.greedy d``."""
    first = begin("x", "ABC", skip).next("y").where(letter("BC"))
    return first.next("c").where(c).one_or_more().consecutive().greedy().next("d").where(d)


def a_then_b(skip: Skip) -> Pattern:
    """Flink's page: ``a b+``."""
    return begin("a", "A", skip).next("b").where(b).one_or_more().consecutive()


def between(quantified: Callable[[Pattern], Pattern]) -> Pattern:
    return quantified(begin("c").followed_by("a").where(a)).followed_by("b").where(b)


def a_b() -> Pattern:
    return begin("a").next("b").where(b)


Case = tuple[Pattern, str, str]

STEPS: list[Case] = [
    (begin("a"), "A1 B1 A2", "A1|A2"),
    (Pattern.begin("any"), "A1 B1", "A1|B1"),
    (a_b(), "A1 B1", "A1 B1"),
    (a_b(), "A1 C1 B1", ""),
    (a_b(), "A1 A2 B1", "A2 B1"),
    (begin("a").followed_by("b").where(b), "A1 C1 B1", "A1 B1"),
    (begin("a").followed_by("b").where(b), "A1 B1 B2", "A1 B1"),
    (begin("a").followed_by("b").where(b), "A1 A2 B1", "A1 B1|A2 B1"),
    (begin("a").followed_by_any("b").where(b), "A1 C1 B1 B2", "A1 B1|A1 B2"),
    (begin("a").followed_by_any("b").where(b), "A1 A2 B1 B2", "A1 B1|A2 B1|A1 B2|A2 B2"),
    (begin("a").next("b").where(b).next("c").where(c), "A1 B1 C1 A2 B2 D1", "A1 B1 C1"),
    (begin("a").next("b").where(b).followed_by("c").where(c), "A1 B1 D1 C1", "A1 B1 C1"),
    (begin("a").followed_by("b").where(b).next("c").where(c), "A1 B1 B2 C1", ""),
    (begin("a").followed_by_any("b").where(b).next("c").where(c), "A1 B1 B2 C1", "A1 B2 C1"),
    (begin("a").followed_by("a2").where(a), "A1 A2 A3", "A1 A2|A2 A3"),
    (begin("a").followed_by_any("a2").where(a), "A1 A2 A3", "A1 A2|A1 A3|A2 A3"),
]

NEGATIVE: list[Case] = [
    (begin("a").not_next("c").where(c).followed_by("b").where(b), "A1 C1 B1", ""),
    (begin("a").not_next("c").where(c).followed_by("b").where(b), "A1 D1 B1", "A1 B1"),
    (begin("a").not_next("c").where(c).followed_by("b").where(b), "A1 B1", "A1 B1"),
    (begin("a").not_next("c").where(c).followed_by("b").where(b), "A1 D1 C1 B1", "A1 B1"),
    (begin("a").not_followed_by("c").where(c).followed_by("b").where(b), "A1 D1 C1 B1", ""),
    (begin("a").not_followed_by("c").where(c).followed_by("b").where(b), "A1 D1 B1 C1", "A1 B1"),
    (begin("a").not_followed_by("c").where(c).followed_by("b").where(b), "A1 C1 A2 B1", "A2 B1"),
    (
        begin("a").not_followed_by("c").where(c).followed_by_any("b").where(b),
        "A1 B1 C1 B2",
        "A1 B1",
    ),
    (begin("a").not_followed_by("b").where(b).within(ms(5)), "A1@1 C1@3 @10", "A1"),
    (begin("a").not_followed_by("b").where(b).within(ms(5)), "A1@1 B1@3 @10", ""),
    (begin("a").not_followed_by("b").where(b).within(ms(5)), "A1@1 B1@7", "A1"),
    (begin("a").not_followed_by("b").where(b).within(ms(5)), "A1@1 A2@4 B1@7 @20", "A1"),
    (a_b().not_next("c").where(c).next("d").where(d), "A1 B1 D1", "A1 B1 D1"),
    (a_b().not_next("c").where(c).next("d").where(d), "A1 B1 C1 D1", ""),
]

CONDITIONS: list[Case] = [
    (begin("a").or_(b), "A1 B1 C1", "A1|B1"),
    (begin("a").where(lambda event: number(event) > 1), "A1 A2", "A2"),
    (begin("a").or_(b).where(lambda event: number(event) > 1), "A1 B2 A3", "B2|A3"),
    (begin("a").where(lambda event: number(event) > 1).or_(b), "A1 B1 A3", "B1|A3"),
    (Pattern.begin("low").next("high").where(rising("low")), "A3 A5 A4 A6", "A3 A5|A4 A6"),
    (Pattern.begin("low").followed_by("high").where(rising("low")), "A3 A1 A5", "A3 A5|A1 A5"),
    (
        Pattern.begin("x").next("y").where(rising("x")).next("z").where(rising("y")),
        "A1 A2 A3 A4",
        "A1 A2 A3|A2 A3 A4",
    ),
    (
        Pattern.begin("a").where(sum_below("a", 6)).one_or_more().next("b").where(b),
        "A1 A4 B1",
        "A1 A4 B1|A4 B1",
    ),
    (
        Pattern.begin("a").where(sum_below("a", 5)).one_or_more().next("b").where(b),
        "A1 A4 B1",
        "A4 B1",
    ),
    (Pattern.begin("text").subtype(str), "A1 B1", "A1|B1"),
    (Pattern.begin("number").subtype(int), "A1 B1", ""),
    (
        begin("a").followed_by("b").where(lambda event, ctx: ctx.timestamp() >= 5),
        "A1@1 B1@2 B2@5",
        "A1 B2",
    ),
]

QUANTIFIERS: list[Case] = [
    (begin("a").times(3), "A1 B1 A2 A3 A4", "A1 A2 A3|A2 A3 A4"),
    (begin("a").times(3).consecutive(), "A1 B1 A2 A3 A4", "A2 A3 A4"),
    (begin("a").times(2).allow_combinations(), "A1 A2 A3", "A1 A2|A1 A3|A2 A3"),
    (begin("a").one_or_more(), "A1 A2 A3", "A1|A1 A2|A2|A1 A2 A3|A2 A3|A3"),
    (begin("a").one_or_more().consecutive(), "A1 B1 A2", "A1|A2"),
    (begin("a").one_or_more(), "A1 B1 A2", "A1|A1 A2|A2"),
    (
        begin("a").one_or_more().allow_combinations(),
        "A1 A2 A3",
        "A1|A1 A2|A2|A1 A2 A3|A1 A3|A2 A3|A3",
    ),
    (begin("a").times_or_more(2), "A1 A2 A3", "A1 A2|A1 A2 A3|A2 A3"),
    (begin("a").times(1, 2), "A1 A2 A3", "A1|A1 A2|A2|A2 A3|A3"),
    (begin("a").followed_by("b").where(b).optional(), "A1 B1", "A1|A1 B1"),
    (begin("a").optional().followed_by("b").where(b), "A1 B1", "B1|A1 B1"),
    (begin("a").next("b").where(b).optional().next("c").where(c), "A1 B1 C1", "A1 B1 C1"),
    (begin("a").next("b").where(b).optional().next("c").where(c), "A1 C1", "A1 C1"),
    (between(lambda it: it.times(2).optional()), "C1 A1 A2 B1", "C1 B1|C1 A1 A2 B1"),
    (between(lambda it: it.times(2).optional()), "C1 A1 B1", "C1 B1"),
    (between(lambda it: it.times(2, 3)), "C1 A1 A2 A3 B1", "C1 A1 A2 B1|C1 A1 A2 A3 B1"),
    (between(lambda it: it.times(2, 3).greedy()), "C1 A1 A2 A3 B1", "C1 A1 A2 A3 B1"),
    (between(lambda it: it.one_or_more().optional()), "C1 B1", "C1 B1"),
    (between(lambda it: it.one_or_more().greedy().optional()), "C1 A1 A2 B1", "C1 A1 A2 B1"),
    (
        between(lambda it: it.one_or_more().consecutive()),
        "C1 D1 A1 A2 D2 A3 B1",
        "C1 A1 B1|C1 A1 A2 B1",
    ),
    (between(lambda it: it.times_or_more(2).greedy()), "C1 A1 B1", ""),
    (between(lambda it: it.times_or_more(2).consecutive()), "C1 A1 D1 A2 A3 B1", ""),
    (
        begin("c")
        .next("a")
        .where(letter("AD"))
        .one_or_more()
        .consecutive()
        .greedy()
        .next("d")
        .where(d),
        "C1 A1 D1 D2",
        "",
    ),
    (begin("a").one_or_more().until(c), "A1 A2 C1 A3", "A1|A1 A2|A2|A3"),
    (between(lambda it: it.one_or_more().until(d)), "C1 A1 D1 A2 B1", "C1 A1 B1"),
    (between(lambda it: it.one_or_more().until(d)), "C1 D1 A1 B1", "C1 A1 B1"),
    (between(lambda it: it.times_or_more(2).until(d)), "C1 A1 D1 A2 B1", ""),
]

TIMES: list[Case] = [
    (begin("a").followed_by("b").where(b).within(ms(5)), "A1@1 B1@5", "A1 B1"),
    (begin("a").followed_by("b").where(b).within(ms(5)), "A1@1 B1@6", "-A1@6"),
    (begin("a").followed_by("b").where(b).within(ms(5)), "A1@1 A2@3 B1@7", "-A1@6|A2 B1"),
    (begin("a").followed_by("b").where(b).within(ms(5)), "A1@1 @20", "-A1@6"),
    (
        begin("a").followed_by("b").where(b).within(ms(3), GAP).followed_by("c").where(c),
        "A1@1 B1@3 C1@20",
        "A1 B1 C1",
    ),
    (
        begin("a").followed_by("b").where(b).within(ms(3), GAP).followed_by("c").where(c),
        "A1@1 B1@5 C1@6",
        "-A1@4",
    ),
    (begin("a").times(2).within(ms(3)), "A1@1 A2@2 A3@5", "A1 A2|-A2@5"),
    (begin("a").one_or_more().within(ms(3)).next("b").where(b), "A1@1 A2@2 B1@3", "A1 A2 B1|A2 B1"),
    (begin("a").times(2, None, ms(3)), "A1@1 A2@3", "A1 A2"),
    (begin("a").times(2, None, ms(3)), "A1@1 A2@9", "A1 A2"),
    (begin("a").within(ms(9)).followed_by("b").where(b).within(ms(2)), "A1@1 B1@3", "-A1@3"),
]

GROUPS: list[Case] = [
    (Pattern.begin(a_b()).times(2), "A1 B1 A2 B2", "A1 A2 B1 B2"),
    (begin("c").next(a_b()).one_or_more(), "C1 A1 B1 A2 B2", "C1 A1 B1|C1 A1 A2 B1 B2"),
    (begin("c").next(a_b()).optional().next("d").where(d), "C1 D1", "C1 D1"),
    (begin("c").next(a_b()).optional().next("d").where(d), "C1 A1 B1 D1", "C1 A1 B1 D1"),
    (begin("c").next(a_b()).next("d").where(d), "C1 A1 D1 B1 D2", ""),
    (begin("c").followed_by(a_b()).followed_by("d").where(d), "C1 D1 A1 B1 C2 D2", "C1 A1 B1 D2"),
    (Pattern.begin(a_b()).followed_by("c").where(c), "A1 B1 D1 C1", "A1 B1 C1"),
    (Pattern.begin(begin("a").one_or_more().next("b").where(b)), "A1 A2 B1", "A1 A2 B1|A2 B1"),
]

SKIPS: list[Case] = [
    (b_then_c(Skip.no_skip()), "B1 B2 B3 C1", "B1 B2 B3 C1|B2 B3 C1|B3 C1"),
    (b_then_c(Skip.skip_to_next()), "B1 B2 B3 C1", "B1 B2 B3 C1|B2 B3 C1|B3 C1"),
    (b_then_c(Skip.skip_past_last_event()), "B1 B2 B3 C1", "B1 B2 B3 C1"),
    (b_then_c(Skip.skip_to_first("b")), "B1 B2 B3 C1", "B1 B2 B3 C1|B2 B3 C1|B3 C1"),
    (b_then_c(Skip.skip_to_last("b")), "B1 B2 B3 C1", "B1 B2 B3 C1|B3 C1"),
    (
        greedy_page(Skip.no_skip()),
        "A1 B1 C1 C2 C3 D1",
        "A1 B1 C1 C2 C3 D1|B1 C1 C2 C3 D1|C1 C2 C3 D1",
    ),
    (greedy_page(Skip.skip_to_first("c")), "A1 B1 C1 C2 C3 D1", "A1 B1 C1 C2 C3 D1|C1 C2 C3 D1"),
    (a_then_b(Skip.no_skip()), "A1 B1 B2 B3", "A1 B1|A1 B1 B2|A1 B1 B2 B3"),
    (a_then_b(Skip.skip_to_next()), "A1 B1 B2 B3", "A1 B1"),
    (a_then_b(Skip.skip_past_last_event()), "A1 B1 B2 A2 B3", "A1 B1|A2 B3"),
    (
        begin("a", "A", Skip.skip_past_last_event()).followed_by("b").where(b),
        "A1 A2 B1 A3 B2",
        "A1 B1|A3 B2",
    ),
    (
        begin("a", "A", Skip.skip_to_next()).followed_by_any("b").where(b),
        "A1 B1 B2 A2 B3",
        "A1 B1|A2 B3",
    ),
]

CASES = [*STEPS, *NEGATIVE, *CONDITIONS, *QUANTIFIERS, *TIMES, *GROUPS, *SKIPS]
