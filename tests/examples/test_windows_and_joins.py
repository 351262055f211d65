"""The examples of windows and joins. What they are to give was worked out by hand from Flink's
rules, not taken from a run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from examples import columnar_windows, count_windows, joins, windows
from flinkpy.common import Types
from flinkpy.datastream import DataStream, StreamExecutionEnvironment


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(parallelism)


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as results:
        return sorted(results)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_minute_is_told_when_it_is_over_and_again_for_what_is_a_little_late(
    parallelism: int,
) -> None:
    # The request of second 30 comes when time stands at 62, that of 40 when it stands at 71: ten
    # seconds behind 60 and no longer.
    assert collected(windows.minutes(windows.requests(environment(parallelism)))) == [
        ("help", 60, 120, 2),
        ("home", 0, 60, 3),
        ("home", 0, 60, 4),
        ("home", 60, 120, 1),
        ("home", 120, 180, 1),
    ]


def test_what_is_too_late_for_its_minute_goes_aside() -> None:
    assert collected(
        windows.minutes(windows.requests(environment())).get_side_output(windows.TOO_LATE)
    ) == [("home", 40)]


def test_late_requests_still_count_in_the_sliding_windows_that_are_not_over() -> None:
    assert collected(windows.every_half_minute(windows.requests(environment()))) == [
        ("help", 30, 90, 2),
        ("help", 60, 120, 2),
        ("home", -30, 30, 1),
        ("home", 0, 60, 3),
        ("home", 30, 90, 5),
        ("home", 60, 120, 1),
        ("home", 90, 150, 1),
        ("home", 120, 180, 1),
    ]


def test_a_late_request_that_touches_an_open_visit_belongs_to_it() -> None:
    # 40 until 60 overlaps the visit from 58 on, which is still open; 30 until 50 overlaps none and
    # is over.
    assert collected(windows.visits(windows.requests(environment()))) == [
        ("help", 61, 93, 2),
        ("home", 5, 25, 1),
        ("home", 40, 84, 4),
        ("home", 125, 145, 1),
    ]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_orders_meet_payments_of_their_window_or_within_ten_minutes(parallelism: int) -> None:
    def streams() -> tuple[DataStream, DataStream]:
        env = environment(parallelism)
        return joins.by_time(env, joins.ORDERS, Types.STRING()), joins.by_time(
            env, joins.PAYMENTS, Types.INT()
        )

    assert collected(joins.in_one_window(*streams())) == [("rice", 420), ("tea", 300)]
    assert collected(joins.in_time(*streams())) == [
        ("oats", 250, 2),
        ("rice", 420, 7),
        ("tea", 300, 3),
    ]
    assert collected(joins.unpaid(*streams())) == ["oats", "salt"]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_means_are_those_of_so_many_records(parallelism: int) -> None:
    assert collected(
        count_windows.means_of_two(count_windows.measured(environment(parallelism)))
    ) == [("a", 1.5), ("a", 3.5), ("b", 15.0), ("b", 60.0)]
    assert collected(
        count_windows.moving_means(count_windows.measured(environment(parallelism)))
    ) == [("a", 1.5), ("a", 3.0), ("b", 15.0), ("b", (20.0 + 90.0 + 30.0) / 3)]
    assert collected(
        count_windows.means_near_the_last(count_windows.measured(environment(parallelism)))
    ) == [("a", 2.5), ("b", 20.0)]


def test_columnar_hours_are_those_pandas_finds() -> None:
    import pandas as pd

    frame = pd.read_parquet(columnar_windows.DATA)
    expected = (
        frame[frame.dep_delay.notna()]
        .groupby(["origin", "time_hour"])
        .dep_delay.agg(["count", "mean", "max"])
    )
    found = {}
    for row in columnar_windows.hours(environment(2)).to_arrow().to_pylist():
        hour = (row["window_end"] - row["window_start"]).total_seconds()
        key = row["origin"], datetime.isoformat(row["window_start"]) + "Z"
        assert hour == 3600
        assert key not in found
        found[key] = row["flights"], round(row["mean_delay"], 6), row["worst_delay"]
    assert found == {
        (str(origin), str(when)): (int(of["count"]), round(float(of["mean"]), 6), float(of["max"]))
        for (origin, when), of in expected.iterrows()
    }
