"""The picture of what a pattern found: events in a row, and below them a line for each match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from flinkpy.cep.automaton import svg

Taken: TypeAlias = dict[int, str]  # the places of a match's events, with the names of their steps

_MOST = 24  # letters of an event
_ROW, _TOP = 30, 24


@dataclass(frozen=True, repr=False)
class MatchPicture:
    """Events and matches: as text, and in a notebook as a picture."""

    events: Sequence[Any]
    matches: Sequence[Taken]

    def __str__(self) -> str:
        events = self._shown()
        columns = [
            [event, *(taken.get(at, "") for taken in self.matches)]
            for at, event in enumerate(events)
        ]
        widths = [max(map(len, column)) for column in columns]
        return "\n".join(
            "  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip()
            for line in zip(*columns)
        )

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The picture, for a file."""
        names = [name for taken in self.matches for name in taken.values()]
        longest = max(map(len, [*self._shown(), *names]), default=1)
        wide = max(44, int(svg.WIDE * longest) + 20)
        parts = [
            svg.text(10 + wide * (at + 0.5), _TOP - 6, event, "name")
            for at, event in enumerate(self._shown())
        ]
        for row, taken in enumerate(self.matches):
            y = _TOP + _ROW * (row + 0.5)
            left, right = (10 + wide * (at + 0.5) for at in (min(taken), max(taken)))
            drawn = [svg.line(f"M{left:.0f} {y:.0f}H{right:.0f}")]
            for at, name in taken.items():
                x = 10 + wide * (at + 0.5)
                half = max(10, len(name) * svg.WIDE / 2 + 5)
                drawn.append(
                    f'<rect class="dot" x="{x - half:.0f}" y="{y - 10:.0f}" width="{2 * half:.0f}" '
                    'height="20" rx="10"/>'
                )
                drawn.append(svg.text(x, y + 4, name))
            parts.append(svg.group("take", drawn))
        width = 20 + wide * len(self.events)
        return svg.document(width, _TOP + _ROW * len(self.matches) + 6, parts, str(self))

    def _shown(self) -> list[str]:
        found = [event if isinstance(event, str) else repr(event) for event in self.events]
        return [each if len(each) <= _MOST else f"{each[: _MOST - 1]}…" for each in found]
