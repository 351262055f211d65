"""The example of messy CSV: what is clean is there, and what is not is told with its place."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from examples import messy_csv
from flinkpy.datastream import StreamExecutionEnvironment
from tests.examples.test_examples import run


def test_what_is_right_is_written_and_what_is_wrong_is_told(tmp_path: Path) -> None:
    messy_csv.make_files(tmp_path / "messy")
    env = StreamExecutionEnvironment.get_execution_environment()
    messy_csv.clean(env, tmp_path / "messy", tmp_path / "tidy", tmp_path / "broken")
    tidy = env.from_parquet(tmp_path / "tidy").to_arrow().to_pylist()
    first, second = datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)
    assert sorted((row["day"], row["item"], row["pieces"], row["price"]) for row in tidy) == [
        (first, "a mug\nwith two lines", 1, 12.0),
        (first, "tea, green", 2, 3.5),
        (second, "cake", 1, 3.0),
        (second, "coffee", 3, 4.5),
        (second, "umbrella", 7, 19.9),
    ]
    assert {path.parent.name for path in (tmp_path / "tidy").rglob("*.parquet")} == {
        "day=2024-05-01",
        "day=2024-05-02",
    }
    broken = sorted(env.from_csv(tmp_path / "broken").take(100), key=tuple)
    assert [(row.file, row.line, row.text) for row in broken] == [
        ("bergen.csv.gz", 3, "2024-05-02,umbr"),
        ("oslo.csv", 5, "2024-05-02,coffee,three,4.5"),
        ("rome.csv", 4, "2024-05-01,espresso,4,1.2,again"),
        ("rome.csv", 5, "yesterday,cake,1,3"),
    ]
    assert [
        "got 2" in broken[0].why,
        "'three'" in broken[1].why,
        "got 5" in broken[2].why,
        "'yesterday'" in broken[3].why,
    ] == [True] * 4


@pytest.mark.wide
def test_the_example_prints_both() -> None:
    printed = run("messy_csv.py")
    assert "umbrella" in printed
    assert "oslo.csv, line 5: '2024-05-02,coffee,three,4.5': " in printed
