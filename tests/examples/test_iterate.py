"""The loop example."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import iterate
from flinkpy.datastream import StreamExecutionEnvironment


def rounds(number: int) -> int:
    return 0 if number == 1 else 1 + rounds(number // 2 if number % 2 == 0 else 3 * number + 1)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_number_goes_round_as_often_as_the_rule_says(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})
    env.set_parallelism(parallelism)
    with iterate.rounds_of(env, iterate.LAST).execute_and_collect() as found:
        assert sorted(found) == [(number, rounds(number)) for number in range(2, iterate.LAST + 1)]


def test_the_example_fits_on_a_screen() -> None:
    assert len(Path(iterate.__file__).read_text().splitlines()) < 80
