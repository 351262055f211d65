"""A small language for patterns and events, so that tables of cases are short, and so that Flink's
own automaton can be given the same cases (``flink/CepDriver.java``).

``begin a where:A next b where:BC plus until:D within:10`` is a pattern; ``^a`` as a condition holds
for events with a larger number than all those taken as ``a``. ``A1@5 B2@7 @20`` are events, a letter
and a number, with their times; ``@20`` only says that it is 20. ``A1 B2`` have the times 1, 2."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.cep import AfterMatchSkipStrategy, Pattern, WithinType
from flinkpy.common import Duration
from flinkpy.table.expressions import col
from flinkpy.testing.pattern_harness import PatternHarness

SKIPS: dict[str, Callable[..., AfterMatchSkipStrategy]] = {
    "none": AfterMatchSkipStrategy.no_skip,
    "next": AfterMatchSkipStrategy.skip_to_next,
    "past": AfterMatchSkipStrategy.skip_past_last_event,
    "first": AfterMatchSkipStrategy.skip_to_first,
    "last": AfterMatchSkipStrategy.skip_to_last,
}


def skip_of(text: str) -> AfterMatchSkipStrategy:
    kind, *names = text.split(":")
    if names[1:] == ["throw"]:
        return SKIPS[kind](names[0]).throw_exception_on_miss()
    return SKIPS[kind](*names)


Text = Callable[[Any], str]  # the letter and the number of an event


def same(event: Any) -> str:
    return str(event)


# conditions that the generated loop inlines
INLINED: dict[str, Callable[..., bool]] = {
    "A": lambda row: row.letter == "A",
    "B": lambda row: row.letter == "B",
    "C": lambda row: row.letter == "C",
    "D": lambda row: row.letter == "D",
    "^a": lambda event, ctx: str(ctx.get_events_for_pattern("a")) < str([event]),
    "^b": lambda event, ctx: str(ctx.get_events_for_pattern("b")) < str([event]),
    "^c": lambda event, ctx: str(ctx.get_events_for_pattern("c")) < str([event]),
}


class TextOfRow:
    """The text of a row with the fields ``letter`` and ``number``. With it, some conditions are
    expressions, and some are inlined."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._only_expressions = seed % 3 == 0

    def __call__(self, row: Any) -> str:
        return f"{row.letter}{row.number}"

    def other_condition(self, letters: str) -> Any:
        if self._only_expressions:
            return col("letter").in_(*letters.removeprefix("^").upper())
        if letters in INLINED and self._random.random() < 0.5:
            return INLINED[letters]
        if letters.startswith("^"):
            return None
        return col("letter").in_(*letters) if self._random.random() < 0.6 else None


def condition_of(letters: str, text: Text = same) -> Any:
    if isinstance(text, TextOfRow):
        other = text.other_condition(letters)
        if other is not None:
            return other
    if letters.startswith("^"):
        name = letters[1:]
        return lambda event, ctx: all(
            int(text(before)[1:]) < int(text(event)[1:])
            for before in ctx.get_events_for_pattern(name)
        )
    return lambda event: text(event)[0] in letters


def span(text: str) -> Duration:
    return Duration.of_millis(int(text))


def spans(texts: list[str]) -> list[Duration]:
    return [span(text) for text in texts]


MODIFIERS: dict[str, Callable[[Pattern, list[str]], Pattern]] = {
    "plus": lambda pattern, words: pattern.one_or_more(*spans(words)),
    "times": lambda pattern, words: pattern.times(int(words[0]), None, *spans(words[1:])),
    "range": lambda pattern, words: pattern.times(int(words[0]), int(words[1]), *spans(words[2:])),
    "more": lambda pattern, words: pattern.times_or_more(int(words[0]), *spans(words[1:])),
    "optional": lambda pattern, words: pattern.optional(),
    "greedy": lambda pattern, words: pattern.greedy(),
    "combinations": lambda pattern, words: pattern.allow_combinations(),
    "consecutive": lambda pattern, words: pattern.consecutive(),
    "within": lambda pattern, words: pattern.within(span(words[0])),
    "gap": lambda pattern, words: pattern.within(span(words[0]), WithinType.PREVIOUS_AND_CURRENT),
}


CONDITIONS: dict[str, Callable[[Pattern, Any], Pattern]] = {
    "where": lambda pattern, condition: pattern.where(condition),
    "or": lambda pattern, condition: pattern.or_(condition),
    "until": lambda pattern, condition: pattern.until(condition),
}


def pattern_of(
    text: str,
    skip: str = "none",
    of_event: Text = same,
    condition: Callable[[str, Text], Any] = condition_of,
) -> Pattern:
    return _pattern(text.split()[::-1], skip_of(skip), lambda letters: condition(letters, of_event))


