"""Restart strategies hear times and answer with pauses."""

from __future__ import annotations

import pytest

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import SchedulingStrategyKind
from flinkpy.scheduler.restart import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartStrategy,
    SchedulerConfig,
)


def pauses(strategy: RestartStrategy, *times: float) -> list[float | None]:
    return [strategy.on_failure(at) for at in times]


def test_without_a_strategy_the_first_failure_is_the_last() -> None:
    assert pauses(NoRestart(), 0.0) == [None]


def test_fixed_delay_gives_up_after_its_attempts() -> None:
    assert pauses(FixedDelay(2, 5.0), 0.0, 100.0, 200.0) == [5.0, 5.0, None]
    assert pauses(FixedDelay(0, 5.0), 0.0) == [None]


def test_failure_rate_gives_up_when_failures_come_too_close() -> None:
    assert pauses(FailureRate(2, 60.0, 1.0), 0.0, 10.0, 20.0) == [1.0, 1.0, None]
    assert pauses(FailureRate(2, 60.0, 1.0), 0.0, 10.0, 61.0, 80.0, 100.0) == [
        1.0,
        1.0,
        1.0,
        1.0,
        None,
    ]


def test_exponential_delay_grows_up_to_its_bound_and_starts_small_again_after_a_good_run() -> None:
    assert pauses(ExponentialDelay(1.0, 5.0, 2.0, 100.0, None), 0.0, 1.0, 2.0, 3.0, 4.0, 200.0) == [
        1.0,
        2.0,
        4.0,
        5.0,
        5.0,
        1.0,
    ]


def test_exponential_delay_gives_up_after_its_attempts_in_a_row() -> None:
    assert pauses(ExponentialDelay(1.0, 5.0, 2.0, 100.0, 2), 0.0, 200.0, 201.0, 202.0) == [
        1.0,
        1.0,
        2.0,
        None,
    ]


def test_the_configuration_names_the_strategies() -> None:
    config = SchedulerConfig.of(
        {
            "restart-strategy": "fixeddelay",
            "restart-strategy.fixed-delay.attempts": "3",
            "restart-strategy.fixed-delay.delay": "250 ms",
            "jobmanager.scheduler.strategy": "lazy-from-sources",
        }
    )
    assert config.strategy is SchedulingStrategyKind.LAZY_FROM_SOURCES
    assert pauses(config.restart_strategy(), 0, 0, 0, 0) == [0.25, 0.25, 0.25, None]
    assert isinstance(SchedulerConfig.of({}).restart_strategy(), NoRestart)
    assert isinstance(
        SchedulerConfig.of({"restart-strategy.type": "failure-rate"}).restart_strategy(),
        FailureRate,
    )
    assert isinstance(
        SchedulerConfig.of({"restart-strategy.type": "exponential-delay"}).restart_strategy(),
        ExponentialDelay,
    )


def test_a_job_with_checkpoints_restarts_unless_it_says_otherwise() -> None:
    every_second = {"execution.checkpointing.interval": "1 s"}
    assert isinstance(SchedulerConfig.of(every_second).restart_strategy(), ExponentialDelay)
    assert isinstance(
        SchedulerConfig.of({**every_second, "restart-strategy": "none"}).restart_strategy(),
        NoRestart,
    )
    assert isinstance(
        SchedulerConfig.of({**every_second, "execution.runtime-mode": "BATCH"}).restart_strategy(),
        NoRestart,
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"restart-strategy.type": "sometimes"}, "'sometimes' is none of none, fixed-delay"),
        (
            {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": -1},
            "attempts: -1 is too small",
        ),
        (
            {
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.backoff-multiplier": 0.5,
            },
            "0.5 is too small",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SchedulerConfig.of(values)


def test_a_job_whose_worker_was_lost_restarts_at_once_unless_it_had_failed_a_moment_before() -> (
    None
):
    strategy = SchedulerConfig.of({"restart-strategy.type": "exponential-delay"}).restart_strategy()
    losses = [
        strategy.on_failure(at, worker_lost=True) for at in (0.0, 5.0, 30.0, 31.0, 32.0, 60.0)
    ]
    assert losses == [0.05, 0.05, 0.05, 1.0, 1.5, 0.05]
    assert strategy.on_failure(100.0) == 1.5 * 1.5
    chosen = SchedulerConfig.of(
        {
            "restart-strategy.type": "exponential-delay",
            "restart-strategy.exponential-delay.initial-backoff": "2 s",
        }
    )
    assert chosen.restart_strategy().on_failure(0.0, worker_lost=True) == 2.0
