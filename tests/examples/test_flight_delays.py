from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from examples.flight_delays import DATA, flight_delays
from flinkpy.datastream import StreamExecutionEnvironment
from tests.waiting import PATIENCE_S

EXAMPLE = Path(__file__).parents[2] / "examples" / "flight_delays.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    """The same figures by pandas; a flight without a departure time was cancelled."""
    flights = pd.read_parquet(DATA)
    flights["cancelled"] = flights.dep_time.isna()
    groups = flights.groupby(["carrier", "origin"], as_index=False)
    return groups.agg(
        flights=("flight", "size"),
        mean_delay=("dep_delay", "mean"),
        worst_delay=("dep_delay", "max"),
        cancelled=("cancelled", "mean"),
    )


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_the_figures_are_exactly_those_of_pandas(expected: pd.DataFrame, parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    rows = [
        (row.carrier, row.origin, row.flights, row.mean_delay, row.worst_delay, row.cancelled)
        for row in flight_delays(env, DATA)
    ]
    assert rows == [tuple(row) for row in expected.itertuples(index=False)]


@pytest.mark.wide
def test_the_program_prints_the_table_and_nothing_else(expected: pd.DataFrame) -> None:
    done = run()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    figures, windows = done.stdout.split("\n\n")
    heading, rule, *lines = figures.splitlines()
    assert heading.split() == [
        "airline",
        "airport",
        "flights",
        "mean",
        "delay",
        "worst",
        "delay",
        "cancelled",
    ]
    assert set(rule) == {"-", " "}
    assert [" ".join(line.split()) for line in lines] == [
        (
            f"{row.carrier} {row.origin} {row.flights} {row.mean_delay:.1f} min "
            f"{row.worst_delay:.0f} min {row.cancelled:.1%}"
        )
        for row in expected.itertuples(index=False)
    ]
    assert [line.split(":")[0] for line in windows.splitlines()] == [
        *[
            f"{name} of {airport}"
            for name in ("worst hour", "worst 24 hours")
            for airport in ("EWR", "JFK", "LGA")
        ],
        "busiest aircraft",
        "visibility below 2 miles",
        "visibility 2 to 10 miles",
        "visibility 10 and more miles",
        "reports that came too late for their hour",
    ]


def test_a_missing_file_is_one_line_that_names_it(tmp_path: Path) -> None:
    done = run("--input", str(tmp_path / "none.parquet"))
    assert done.returncode != 0
    assert f"no such file or directory: {tmp_path}/none.parquet" in done.stderr.splitlines()[-1]
