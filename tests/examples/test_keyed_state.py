"""The keyed state example."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from examples import keyed_state
from flinkpy.datastream import StreamExecutionEnvironment


@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_sums_are_those_of_all_sales_of_the_hour(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})
    env.set_parallelism(parallelism)
    expected: Counter[tuple[str, int]] = Counter()
    for shop, minute, amount in keyed_state.SALES:
        expected[shop, minute // 60] += amount
    with keyed_state.hourly_sales(env).execute_and_collect() as found:
        assert sorted(found) == sorted(
            (shop, hour, total) for (shop, hour), total in expected.items()
        )


def test_the_example_fits_on_a_screen() -> None:
    assert len(Path(keyed_state.__file__).read_text().splitlines()) < 80
