"""The examples of timers and of state that expires."""

from __future__ import annotations

import pytest

from examples import state_ttl, timers
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing import KeyedOneInputHarness

HOUR_MS = 3_600_000


@pytest.mark.parametrize("parallelism", [1, 2])
def test_sensors_that_fall_silent_are_reported(parallelism: int) -> None:
    # cellar: 10, 90 (80 later), then nothing; roof: never more than 55 apart, then nothing after
    # 200
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(parallelism)
    with timers.silences(env).execute_and_collect() as found:
        assert sorted(found) == [
            ("cellar", "back at", 90),
            ("cellar", "silent since", 10),
            ("cellar", "silent since", 90),
            ("roof", "silent since", 200),
        ]


def test_a_silence_is_told_when_event_time_has_passed_it() -> None:
    with KeyedOneInputHarness(timers.Silence(), lambda reading: reading[0]) as harness:
        harness.push(("roof", 0), timestamp=0)
        harness.push_watermark(59_999)
        assert harness.output == []
        harness.push_watermark(60_000)
        assert harness.output == [("roof", "silent since", 0)]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_the_first_click_of_a_visitor_on_an_article_counts(backend: str, parallelism: int) -> None:
    if backend == "rocksdb":
        pytest.importorskip("rocksdict")
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(parallelism)
    env.set_state_backend(state_ttl.BACKENDS[backend]())
    with state_ttl.counted(env).execute_and_collect() as found:
        assert sorted(found) == sorted(set(state_ttl.CLICKS))


def test_after_an_hour_a_click_counts_again() -> None:
    with KeyedOneInputHarness(state_ttl.FirstOfTheHour(), lambda click: click[0]) as harness:
        click = ("ann", "news")
        harness.push(click)
        harness.set_processing_time(HOUR_MS - 1)
        harness.push(click)
        assert harness.output == [click]
        harness.set_processing_time(HOUR_MS)
        harness.push(click)
        assert harness.output == [click, click]
