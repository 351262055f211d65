"""The watermark valve over the life of its channels: idleness, catching up, flushing, endings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, Watermark, WatermarkStatus
from flinkpy.runtime.valve import WatermarkValve

IDLE, ACTIVE = WatermarkStatus(idle=True), WatermarkStatus(idle=False)


class Channels:
    """Feeds a valve: a number is a watermark."""

    def __init__(self, count: int) -> None:
        self.valve = WatermarkValve(count)

    def __call__(self, channel: int, what: int | str) -> list[Any]:
        """What goes out: numbers for watermarks."""
        if isinstance(what, int):
            out = self.valve.watermark_from(channel, Watermark(what))
        elif what == "end":
            out = self.valve.ended(channel)
        elif what == "stop":
            out = self.valve.ended(channel, drained=False)
        else:
            out = self.valve.status_from(channel, IDLE if what == "idle" else ACTIVE)
        return [
            element.timestamp
            if isinstance(element, Watermark)
            else "idle"
            if element.idle
            else "active"
            for element in out
        ]


# Each case: number of channels, then (channel, what comes, what goes out).
CASES: dict[str, tuple[int, list[tuple[int, int | str, list[Any]]]]] = {
    "one channel's rising watermarks pass, others do not": (
        1,
        [(0, 0, [0]), (0, 25, [25]), (0, 25, []), (0, 24, []), (0, 26, [26])],
    ),
    "the watermarks of one idle channel do not count": (
        1,
        [
            (0, 25, [25]),
            (0, "idle", ["idle"]),
            (0, 50, []),
            (0, "active", ["active"]),
            (0, 50, [50]),
        ],
    ),
    "a status that is no change is not passed on": (
        1,
        [
            (0, "active", []),
            (0, "idle", ["idle"]),
            (0, "idle", []),
            (0, "active", ["active"]),
            (0, "active", []),
        ],
    ),
    "nothing goes out before every channel gave a watermark": (
        3,
        [(0, 0, []), (1, 0, []), (2, 0, [0])],
    ),
    "only the slowest channel's step moves the output, and only up to the next": (
        3,
        [
            (0, 12, []),
            (2, 10, []),
            (1, 8, [8]),
            (2, 15, []),
            (1, 11, [11]),
            (1, 20, [12]),
            (0, 17, [15]),
        ],
    ),
    "negative watermarks are watermarks": (
        2,
        [(0, -7, []), (1, -9, [-9]), (1, -8, [-8]), (1, 0, [-7])],
    ),
    "the output is idle when the last channel is, and active with the first": (
        2,
        [
            (0, "idle", []),
            (1, "idle", ["idle"]),
            (0, "active", ["active"]),
            (1, "active", []),
            (0, "idle", []),
            (1, "idle", ["idle"]),
        ],
    ),
    "a slow channel that falls silent lets the others go on": (
        3,
        [
            (0, 15, []),
            (1, 10, []),
            (2, 12, [10]),
            (1, "idle", [12]),
            (2, "idle", [15]),
            (0, 20, [20]),
        ],
    ),
    "a fast channel that falls silent moves nothing": (
        2,
        [(0, 10, []), (1, 30, [10]), (1, "idle", []), (0, 20, [20])],
    ),
    "a channel that never spoke and is idle is not waited for": (
        2,
        [(0, 10, []), (1, "idle", [10]), (0, 11, [11])],
    ),
    "the last to fall silent lets the greatest watermark out": (
        3,
        [
            (0, 10, []),
            (1, 50, []),
            (2, 20, [10]),
            (1, "idle", []),
            (2, "idle", []),
            (0, "idle", [50, "idle"]),
        ],
    ),
    "without any watermark there is nothing to let out": (
        2,
        [(0, "idle", []), (1, "idle", ["idle"])],
    ),
    "one that was still catching up when the last fell silent lets nothing out": (
        3,
        [
            (0, 10, []),
            (1, 5, []),
            (2, 100, [5]),
            (2, "idle", []),
            (1, "idle", [10]),
            (1, "active", []),
            (0, "idle", []),
            (1, "idle", ["idle"]),
        ],
    ),
    "back from idleness a channel counts again at once if it is ahead": (
        2,
        [
            (0, 10, []),
            (1, 30, [10]),
            (1, "idle", []),
            (0, 20, [20]),
            (1, "active", []),
            (0, 40, [30]),
        ],
    ),
    "back from idleness a channel that is behind counts when it has caught up": (
        2,
        [
            (0, 30, []),
            (1, 10, [10]),
            (1, "idle", [30]),
            (1, "active", []),
            (0, 40, [40]),
            (1, 39, []),
            (0, 50, [50]),
            (1, 50, []),
            (0, 60, []),
            (1, 55, [55]),
        ],
    ),
    "while all are behind after idleness nothing goes out": (
        2,
        [
            (0, 10, []),
            (1, 100, [10]),
            (1, "idle", []),
            (0, "idle", [100, "idle"]),
            (0, "active", ["active"]),
            (0, 50, []),
            (0, 99, []),
            (0, 100, []),
            (0, 101, [101]),
        ],
    ),
    "a watermark that comes while idle is forgotten": (
        2,
        [
            (0, 10, []),
            (1, 10, [10]),
            (1, "idle", []),
            (1, 30, []),
            (1, "active", []),
            (0, 20, []),
            (1, 15, [15]),
        ],
    ),
    "the end of event time counts from a channel that is idle": (
        2,
        [
            (0, 10, []),
            (1, 10, [10]),
            (0, "idle", []),
            (0, MAX_TIMESTAMP, []),
            (1, MAX_TIMESTAMP, [MAX_TIMESTAMP]),
        ],
    ),
    "it does not go out while an idle channel may still have records": (
        2,
        [
            (0, 10, []),
            (1, 5, [5]),
            (1, "idle", [10]),
            (0, MAX_TIMESTAMP, ["idle"]),
            (1, "active", ["active"]),
            (1, 12, [12]),
            (1, "idle", ["idle"]),
            (1, MAX_TIMESTAMP, ["active", MAX_TIMESTAMP]),
        ],
    ),
    "one channel's end of event time goes out when the others have given their last record": (
        2,
        [(0, MAX_TIMESTAMP, []), (1, "end", [MAX_TIMESTAMP])],
    ),
    "behind a producer that stopped without a drain event time does not end": (
        2,
        [(0, MAX_TIMESTAMP, []), (1, 5, [5]), (1, "stop", [])],
    ),
    "the end of event time holds nobody back": (
        2,
        [
            (0, 10, []),
            (1, MAX_TIMESTAMP, [10]),
            (1, "end", []),
            (0, 20, [20]),
            (0, MAX_TIMESTAMP, [MAX_TIMESTAMP]),
            (0, "end", []),
        ],
    ),
    "an ended channel says no more": (
        2,
        [(0, "end", []), (1, 5, [5]), (0, 7, []), (0, "idle", []), (0, "active", [])],
    ),
    "when all others have ended, the last one's idleness is the output's": (
        2,
        [
            (0, 5, []),
            (0, "end", []),
            (1, 6, [6]),
            (1, "idle", ["idle"]),
            (1, "active", ["active"]),
            (1, 8, [8]),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    count, steps = CASES[name]
    channels = Channels(count)
    assert [(channel, what, channels(channel, what)) for channel, what, _ in steps] == steps


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.one_of(st.integers(0, 40), st.sampled_from(["idle", "active", MAX_TIMESTAMP])),
    ),
    max_size=60,
)


class Model:
    """The rules, channel by channel, with nothing kept but what they name."""

    def __init__(self, count: int) -> None:
        self.marks = [-1] * count
        self.idle = [False] * count
        self.counts = [True] * count
        self.ended = [False] * count
        self.out, self.out_idle = -1, False

    def __call__(self, channel: int, what: int | str) -> list[Any]:
        out: list[Any] = []
        if self.ended[channel]:
            return out
        if what == MAX_TIMESTAMP:
            self._ends(channel, out)
        elif isinstance(what, int):
            if not self.idle[channel] and what > self.marks[channel]:
                self.marks[channel] = what
                self.counts[channel] |= what >= self.out
                self._least(out)
        elif what == "idle" and not self.idle[channel]:
            self.idle[channel], self.counts[channel] = True, False
            self._one_less(channel, out)
        elif what == "active" and self.idle[channel]:
            self.idle[channel], self.counts[channel] = False, self.marks[channel] >= self.out
            if self.out_idle:
                self.out_idle = False
                out.append("active")
        return out

    def _one_less(self, channel: int, out: list[Any]) -> None:
        if not all(idle or ended for idle, ended in zip(self.idle, self.ended)):
            self._least(out)
            return
        if self.marks[channel] == self.out and max(self.marks) > self.out:
            self.out = max(self.marks)
            out.append(self.out)
        if not self.out_idle:
            self.out_idle = True
            out.append("idle")

    def _ends(self, channel: int, out: list[Any]) -> None:
        self.ended[channel], self.counts[channel] = True, False
        if not all(self.ended):
            self._one_less(channel, out)
        else:
            out += [*(["active"] if self.out_idle else []), MAX_TIMESTAMP]
            self.out, self.out_idle = MAX_TIMESTAMP, False

    def _least(self, out: list[Any]) -> None:
        taking_part = [mark for mark, counts in zip(self.marks, self.counts) if counts]
        if taking_part and min(taking_part) > self.out:
            self.out = min(taking_part)
            out.append(self.out)


@given(STEPS)
def test_any_sequence_gives_what_the_rules_say(steps: list[tuple[int, int | str]]) -> None:
    channels, model = Channels(4), Model(4)
    for channel, what in steps:
        assert channels(channel, what) == model(channel, what)
