"""The watermark valve against its definition."""

from __future__ import annotations

import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark, WatermarkStatus
from flinkpy.runtime.valve import WatermarkValve

IDLE, ACTIVE = WatermarkStatus(idle=True), WatermarkStatus(idle=False)


def test_the_least_watermark_of_all_channels_goes_out() -> None:
    valve = WatermarkValve(2)
    assert valve.watermark_from(0, Watermark(10)) == []
    assert valve.watermark_from(1, Watermark(5)) == [Watermark(5)]
    assert valve.watermark_from(1, Watermark(20)) == [Watermark(10)]
    assert valve.watermark_from(1, Watermark(15)) == []


def test_an_idle_channel_holds_nothing_back() -> None:
    valve = WatermarkValve(2)
    valve.watermark_from(0, Watermark(10))
    assert valve.status_from(1, IDLE) == [Watermark(10)]
    assert valve.watermark_from(0, Watermark(11)) == [Watermark(11)]


def test_when_all_are_idle_the_greatest_watermark_goes_out_and_then_the_status() -> None:
    valve = WatermarkValve(2)
    valve.watermark_from(0, Watermark(10))
    valve.watermark_from(1, Watermark(4))
    assert valve.status_from(1, IDLE) == [Watermark(10)]
    assert valve.status_from(0, IDLE) == [IDLE]
    assert valve.status_from(1, ACTIVE) == [ACTIVE]


def test_a_channel_back_from_idleness_counts_once_it_has_caught_up() -> None:
    valve = WatermarkValve(2)
    valve.status_from(1, IDLE)
    valve.watermark_from(0, Watermark(10))
    assert valve.status_from(1, ACTIVE) == []
    assert valve.watermark_from(0, Watermark(12)) == [Watermark(12)]
    assert valve.watermark_from(1, Watermark(12)) == []
    assert valve.watermark_from(0, Watermark(20)) == []
    assert valve.watermark_from(1, Watermark(15)) == [Watermark(15)]


def test_an_ended_channel_holds_nothing_back_and_the_last_one_says_nothing() -> None:
    valve = WatermarkValve(2)
    valve.watermark_from(0, Watermark(10))
    assert valve.ended(1) == [Watermark(10)]
    assert valve.ended(0) == []
    assert valve.ended(0) == []


steps = st.lists(
    st.tuples(
        st.integers(0, 2), st.one_of(st.integers(0, 30), st.sampled_from(["idle", "active", "end"]))
    ),
    max_size=40,
)


