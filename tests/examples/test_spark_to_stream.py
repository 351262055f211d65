"""The Spark example end to end, each of its programs in a process of its own on a private Ray
cluster; what it writes is what pandas computes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cluster.ray_fixture import ray_cluster, started_ray

pytest.importorskip(
    "pyspark", reason="needs the extra: pip install 'flinkpy[spark]', or make test-spark"
)
pytest.importorskip(
    "raydp", reason="needs the extra: pip install 'flinkpy[spark]', or make test-spark"
)
pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = EXAMPLES / "data"


def as_a_program(folder: Path) -> str:
    with ray_cluster(folder) as cluster:
        command = [
            sys.executable,
            str(EXAMPLES / "spark_to_stream.py"),
            "--output",
            "out",
            "-p",
            "2",
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=360,
            check=False,
            cwd=folder,
            env=cluster.environment,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_a_ray_job(folder: Path) -> str:
    """From another working directory than the example's, into a cluster that `ray start --head`
    began."""
    if find_spec("aiohttp_cors") is None:
        pytest.skip("needs ray[default], which takes Ray jobs")
    with started_ray(folder) as ray:
        done = ray.ray_job(
            "submit",
            "--",
            "python",
            str(EXAMPLES / "spark_to_stream.py"),
            "--output",
            str(folder / "out"),
            timeout=360,
        )
    assert done.code == 0, done.err + done.out
    return done.out


@pytest.fixture(scope="module", params=[as_a_program, as_a_ray_job])
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """The folder the example wrote to, and what it printed."""
    from flinkpy.spark.java import use_java

    folder = tmp_path_factory.mktemp("disruption")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.environ["PATH"])
        patch.setenv("JAVA_HOME", str(use_java()))  # before Ray: its nodes need a Java
        return folder / "out", request.param(folder)


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    """Airports' hours by pandas alone."""
    flights = pd.read_parquet(DATA / "flights.parquet").drop_duplicates(
        ["time_hour", "minute", "carrier", "flight", "origin", "dest"]
    )
    seats = pd.read_csv(DATA / "planes.csv").set_index("tailnum").seats
    names = pd.read_csv(DATA / "airports.csv").set_index("faa").name
    flights["seats"] = flights.tailnum.map(seats).fillna(150)
    flights["lost"] = np.where(flights.dep_delay > 0, flights.dep_delay * flights.seats, 0) / 60
    flights["hour"] = pd.to_datetime(flights.time_hour)
    hours = flights.groupby(["origin", "hour"], as_index=False).agg(
        departures=("dep_delay", "count"),
        minutes=("dep_delay", "sum"),
        cancelled=("dep_delay", lambda delay: delay.isna().sum()),
        passenger_hours=("lost", "sum"),
    )
    weather = pd.read_parquet(DATA / "weather.parquet").drop_duplicates(["origin", "time_hour"])
    weather["hour"] = pd.to_datetime(weather.time_hour)
    hours = hours.merge(weather[["origin", "hour", "visib", "precip", "wind_speed"]], how="left")
    hours["weather"] = np.select(
        [hours.visib < 3, hours.precip > 0, hours.wind_speed >= 20, hours.visib.notna()],
        ["fog", "rain or snow", "wind", "fair"],
        "unknown",
    )
    sums = hours.groupby(["origin", "weather"])[["minutes", "departures"]].transform("sum")
    hours["usual_delay"] = sums.minutes / sums.departures
    hours = hours[hours.departures > 0].copy()
    hours["airport"] = hours.origin.map(names)
    hours["mean_delay"] = hours.minutes / hours.departures
    hours["excess"] = hours.mean_delay - hours.usual_delay
    hours["is_disrupted"] = (hours.excess > 15).astype(int)
    return hours.sort_values(["hour", "origin"]).reset_index(drop=True)


def test_every_hour_is_judged_as_pandas_judges_it(
    written: tuple[Path, str], expected: pd.DataFrame
) -> None:
    hours = pd.read_csv(written[0] / "disrupted_hours.csv", parse_dates=["hour"])
    hours["hour"] = hours.hour.dt.tz_localize("UTC") if hours.hour.dt.tz is None else hours.hour
    assert len(hours) == len(expected) > 1600
    pd.testing.assert_frame_equal(
        hours, expected[list(hours.columns)], check_dtype=False, rtol=1e-12
    )
    assert 0 < expected.is_disrupted.sum() < len(expected) / 4  # the question is a real one


def test_the_months_sum_them_up_and_are_printed(
    written: tuple[Path, str], expected: pd.DataFrame
) -> None:
    report = pd.read_csv(written[0] / "disruption.csv")
    expected["month"] = expected.hour.dt.tz_convert("America/New_York").dt.strftime("%Y-%m")
    expected["lost"] = expected.passenger_hours * expected.is_disrupted
    sums = expected.groupby(["month", "airport"], as_index=False).agg(
        hours=("hour", "size"),
        disrupted=("is_disrupted", "sum"),
        departures=("departures", "sum"),
        cancelled=("cancelled", "sum"),
        worst_excess=("excess", "max"),
        lost_hours=("lost", "sum"),
    )
    pd.testing.assert_frame_equal(report, sums, check_dtype=False, rtol=1e-9)
    table = [line for line in written[1].splitlines() if line.startswith("2013-")]
    assert [" ".join(line.split()[1:-6]) for line in table] == [
        "John F Kennedy Intl",
        "La Guardia",
        "Newark Liberty Intl",
    ]


def test_the_days_are_drawn(written: tuple[Path, str]) -> None:
    pytest.importorskip("matplotlib")
    assert (written[0] / "disruption.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "the days' chart:" in written[1]
