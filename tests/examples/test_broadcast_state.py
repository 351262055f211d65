"""The broadcast state example."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import broadcast_state
from flinkpy.datastream import StreamExecutionEnvironment


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_payments_over_their_countrys_limit_are_found(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})
    env.set_parallelism(parallelism)
    limits = dict(broadcast_state.LIMITS)
    with broadcast_state.over_the_limit(env).execute_and_collect() as found:
        assert sorted(found) == sorted(
            payment for payment in broadcast_state.PAYMENTS if payment[2] > limits[payment[1]]
        )


def test_the_example_fits_on_a_screen() -> None:
    assert len(Path(broadcast_state.__file__).read_text().splitlines()) < 80
