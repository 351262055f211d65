"""The picture of an automaton: its states in a row, and an arrow for each transition.

Arrows to the next state are straight, what leads further goes above, what leads back below, and
what stays is a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from flinkpy.cep.automaton import svg
from flinkpy.cep.automaton.drawing import drawn, edges_of, name_of, shown, states_in_order
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.automaton.pattern_states import Automaton, State, StateKind
from flinkpy.cep.event_conditions import Always
from flinkpy.cep.pattern import Pattern

_BOX, _GAP, _HIGH = 92, 150, 34  # a state's width, what is between two, and a state's height
_LETTERS = int((_GAP - 14) / svg.WIDE)
_LOOP, _ARC, _LEVEL = 38, 84, 26  # how high a loop and the lowest arc are, and each further arc


class _Arrow(NamedTuple):
    begin: int  # the places of two states
    end: int
    kind: str
    label: str


@dataclass(frozen=True, repr=False)
class PatternPicture:
    """What a pattern is compiled to: as text, and in a notebook as a picture."""

    automaton: Automaton

    def __str__(self) -> str:
        return drawn(self.automaton)

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The picture, for a file."""
        waiting = list(states_in_order(self.automaton.start))
        ends = (edge.target for state in waiting for edge in edges_of(state))
        states = list(dict.fromkeys([*waiting, *ends]))
        arrows = list(_arrows(waiting, {state: at for at, state in enumerate(states)}))
        levels = _levels(arrows)
        above = max((_height(each, levels) for each in arrows if each.begin <= each.end), default=0)
        below = max((_height(each, levels) for each in arrows if each.begin > each.end), default=0)
        top = above + 22
        parts = [_state(state, at, top) for at, state in enumerate(states)]
        parts += [_drawn(each, levels, top) for each in arrows]
        notes = [said for said in str(self).splitlines() if said.startswith(("from the", "after"))]
        bottom = top + _HIGH + max(below, 14) + 20
        width = len(states) * (_BOX + _GAP) - _GAP + 40
        for at, said in enumerate(notes):
            parts.append(svg.text(width / 2, bottom + 16 * at, said, "quiet"))
        return svg.document(width, bottom + 16 * len(notes), parts, str(self))


def picture_of(pattern: Pattern) -> PatternPicture:
    """The picture of the automaton that a pattern is compiled to."""
    return PatternPicture(compiled(pattern))


def _arrows(states: list[State], places: dict[State, int]) -> Iterator[_Arrow]:
    for state in states:
        for edge in edges_of(state):
            always = isinstance(edge.condition, Always)
            label = edge.action.value + ("" if always else f" if {shown(edge.condition)}")
            yield _Arrow(places[state], places[edge.target], edge.action.value, label)


def _levels(arrows: list[_Arrow]) -> dict[int, int]:
    """How high each arrow goes, by its place in the list: 0 is a straight one or a loop, and no two
    that share a stretch go equally high."""
    found: dict[int, int] = {}
    taken: list[tuple[int, int, bool, int]] = []
    for arrow in sorted(arrows, key=lambda each: abs(each.end - each.begin)):
        low, high = sorted((arrow.begin, arrow.end))
        back = arrow.begin > arrow.end
        level = 0 if low == high or (not back and high == low + 1) else 1
        while (low, high, back, level) in taken or any(
            other == level and was_back == back and low < end and begin < high
            for begin, end, was_back, other in taken
        ):
            level += 1
        taken.append((low, high, back, level))
        found[id(arrow)] = level
    return found


def _height(arrow: _Arrow, levels: dict[int, int]) -> int:
    level = levels[id(arrow)]
    if arrow.begin == arrow.end:
        return _LOOP + 16 * level
    return _ARC + _LEVEL * (level - 1) if level else 0


def _center(place: int) -> int:
    return 20 + place * (_BOX + _GAP) + _BOX // 2


def _state(state: State, place: int, y: int) -> str:
    x = _center(place) - _BOX // 2
    round_by = 16 if state.kind in (StateKind.FINAL, StateKind.STOP) else 5
    box = f'<rect class="box" x="{x}" y="{y}" width="{_BOX}" height="{_HIGH}" rx="{round_by}"/>'
    said = [svg.text(_center(place), y + 21, name_of(state), "name", int(_BOX / svg.WIDE))]
    if place == 0:
        said.append(svg.text(_center(place), y + _HIGH + 12, "start", "quiet"))
    if state.kind is StateKind.PENDING:
        said.append(svg.text(_center(place), y + _HIGH + 12, "complete in time", "quiet"))
    return svg.group("match" if state.kind is StateKind.FINAL else "state", [box, *said])


def _drawn(arrow: _Arrow, levels: dict[int, int], top: int) -> str:
    height = _height(arrow, levels)
    if arrow.begin == arrow.end:
        parts = _loop(arrow, height, top)
    elif height:
        parts = _arc(arrow, height, top)
    else:
        y = top + _HIGH // 2
        left, right = _center(arrow.begin) + _BOX // 2, _center(arrow.end) - _BOX // 2
        parts = [svg.line(f"M{left} {y}H{right - 6}"), svg.head(right, y, 0)]
        parts.append(svg.text((left + right) / 2, y - 6, arrow.label, "", _LETTERS))
    return svg.group(arrow.kind, parts)


def _loop(arrow: _Arrow, height: int, top: int) -> list[str]:
    x, tip = _center(arrow.begin), top - height
    return [
        svg.line(f"M{x - 14} {top}C{x - 26} {tip} {x + 26} {tip} {x + 14} {top}"),
        svg.head(x + 14, top, 90),
        svg.text(x, top - 0.75 * height - 5, arrow.label, "", _LETTERS + 12),
    ]


def _arc(arrow: _Arrow, height: int, top: int) -> list[str]:
    begin, end = _center(arrow.begin), _center(arrow.end)
    if begin > end:
        begin, end, y, turn = begin - 22, end + 22, top + _HIGH, -90
        tip, label = y + height, y + 0.75 * height + 12
    else:
        begin, end, y, turn = begin + 22, end - 22, top, 90
        tip, label = y - height, y - 0.75 * height - 5
    return [
        svg.line(f"M{begin} {y}C{begin} {tip} {end} {tip} {end} {y}"),
        svg.head(end, y, turn),
        svg.text((begin + end) / 2, label, arrow.label, "", 2 * _LETTERS),
    ]
