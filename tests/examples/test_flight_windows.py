"""The windows of the flights example against the same computed by pandas, window by window,
embedded and on Ray."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from examples import flight_delays
from examples.flight_delays import BEHIND_MS, DATA, HOUR_MS, WEATHER, flight_windows
from flinkpy.datastream import StreamExecutionEnvironment
from tests.cluster.ray_fixture import RayCluster

pytestmark = pytest.mark.wide

DAY_MS, GAP_MS = 24 * HOUR_MS, 12 * HOUR_MS


@pytest.fixture(scope="module")
def reports() -> pd.DataFrame:
    """In the order they came, with the watermark each one met."""
    flights = pd.read_parquet(
        DATA, columns=["time_hour", "minute", "origin", "tailnum", "dep_delay"]
    )
    hours = flights.time_hour.map(lambda hour: int(pd.Timestamp(hour).timestamp()) * 1000)
    flights["time"] = hours + flights.minute * 60_000
    flights["watermark"] = (flights.time.cummax() - BEHIND_MS - 1).shift(fill_value=-(1 << 60))
    return flights


Told = dict[tuple[str, int], tuple[int, int, float]]


def sums(chosen: pd.DataFrame, window: str, key: str = "origin") -> Told:
    """(key, window) -> departures, cancelled, minutes."""
    cancelled = chosen.dep_delay.isna()
    groups = chosen.assign(
        cancelled=cancelled, departed=~cancelled, minutes=chosen.dep_delay.fillna(0.0)
    ).groupby([key, window])
    return {
        (str(name[0]), int(name[1])): (int(row.departed), int(row.cancelled), float(row.minutes))
        for name, row in groups[["departed", "cancelled", "minutes"]].sum().iterrows()
    }


def expected_hours(reports: pd.DataFrame) -> tuple[Told, Counter[tuple[str, int]], int]:
    """The last figures of each hour, how often each was told, and how many reports were too
    late."""
    hour = reports.time // HOUR_MS * HOUR_MS
    end = hour + HOUR_MS - 1
    too_late = end + HOUR_MS <= reports.watermark
    counted = reports.assign(hour=hour, again=end <= reports.watermark)[~too_late]
    told: Counter[tuple[str, int]] = Counter()
    for (origin, begin), group in counted.groupby(["origin", "hour"]):
        told[origin, begin] = int(group.again.sum()) + int(not group.again.all())
    return sums(counted, "hour"), told, int(too_late.sum())


def expected_days(reports: pd.DataFrame) -> Told:
    found = []
    last = reports.time // HOUR_MS * HOUR_MS
    for back in range(24):
        begin = last - back * HOUR_MS
        found.append(reports.assign(begin=begin)[begin + DAY_MS - 1 > reports.watermark])
    return sums(pd.concat(found), "begin")


def expected_aircraft(reports: pd.DataFrame) -> Iterator[tuple[str, int, int, int]]:
    """(tail, begin, end, reports), one report after the other: sessions behind the watermark are
    over."""
    sessions: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for tail, time, watermark in (
        reports[["tailnum", "time", "watermark"]].dropna().itertuples(index=False)
    ):
        begin, end, count = time, time + GAP_MS, 1
        is_open = [each for each in sessions[tail] if each[1] - 1 > watermark]
        yield from ((tail, *each) for each in sessions[tail] if each[1] - 1 <= watermark)
        touched = [each for each in is_open if each[0] <= end and begin <= each[1]]
        merged = (
            min([begin, *(each[0] for each in touched)]),
            max([end, *(each[1] for each in touched)]),
            count + sum(each[2] for each in touched),
        )
        late = merged[1] - 1 <= watermark
        sessions[tail] = [each for each in is_open if each not in touched] + (
            [] if late else [merged]
        )
    for tail, left in sessions.items():
        yield from ((tail, *each) for each in left)


def expected_weather(reports: pd.DataFrame) -> Counter[tuple[str, int, float | None, float | None]]:
    hours = pd.read_parquet(WEATHER, columns=["origin", "time_hour", "visib"])
    by_hour = {
        (hour.origin, pd.Timestamp(hour.time_hour).timestamp() * 1000): hour.visib
        for hour in hours.itertuples()
    }
    joined: Counter[tuple[str, int, float | None, float | None]] = Counter()
    for report in reports[reports.time >= reports.watermark].itertuples():
        hour = (report.origin, float(report.time // HOUR_MS * HOUR_MS))
        if hour in by_hour:
            joined[
                report.origin, report.time, _or_none(by_hour[hour]), _or_none(report.dep_delay)
            ] += 1
    return joined


def _or_none(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


class Expected:
    """What pandas says, computed once."""

    def __init__(self, reports: pd.DataFrame) -> None:
        self.last, self.told, self.late = expected_hours(reports)
        self.days, self.weather = expected_days(reports), expected_weather(reports)
        self.aircraft = Counter(expected_aircraft(reports))


@pytest.fixture(scope="module")
def expected(reports: pd.DataFrame) -> Expected:
    return Expected(reports)


def check(found: dict[str, list[Any]], expected: Expected) -> None:
    assert {
        (key, begin): tuple(figures[1:]) for _, key, begin, _, figures in found["hour"]
    } == expected.last
    assert Counter((each[1], each[2]) for each in found["hour"]) == expected.told
    assert len(found["late"]) == expected.late > 0
    assert {
        (key, begin): tuple(figures[1:]) for _, key, begin, _, figures in found["day"]
    } == expected.days
    assert {each[3] - each[2] for each in found["day"]} == {DAY_MS}
    aircraft = Counter(
        (key, begin, end, figures[1] + figures[2])
        for _, key, begin, end, figures in found["aircraft"]
    )
    assert aircraft == expected.aircraft
    assert Counter(tuple(each[1:]) for each in found["weather"]) == expected.weather


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_window_is_that_of_pandas(expected: Expected, parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    check(flight_windows(env, DATA, WEATHER), expected)


ON_RAY = """
import json, sys
from flight_delays import flight_windows
from flinkpy.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
print(json.dumps(flight_windows(env, *sys.argv[1:])))
"""


@pytest.mark.ray
@pytest.mark.timeout(400)
def test_every_window_is_that_of_pandas_on_ray_too(ray: RayCluster, expected: Expected) -> None:
    ray.job(Path(flight_delays.__file__).read_text(), "flight_delays.py")
    outcome = ray.flinkpy(
        "run", "-t", "ray", "-p", "2", ray.job(ON_RAY), str(DATA), str(WEATHER), timeout=300
    )
    assert outcome.code == 0, outcome.err
    check(defaultdict(list, json.loads(outcome.out)), expected)
