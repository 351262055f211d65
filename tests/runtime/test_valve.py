"""The watermark valve against its definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import Watermark, WatermarkStatus
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


steps = st.lists(st.tuples(st.integers(0, 2), st.one_of(st.integers(0, 30), st.sampled_from(["idle", "active", "end"]))), max_size=40)


@given(steps)
def test_the_output_never_goes_back_and_statuses_alternate(taken: list[tuple[int, int | str]]) -> None:
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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=60))
def test_with_active_channels_only_it_is_the_minimum(marks: list[tuple[int, int]]) -> None:
    valve, seen = WatermarkValve(4), [-1] * 4
    for channel, timestamp in marks:
        before = min(seen)
        seen[channel] = max(seen[channel], timestamp)
        expected = [Watermark(min(seen))] if min(seen) > before else []
        assert valve.watermark_from(channel, Watermark(timestamp)) == expected
