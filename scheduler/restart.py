"""Restart strategies: whether to restart after a failure, and after which pause. Small objects that
get nothing but the times of failures."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options import engine as options
from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.core.options.engine import SchedulingStrategyKind
from flinkpy.core.options.schema import read


class RestartStrategy(Protocol):
    def on_failure(self, now: float, worker_lost: bool = False) -> float | None:
        """The job failed, perhaps because a worker was lost: the pause in seconds before it
        restarts, or None to give up."""
        ...


class NoRestart:
    """The first failure ends the job."""

    def on_failure(self, now: float, worker_lost: bool = False) -> float | None:
        return None


class FixedDelay:
    """A number of restarts, each after the same pause."""

    def __init__(self, attempts: int, delay_s: float) -> None:
        self._left, self._delay_s = attempts, delay_s

    def on_failure(self, now: float, worker_lost: bool = False) -> float | None:
        self._left -= 1
        return self._delay_s if self._left >= 0 else None


class FailureRate:
    """Restarts unless there were more than ``max_failures`` within the interval."""

    def __init__(self, max_failures: int, interval_s: float, delay_s: float) -> None:
        self._interval_s, self._delay_s = interval_s, delay_s
        self._failures: deque[float] = deque(maxlen=max_failures + 1)

    def on_failure(self, now: float, worker_lost: bool = False) -> float | None:
        self._failures.append(now)
        too_many = (
            len(self._failures) == self._failures.maxlen
            and now - self._failures[0] < self._interval_s
        )
        return None if too_many else self._delay_s


class ExponentialDelay:
    """Pauses that grow from failure to failure, and start small again after the job ran well for
    long enough.

    A lost worker is nothing that a job does again at once, so there is next to no pause
    (``lost_s``), and none that grows; unless the job had failed a moment before, perhaps because it
    makes its workers die."""

    RECENT_S = 5.0

    def __init__(
        self,
        initial_s: float,
        max_s: float,
        factor: float,
        reset_s: float,
        attempts: int | None,
        lost_s: float | None = None,
    ) -> None:
        self._initial_s = initial_s
        self._max_s = max_s
        self._factor = factor
        self._reset_s = reset_s
        self._attempts = attempts
        self._lost_s = lost_s
        self._lost_at: float | None = None
        self._delay_s, self._in_a_row = initial_s, 0
        self._last_failure: float | None = None

    def on_failure(self, now: float, worker_lost: bool = False) -> float | None:
        recent = max(
            (at for at in (self._last_failure, self._lost_at) if at is not None),
            default=float("-inf"),
        )
        if worker_lost and self._lost_s is not None and now - recent >= self.RECENT_S:
            self._lost_at = now
            return self._lost_s
        if self._last_failure is None or now - self._last_failure >= self._reset_s + self._delay_s:
            self._delay_s, self._in_a_row = self._initial_s, 0
        else:
            self._delay_s = min(self._delay_s * self._factor, self._max_s)
        self._last_failure = now
        self._in_a_row += 1
        return (
            None
            if self._attempts is not None and self._in_a_row > self._attempts
            else self._delay_s
        )


AFTER_LOSS_S = 0.05

ATTEMPTS_OF_A_GENERATION = 1_000_000
"""A TaskExecutor may still run attempts of an earlier JobMaster, so those of a later one have other
numbers."""


@dataclass(frozen=True)
class SchedulerConfig:
    """What the scheduler reads from the job's configuration. Pauses and intervals in seconds.
    ``generation`` is greater for a JobMaster that takes the job over from another one, which has
    died."""

    strategy: SchedulingStrategyKind = SchedulingStrategyKind.PIPELINED_REGION
    restart: str = "none"  # none, fixed-delay, failure-rate or exponential-delay
    attempts: int = 1
    delay_s: float = 1.0
    rate_max: int = 1
    rate_interval_s: float = 60.0
    rate_delay_s: float = 1.0
    exp_initial_s: float = 1.0
    exp_max_s: float = 60.0
    exp_factor: float = 1.5
    exp_reset_s: float = 3600.0
    exp_attempts: int | None = None
    exp_lost_s: float | None = None  # the pause after a worker was lost, if it is another one
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    generation: int = 0
    attempts_kept: int = 16

    @staticmethod
    def of(values: Mapping[str, Any]) -> SchedulerConfig:
        """From the options of ``flinkpy.core.options``; raises ConfigurationError for an unknown
        restart strategy or a value that cannot be."""

        def seconds(option: Any) -> float:
            return float(read(values, option).total_seconds())

        checkpoints = CheckpointSettings.of(values)
        restart = read(values, options.RESTART_STRATEGY) or (
            "none" if checkpoints.interval_s is None else "exponential-delay"
        )
        config = SchedulerConfig(
            read(values, options.SCHEDULING_STRATEGY),
            restart,
            read(values, options.RESTART_ATTEMPTS),
            seconds(options.RESTART_DELAY),
            read(values, options.RESTART_RATE_MAX),
            seconds(options.RESTART_RATE_INTERVAL),
            seconds(options.RESTART_RATE_DELAY),
            seconds(options.RESTART_EXP_INITIAL),
            seconds(options.RESTART_EXP_MAX),
            read(values, options.RESTART_EXP_FACTOR),
            seconds(options.RESTART_EXP_RESET),
            read(values, options.RESTART_EXP_ATTEMPTS),
            None if options.RESTART_EXP_INITIAL.key in values else AFTER_LOSS_S,
            checkpoints,
            attempts_kept=read(values, options.ATTEMPTS_HISTORY),
        )
        config.restart_strategy()
        return config

    def restart_in_words(self) -> str:
        """The strategy in force by its name, and what it does, for people.

        >>> SchedulerConfig.of({"restart-strategy.type": "fixed-delay"}).restart_in_words()
        'fixed-delay: 1 restart at most, each after 1 s'
        """
        if self.restart == "fixed-delay":
            return (
                f"fixed-delay: {_restarts(self.attempts)} at most, each after "
                f"{_seconds(self.delay_s)}"
            )
        if self.restart == "failure-rate":
            within = f"{self.rate_max} in {_seconds(self.rate_interval_s)}"
            return (
                f"failure-rate: unless more failures than {within}, after "
                f"{_seconds(self.rate_delay_s)}"
            )
        if self.restart == "exponential-delay":
            most = (
                ""
                if self.exp_attempts is None
                else f"; {_restarts(self.exp_attempts)} in a row at most"
            )
            pauses = (
                f"after {_seconds(self.exp_initial_s)}, then {self.exp_factor:g} times as "
                f"long each time, up to {_seconds(self.exp_max_s)}"
            )
            return (
                f"exponential-delay: {pauses}; anew after {_seconds(self.exp_reset_s)} "
                f"without a failure{most}"
            )
        return f"{self.restart}: the first failure ends the job"

    def restart_strategy(self) -> RestartStrategy:
        """A new one, for one run of the job."""
        if self.restart == "none":
            return NoRestart()
        if self.restart == "fixed-delay":
            return FixedDelay(
                _at_least(0, self.attempts, options.RESTART_ATTEMPTS.key), self.delay_s
            )
        if self.restart == "failure-rate":
            return FailureRate(
                _at_least(1, self.rate_max, options.RESTART_RATE_MAX.key),
                self.rate_interval_s,
                self.rate_delay_s,
            )
        if self.restart == "exponential-delay":
            _at_least(1, self.exp_factor, options.RESTART_EXP_FACTOR.key)
            return ExponentialDelay(
                self.exp_initial_s,
                self.exp_max_s,
                self.exp_factor,
                self.exp_reset_s,
                self.exp_attempts,
                self.exp_lost_s,
            )
        raise ConfigurationError(
            f"option {options.RESTART_STRATEGY.key}: {self.restart!r} is none of none, "
            "fixed-delay, failure-rate, exponential-delay"
        )


def _restarts(number: int) -> str:
    return f"{number} restart{'' if number == 1 else 's'}"


def _seconds(seconds: float) -> str:
    """A pause as it is written in options."""
    return f"{seconds:g} s" if seconds >= 1 or seconds == 0 else f"{seconds * 1000:g} ms"


def _at_least(bound: int, value: Any, key: str) -> Any:
    if value < bound:
        raise ConfigurationError(f"option {key}: {value} is too small; it must be at least {bound}")
    return value
