"""What a failed job does next. Each strategy sets options (``restart-strategy.*``)."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from flinkpy.common.time import checked_milliseconds
from flinkpy.core.options.schema import parse_duration
from flinkpy.core.program.program_line import refuse


class RestartStrategyConfiguration(ABC):
    """The base class of the strategies in :class:`RestartStrategies`."""

    @abstractmethod
    def get_description(self) -> str:
        """The strategy in words."""

    @abstractmethod
    def options(self) -> dict[str, str]:
        """The options that the strategy sets."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.options() == other.options()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.options().items())))

    def __repr__(self) -> str:
        return f"<{self.get_description()}>"


_DELAY = "the pause before a restart"


class RestartStrategies:
    """
    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'Restart 3 times with a pause of 10000 ms'
    """

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        def get_description(self) -> str:
            return "Restart deactivated"

        def options(self) -> dict[str, str]:
            return {"restart-strategy.type": "none"}

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        def __init__(
            self, restart_attempts: int, delay_between_attempts_interval: datetime.timedelta | int
        ) -> None:
            self._attempts = restart_attempts
            self._delay_ms = checked_milliseconds(delay_between_attempts_interval, _DELAY, 0)

        def get_restart_attempts(self) -> int:
            return self._attempts

        def get_delay_between_attempts_interval(self) -> datetime.timedelta:
            return datetime.timedelta(milliseconds=self._delay_ms)

        def get_description(self) -> str:
            return f"Restart {self._attempts} times with a pause of {self._delay_ms} ms"

        def options(self) -> dict[str, str]:
            return {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": str(self._attempts),
                "restart-strategy.fixed-delay.delay": f"{self._delay_ms} ms",
            }

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        def __init__(
            self,
            max_failure_rate: int,
            failure_interval: datetime.timedelta | int,
            delay_between_attempts_interval: datetime.timedelta | int,
        ) -> None:
            self._max = max_failure_rate
            self._interval_ms = checked_milliseconds(
                failure_interval, "the interval in which failures are counted", 1
            )
            self._delay_ms = checked_milliseconds(delay_between_attempts_interval, _DELAY, 0)

        def get_max_failure_rate(self) -> int:
            return self._max

        def get_failure_interval(self) -> datetime.timedelta:
            return datetime.timedelta(milliseconds=self._interval_ms)

        def get_delay_between_attempts_interval(self) -> datetime.timedelta:
            return datetime.timedelta(milliseconds=self._delay_ms)

        def get_description(self) -> str:
            return (
                f"Restart up to {self._max} times within {self._interval_ms} ms with a pause "
                f"of {self._delay_ms} ms"
            )

        def options(self) -> dict[str, str]:
            return {
                "restart-strategy.type": "failure-rate",
                "restart-strategy.failure-rate.max-failures-per-interval": str(self._max),
                "restart-strategy.failure-rate.failure-rate-interval": f"{self._interval_ms} ms",
                "restart-strategy.failure-rate.delay": f"{self._delay_ms} ms",
            }

    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        def get_description(self) -> str:
            return "The cluster's own restart strategy"

        def options(self) -> dict[str, str]:
            return {}

    @staticmethod
    def no_restart() -> RestartStrategyConfiguration:
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: datetime.timedelta | int
    ) -> RestartStrategyConfiguration:
        """At most ``restart_attempts`` restarts, with a pause (milliseconds or a timedelta) before
        each. ProgramError if it is less than 0."""
        _refuse_negative("fixed_delay_restart", restart_attempts)
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(
            restart_attempts, delay_between_attempts
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int,
        failure_interval: datetime.timedelta | int,
        delay_interval: datetime.timedelta | int,
    ) -> RestartStrategyConfiguration:
        """Restarts, with a pause before each, until there are more than ``failure_rate`` failures
        within the interval (both in milliseconds or as a timedelta). ProgramError if it is less
        than 0."""
        _refuse_negative("failure_rate_restart", failure_rate)
        return RestartStrategies.FailureRateRestartStrategyConfiguration(
            failure_rate, failure_interval, delay_interval
        )

    @staticmethod
    def fall_back_restart() -> RestartStrategyConfiguration:
        """The strategy of the configuration."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()


def _refuse_negative(call: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise refuse(f"{call}() takes a whole number of failures from 0 on, this is {count!r:.80}")


def restart_strategy_of(values: Mapping[str, Any]) -> RestartStrategyConfiguration:
    """The strategy that the options ``restart-strategy.*`` describe.

    >>> restart_strategy_of(
    ...     RestartStrategies.fixed_delay_restart(3, 100).options()
    ... ).get_description()
    'Restart 3 times with a pause of 100 ms'
    """
    kind = str(values.get("restart-strategy.type", values.get("restart-strategy", ""))).lower()

    def span(key: str, default: str) -> datetime.timedelta:
        return parse_duration(str(values.get(f"restart-strategy.{key}", default)))

    if kind in ("none", "off", "disable"):
        return RestartStrategies.no_restart()
    if kind in ("fixed-delay", "fixeddelay"):
        attempts = int(values.get("restart-strategy.fixed-delay.attempts", 1))
        return RestartStrategies.fixed_delay_restart(attempts, span("fixed-delay.delay", "1 s"))
    if kind in ("failure-rate", "failurerate"):
        most = int(values.get("restart-strategy.failure-rate.max-failures-per-interval", 1))
        return RestartStrategies.failure_rate_restart(
            most,
            span("failure-rate.failure-rate-interval", "1 min"),
            span("failure-rate.delay", "1 s"),
        )
    return RestartStrategies.fall_back_restart()