@given(steps)
def test_the_output_never_goes_back_and_statuses_alternate(
    taken: list[tuple[int, int | str]],
) -> None:
    valve = WatermarkValve(3)
    out: list[Watermark | WatermarkStatus] = []
    for channel, what in taken:
        if what == "end":
            out += valve.ended(channel)
        elif isinstance(what, str):
            out += valve.status_from(channel, IDLE if what == "idle" else ACTIVE)
        else:
            out += valve.watermark_from(channel, Watermark(what))
    marks = [element.timestamp for element in out if isinstance(element, Watermark)]
    assert marks == sorted(set(marks))
    statuses = [element for element in out if isinstance(element, WatermarkStatus)]
    assert statuses == [IDLE, ACTIVE] * (len(statuses) // 2) + [IDLE] * (len(statuses) % 2)


@pytest.mark.finding("bugs 1")
@given(steps)
def test_event_time_ends_with_that_of_the_last_channel_whoever_is_idle(
    taken: list[tuple[int, int | str]],
) -> None:
    valve, out = WatermarkValve(3), list[Watermark | WatermarkStatus]()
    for channel, what in taken:
        if isinstance(what, int):
            out += valve.watermark_from(channel, Watermark(what))
        elif what != "end":
            out += valve.status_from(channel, IDLE if what == "idle" else ACTIVE)
    assert Watermark(MAX_TIMESTAMP) not in out
    before = [valve.watermark_from(channel, Watermark(MAX_TIMESTAMP)) for channel in (0, 1)]
    assert not any(Watermark(MAX_TIMESTAMP) in each for each in before), (
        "the third may still have records"
    )
    end = valve.watermark_from(2, Watermark(MAX_TIMESTAMP))
    assert end[-1] == Watermark(MAX_TIMESTAMP)
    statuses = [
        each for each in (*out, *before[0], *before[1], *end) if isinstance(each, WatermarkStatus)
    ]
    assert not statuses or statuses[-1] == ACTIVE


class Definition:
    """What the valve means, by looking at every channel each time."""

    def __init__(self, channels: int) -> None:
        self.marks = [MIN_TIMESTAMP] * channels
        self.emitted = MIN_TIMESTAMP
        self.is_idle = False
        self.time_ended = False
        self.idle = set[int]()
        self.ended = set[int]()
        self.aligned = set(range(channels))

    def take(self, channel: int, what: int | str) -> list[Watermark | WatermarkStatus]:
        if channel in self.ended or what == ("active" if channel not in self.idle else "idle"):
            return []
        if what == MAX_TIMESTAMP:
            self.time_ended = True
            return self.take(channel, "end")
        if isinstance(what, int):
            if channel in self.idle or what <= self.marks[channel]:
                return []
            self.marks[channel] = what
            self.aligned |= {channel} if what >= self.emitted else set()
            return self._advance(self._least())
        if what == "active":
            self.idle.remove(channel)
            self.aligned |= {channel} if self.marks[channel] >= self.emitted else set()
            was_idle, self.is_idle = self.is_idle, False
            return [ACTIVE] if was_idle else []
        (self.idle if what == "idle" else self.ended).add(channel)
        self.aligned.discard(channel)
        everybody = set(range(len(self.marks)))
        if everybody == self.ended:
            active = [ACTIVE] if self.time_ended and self.is_idle else []
            return [*active, *self._advance(MAX_TIMESTAMP)] if self.time_ended else []
        if everybody - self.ended - self.idle:
            return self._advance(self._least())
        out = self._advance(max(self.marks)) if self.marks[channel] >= self.emitted else []
        was_idle, self.is_idle = self.is_idle, True
        return out if was_idle else [*out, IDLE]

    def _least(self) -> int:
        return min((self.marks[channel] for channel in self.aligned), default=self.emitted)

    def _advance(self, timestamp: int) -> list[Watermark | WatermarkStatus]:
        if timestamp <= self.emitted:
            return []
        self.emitted = timestamp
        return [Watermark(timestamp)]


@given(st.integers(1, 4), st.data())
def test_it_gives_what_looking_at_every_channel_each_time_would(
    channels: int, data: st.DataObject
) -> None:
    valve, definition = WatermarkValve(channels), Definition(channels)
    words = st.sampled_from(["idle", "active", "end"])
    times = st.one_of(st.integers(0, 12), st.just(MAX_TIMESTAMP))
    for channel, what in data.draw(
        st.lists(st.tuples(st.integers(0, channels - 1), st.one_of(times, words)), max_size=80)
    ):
        if what == "end":
            out = valve.ended(channel)
        elif isinstance(what, str):
            out = valve.status_from(channel, IDLE if what == "idle" else ACTIVE)
        else:
            out = valve.watermark_from(channel, Watermark(what))
        assert out == definition.take(channel, what)


def test_what_it_remembers_does_not_grow_while_one_channel_stands_still() -> None:
    valve = WatermarkValve(3)
    for timestamp in range(10_000):
        assert valve.watermark_from(timestamp % 2, Watermark(timestamp)) == []
    assert sys.getsizeof(pickle.dumps(valve)) < 2000


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=60))
def test_with_active_channels_only_it_is_the_minimum(marks: list[tuple[int, int]]) -> None:
    valve, seen = WatermarkValve(4), [-1] * 4
    for channel, timestamp in marks:
        before = min(seen)
        seen[channel] = max(seen[channel], timestamp)
        expected = [Watermark(min(seen))] if min(seen) > before else []
        assert valve.watermark_from(channel, Watermark(timestamp)) == expected