def _pattern(
    words: list[str], skip: AfterMatchSkipStrategy | None, condition: Callable[[str], Any]
) -> Pattern:
    pattern: Pattern = Pattern.__new__(Pattern)
    while words and words[-1] != ")":
        word = words.pop()
        if word in ("notnext", "notfollowed"):
            name = words.pop()
            pattern = pattern.not_next(name) if word == "notnext" else pattern.not_followed_by(name)
        elif word in ("begin", "next", "followed", "any"):
            step: str | Pattern = words.pop()
            if step == "(":
                step = _pattern(words, None, condition)
                words.pop()
            if word == "begin":
                pattern = Pattern.begin(step, skip)
            elif word == "next":
                pattern = pattern.next(step)
            else:
                pattern = (
                    pattern.followed_by(step)
                    if word == "followed"
                    else pattern.followed_by_any(step)
                )
        else:
            kind, *arguments = word.split(":")
            if kind in CONDITIONS:
                pattern = CONDITIONS[kind](pattern, condition(arguments[0]))
            else:
                pattern = MODIFIERS[kind](pattern, arguments)
    return pattern


def events_of(text: str) -> list[tuple[str, int]]:
    """Events with times; an event without a name only has its time."""
    words = [word.split("@") for word in text.split()]
    return [
        (word[0], int(word[1]) if len(word) > 1 else at) for at, word in enumerate(words, start=1)
    ]


def shown(match: dict[str, list[Any]], text: Text = same) -> str:
    return ";".join(f"{name}={','.join(map(text, events))}" for name, events in match.items())


def found_by(pattern: Pattern, events: Iterable[tuple[Any, int]], text: Text = same) -> list[str]:
    """Matches with a plus, what timed out with a minus and its time, in order."""
    harness = PatternHarness(pattern)
    found: list[str] = []
    last = None
    for event, time in events:
        steps = [None] * (time != last) + [event] * bool(event)
        last = time
        for step in steps:
            before = len(harness.timed_out)
            matches = harness.advance(time) if step is None else harness.process(step, time)
            found += [f"+{shown(match, text)}" for match in matches]
            found += [f"-{shown(match, text)}@{at}" for match, at in harness.timed_out[before:]]
    return found


# -- random patterns -------------------------------------------------------------------------------

LETTERS = "ABCD"


class RandomPatterns:
    """Draws patterns and events as texts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: list[str] = []

    def case(self) -> tuple[str, str, str]:
        self.names = []
        pattern = self.pattern(depth=0)
        skip = self.random.choice(["none", "none", "next", "past", "first", "last"])
        if skip in ("first", "last"):
            skip += f":{self.random.choice(self.names)}"
        return skip, pattern, self.events()

    def events(self) -> str:
        time, words = 0, []
        for _ in range(self.random.randint(4, 10)):
            time += self.random.choice([0, 1, 1, 1, 2, 3])
            words.append(f"{self.random.choice(LETTERS)}{self.random.randint(1, 9)}@{time}")
        return " ".join([*words, f"@{time + 12}"])

    def pattern(self, depth: int) -> str:
        choose = self.random.choice
        words: list[str] = []
        optional = False
        for at in range(self.random.randint(1, 4 if depth == 0 else 3)):
            if at > 0 and not optional and self.random.random() < 0.2:
                words.append(f"{choose(['notnext', 'notfollowed'])} {self.name()}")
                words.append(f"where:{self.letters()}")
                continue
            words.append("begin" if at == 0 else choose(["next", "followed", "any"]))
            group = depth < 2 and self.random.random() < 0.15
            if group:
                words.append(f"( {self.pattern(depth + 1)} )")
            else:
                words.append(self.name())
                words.append(f"where:{self.letters()}")
                if self.random.random() < 0.1:
                    words.append(f"where:^{choose(self.names)}")
            quantifier, optional = self.quantifier(group)
            words += quantifier
        if depth == 0 and self.random.random() < 0.5:
            words.append(f"within:{self.random.randint(2, 10)}")
        if self.random.random() < 0.15:
            words.append(f"gap:{self.random.randint(1, 4)}")
        return " ".join(words)

    def quantifier(self, group: bool) -> tuple[list[str], bool]:
        choose = self.random.choice
        kind = choose(["", "", "plus", "times:2", "times:3", "range:1:3", "range:0:2", "more:2"])
        if kind and self.random.random() < 0.1:
            kind += f":{self.random.randint(1, 4)}"
        words = [kind] if kind else []
        if kind and not group and self.random.random() < 0.25:
            words.append("greedy")
        if kind and "greedy" not in words:
            words += choose([[], [], ["combinations"], ["consecutive"]])
        elif kind:
            words += choose([[], ["consecutive"]])
        optional = kind.startswith("range:0")
        if not optional and self.random.random() < 0.2:
            words.append("optional")
            optional = True
        if kind.startswith(("plus", "more")) and self.random.random() < 0.2:
            words.append(f"until:{choose(LETTERS)}")
        return words, optional

    def letters(self) -> str:
        return "".join(sorted(self.random.sample(LETTERS, self.random.choice([1, 1, 1, 2, 3]))))

    def name(self) -> str:
        self.names.append("abcdefghijklmnopqrstuvwxyz"[len(self.names)])
        return self.names[-1]
