"""Pictures of patterns and of what they find; those of docs/patterns.md are drawn here.
``PICTURES=docs/pictures/patterns pytest tests/cep/test_pictures.py`` draws them anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from flinkpy.cep import CEP, AfterMatchSkipStrategy, Pattern
from flinkpy.common import Duration
from flinkpy.testing import PatternHarness

PICTURES = Path(__file__).parents[2] / "docs" / "pictures" / "patterns"
EVENTS = ["C1", "A1", "A2", "D1", "A3", "B1"]

# the quantifiers of the page
QUANTIFIERS: dict[str, Callable[[Pattern], Pattern]] = {
    "one_or_more": lambda a: a.one_or_more(),
    "one_or_more-consecutive": lambda a: a.one_or_more().consecutive(),
    "one_or_more-allow_combinations": lambda a: a.one_or_more().allow_combinations(),
    "one_or_more-greedy": lambda a: a.one_or_more().greedy(),
    "times-2": lambda a: a.times(2),
    "times-1-2": lambda a: a.times(1, 2),
    "times_or_more-2": lambda a: a.times_or_more(2),
    "optional": lambda a: a.optional(),
}


def with_quantifier(name: str) -> Pattern:
    start = Pattern.begin("c").where(lambda event: event[0] == "C")
    a = start.followed_by("a").where(lambda event: event[0] == "A")
    return QUANTIFIERS[name](a).followed_by("b").where(lambda event: event[0] == "B")


def matches_of(name: str) -> PatternHarness:
    harness = PatternHarness(with_quantifier(name))
    for time, event in enumerate(EVENTS):
        harness.process(event, time)
    return harness


def words_in(svg: str) -> list[str]:
    """The texts of a picture; not well-formed XML raises."""
    root = ElementTree.fromstring(svg)
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_pattern_is_drawn_as_text_and_as_a_picture_with_the_same_states_and_transitions() -> None:
    pattern = (
        Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event())
        .where(lambda event: event < 1)
        .one_or_more()
        .not_followed_by("refund <")
        .where(lambda event: event == "&")
        .within(Duration.of_seconds(9))
    )
    picture = pattern.draw()
    assert str(picture) == repr(picture) == CEP.draw(pattern)
    words = words_in(picture._repr_svg_())
    assert {"start", "complete in time", "no match"} <= set(words)
    for line in str(picture).splitlines():
        state = not line.startswith("  ")
        said = (
            line.strip() if not state or line.startswith(("from", "after")) else line.split("  ")[0]
        )
        begin = " ".join(said.split(" -> ")[0].split())
        assert any(begin.startswith(word.removesuffix("…")) for word in words), (begin, words)


def test_a_pattern_that_means_nothing_is_refused_when_it_is_drawn() -> None:
    with pytest.raises(Exception, match="within"):
        Pattern.begin("a").not_followed_by("b").draw()


def test_what_a_harness_found_is_drawn_below_the_events_also_if_they_are_equal() -> None:
    harness = PatternHarness(Pattern.begin("a").next("b"))
    for time in range(3):
        harness.process("x" * 30, time)
    first, *matches = str(harness.draw()).splitlines()
    assert first.split() == ["x" * 23 + "…"] * 3
    assert [line.split() for line in matches] == [["a", "b"], ["a", "b"]]
    assert matches[1].index("a") == matches[0].index("b") == 24 + 2
    assert words_in(harness.draw()._repr_svg_())[3:] == ["a", "b", "a", "b"]


@pytest.mark.parametrize("name", QUANTIFIERS)
def test_the_pictures_of_the_page_are_what_the_automata_find(name: str) -> None:
    drawn = matches_of(name).draw().svg() + "\n"
    if folder := os.environ.get("PICTURES"):
        (Path(folder) / f"{name}.svg").write_text(drawn, encoding="utf-8")
    assert (PICTURES / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_the_picture_of_an_automaton_on_the_page_is_that_of_the_pattern() -> None:
    drawn = with_quantifier("one_or_more").draw().svg() + "\n"
    if folder := os.environ.get("PICTURES"):
        (Path(folder) / "automaton.svg").write_text(drawn, encoding="utf-8")
    assert (PICTURES / "automaton.svg").read_text(encoding="utf-8") == drawn
