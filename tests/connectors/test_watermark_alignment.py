"""Alignment groups: who is ahead of the slowest by more than the drift stops reading, and goes on
when that one has come nearer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.watermark_strategy import WatermarkAlignment, WatermarkStrategy
from flinkpy.connectors.source_api.watermark_alignment import (
    AlignmentGroups,
    ReaderAlignment,
    WatermarkAllowed,
    WatermarkReported,
)
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.operators.base import InputStatus
from tests.connectors.event_time_harness import END, EventTimeSource

DRIFT = 100
ALIGNED = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
    "group", timedelta(milliseconds=DRIFT), timedelta(seconds=1)
)


def answers_to(
    groups: AlignmentGroups,
    member: str,
    watermark: int,
    *,
    waiting: bool,
    group: str = "group",
    drift: int = DRIFT,
) -> list[int]:
    """Where the answers will stand."""
    answers: list[int] = []
    groups.report(
        member,
        WatermarkReported(group, watermark, drift, waiting),
        lambda answer: answers.append(answer.watermark),
    )
    return answers


# -- the JobMaster's side --------------------------------------------------------------------------


def test_a_reader_that_waits_is_answered_when_the_slowest_comes_near() -> None:
    groups = AlignmentGroups()
    answers_to(groups, "slow", 0, waiting=False)
    fast = answers_to(groups, "fast", 101, waiting=True)
    assert fast == []
    answers_to(groups, "slow", 1, waiting=False)
    assert fast == [101]
    answers_to(groups, "slow", 50, waiting=False)
    assert fast == [101]  # once


def test_the_slowest_and_one_alone_never_wait() -> None:
    groups = AlignmentGroups()
    assert answers_to(groups, "only", 5_000, waiting=True) == [5_100]
    assert answers_to(groups, "only", 9_000, waiting=True) == [9_100]
    assert answers_to(groups, "slower", 1_000, waiting=True) == [1_100]


def test_groups_do_not_know_each_other() -> None:
    groups = AlignmentGroups()
    answers_to(groups, "slow", 0, waiting=False, group="others")
    assert answers_to(groups, "fast", 1_000, waiting=True) == [1_100]
    assert (groups.slowest("others"), groups.slowest("group"), groups.slowest("none")) == (
        0,
        1_000,
        None,
    )


def test_nobody_waits_for_a_failed_attempt_and_it_is_not_answered() -> None:
    groups = AlignmentGroups()
    answers_to(groups, "slow", 0, waiting=False)
    fast = answers_to(groups, "fast", 500, waiting=True)
    lost = answers_to(groups, "lost", 600, waiting=True)
    groups.forget("lost")
    groups.forget("slow")
    assert (fast, lost) == ([600], [])
    groups.forget("slow")  # again does no harm


def test_an_idle_or_ended_reader_holds_nobody_back() -> None:
    groups = AlignmentGroups()
    answers_to(groups, "slow", 0, waiting=False)
    fast = answers_to(groups, "fast", 500, waiting=True)
    answers_to(groups, "slow", MAX_TIMESTAMP, waiting=False)
    assert fast == [600]
    assert answers_to(groups, "slow", MAX_TIMESTAMP - 5, waiting=True) == []
    answers_to(groups, "fast", MAX_TIMESTAMP, waiting=False)
    assert groups.slowest("group") == MAX_TIMESTAMP - 5


@given(st.lists(st.lists(st.integers(1, 300), max_size=20), min_size=1, max_size=4), st.data())
def test_no_reader_runs_away_and_all_come_to_their_end(
    steps: list[list[int]], data: st.DataObject
) -> None:
    """Readers whose event time grows by such steps; messages take as long as is drawn, in order for
    each reader."""
    groups = AlignmentGroups()
    alignment = WatermarkAlignment("group", timedelta(milliseconds=DRIFT), timedelta(seconds=1))
    to_master: list[list[WatermarkReported]] = [[] for _ in steps]
    to_reader: list[list[WatermarkAllowed]] = [[] for _ in steps]
    readers = [ReaderAlignment(alignment, queue.append) for queue in to_master]
    times, left = [MIN_TIMESTAMP] * len(steps), [list(one) for one in steps]
    said: dict[int, int] = {}  # what the JobMaster has heard

    def moves() -> list[tuple[str, int]]:
        able = [
            ("read", n) for n in range(len(steps)) if left[n] is not None and not readers[n].waiting
        ]
        return (
            able
            + [("up", n) for n in range(len(steps)) if to_master[n]]
            + [("down", n) for n in range(len(steps)) if to_reader[n]]
        )

    while able := moves():
        move, n = data.draw(st.sampled_from(able))
        if move == "up":
            event = to_master[n].pop(0)
            said[n] = event.watermark
            before = sum(map(len, to_reader))
            groups.report(n, event, to_reader[n].append)
            answers = [queue[-1].watermark for queue in to_reader if queue]
            assert (
                sum(map(len, to_reader)) == before
                or min(MAX_TIMESTAMP, min(said.values()) + DRIFT) in answers
            )
        elif move == "down":
            readers[n].allowed(to_reader[n].pop(0))
        elif not readers[n].must_wait(times[n]):
            if left[n]:
                times[n] = max(times[n], 0) + left[n].pop(0)
            else:
                readers[n].tick(MAX_TIMESTAMP)
                left[n] = None  # type: ignore[call-overload]
    assert all(one is None for one in left)


# -- the reader's side -----------------------------------------------------------------------------


def test_a_source_stops_reading_beyond_what_it_was_allowed_and_asks() -> None:
    source = EventTimeSource(ALIGNED)
    source.reader.script.extend([[1000], [1050], [1101], [1102], [1103]])
    assert source.read() is InputStatus.NOTHING_AVAILABLE
    # 1100, the watermark behind the last, is the first beyond 999 + 100
    assert source.output.elements == [1000, 1050, 1101]
    assert source.sent == [
        WatermarkReported("group", 999, DRIFT, False),
        WatermarkReported("group", 1100, DRIFT, True),
    ]
    assert source.read() is InputStatus.NOTHING_AVAILABLE
    assert len(source.sent) == 2  # it asks once
    source.tell(WatermarkAllowed(1200))
    assert source.wakes == 1
    assert source.read() is InputStatus.NOTHING_AVAILABLE
    assert source.output.elements == [1000, 1050, 1101, 1102, 1103]


def test_it_says_where_it_is_every_interval_if_that_changed() -> None:
    source = EventTimeSource(ALIGNED)
    source.pass_seconds(1)
    assert source.sent == []  # nothing read yet
    source.reader.script.extend([[10], [20]])
    source.read()
    source.pass_seconds(1)
    source.pass_seconds(1)
    assert [event.watermark for event in source.sent] == [9, 19]


def test_at_its_end_and_when_idle_it_holds_nobody_back() -> None:
    source = EventTimeSource(ALIGNED.with_idleness(timedelta(seconds=2)))
    source.reader.script.append([10])
    source.read()
    for _ in range(60):
        source.pass_seconds(0.2)
    assert [event.watermark for event in source.sent] == [9, MAX_TIMESTAMP]
    source.reader.script.extend([[20], END])
    assert source.read() is InputStatus.END_OF_INPUT
    assert source.sent[-1].watermark == MAX_TIMESTAMP
    source.pass_seconds(5)  # what follows the source may take long to end
    assert source.sent[-1].watermark == MAX_TIMESTAMP


def test_without_a_group_nothing_is_said() -> None:
    source = EventTimeSource(WatermarkStrategy.for_monotonous_timestamps())
    source.reader.script.extend([[10], [10_000], [10_000_000]])
    source.read()
    source.pass_seconds(10)
    assert source.sent == []
    assert source.output.elements[:3] == [10, 10_000, 10_000_000]


# -- the whole -------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2])
def test_two_sources_of_a_job_keep_together(parallelism: int) -> None:
    from flinkpy.connectors.memory.ranges import NumberSequenceSource
    from flinkpy.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "taskmanager.network.batch.max-records": 16}
    )
    env.set_parallelism(parallelism)
    strategy: Any = (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(lambda value: value)
        .with_watermark_alignment("both", timedelta(milliseconds=DRIFT), timedelta(milliseconds=10))
    )
    streams = [
        env.from_source(NumberSequenceSource(0, end), strategy, f"to {end}") for end in (3000, 1500)
    ]
    with (
        streams[0]
        .map(lambda value: ("long", value))
        .union(streams[1].map(lambda value: ("short", value)))
        .execute_and_collect() as results
    ):
        found = list(results)
    assert sorted(found) == sorted(
        [("long", value) for value in range(3001)] + [("short", value) for value in range(1501)]
    )
