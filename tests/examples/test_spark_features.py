"""The features' example: what comes out is what pandas computes. It needs Ray and no Spark."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from examples.stream_features import DATA, features
from flinkpy.datastream import StreamExecutionEnvironment
from tests.cluster.ray_fixture import RayCluster, finish

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream_features.py"
KNOWN = [
    "origin",
    "dest",
    "carrier",
    "distance",
    "month",
    "hour",
    "mean_delay",
    "departures",
    "is_late",
]


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    flights = pd.read_parquet(DATA)
    flights = flights[flights.dep_delay.notna()].copy()
    flights["at"] = pd.to_datetime(flights.time_hour)
    hours = (
        flights.groupby(["origin", "at"])
        .agg(minutes=("dep_delay", "sum"), departures=("dep_delay", "count"))
        .reset_index()
    )
    spread = pd.concat(
        [hours.assign(at=hours["at"] + pd.Timedelta(hours=shift)) for shift in (1, 2, 3)]
    )
    before = spread.groupby(["origin", "at"], as_index=False).sum()
    before["mean_delay"] = before.minutes / before.departures
    joined = flights.merge(before, on=["origin", "at"])
    joined["is_late"] = (joined.dep_delay > 15).astype(int)
    return joined[KNOWN].sort_values(KNOWN).reset_index(drop=True)


@pytest.mark.wide
@pytest.mark.parametrize("parallelism", [1, 2])
def test_each_flight_has_the_three_hours_before_it_as_pandas_has_them(
    expected: pd.DataFrame, parallelism: int
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(parallelism)
    found = features(env).to_pandas()[KNOWN].sort_values(KNOWN).reset_index(drop=True)
    assert len(found) > 20_000
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-12)


@pytest.mark.wide
@pytest.mark.ray
def test_the_program_reads_them_as_a_ray_dataset(expected: pd.DataFrame, ray: RayCluster) -> None:
    done = finish(ray.python(str(EXAMPLE)))
    assert done.code == 0, done.err
    bad = expected.mean_delay > 15
    late = expected.is_late
    assert done.out.splitlines()[-2:] == [
        f"{len(expected)} flights with features {', '.join(KNOWN[:-1])}",
        (
            f"late: {late[bad].mean():.1%} after three bad hours, {late[~bad].mean():.1%} "
            "after good ones"
        ),
    ]
